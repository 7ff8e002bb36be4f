//! Semantics of small programs: SPEC sections 2 to 4 and 8, one table per subject.

use crate::support::{World, check, run, run_in, run_with};
use sheaf_lang::eval::{Interp, Options, STACK_BYTES};

#[test]
fn numbers_and_promotion() {
    check(&[
        ("(+ 1 2)", "=> 3"),
        ("(+)", "=> 0"),
        ("(*)", "=> 1"),
        ("(- 5)", "=> -5"),
        ("(- 10 1 2)", "=> 7"),
        ("(/ 7 2)", "=> 3.5"),
        ("(// 7 2)", "=> 3"),
        ("(// -7 2)", "=> -4"),
        ("(// 7.5 2)", "=> 3.0"),
        ("(mod -7 3)", "=> 2"),
        ("(% 7 -3)", "=> -2"),
        ("(mod -7.5 3)", "=> 1.5"),
        ("(sqrt 4)", "=> 2.0"),
        ("(** 2 10)", "=> 1024"),
        ("(** 2 -1)", "=> 0.5"),
        ("(** 3 65)", "=> 7752514261426648835"),
        ("(** 2.0 0.5)", "=> 1.4142135"),
        ("(+ 9223372036854775807 1)", "=> -9223372036854775808"),
        ("(* 0.1 3)", "=> 0.3"),
        ("(* (arange 3) 2.5)", "=> tensor f32[3] = [0.  2.5 5. ]"),
        ("(* (arange 3) 2)", "=> tensor i32[3] = [0 2 4]"),
        ("(/ (arange 3) 2)", "=> tensor f32[3] = [0.  0.5 1. ]"),
        ("(// (- (arange 4) 2) 2)", "=> tensor i32[4] = [-1 -1  0  0]"),
        ("(mod (- (arange 4) 2) 3)", "=> tensor i32[4] = [1 2 0 1]"),
        ("(** (arange 3) 2)", "=> tensor i32[3] = [0 1 4]"),
        ("(+ [1 2] 1)", "=> tensor f32[2] = [2. 3.]"),
        ("(+ [true false] 1)", "=> tensor i32[2] = [2 1]"),
        ("(+ [true false] [true true])", "=> tensor i32[2] = [2 1]"),
        ("(* [true false] 2.5)", "=> tensor f32[2] = [2.5 0. ]"),
        ("(+ (arange 2) [0.5 1])", "=> tensor f32[2] = [0.5 2. ]"),
        ("(+ (cast [1 2] :i64) (arange 2))", "error: i64[2] and i32[2] have different dtypes of one kind"),
        ("(dtype (+ (cast [1 2] :u32) 1))", "=> :u32"),
        ("(dtype (sqrt (arange 3)))", "=> :f32"),
        ("(dtype 1)", "=> :i64"),
        ("(dtype 1.0)", "=> :f32"),
        ("(maximum 3 2.5)", "=> 3.0"),
        ("(abs -3)", "=> 3"),
        ("(floor 2.7)", "=> 2.0"),
        ("(round 2.5)", "=> 2.0"),
        ("(sum [true true false])", "=> tensor i32[] = 2"),
        ("(mean [true false])", "=> tensor f32[] = 0.5"),
        ("(mean 3)", "=> tensor f32[] = 3.0"),
        ("(// 1 0)", "=> -1"),
        ("(mod 1 0)", "=> 1"),
        ("(/ 1 0)", "=> inf"),
    ]);
}

