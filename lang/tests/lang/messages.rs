//! Error messages that beginners are likely to meet, each below its program.

use std::fmt::Write;

use crate::support::{World, run_in};

/// Programs and their messages, as one text.
fn all(files: &[(&str, &str)], programs: &[&str]) -> String {
    let mut out = String::new();
    for program in programs {
        let said = run_in(&World::with(files), program);
        let _ = writeln!(out, "{program}\n---\n{said}\n==========");
    }
    out
}

macro_rules! messages {
    ($($test:ident: $files:expr, $programs:expr;)*) => {$(
        #[test]
        fn $test() {
            insta::with_settings!({ omit_expression => true }, {
                insta::assert_snapshot!(all(&$files, &$programs));
            });
        }
    )*};
}

messages! {
    names: [], [
        "(defn f [x]\n  (+ x lenght))\n(f 1)",
        "(lineer 1 2)",
        "(map when '[1 2])",
        "(defn train [steps]\n  (for [i steps] i))",
        "(np.zeros 3)",
        "(import nn)",
        "(let [x 1]\n  (set! x 2))",
        "(defn f [p]\n  (with-params [p]\n    (+ (@ x W1) b)))\n(f {:W [1 2] :b 0})",
        "(defn f [p]\n  (with-params [p :l1]\n    (* W 2)))\n(f {:layer1 {:W 1}})",
        "(with-params [1 2] W)",
        "(when undefined-condition 1)",
        "(-> 5 (+ 1) (foo 2))",
    ];
    calls: [], [
        "(defn loss [params x y] x)\n(loss 1 2)",
        "(defn f [x & more] x)\n(f)",
        "((fn [x] x) 1 2)",
        "(sqrt 1 2)",
        "(reshape)",
        "(5 1)",
        "(\"text\" 1)",
        "({:a 1} :a)",
        "(nil 1)",
        "(:a 5)",
        "(:a {:a 1} 2 3)",
        "(defn f [(x f32 [4 2])] x)\n(f [[1 2] [3 4]])",
        "(defn f [(x f33 [4 2])] x)",
        "(defn f [x] (g x))\n(defn g [x y] x)\n(f 1)",
        "(sum [1 2] :axes 0)",
        "(sum [1 2] :axis)",
    ];
    shapes: [], [
        "(@ [[1 2] [3 4]] [[1 2 3]])",
        "(let [x (ones [4 3]) W (ones [2 3])]\n  (@ x W))",
        "(@ [1 2 3] [1 2])",
        "(@ 2 [1 2])",
        "(+ (ones [4 3]) (ones [4 2]))",
        "(+ [1 2 3] [1 2])",
        "(where [true false] [1 2 3] 0)",
        "(reshape (arange 6) 4 2)",
        "(reshape (arange 6) -1 -1)",
        "(stack (list [1 2] [1 2 3]))",
        "(concat [[1 2]] [[1 2 3]])",
        "(sum [[1 2]] :axis 2)",
        "(transpose [[1 2]] '[0 0])",
        "(squeeze [[1 2]] :axis 1)",
        "(broadcast-to [1 2 3] '[2 2])",
        "([1 2 3] 5)",
        "([1 2 3] 0 1)",
        "(get [1 2 3] :a)",
        "(zeros [2 -1])",
        "(zeros :a)",
        "(zeros 1e30)",
        "(zeros [1000000 1000000 1000000])",
        "(zeros [3000000 1000000])",
        "(tensor '[[1 2] [3]])",
        "(+ '[1 2] 1)",
        "(mean '[])",
        "(max [])",
        "(argmax (zeros 0))",
        "(if [true false] 1 2)",
    ];
    types: [], [
        "(+ 1 \"a\")",
        "(+ 1 :a)",
        "(sqrt nil)",
        "(let [params {:W 1 :b 2}]\n  (* 2 (get params :w)))",
        "(let [params {:W [1 2]}\n      w (:weights params)]\n  (@ [1 2] w))",
        "(+ (cast [1 2] :i64) (cast [1 2] :i32))",
        "(cast [1 2] :float)",
        "(cast [1 2])",
        "(get 5 :a)",
        "(assoc {:a 1} :b)",
        "(keys '[1 2])",
        "(dict 1 2)",
        "(nth '[1 2] :a)",
        "(nth '[1 2] 0.5)",
        "(map 5 '[1 2])",
        "(map sum 5)",
        "(reduce + 0 5)",
        "(apply + 5)",
        "(let [[a b] 5] a)",
        "(let [[a b] '[1 2 3]] a)",
        "(let [{:keys [a]} '[1 2]] a)",
        "(format \"{:.2f} {}\" 1)",
        "(print \"{:.2f}\" \"x\")",
        "(< 1 :a)",
        "(not [1 2])",
        "(tree-map + {:a 1} {:b 2})",
        "(random-normal 42 '[2])",
        "((grad (fn [x] (* x x))) [1 2])",
        "((value-and-grad (fn [x] (list (sum x) 1))) [1 2])",
        "(nth (list 1 2) 7)",
    ];
    forms: [], [
        "(let [x] x)",
        "(let x 1)",
        "(let [5 1] 2)",
        "(if)",
        "(cond true)",
        "(fn x)",
        "(defn f)",
        "(defn f x)",
        "(defn f [x y x] x)",
        "(def f (fn [_ x _] x)) (f 1 2 3 4)",
        "(defn f [x])",
        "(defn [x] x)",
        "(def x)",
        "(def x 1 2)",
        "(def x 1)\n(def x 2)",
        "(defn f [] (def y 1))",
        "(defn if [x] x)",
        "(defn relu [x] (maximum x 0))\n(relu -1)",
        "(repeat 5 [acc 0] acc)",
        "(repeat [i 3] acc)",
        "(repeat [i 2.5] [acc 0] acc)",
        "(repeat [i \"3\"] [acc 0] acc)",
        "(while true)",
        "(quote a b)",
        "(with-params {:a 1})",
        "(as-> 1)",
        "(fn [x &] x)",
        "(fn [& a b] a)",
        "(let [{:key [a]} {}] a)",
        "{1 2}",
        "(print 1) (defn g [x] (x ~x))",
        "(println x)\n(def x 1)",
        "(print x)\n(defn x [] (y))\n(def z (w))",
    ];
    macros: [], [
        "(defmacro m [x] (+ x 1))\n(m y)",
        "(defmacro m [x] `(* ~x undefined-thing))\n(m 2)",
        "(defmacro m [a b] a)\n(m 1)",
        "(defmacro m [] 5)\n(+ m 1)",
        "(defmacro m [] [1 2])\n(m)",
        "(defmacro unless2 [c & body]\n  `(if ~c nil (do ~@body)))\n(unless2 (> 1 2)\n  (+ 1 :a))",
        "(defmacro m [x]\n  `(+ ~x \"text\"))\n\n(m 1)",
        "(defmacro m)",
    ];
    modules: [
        ("broken.shf", "(defn f [x]\n  (+ x y))"),
        ("unread.shf", "(defn f [x]"),
        ("a.shf", "(use b)"),
        ("b.shf", "(use c)"),
        ("c.shf", "(use a)"),
        ("one.shf", "(defn same [x] 1)"),
        ("two.shf", "(defn same [x] 2)"),
        ("fails.shf", "(def x (+ 1 :a))"),
    ], [
        "(use nnn)",
        "(use ./missing.shf)",
        "(use broken)\n(f 1)",
        "(use unread)",
        "(use a)",
        "(use one)\n(use two)\n(same 1)",
        "(use nn :only [linaer])",
        "(use nn :except [linear])",
        "(use \"nn\")",
        "(use fails)",
        "(use nn :as n)\n(n/linaer 1)",
    ];
    files: [
        ("rows.csv", "1,2\n3\n"),
        ("words.csv", "1,2\n3,x\n"),
    ], [
        "(io \"load\" \"missing.csv\")",
        "(io \"load\" \"rows.csv\")",
        "(io \"load\" \"words.csv\")",
        "(io \"load\" \"model.safetensors\")",
        "(io \"lode\" \"rows.csv\")",
        "(io \"load\")",
    ];
}
