//! Endless recursion and nesting, on the small stack of a test's thread: an error or the right result.

use crate::support::{check, run};

const TOO_DEEP: &str = "error: calls are nested more than 10000 deep";

#[test]
fn endless_recursion_is_an_error_however_it_goes() {
    check(&[
        ("(defn f [n] (f (+ n 1))) (f 0)", TOO_DEEP),
        ("(defn f [n] (+ 1 (f (+ n 1)))) (f 0)", TOO_DEEP),
        ("(defn f [n] (let [[a b] (f n)] (if a (do (f b) b) 0))) (f 0)", TOO_DEEP),
        ("(defn f [n] (g n)) (defn g [n] (- (f n))) (f 0)", TOO_DEEP),
        ("(defn f [& xs] (apply f xs)) (f 1 2)", TOO_DEEP),
        ("(defn f [x] (map f (list x))) (f 1)", TOO_DEEP),
        ("(defn f [a x] (reduce f a (list x))) (f 1 2)", TOO_DEEP),
        ("(defn f [x] (filter f (list x))) (f 1)", TOO_DEEP),
        ("(defn f [x] (tree-map f {:x x})) (f 1)", TOO_DEEP),
        ("(defn f [x] (update {:x x} :x f)) (f 1)", TOO_DEEP),
        ("(defn f [x] (repeat [i 2] [x x] (f x))) (f 1)", TOO_DEEP),
        ("(defn f [x] (while (f x) [x x] x)) (f 1)", TOO_DEEP),
        ("(defn f [x] (case (f x) 1 2 3)) (f 1)", TOO_DEEP),
        ("(defn f [x] {:x [(f x)]}) (f 1)", TOO_DEEP),
        ("(defn f [x] `(~(f x) ~@(f x))) (f 1)", TOO_DEEP),
        ("(def f (fn [self x] (self self x))) (f f 1)", TOO_DEEP),
        ("(defn f [x] ((grad f) x)) (f 1.0)", "error: "),
        ("(defmacro m [x] `(m ~x)) (m 1)", "error: the macro m expands without end"),
        ("(defmacro m [x] `(+ 1 (m ~x))) (m 1)", "error: the macro m expands without end"),
        ("(defn f [x] (f x)) (defmacro m [x] (f x)) (m 1)", TOO_DEEP),
    ]);
}

#[test]
fn recursion_within_the_bound_gives_its_result() {
    check(&[
        ("(defn f [n] (if (= n 0) 0 (+ 1 (f (- n 1))))) (f 9900)", "=> 9900"),
        ("(defn f [n] (if (= n 0) 0 (+ 1 (first (map f (list (- n 1))))))) (f 4900)", "=> 4900"),
        (
            "(defn even [n] (if (= n 0) true (odd (- n 1)))) (defn odd [n] (if (= n 0) false (even (- n 1)))) (even 9900)",
            "=> true",
        ),
    ]);
}

#[test]
fn deep_recursion_leaves_the_evaluator_usable() {
    let (mut interp, world, _) = crate::support::compiling(sheaf_lang::eval::Jit::Always);
    for _ in 0..2 {
        let wrong = crate::support::run_with(&mut interp, &world, "(defn f [x] (+ (f x) 1)) (f [1 2])");
        assert!(wrong.starts_with("error: "), "{wrong}");
        assert_eq!(
            crate::support::run_with(&mut interp, &world, "(defn f [x] (+ x 1)) (sum (f [1 2]))"),
            "=> tensor f32[] = 5.0"
        );
    }
}

#[test]
fn long_chains_of_code_are_evaluated() {
    let steps = "(+ 1) ".repeat(5_000);
    assert_eq!(run(&format!("(-> 0 {steps})")), "=> 5000");
    let clauses: String = (0..2_000).map(|i| format!("(= x {i}) {i} ")).collect();
    assert_eq!(
        run(&format!("(defn f [x] (cond {clauses} :else -1)) (list (f 1999) (f 5000))")),
        "=> '[1999 -1]"
    );
    let code = "(defmacro nested [n] (reduce (fn [code i] `(+ 1 ~code)) 0 (range n)))";
    assert_eq!(run(&format!("{code} (nested 900)")), "=> 900");
    assert!(
        run(&format!("{code} (nested 1000000)"))
            .starts_with("error: the macro nested gave code nested more than")
    );
}

#[test]
fn lists_nested_a_million_deep_are_built_printed_compared_and_dropped() {
    let text = run("
        (defn nested [n] (repeat [i n] [xs '[]] (list xs)))
        (def a (nested 1000000))
        (print (equal? a (nested 1000000)) (equal? a (nested 999999)) (= a a))
        (print (len (str a)))
        (case a 1 2 3)
        (if a (list a) a)");
    let (first, shown) = text.split_once("\n2000002\n=> '").expect("two lines and the value");
    assert_eq!(first, "true false true");
    assert_eq!(shown, format!("{}{}", "[".repeat(1_000_002), "]".repeat(1_000_002)));
}

#[test]
fn other_deep_values_are_built_used_and_dropped() {
    check(&[
        (
            "(defn nested [n] (repeat [i n] [d {}] {:d d})) (equal? (nested 200000) (nested 200000))",
            "=> true",
        ),
        ("(len (str (repeat [i 200000] [d 1] {:d (list d)})))", "=> 1400001"),
        ("(def f (repeat [i 200000] [f (fn [x] x)] (fn [x] (f x)))) (f 1)", TOO_DEEP),
        ("(def f (repeat [i 1000] [f (fn [x] x)] (fn [x] (f x)))) (f 1)", "=> 1"),
        ("(repeat [i 200000] [f (fn [x] x)] (grad f))", "error: transforms are nested more than 100 deep"),
        ("(def f (repeat [i 200000] [f (fn [x] x)] (grad (fn [x] (f x))))) (if f 1 2)", "=> 1"),
        ("(flatten (repeat [i 100000] [x 1] (list x)))", "=> '[1]"),
        ("(first (flatten (tree-map (fn [x] (+ x 1)) (repeat [i 100000] [x 1] {:a x}))))", "=> 2"),
        ("(tensor (repeat [i 100000] [x 1] (list x)))", "error: "),
        ("(defn f [x] 1) (f (repeat [i 100000] [x 1] (list x)))", "=> 1"),
        ("(+ 1 (repeat [i 100000] [x 1] (list x)))", "error: "),
    ]);
}

#[test]
fn deep_values_reach_functions_that_are_compiled() {
    let (mut interp, world, _) = crate::support::compiling(sheaf_lang::eval::Jit::Always);
    let text = "(defn f [x] (get x :y))
        (sum (f {:y [1 2] :deep (repeat [i 100000] [x 1] (list x))}))";
    assert_eq!(crate::support::run_with(&mut interp, &world, text), "=> tensor f32[] = 3.0");
}