#[test]
fn vector_literals() {
    check(&[
        ("[1 2 3]", "=> tensor f32[3] = [1. 2. 3.]"),
        ("[[1 2] [3 4]]", "=> tensor f32[2x2] = [[1. 2.]\n [3. 4.]]"),
        ("[true false]", "=> tensor bool[2] = [true false]"),
        ("[1 2] :i32", "=> tensor i32[2] = [1 2]"),
        ("(print [16777217 1] :i32)", "[16777217        1]"),
        ("(let [x [[4294967295]] :u32] x)", "=> tensor u32[1x1] = [[4294967295]]"),
        ("(tensor '[16777217] :i32)", "=> tensor i32[1] = [16777217]"),
        ("[]", "=> '[]"),
        ("[1 :a \"x\"]", "=> '[1 :a x]"),
        ("[1 true]", "=> '[1 true]"),
        ("[[1 2] [3]]", "=> '[[1. 2.] [3.]]"),
        ("[1 [2 3]]", "=> '[1 [2. 3.]]"),
        ("(let [x [1 2] y [3 4]] (len [x y]))", "=> 2"),
        ("(let [x [1 2] y [3 4]] (list? [x y]))", "=> true"),
        ("(let [x (sum [1 2])] [x 1])", "=> tensor f32[2] = [3. 1.]"),
        ("(let [i (sum (arange 3))] [i 1])", "=> tensor i32[2] = [3 1]"),
        ("(let [i (sum (arange 3))] [[i 1] [1 2]])", "=> tensor i32[2x2] = [[3 1]\n [1 2]]"),
        ("(let [i (sum (arange 3)) x (sum [1])] (list? [i x]))", "=> true"),
        ("(let [a 1 b 2] [a b])", "=> tensor f32[2] = [1. 2.]"),
        ("[(> (sum [1]) 0) true]", "=> tensor bool[2] = [true true]"),
        ("[{:a 1} 2]", "=> '[{:a 1} 2]"),
        ("(nth '[2 3] 0)", "=> 2"),
        ("(nth [2 3] 0)", "=> tensor f32[] = 2.0"),
        ("(let [[a b] [1 2]] a)", "=> 1"),
        ("(let [[a b] [[1 2] [3 4]]] b)", "=> tensor f32[2] = [3. 4.]"),
        ("(repeat [i 3] [[a b] [0 1]] [b (+ a b)])", "=> '[2 3]"),
        ("(repeat [i 0] [[a b] [0 1]] [b a])", "=> '[0 1]"),
        ("(repeat [i 2] [[a b] [0 1]] (if (= i 0) [b a] (let [c 7] [c a])))", "=> '[7 1]"),
        ("(repeat [i 2] [[a b] [0 1]] (case i 0 [5 6] [a 9]))", "=> '[5 9]"),
        ("(while (< a 3) [[a b] [0 1]] [(+ a 1) (* b 2)])", "=> '[3 8]"),
        ("(let [[a [b c]] [1 [2 3]]] c)", "=> 3"),
        ("(reduce (fn [[a b] x] [b (+ a x)]) [0 1] '[1 2 3])", "=> '[3 4]"),
        ("(repeat [i 3] [acc 0] (+ acc i))", "=> 3"),
        ("(print '[1 2] :i32)", "[1 2] :i32"),
        ("(defn f [x] :i32) (f 1)", "=> :i32"),
    ]);
}

#[test]
fn truth() {
    check(&[
        ("(if 0 1 2)", "=> 1"),
        ("(if \"\" 1 2)", "=> 1"),
        ("(if '[] 1 2)", "=> 1"),
        ("(if nil 1 2)", "=> 2"),
        ("(if false 1)", ""),
        ("(if (> (sum [1]) 2) 1 2)", "=> 2"),
        ("(if (sum [0]) 1 2)", "=> 1"),
        ("(if [1] 1 2)", "error: a condition is one truth value"),
        ("(and)", "=> true"),
        ("(and 1 nil 3)", ""),
        ("(and 1 2)", "=> 2"),
        ("(or)", ""),
        ("(or nil false)", "=> false"),
        ("(or nil 3 (undefined? 1))", "error: unknown name undefined?"),
        ("(or nil 3 (nth '[] 5))", "=> 3"),
        ("(not 0)", "=> false"),
        ("(not nil)", "=> true"),
        ("(not [true false])", "=> tensor bool[2] = [false true]"),
        ("(when 1 2 3)", "=> 3"),
        ("(unless 1 2)", ""),
        ("(cond false 1 nil 2 :else 3)", "=> 3"),
        ("(cond false 1)", ""),
        ("(case 2 1 :one 2 :two :many)", "=> :two"),
        ("(case (sum [2]) 1 :one 2 :two)", "=> :two"),
        ("(case :b :a 1 :c 2)", ""),
        ("(case \"x\" \"x\" 1 2)", "=> 1"),
        ("(case 3 (1 2) :low (3 4) :high)", "=> :high"),
        ("(case 'a a 1 2)", "=> 1"),
    ]);
}

#[test]
fn equality() {
    check(&[
        ("(= [1 2 1] 1)", "=> tensor bool[3] = [true false true]"),
        ("(= 1 1.0)", "=> true"),
        ("(= true 1)", "=> true"),
        ("(equal? true 1)", "=> false"),
        ("(= :a :a)", "=> true"),
        ("(= \"a\" \"b\")", "=> false"),
        ("(!= \"a\" \"b\")", "=> true"),
        ("(= nil nil)", "=> true"),
        ("(= [1 2] nil)", "=> false"),
        ("(= '[1 :a] '[1 :a])", "=> true"),
        ("(= {:a 1 :b 2} {:b 2 :a 1})", "=> true"),
        ("(= (shape [[1 2 3]]) [1 3])", "=> tensor bool[2] = [true true]"),
        ("(equal? (shape [[1 2 3]]) [1 3])", "=> true"),
        ("(equal? [1 2] (cast [1 2] :i32))", "=> true"),
        ("(equal? [1 2] [1 2 3])", "=> false"),
        ("(equal? [1 2] [[1 2]])", "=> false"),
        ("(equal? 1 (sum [1]))", "=> true"),
        ("(equal? (sum [1]) :a)", "=> false"),
        ("(equal? '[1 [2]] '[1 [2]])", "=> true"),
        ("(let [x [9007199254740993] :i64] (equal? x (- x 1)))", "=> false"),
        ("(equal? [9007199254740993] :i64 '[9007199254740992])", "=> false"),
        ("(< \"a\" \"b\")", "=> true"),
        ("(< [1 5] [[2] [6]])", "=> tensor bool[2x2] = [[true false]\n [true true]]"),
    ]);
}

#[test]
fn dictionaries() {
    check(&[
        ("{:x 1 \"y\" 2}", "=> {:x 1 \"y\" 2}"),
        ("(:x {:x 1})", "=> 1"),
        ("(:y {:x 1})", ""),
        ("(:y {:x 1} 5)", "=> 5"),
        ("(:y nil)", ""),
        ("(get {:a {:b 1}} :a :b)", "=> 1"),
        ("(get {:a {:b 1}} :a :c 7)", "=> 7"),
        ("(get {:a 1} :b 7)", "=> 7"),
        ("(get {:a 1} :b :none)", "=> :none"),
        ("(get {:a {:b 1}} :a :none)", ""),
        ("(get {} :a :b 0)", "=> 0"),
        ("(get {:a 5} :a :none)", "=> 5"),
        ("(get {:a {:b 1}} \"a\" 'b)", "=> 1"),
        ("(get {:a {:b 1}} :a 3)", "=> {:b 1}"),
        ("(get nil :a)", ""),
        ("(get nil :a 4)", "=> 4"),
        ("(get '[5 6] 1)", "=> 6"),
        ("(get [5 6 7] [0 2])", "=> tensor f32[2] = [5. 7.]"),
        ("(get [5 6 7] (arange 2))", "=> tensor f32[2] = [5. 6.]"),
        ("(get [5 6 7] [-1 0])", "=> tensor f32[2] = [7. 5.]"),
        ("(get-in {:a {:b 1}} '[:a :b])", "=> 1"),
        ("(get-in {:a {:b 1}} '[:a :c] 9)", "=> 9"),
        ("(assoc {:a 1} :b 2)", "=> {:a 1 :b 2}"),
        ("(assoc-in {} '[:a :b] 2)", "=> {:a {:b 2}}"),
        ("(update {:a 1} :a + 5)", "=> {:a 6}"),
        ("(dissoc {:a 1 :b 2} :a)", "=> {:b 2}"),
        ("(merge {:a 1} {:b 2 :a 3})", "=> {:a 3 :b 2}"),
        ("(keys {:z 1 :a 2})", "=> '[:z :a]"),
        ("(vals {:z 1 :a 2})", "=> '[1 2]"),
        ("(contains? {:a nil} :a)", "=> true"),
        ("(flatten {:b 1 :a '[2 {:d 3 :c 4}]})", "=> '[2 4 3 1]"),
        ("(tree-map + {:b 1 :a 2} {:a 10 :b 20})", "=> {:b 21 :a 12}"),
        ("(tree-map + {:b 1} {:a 10})", "error: the trees differ"),
        ("(let [d {:a 1}] (assoc d :a 2) d)", "=> {:a 1}"),
    ]);
}

#[test]
fn binding() {
    check(&[
        ("(let [x 1 y (+ x 1)] (* x y))", "=> 2"),
        ("(let [x 1 x (+ x 1)] x)", "=> 2"),
        ("(let [x 1] (let [x 2] x) x)", "=> 1"),
        ("(let [[a b & more] '[1 2 3 4]] more)", "=> '[3 4]"),
        ("(let [[a [b c]] '[1 [2 3]]] c)", "=> 3"),
        ("(let [{:keys [a b]} {:a 1 :b 2}] (+ a b))", "=> 3"),
        ("(let [{:keys [a z]} {:a 1}] z)", ""),
        ("(let [[r s] [[1 2] [3 4]]] s)", "=> tensor f32[2] = [3. 4.]"),
        ("(let [[a b] '[1]] a)", "error: a pattern of 2 names meets 1 values"),
        ("((fn [x & xs] xs) 1 2 3)", "=> '[2 3]"),
        ("((fn [x & xs] xs) 1)", "=> '[]"),
        ("((fn [& [a b]] b) 1 2)", "=> 2"),
        ("((lambda (x) (* x x)) 3)", "=> 9"),
        ("((fn [{:keys [h]} [a b]] (+ h b)) {:h 1} '[2 3])", "=> 4"),
        ("(defn f \"doc\" [x] :jit (+ x 1)) (f 1)", "=> 2"),
        ("(defn (f x y) (- x y)) (f 5 3)", "=> 2"),
        ("(defn f [(x f32 [2])] (sum x)) (f [1 2])", "=> tensor f32[] = 3.0"),
        ("(defn f [(x [2])] (sum x)) (f [1 2 3])", "error: parameter x wants a tensor of shape [2]"),
        ("(defn f [x] (g x)) (defn g [x] (* x 2)) (f 4)", "=> 8"),
        ("(def a 1) (def b (+ a 1)) b", "=> 2"),
        ("(def v [1 2] :i32) v", "=> tensor i32[2] = [1 2]"),
        ("(let [fs (map (fn [i] (fn [x] (+ x i))) '[1 2])] ((second fs) 10))", "=> 12"),
        (
            "(let [k 1] (repeat [i 3] [fs '[]] (append fs (fn [] (+ i k)))))",
            "=> '[<fn:<lambda>> <fn:<lambda>> <fn:<lambda>>]",
        ),
        ("(map (fn [f] (f)) (repeat [i 3] [fs '[]] (append fs (fn [] i))))", "=> '[0 1 2]"),
        ("(let [x 1] ((fn [] (let [x 2] ((fn [] x))))))", "=> 2"),
        ("(let [f (fn [x] (let [g (fn [y] (+ x y))] (g 1)))] (f 2))", "=> 3"),
        ("(-> 5 (- 1) (* 2))", "=> 8"),
        ("(->> 5 (- 1) (* 2))", "=> -8"),
        ("(-> {:a 3} :a neg)", "=> -3"),
        ("(as-> 5 x (- x 1) (/ 8 x))", "=> 2.0"),
        ("(as-> 5 x)", "=> 5"),
        ("(static 3)", "=> 3"),
        ("(defn f [n] (if (= n 0) 1 (* n (f (- n 1))))) (f 10)", "=> 3628800"),
    ]);
}

#[test]
fn with_params_names() {
    check(&[
        // Keys shadow outer locals and definitions.
        ("(def W 1) (let [p {:W 2}] (with-params p W))", "=> 2"),
        ("(let [b 1 p {:b 2}] (with-params [p] b))", "=> 2"),
        ("(def W 1) (with-params {:b 2} (+ W b))", "=> 3"),
        // Builtins that are not at the head are ordinary names.
        ("(with-params {:exp 2} exp)", "=> 2"),
        // A name at the head of a call refers to a function if one is in scope.
        ("(with-params {:exp 2} (exp 0))", "=> 1.0"),
        ("(defn f [x] (* 2 x)) (with-params {:f 5} (f f))", "=> 10"),
        ("(let [g (fn [x] 7)] (with-params {:g [1 2]} (g 0)))", "=> 7"),
        // If none is, the key is called: a tensor is indexed.
        ("(with-params {:t [5 6]} (t 1))", "=> tensor f32[] = 6.0"),
        ("(let [t 3] (with-params {:t [5 6]} (t 1)))", "=> tensor f32[] = 6.0"),
        // Inner bindings shadow keys.
        ("(with-params {:x 1} (let [x 2] x))", "=> 2"),
        ("(with-params {:x 1} ((fn [x] x) 3))", "=> 3"),
        ("(with-params {:x 1} (repeat [i 1] [x 0] (+ x 5)))", "=> 5"),
        ("(with-params {:x 1} (let [y (+ x 1) x 10] (+ x y)))", "=> 12"),
        // The innermost dictionary first.
        ("(with-params {:x 1 :y 2} (with-params {:x 10} (+ x y)))", "=> 12"),
        ("(with-params {:x {:y 1}} (with-params [x :y] 3))", "=> 3"),
        ("(with-params {:p {:W 4}} (with-params p W))", "=> 4"),
        // Paths.
        ("(with-params [{:l1 {:a {:W 4}}} :l1 :a] W)", "=> 4"),
        ("(with-params [{:l1 {:W 4}} :l2] W)", "error: with-params found no :l2"),
        ("(defn -entry [a b] {:W 0}) (with-params [{:l1 {:W 4}} :l1] W)", "=> 4"),
        // Closures see the keys of their definition.
        ("(let [f (with-params {:k 3} (fn [x] (* k x)))] (f 2))", "=> 6"),
        ("(let [f (with-params {:k 3} (fn [] (fn [x] (* k x))))] ((f) 2))", "=> 6"),
        ("(with-params {:k 3} (map (fn [x] (with-params {:j 1} (+ j k x))) '[1 2]))", "=> '[5 6]"),
        ("(with-params {:k 3} (map (fn [k] k) '[1 2]))", "=> '[1 2]"),
        ("(with-params {:W 1} V)", "error: unknown name V"),
        ("(with-params 3 W)", "error: with-params wants a dictionary, not the number 3"),
        ("(with-params {:a 1})", "error: with-params is written"),
    ]);
}

#[test]
fn indexing() {
    check(&[
        ("([5 6 7] 0)", "=> tensor f32[] = 5.0"),
        ("([5 6 7] -1)", "=> tensor f32[] = 7.0"),
        ("([5 6 7 8] 1:3)", "=> tensor f32[2] = [6. 7.]"),
        ("([5 6 7 8] 2:99)", "=> tensor f32[2] = [7. 8.]"),
        ("([[1 2] [3 4]] 1 0)", "=> tensor f32[] = 3.0"),
        ("([[1 2] [3 4]] 0:2 1)", "=> tensor f32[2] = [2. 4.]"),
        ("([[1 2] [3 4]] 0:1 0:1)", "=> tensor f32[1x1] = [[1.]]"),
        ("([[1 2] [3 4]] [1 0])", "=> tensor f32[2x2] = [[3. 4.]\n [1. 2.]]"),
        ("([[1 2] [3 4]] [1 0] 0)", "=> tensor f32[2] = [3. 1.]"),
        ("([5 6] 2)", "error: index 2 is outside of axis 0 of f32[2]"),
        ("([5 6] 0 0)", "error: 2 indices for a tensor f32[2]"),
        ("([5 6] 0.5)", "error: an index must be a whole number"),
        ("(slice [1 2 3 4] 1 -1)", "=> tensor f32[2] = [2. 3.]"),
        ("(slice \"hello\" 1 3)", "=> \"el\""),
        ("(slice '[1 2 3] -2)", "=> '[2 3]"),
        ("(first [[1 2] [3 4]])", "=> tensor f32[2] = [1. 2.]"),
        ("(last '[1 2])", "=> 2"),
        ("(rest [1 2 3])", "=> tensor f32[2] = [2. 3.]"),
        ("(rest '[1 2 3])", "=> '[2 3]"),
        ("(take 2 [1 2 3])", "=> tensor f32[2] = [1. 2.]"),
        ("(drop 2 [1 2 3])", "=> tensor f32[1] = [3.]"),
        ("(reverse [1 2 3])", "=> tensor f32[3] = [3. 2. 1.]"),
        ("(reverse '[1 2])", "=> '[2 1]"),
        ("(nth '[1 2] 2)", "error: position 2 is outside of a list of 2 items"),
        ("(nth \"abc\" -1)", "=> \"c\""),
        ("(nth \"abc\" -5)", "error: position -5 is outside of a text of 3 characters"),
        ("(first '[])", ""),
    ]);
}

#[test]
fn lists_and_functions() {
    check(&[
        ("(map inc? '[1])", "error: unknown name inc?"),
        ("(map + '[1 2] '[10 20 30])", "=> '[11 22]"),
        ("(map (fn [row] (sum row)) [[1 2] [3 4]])", "=> '[3.0 7.0]"),
        ("(mapv (fn [row] (sum row)) [[1 2] [3 4]])", "=> tensor f32[2] = [3. 7.]"),
        ("(mapv (fn [i] (* i i)) '[1 2])", "=> tensor i32[2] = [1 4]"),
        ("(where [true false] 1 0)", "=> tensor i32[2] = [1 0]"),
        ("(where true 1 0)", "=> 1"),
        ("(broadcast-to 1 '[2])", "=> tensor i32[2] = [1 1]"),
        ("(broadcast-to 1.5 '[2])", "=> tensor f32[2] = [1.5 1.5]"),
        ("(reshape 3 1)", "=> tensor i32[1] = [3]"),
        ("(expand-dims 3 0)", "=> tensor i32[1] = [3]"),
        ("(stack (list 1 2.5))", "=> tensor f32[2] = [1.  2.5]"),
        ("(stack (list 1 (sum [1])))", "=> tensor f32[2] = [1. 1.]"),
        ("(full '[2] 7)", "=> tensor i32[2] = [7 7]"),
        ("(zeros-like 3)", "=> 0"),
        ("(filter (fn [x] (> x 1)) '[1 2 3])", "=> '[2 3]"),
        ("(reduce + 0 '[1 2 3])", "=> 6"),
        ("(reduce + 0 [1 2 3])", "=> tensor f32[] = 6.0"),
        ("(apply + '[1 2 3])", "=> 6"),
        ("(map :a (list {:a 1} {:a 2}))", "=> '[1 2]"),
        ("(zip '[1 2] '[:a :b])", "=> '[[1 :a] [2 :b]]"),
        ("(cons 1 '[2])", "=> '[1 2]"),
        ("(append '[1] 2 3)", "=> '[1 2 3]"),
        ("(concat '[1] '[2 3])", "=> '[1 2 3]"),
        ("(concat \"a\" \"b\")", "=> \"ab\""),
        ("(concat [1 2] [3])", "=> tensor f32[3] = [1. 2. 3.]"),
        (
            "(concat [[[1] [2]] [[3] [4]]] :axis 1)",
            "=> tensor f32[2x2x1] = [[[1.]\n  [2.]]\n\n [[3.]\n  [4.]]]",
        ),
        ("(stack (list [1 2] [3 4]) :axis 1)", "=> tensor f32[2x2] = [[1. 3.]\n [2. 4.]]"),
        ("(empty? '[])", "=> true"),
        ("(len {:a 1})", "=> 1"),
        ("(shape (zeros '[2 3]))", "=> '[2 3]"),
        ("(shape (zeros [2 3]) 1)", "=> 3"),
        ("(let [n 2] (shape (zeros [n 4])))", "=> '[2 4]"),
        ("(shape (zeros 2 3))", "=> '[2 3]"),
        ("(reshape (arange 6) 2 3)", "=> tensor i32[2x3] = [[0 1 2]\n [3 4 5]]"),
        ("(shape (reshape (arange 6) '[-1 2]))", "=> '[3 2]"),
        ("(zeros [2] :i32)", "=> tensor i32[2] = [0 0]"),
        ("(zeros [2] :dtype :i32)", "=> tensor i32[2] = [0 0]"),
        ("(number? 1)", "=> true"),
        ("(tensor? 1)", "=> false"),
        ("(tensor? [1])", "=> true"),
        ("(fn? sum)", "=> true"),
        ("(symbol? 'a)", "=> true"),
        ("(sum [[1 2] [3 4]] :axis 0)", "=> tensor f32[2] = [4. 6.]"),
        ("(sum [[1 2] [3 4]] :axis 1 :keepdims)", "=> tensor f32[2x1] = [[3.]\n [7.]]"),
        ("(sum [[1 2] [3 4]] :axis '[0 1] :keepdims true)", "=> tensor f32[1x1] = [[10.]]"),
        ("(argmax [[1 3] [4 2]])", "=> tensor i32[] = 2"),
        ("(softmax [[0 0] [0 0]] :axis 0)", "=> tensor f32[2x2] = [[0.5 0.5]\n [0.5 0.5]]"),
        ("(softmax [0 0])", "=> tensor f32[2] = [0.5 0.5]"),
        ("(logsumexp [0 0])", "=> tensor f32[] = 0.6931472"),
        ("(logsumexp [[0 0] [0 0]] :axis 1 :keepdims)", "=> tensor f32[2x1] = [[0.6931472]\n [0.6931472]]"),
        (
            "(log-softmax [[0 0] [0 0]] :axis 0)",
            "=> tensor f32[2x2] = [[-0.6931472 -0.6931472]\n [-0.6931472 -0.6931472]]",
        ),
        ("(one-hot [0 2] 3)", "=> tensor f32[2x3] = [[1. 0. 0.]\n [0. 0. 1.]]"),
    ]);
}

#[test]
fn macros() {
    check(&[
        ("(defmacro twice [x] `(do ~x ~x)) (twice (print 1))", "1\n1"),
        ("(defmacro my-list [& xs] `(list 0 ~@xs 9)) (my-list 1 2)", "=> '[0 1 2 9]"),
        ("(defmacro vec [& xs] `[~@xs]) (vec 1 2)", "=> tensor f32[2] = [1. 2.]"),
        ("(defmacro d [k v] `{~k ~v :b 2}) (d :a 1)", "=> {:a 1 :b 2}"),
        // The body may call functions defined above.
        ("(defn double [x] (* 2 x)) (defmacro m [n] (double n)) (m 21)", "=> 42"),
        // Macros and threading inside an unquote.
        ("(defmacro m [x] `(+ 1 ~(-> x (* 2)))) (m 4)", "=> 9"),
        ("(defmacro m [x] `(list ~(when x 5))) (m true)", "=> '[5]"),
        // Macros that use macros, and that make macros.
        ("(defmacro a [x] `(b ~x)) (defmacro b [x] `(+ ~x 1)) (a 2)", "=> 3"),
        ("(defmacro def-const [name v] `(defmacro ~name [] ~v)) (def-const five 5) (+ (five) 1)", "=> 6"),
        // Nested quasiquote.
        ("`(a `(b ~(c ~(+ 1 2))))", "=> '[a [quasiquote [b [unquote [c 3]]]]]"),
        ("`(1 ~(+ 1 1) ~@(list 3 4))", "=> '[1 2 3 4]"),
        ("`(a . ~@'[])", "=> '[a .]"),
        ("'(1 (2 :k \"s\") [x])", "=> '[1 [2 :k s] [x]]"),
        ("(quote x)", "=> x"),
        // gensym gives a unique name.
        (
            "(defmacro swap [a b] (let [t (gensym)] `(let [~t ~a] (list ~b ~t)))) (let [t 1 u 2] (swap t u))",
            "=> '[2 1]",
        ),
        // Several definitions at once, used below; by functions above as well.
        ("(defmacro pair [a b] `(do (def ~a 1) (defn ~b [x] (+ x ~a)))) (pair one plus) (plus 5)", "=> 6"),
        ("(defn f [] (plus 5)) (defmacro mk [n] `(defn ~n [x] (+ x 1))) (mk plus) (f)", "=> 6"),
        ("(defmacro mk [n] `(defn ~n [x] x)) (mk a) (mk a)", "error: a is defined twice"),
        ("(defmacro m [x] x) (defmacro m [x] x)", "error: m is defined twice"),
        ("(defn m [x] x) (defmacro m [x] x)", "error: m is defined twice"),
        ("(defmacro inf [] `(inf)) (inf)", "error: the macro inf expands without end"),
        ("(defmacro m [] [1 2]) (m)", "error: the macro m gave a tensor f32[2], which is not code"),
        ("(defmacro m [x] (nth x 3)) (m (1 2))", "error: position 3 is outside of a list of 2 items"),
        ("(defmacro m [x] (list '+ x 1)) (m 2)", "=> 3"),
        ("(defmacro m [x] [x x]) (list? (m :a))", "=> true"),
        ("(defmacro m [& body] (cons 'do body)) (m 1 2)", "=> 2"),
        ("(defmacro m [{:keys [a]}] a) (m {:a 4})", "=> 4"),
        ("(comment anything (at all))", ""),
        (
            "(defmodel forward [x] (layer :h relu) (layer :out))
             (forward [1 2] {:h {:W [[1 0] [0 1]] :b [0 -5]} :out {:W [[2] [3]] :b [1]}})",
            "=> tensor f32[1] = [3.]",
        ),
        ("(~x)", "error: unquote outside of a quasiquote"),
        ("`~@(list 1)", "error: ~@ splices into a list"),
    ]);
}

#[test]
fn definitions() {
    check(&[
        ("(def a 1) (def a 2)", "error: a is defined twice"),
        ("(defn if [x] x)", "error: if is a special form"),
        ("(def let 1)", "error: let is a special form"),
        ("(let [x 1] (def y 2))", "error: def belongs at the top level"),
        ("(f) (def f (fn [] 1))", "error: f is used before its definition has run"),
        ("(defn f [x])", "error: f has no body"),
        ("(defparams P {:a [2]}) P", "=> {:a [2]}"),
    ]);
    let out = run("(defn relu [x] 1)\n(defn softmax [x] 2)\n(relu (softmax 3))");
    assert_eq!(out.matches("warning").count(), 2, "{out}");
    assert!(out.ends_with("=> 1"), "{out}");
    // A definition in this file shadows a macro of the language.
    assert!(run("(defn comment [x] (* x 2)) (comment 4)").ends_with("=> 8"));
    let two = World::with(&[("a.shf", "(defn exp [x] 1)"), ("b.shf", "(defn exp [x] 2)")]);
    let out = run_in(&two, "(use a :as a) (use b :as b) (list (a/exp 0) (b/exp 0) (exp 0))");
    assert_eq!(out.matches("warning").count(), 1, "once for a name: {out}");
    assert!(out.ends_with("=> '[1 2 1.0]"), "{out}");
}

#[test]
fn modules() {
    let files = [
        (
            "model.shf",
            "(use nn) (def scale 3) (defn twice [x] (* 2 x)) (defn -hidden [x] x) (defn get-scale [] scale)",
        ),
        ("other.shf", "(defn twice [x] (* 20 x)) (defmacro quad [x] `(* 4 ~x))"),
        ("sub/deep.shf", "(use ./near.shf) (use model) (defn both [] (list (near) (twice 1)))"),
        ("sub/near.shf", "(defn near [] :near)"),
        ("norms.shf", "(use rms)"),
        ("rms.shf", "(defn rms-norm [x] :mine)"),
        ("wraps.shf", "(use model) (defn twice [x] (* 200 x))"),
        ("loud.shf", "(print \"loaded\") (def x 1)"),
        ("one.shf", "(use two)"),
        ("two.shf", "(use ./one.shf)"),
        ("nn.shf.not", ""),
        ("broken.shf", "(defn f [x] (+ x"),
    ];
    let cases = [
        // Flat names, and re-exports.
        ("(use model) (twice 4)", "=> 8"),
        ("(use model) (mse-loss [1 2] [1 4])", "=> tensor f32[] = 2.0"),
        ("(use model) (def scale 5) (list scale (get-scale))", "=> '[5 3]"),
        // :as and :only.
        ("(use model :as m) (m/twice 4)", "=> 8"),
        ("(use model :as m) (m/mse-loss [1 2] [1 4])", "=> tensor f32[] = 2.0"),
        ("(use model :as m) (twice 4)", "error: unknown name twice"),
        ("(use model :only [twice]) (twice 4)", "=> 8"),
        ("(use model :only [twice]) scale", "error: unknown name scale"),
        ("(use model :only [nothing])", "error: model does not define nothing"),
        ("(use other :only [quad]) (quad 2)", "=> 8"),
        ("(use other :as o) (o/quad 2)", "=> 8"),
        ("(use model) (-hidden 1)", "error: -hidden is private to model"),
        ("(use model :as m) (m/-hidden 1)", "error: m/-hidden is private to model"),
        // Precedence: this file, direct, re-exported, builtin; conflicts are ambiguous.
        ("(use model) (use other) (twice 1)", "error: twice is ambiguous: model and other define it"),
        ("(use model) (use other) (defn twice [x] 0) (twice 1)", "=> 0"),
        ("(use wraps) (twice 1)", "=> tensor"),
        ("(use nn) (use model) (mse-loss [1] [1])", "=> tensor f32[] = 0.0"),
        ("(use nn) (use norms) (rms-norm 1)", "=> :mine"),
        ("(use nn :only [rms-norm]) (use norms) (shape (rms-norm [1 1] {:gamma [1]}))", "=> '[2]"),
        ("(use norms) (use optim) (exp 0)", "=> 1.0"),
        // Search paths of modules.
        ("(use ./sub/deep.shf) (both)", "=> '[:near 2]"),
        ("(use ./sub/../model.shf) (use model) (twice 1)", "=> 2"),
        ("(use loud) (use loud :as l) (print l/x)", "loaded\n1"),
        ("(use nowhere)", "error: cannot use nowhere"),
        ("(use one)", "error: modules use each other in a cycle: one.shf uses two.shf uses one.shf"),
        ("(use ./test.shf)", "error: modules use each other in a cycle: test.shf uses test.shf"),
        ("(use broken)", "error:"),
        ("(use 3)", "error: use is written"),
        ("(use model :only twice)", "error: use is written"),
        ("(use model :as)", "error: use is written"),
    ];
    for (program, wanted) in cases {
        let wanted = if wanted == "=> tensor" { "=> 200" } else { wanted };
        let found = run_in(&World::with(&files), program);
        let fits = if wanted.starts_with("error:") { found.starts_with(wanted) } else { found == wanted };
        assert!(fits, "{program}\n  wanted {wanted}\n  found  {found}");
    }
}

/// Parts of the standard library that a program does not mention are never parsed.
#[test]
fn the_library_is_read_where_it_is_used() {
    for (program, parts) in [
        ("(defn f [x] (relu x)) (f 1)", &[] as &[&str]),
        ("(defn linear [x] (relu x)) (linear 1)", &[]),
        ("(use optim) (defn f [x] (norm x)) (f [3 4])", &[]),
        ("(defn f [x] (layer-norm x 1))", &["<nn/layers>"]),
        ("(defn f [x] (sgd-step (linear x 1 2) 1 2))", &["<nn/layers>", "<optim/optimisers>"]),
    ] {
        let mut interp = Interp::new(Box::<World>::default(), None, Options::default());
        interp.run_program("test.shf", program).expect("a program that runs");
        let library = ["<nn", "<optim", "<linalg"];
        let read = interp.sources.iter().map(|(name, _)| name.to_string());
        let mut read: Vec<String> = read.filter(|name| library.iter().any(|l| name.starts_with(l))).collect();
        read.sort();
        assert_eq!(read, parts, "{program}");
    }
}

/// An evaluator remains usable after errors.
#[test]
fn the_evaluator_goes_on_after_errors() {
    let world = World::default();
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    for program in [
        "(defn f [x] (+ x :a)) (f 1)",
        "(let [x 1 y (nth '[] 4 5)] x)",
        "(grad 3)",
        "((grad (fn [x] [x x])) 1)",
    ] {
        assert!(run_with(&mut interp, &world, program).starts_with("error"), "{program}");
        assert_eq!(
            run_with(&mut interp, &world, "(let [a 1 b 2] ((grad (fn [x] (* a x x))) b))"),
            "=> tensor f32[] = 4.0"
        );
    }
}

fn on_a_large_stack(program: &'static str) -> String {
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
    builder.spawn(move || run(program)).expect("a thread").join().expect("no panic")
}

#[test]
fn endless_recursion_is_an_error() {
    let deep = "error: calls are nested";
    for program in [
        "(defn f [x] (f x)) (f 1)",
        "(defn f [x] (+ 1 (f x))) (f 1)",
        "(defn f [x] (map f (list x))) (f 1)",
        "(defn f [x] (let [y 1] (if true (do (case 1 1 (apply f (list x))))))) (f 1)",
        "(defn f [x] ((grad f) x)) (f 1.0)",
        "(defmacro m [x] (m2 x)) (defn m2 [x] (m2 x)) (m 1)",
    ] {
        let out = on_a_large_stack(program);
        assert!(out.starts_with(deep) || out.starts_with("error: unknown name"), "{program}: {out}");
    }
    assert_eq!(on_a_large_stack("(defn f [n] (if (= n 0) 0 (+ 1 (f (- n 1))))) (f 9000)"), "=> 9000");
}

/// Deeply nested bodies, called endlessly.
#[test]
fn endless_recursion_through_deep_expressions_is_an_error() {
    let mut body = "(f x)".to_string();
    for _ in 0..900 {
        body = format!("(+ 1 {body})");
    }
    let program: &'static str = Box::leak(format!("(defn f [x] {body}) (f 1)").into_boxed_str());
    let out = on_a_large_stack(program);
    assert!(out.starts_with("error: calls are nested"), "{}", &out[..200.min(out.len())]);
}

/// Code nested more deeply by macros than a text can be.
#[test]
fn endlessly_nested_code_is_an_error() {
    let program = "(defmacro m [] (reduce (fn [acc i] (list '+ 1 acc)) 1 (range 100000))) (m)";
    let out = on_a_large_stack(program);
    assert!(
        out.starts_with("error: the macro m gave code nested more than"),
        "{}",
        &out[..200.min(out.len())]
    );
}

#[test]
fn a_private_name_may_be_that_of_a_helper_of_the_library() {
    check(&[("(defn -check [x] (* 2 x)) (-check 3)", "=> 6")]);
}
