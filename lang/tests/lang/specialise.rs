//! Specialisation: compiled functions, their number and parameters, and equal results. The device of these tests
//! evaluates graphs on the host, so the recorded graph is what runs.

use crate::support::{compiling, run, run_with};
use sheaf_lang::eval::{Jit, Report, Status};

/// The program's output on the device, and the names and transformations of the units it compiled.
fn on_device(jit: Jit, program: &str) -> (String, Vec<String>) {
    let (mut interp, world, log) = compiling(jit);
    let out = run_with(&mut interp, &world, program);
    let units = log.borrow().units.iter().map(|u| format!("{}{}", u.function, dash(u.transform))).collect();
    (out, units)
}

fn dash(transform: &str) -> String {
    if transform.is_empty() { String::new() } else { format!("-{transform}") }
}

fn reports(jit: Jit, program: &str) -> Vec<Report> {
    let (mut interp, world, _) = compiling(jit);
    run_with(&mut interp, &world, program);
    interp.reports()
}

/// Programs of all kinds print the same, compiled and interpreted.
#[test]
fn compiled_equals_interpreted() {
    let programs = [
        "(defn f [x] (+ (* x x) 1)) (print (f [1 2 3]))",
        "(defn f [x y] (@ x y)) (print (f [[1 2] [3 4]] [5 6]) (f [[1 2] [3 4]] [[1] [2]]))",
        // A plain float combined with f64 keeps all its digits; otherwise it is f32.
        "(defn f [x n] (list (* x n) n (+ n n) (sqrt n) (dtype n) (if (> n 0.05) (* x n) x))) (print (f (tensor '[0.1 3] :f64) 0.1))",
        "(defn f [x n] (sum (* x n))) (print (f (tensor '[3] :f64) 0.1))",
        "(defn f [x n] (repeat [i 20] [[p q] (list x n)] [(* p n) (* q 0.5)])) (print (f (ones [2] :f64) 0.9))",
        "(defn f [x y] (list (+ x 1.5) (* y 3) (exp x) (sum y))) (print (f [1 2] :bf16 [100 60] :i8))",
        // Numbers stay weak, strong scalars strong.
        "(defn f [x n] (list (sum x) (+ n 1) (* n 2.5) (/ n 2) (// n 2) (mod n 3))) (print (f [1 2] 7))",
        "(defn f [x n] (list n (- n) (abs n) (maximum n 2))) (print (f [1] -5) (f [1] -5.5))",
        "(defn f [x n] (list (** n 2) (** 2 n) (** x n) (** 2.0 n))) (print (f [1 2] 3) (f [1 2] -3) (f [1 2] 3.0))",
        "(defn f [x n] [n 1 (* n n)]) (print (f [1] 3))",
        "(defn f [x n] (list (number? n) (tensor? n) (number? x) (tensor? x) (dtype n))) (print (f [1] 3))",
        "(defn f [x n] (where (> x n) x n)) (print (f [1 2 3] 2))",
        "(defn f [x n] (= n 3)) (print (f [1] 3))",
        "(defn f [x n] (list (mean n) (sum n) (sqrt n) (floor n))) (print (f [1] 4))",
        // Structure: dictionaries keep their insertion order, constants stay constants.
        "(defn f [p] {:z (* 2 (:a p)) :a :keyword :m \"text\" :l (list 1 nil true (:b p))}) (print (f {:b [1] :a [2]}))",
        "(defn f [p] p) (print (f {:b [1] :a [2]}) (f {:a [2] :b [1]}))",
        "(defn f [p] (keys p)) (print (f {:b [1] :a [2]}) (f {:a [2] :b [1]}))",
        "(defn f [p] (map (fn [k] (sum (get p k))) (keys p))) (print (f {:b [1] :a [2]}) (f {:a [2] :b [1]}))",
        "(defn f [x] '[1 :k]) (print (f [1]))",
        "(defn f [x] [x x]) (print (f [1 2]))",
        // Shapes, axes, indices and conditions that must be known.
        "(defn f [x n] (reshape x n -1)) (print (f [1 2 3 4] 2) (f [1 2 3 4] 4))",
        "(defn f [x s] (reshape x s)) (print (f [1 2 3 4] [2 2]) (f [1 2 3 4] [4 1]))",
        "(defn f [x i] (list (x i) (nth x i) (get x i))) (print (f [5 6 7] 1) (f [5 6 7] -1))",
        "(defn f [x i] (x i)) (let [xs [5 6 7]] (print (map (fn [i] (f xs i)) (argmax [[1 2] [4 3]] :axis 1))))",
        "(defn f [x n] (list (reshape x [n -1]) (zeros [n 2]) (broadcast-to 1 [n]))) (print (f [1 2 3 4] 2) (f [1 2 3 4] 4))",
        "(defn f [x i] (list (x 0 i) (x 0:2 i) (dynamic-slice x i 1) (index-update x i 9) (roll x i :axis 0)))
         (print (f [[1 2] [3 4]] 1) (f [[1 2] [3 4]] -1))",
        "(defn f [x i] (list (get x i) (index-update x i [7 8 9]) (scatter-add x i 1) (x 0:2) (roll x (i 0))))
         (print (f [1 2 3 4] (cast [2 -1 2] :i32)) (f [1 2 3 4] (cast [0 0 0] :i32)))",
        "(defn f [x] (list (sort x) (argsort x :reverse) (top_k x 2) (tril x) (triu x 1) (diag x) (trace x) (pad x 1)))
         (print (f [[3 1] [2 2]]))",
        "(defn f [x] (list (sort x :key first) (sort x :key sum :reverse) (einsum \"ij,kj->ik\" x x) (tensor-split x 2)))
         (print (f [[3 1] [2 5] [0 1]]))",
        "(defn f [x flag] (if flag (sum x) x)) (print (f [1 2] true) (f [1 2] false))",
        "(defn f [x mode] (case mode :sum (sum x) :mean (mean x))) (print (f [1 3] :sum) (f [1 3] :mean))",
        "(defn f [x n] (repeat [i n] [a x] (* a 2))) (print (f [1 2] 3) (f [1 2] 0))",
        // Conditionals on traced values: nested, with weak numbers, with structures.
        "(defn f [x] (if (> (sum x) 3) x (- x))) (print (f [1 2]) (f [2 3]))",
        "(defn f [x] (cond (> (sum x) 3) (sum x) (< (sum x) 0) 0.0 true 0.5)) (print (f [1 2]) (f [2 3]) (f [-1 0]))",
        "(defn f [x n] (if (> n 2) {:a (+ x 1) :k :kept} {:a x :k :kept})) (print (f [1] 3) (f [1] 2))",
        "(defn f [x n] (if (> n 2) x (sum x))) (print (f [1 2] 3) (f [1 2] 2))",
        "(defn f [x] (let [s (sum x)] (if (if (> s 1) (< s 4) false) (* s 2) (let [t (+ s 1)] (* t t))))) (print (f [1 2]) (f [5]))",
        "(defn fact [n] (if (< n 2) 1 (* n (fact (- n 1))))) (defn f [x n] (* x (fact n))) (print (f [1 2] 4))",
        "(defn f [x] ((grad (fn [w] (if (> (sum w) 3) (sum (* w w)) (sum w)))) x)) (print (f [1 2]) (f [2 3]))",
        "(defn f [xs] ((vmap (fn [x] (if (> x 0) (* x x) (- x)))) xs)) (print (f [-1 2 -3]))",
        // Only the taken branch runs: the other may be endless, or not differentiable here.
        "(defn f [x] (if (> (sum x) 0) (while (< (sum x) 9) [x x] (* x 2)) x)) (print (f [1 2]) (f [0 0]))",
        "(defn f [x] ((grad (fn [x] (if (> (sum x) 0) (sum (sqrt x)) 0.0))) x)) (print (f [4 1]) (f [0 0]))",
        "(defn f [x n] (if (> (sum x) 0) (reshape x (+ n 1) -1) (reshape x (* n 2) -1))) (print (f [1 2] 1) (f [-1 0] 1))",
        "(defn f [x] (and (> (sum x) 0) (< (sum (while (< (sum x) 5) [x x] (* 2 x))) 9))) (print (f [1 2]) (f [0]))",
        // and, or, not, case as conditionals.
        "(defn f [x] (let [s (sum x)] (list (and (> s 1) (< s 4)) (or (> s 1) (< s -4)) (not (> s 1)))))
         (print (f [1 2]) (f [5]) (f [-5]))",
        "(defn f [x] (let [s (sum x)] (if (and (> s 1) (or (< s 4) (not (< s 9))) (< s 20)) s (- s))))
         (print (f [1 2]) (f [5]) (f [10]) (f [30]))",
        "(defn f [x] (and (> (sum x) 1) true (< (sum (while (< (sum x) 5) [x x] (* 2 x))) 9) (< (max x) 5))) (print (f [1 2]))",
        "(defn f [x] (when (or (> (sum x) 1) (= (max x) 0) nil) true)) (print (f [1 2]))",
        "(defn f [x] (case (argmax x) 0 (sum x) 1 (* 2 (sum x)) (3 4) 1.5 (- (sum x))))
         (print (f [9 2]) (f [1 2]) (f [1 2 3]) (f [1 2 3 4]) (f [1 2 3 4 5]))",
        "(defn f [x] (case (sum x) 0.5 :half :none -1 1.0 :one 2)) (print (f [0.5]) (f [1]) (f [2]))",
        "(defn f [x] (case (> (sum x) 0) true x false (- x))) (print (f [1 2]) (f [-1 0]))",
        "(defn f [x] (case (> (sum x) 0) :none 1 (false nil) (- x) true x 2)) (print (f [1 2]) (f [-1 0]))",
        "(defn f [x] (case (> (sum x) 0) true x (- x))) (print (f [1 2]) (f [-1 0]))",
        "(defn f [x k] (* (sum x) (case k 1 10 2 20 30))) (print (f [1] 1) (f [1] 2) (f [1] 3))",
        "(defn f [x] ((grad (fn [x] (case (> (sum x) 0) true (sum (* x x)) (sum x)))) x)) (print (f [1 2]) (f [-1 0]))",
        "(defn f [xs] ((vmap (fn [x] (case (floor x) 1 10 2 (* x x) (if (and (> x 3) (< x 5)) x (- x))))) xs))
         (print (f [1.5 2.5 4 6]))",
        "(defn f [x] (repeat [i 3] [x x] (if (> (sum x) 3) x (* x 2)))) (print (f [1 2]) (f [0.1]))",
        "(defn f [x] (repeat [i 3] [[a b] [x 0]] (if (> (sum a) 3) [a (+ b 1)] [(* a 2) b]))) (print (f [1 2]) (f [0.1]))",
        // Loops: long ones, with a traced count or condition, over rows.
        "(defn f [x] (repeat [i 100] [a x] (+ (* a 0.5) i))) (print (f [1 2]))",
        "(defn f [x n] (repeat [i n] [[a b] [x 0]] [(* a 0.5) (+ b (sum a))])) (print (f [1 2] 3) (f [1 2] 0) (f [1 2] 40))",
        "(defn f [x n] (repeat [i n] [acc 0] (+ acc (* i (sum x))))) (print (f [1 2] 20) (f [1 2] 5))",
        "(defn f [x] (while (< (sum x) 100) [x x] (* x 2))) (print (f [1 2]) (f [200]))",
        "(defn f [x] (while (< i 30) [[i s] [0 0.0]] [(+ i 1) (+ s (sum x))])) (print (f [1 2]))",
        "(defn f [p] (repeat [i 30] [p p] {:w (* (:w p) 0.9) :name (:name p)})) (print (f {:w [1] :name \"kept\"}))",
        "(defn f [xs] (scan (fn [s x] [(+ s x) (* s x)]) 0 xs)) (print (f (range 20)))",
        "(defn f [xs] (scan (fn [s x] [(+ (* 0.5 s) (:a x)) nil]) [0 0] {:a xs})) (print (f (ones [20 2])))",
        "(defn f [xs] (reduce (fn [s x] (+ (* 0.5 s) (sum x))) 0 xs)) (print (f (ones [20 2])))",
        "(defn f [w] ((grad (fn [w] (repeat [i 20] [l 0.0] (+ l (sum (* w w i)))))) w)) (print (f [1 2]))",
        "(defn f [w xs] ((grad (fn [w] (sum (first (scan (fn [s x] [(tanh (+ (* w s) x)) s]) [0.5 0.5] xs))))) w))
         (print (f [1 2] (ones [20 2])))",
        "(defn f [xs] ((vmap (fn [x] (repeat [i 20] [a x] (+ (* a 0.5) 1)))) xs)) (print (f [1 2 3]))",
        "(defn f [xs] ((vmap (fn [x] (while (< x 50) [x x] (* x 2)))) xs)) (print (f [1 2 100]))",
        // Rows of tensors: results of one type, from several sequences, structures, numbers that stay weak.
        "(defn f [xs] (map (fn [x] (* x x)) xs)) (print (f (arange 20)) (f (arange 3)))",
        "(defn f [xs w] (map (fn [x] {:y (* w x) :n (len x) :k :kept :w w}) xs)) (print (f (ones [17 2]) [1 2]))",
        "(defn f [xs ys] (map (fn [x y] [(+ x y) (if (> x 10) 1 2)]) xs ys)) (print (f (arange 18) (ones 30)))",
        "(defn f [xs] (* 2.5 (first (map (fn [x] (if (> x 10) 4000000000 2)) xs)))) (print (f (arange 18)))",
        "(defn f [xs] (reduce + 0 (map sum xs))) (print (f (ones [40 2])))",
        "(defn f [xs ys] (mapv @ xs ys)) (print (f (ones [20 2]) (ones [20 2])))",
        "(defn f [xs w] (mapv (fn [x] w) xs)) (print (f (ones [17]) 3) (f (ones [17]) [1 2]))",
        "(defn f [xs] (map (fn [x] [nil (sum x)]) xs)) (print (f (ones 17)))",
        "(defn f [w xs] ((grad (fn [w] (sum (mapv (fn [x] (tanh (* w x))) xs)))) w)) (print (f 0.5 (arange 18)))",
        "(defn f [w xs] ((jvp (fn [w] (mapv (fn [x] (* w x)) xs))) w 1.0)) (print (f 0.5 (arange 18)))",
        "(defn f [ws xs] ((vmap (fn [w] (mapv (fn [x] (* w x)) xs))) ws)) (print (f [1 2] (arange 18)))",
        // No loop: positions that must be known, functions that captured a row.
        "(defn f [x] (map (fn [i] (slice x i 18)) (arange 18))) (print (f (arange 18)))",
        "(defn f [xs] (map (fn [g] (g 2)) (map (fn [x] (fn [y] (* x y))) xs))) (print (f (arange 18)))",
        // The loop needs the value of its counter, or changes the type of its state: it cannot be staged.
        "(defn f [x] (repeat [i 20] [a x] (+ a (nth (range 20) i)))) (print (f [1 2]))",
        "(defn f [x] (repeat [i 20] [a [x]] (concat a [x]))) (print (len (f [1 2])))",
        // A loop of unknown length has forward-mode derivatives, for any number of inputs.
        "(defn f [w] ((jacobian (fn [w] (sum (while (< (sum w) 10) [w w] (* w 2))))) w)) (print (f [1 2]))",
        // The gradient of a loop of unknown length needs concrete values.
        "(defn f [w] ((grad (fn [w] (sum (while (< (sum w) 10) [w w] (* w 2))))) w)) (print (f [1 2]))",
        "(defn f [x n] (equal? n 3)) (print (f [1] 3) (f [1] 4))",
        "(defn f [x n] (= n nil)) (print (f [1] 3) (f [1] nil))",
        "(defn f [x n] (str \"n is \" n)) (print (f [1] 3) (f [1] 2.5))",
        // with-params, patterns, options, rest arguments.
        "(defn f [x p] (with-params [p :l1] (+ (@ x W) b))) (print (f [1 2] {:l1 {:W [[1] [2]] :b [3]}}))",
        "(defn f [{:keys [a]} [b c] & d] (list (+ a b) (sum (first d)) c)) (print (f {:a [1]} (list [2] 3) [4 5]))",
        "(print (softmax [[1 2] [3 4]] :axis 0) (logsumexp [[1 2] [3 4]] :axis 1 :keepdims))",
        // Gradients.
        "(defn f [p] (sum (* (:w p) (:w p)))) (print ((value-and-grad f) {:w [1 2] :n 3}))",
        "(defn f [x y] (list (sum (* x y)) {:y y :n 1})) (print ((value-and-grad f :aux) [1 2] [3 4]))",
        "(defn f [x y] (sum (* x x y))) (print ((grad f :wrt '[0 1]) [1 2] [3 4]) ((grad f :wrt 1) [1 2] [3 4]))",
        "(defn f [x] (sum (* x x x))) (defn g [x] (sum ((grad f) x))) (print ((grad g) [1 2]))",
        "(defn f [x] (let [s (sum x)] ((grad (fn [t] (* t t s))) s))) (print (f [1 2]))",
        // Random numbers.
        "(defn f [key n] (random-normal key n)) (print (f (random-key 1) 3))",
        "(defn f [key] (random-permutation key 5)) (print (f (random-key 1)))",
        "(defn f [key low] (random-uniform key 3 :low low :high 2)) (print (f (random-key 1) 0.5))",
    ];
    let mut uncompiled = Vec::new();
    for program in programs {
        let wanted = run(program);
        assert!(!wanted.contains("error"), "{program}: {wanted}");
        for jit in [Jit::Always, Jit::Auto] {
            let (mut interp, world, log) = compiling(jit);
            let result = interp.run_program("test.shf", program);
            assert!(result.is_ok(), "{program}: {result:?}");
            let found = world.printed.borrow().join("\n");
            assert_eq!(found, wanted, "{program}");
            if jit == Jit::Always && log.borrow().units.is_empty() {
                uncompiled.push(program);
            }
        }
    }
    // Those whose results need no computation, or depend on data.
    assert_eq!(uncompiled.len(), 10, "{uncompiled:#?}");
}

/// `map` over many rows is one loop with one copy of its body; loop-invariant code is outside.
#[test]
fn map_over_rows_is_one_loop() {
    let equations = |program: &str| {
        let (mut interp, world, log) = compiling(Jit::Always);
        run_with(&mut interp, &world, program);
        let log = log.borrow();
        let [unit] = log.units.as_slice() else { panic!("one unit: {program}") };
        unit.graph.equations.iter().map(|e| e.op.name()).collect::<Vec<_>>()
    };
    let stacked =
        equations("(defn f [xs w] (mapv (fn [x] (@ (tanh w) (exp x))) xs)) (f (ones [99 2]) [1 2])");
    assert_eq!(stacked, ["tanh", "scan"]);
    let listed = equations("(defn f [xs] (map (fn [x] (exp (sum x))) xs)) (f (ones [20 2]))");
    assert_eq!(listed.iter().filter(|name| **name == "scan").count(), 1, "{listed:?}");
    assert!(!listed.contains(&"exp"), "{listed:?}");
}

/// The counter of a training loop is first a number, then a scalar on the device: one program serves both.
#[test]
fn a_counter_keeps_its_signature() {
    let (out, units) = on_device(
        Jit::Always,
        "(defn step [w t] (list (* w 0.5) (+ t 1)))
         (print (repeat [i 5] [[w t] (list [8 4] 0)] (step w t)))",
    );
    assert_eq!((out.as_str(), units), ("[[0.25  0.125] 5]", vec!["step".to_string()]));
}

#[test]
fn numbers_are_parameters_unless_they_are_asked_for() {
    let (out, units) = on_device(
        Jit::Always,
        "(defn scale [x lr] (* x lr))
         (print (map (fn [lr] (sum (scale [1 2] lr))) '[0.5 1.5 2.5]))",
    );
    assert_eq!((out.as_str(), units.len()), ("[1.5 4.5 7.5]", 1));
    let (out, units) = on_device(
        Jit::Always,
        "(defn heads [x n] (reshape x n -1))
         (print (map (fn [n] (shape (heads (zeros 12) n))) '[2 3 2 3 4]))",
    );
    assert_eq!((out.as_str(), units.len()), ("[[2 6] [3 4] [2 6] [3 4] [4 3]]", 3));
    // An integer and a float have different types, and so have two shapes.
    let (_, units) =
        on_device(Jit::Always, "(defn f [x n] (* x n)) (f [1] 2) (f [1] 2.5) (f [1] 3) (f [1 2] 3)");
    assert_eq!(units.len(), 3);
}

#[test]
fn statics_are_recorded() {
    let (mut interp, world, log) = compiling(Jit::Always);
    run_with(
        &mut interp,
        &world,
        "(defn f [p n mode & more] (reshape (* (:w p) (if mode 2 1)) n -1)) (f {:w [1 2 3 4] :heads 3} 2 :fast \"x\")",
    );
    let log = log.borrow();
    let [unit] = log.units.as_slice() else { panic!("one unit") };
    let statics: Vec<String> = unit.statics.iter().map(|(path, value)| format!("{path} = {value}")).collect();
    assert_eq!(statics, ["n = 2", "mode = :fast", "arg3 = x"]);
    let inputs: Vec<String> = unit.inputs.iter().map(|leaf| format!("{} {:?}", leaf.path, leaf.ty)).collect();
    assert_eq!(inputs, ["p.heads weak i64[]", "p.w f32[4]"]);
}

/// Closures created in each iteration share one specialisation; captured values are parameters, not constants.
#[test]
fn closures_share_one_specialisation() {
    let (mut interp, world, log) = compiling(Jit::Always);
    let out = run_with(
        &mut interp,
        &world,
        "(defn loss [w x y] (mean (square (- (* w x) y))))
         (print (repeat [i 4] [w [0 0]]
           (let [x [1 2] y (* [3 4] (+ i 1))
                 [l g] ((value-and-grad (fn [w] (loss w x y))) w)]
             (- w (* 0.1 g)))))",
    );
    assert!(!out.contains("error"), "{out}");
    let log = log.borrow();
    let vag: Vec<_> = log.units.iter().filter(|u| u.transform == "vag").collect();
    assert_eq!(vag.len(), 1);
    let inputs: Vec<&str> = vag[0].inputs.iter().map(|leaf| leaf.path.as_str()).collect();
    assert_eq!(inputs, ["w", "x", "y"]);
    let constants = vag[0].graph.equations.iter().filter(|e| e.op.name() == "constant");
    assert!(constants.count() <= 3, "numbers only");
}

/// A result passed to the next call stays on the device.
#[test]
fn tensors_stay_on_the_device() {
    let (mut interp, world, log) = compiling(Jit::Always);
    let out = run_with(
        &mut interp,
        &world,
        "(defn step [w x] (* w x)) (let [x [2 3]] (print (repeat [i 10] [w [1 1]] (step w x))))",
    );
    assert_eq!(out, "[ 1024. 59049.]");
    let log = log.borrow();
    assert_eq!((log.units.len(), log.uploads, log.reads), (1, 2, 1));
}

/// A number read back from the device is a number in interpreted code.
#[test]
fn numbers_of_the_device_in_interpreted_code() {
    let uses =
        "(list (** 2 n) (** n 2) (/ n 2) (// n 2) (mod n 2) (= n 3) (number? n) (tensor? n) (- n) (range n)
                      (nth '[5 6 7 8] n) [n 1] (if n 1 2) (case n 3 :three) (str n) (format \"{:3} {}\" n n)
                      (get '[5 6 7 8] n) (zeros n :i32) (reshape (arange 3) n) (+ n 1) (* 1.5 n) (maximum n 2)
                      ((arange 5) n) (slice '[1 2 3 4] 0 n) (repeat [i n] [a 0] (+ a i)) (equal? n 3) (sqrt n)
                      ((grad (fn [x] (* x x))) n) (where true n 1) (stack (list n n)) (not n) (full '[1] n))";
    let program = format!("(defn f [x n] (+ n 1)) (let [n (f [1] 2)] (print {uses}))");
    let (out, units) = on_device(Jit::Always, &program);
    assert_eq!(units[0], "f");
    assert_eq!(out, run(&format!("(let [n 3] (print {uses}))")));
}

/// Effects keep a function and its callers interpreted; its pure callees are compiled.
#[test]
fn effects_keep_functions_interpreted() {
    let program = "(defn pure [x] (* x 2))
         (defn loud [x] (print \"called\") (pure x))
         (defn around [x] (loud (pure x)))
         (print (around [1]))";
    let (out, units) = on_device(Jit::Always, program);
    assert_eq!(out, "called\n[4.]");
    assert_eq!(units, ["pure"]);
    // An effect passed as a value, or in a branch that is not taken.
    let (out, units) = on_device(
        Jit::Always,
        "(defn apply-to [f x] (f x)) (print (apply-to (fn [x] (print \"once\") (* x 2)) [1]))
         (defn quiet [x verbose] (when verbose (print x)) (* x 3)) (print (quiet [1] false))",
    );
    assert_eq!(out, "once\n[2.]\n[3.]");
    assert_eq!(units, Vec::<String>::new());
    // Differentiation: the effect happens once; the pure loss in it is compiled if possible.
    let (out, _) = on_device(
        Jit::Always,
        "(defn loss [w] (let [l (sum (* w w))] (print \"loss\" l) l)) (print ((value-and-grad loss) [1 2]))",
    );
    assert_eq!(out, "loss 5.0\n[5.0 [2. 4.]]");
}

/// Data-dependent code is interpreted, with one warning that gives the span and the reason.
#[test]
fn what_depends_on_data_is_interpreted() {
    let program = "(defn f [x] (if (> (sum x) 3) x (sum x)))\n(print (f [1 2]) (f [2 3]))";
    let (out, units) = on_device(Jit::Always, program);
    assert_eq!(out.matches("warning").count(), 1, "{out}");
    let line = "warning: f is interpreted, not compiled: the branches of a condition that depends on the data differ: \
                a tensor f32[2] and a tensor f32[], in (> (sum x) 3) at test.shf:1:17\n";
    assert!(out.starts_with(line), "{out}");
    assert!(out.ends_with("3.0 [2. 3.]") && units.is_empty(), "{out}");
    let [report] = reports(Jit::Always, program).try_into().expect("one");
    let reason = &report.latest_reason().expect("a reason").reason;
    assert!(reason.starts_with("the branches of a condition that depends on the data differ"), "{reason}");
    let [one] = report.specialisations.as_slice() else { panic!("one specialisation") };
    assert_eq!((report.function.as_str(), one.compiled_calls, one.interpreted_calls), ("f", 0, 2));
}

/// A static number that changes in every call stops being compiled.
#[test]
fn a_value_that_keeps_changing_ends_in_interpretation() {
    let program = "(defn h [x n] (* x (len (range n))))
         (print (repeat [i 40] [total 0] (+ total (sum (h [1 1] i)))))";
    let (out, units) = on_device(Jit::Always, program);
    assert_eq!(units.len(), 16, "{units:?} {out}");
    assert_eq!(out.matches("h is interpreted for new arguments").count(), 1, "{out}");
    assert!(out.ends_with("1560.0"), "{out}");
}

#[test]
fn auto_compiles_what_pays() {
    let small = "(defn f [x] (* x 2)) (print (sum (f [1 2])))";
    assert_eq!(on_device(Jit::Auto, small).1, Vec::<String>::new());
    assert_eq!(on_device(Jit::Always, small).1, ["f"]);
    assert_eq!(on_device(Jit::Never, small).1, Vec::<String>::new());
    let [report] = reports(Jit::Auto, small).try_into().expect("one");
    assert_eq!(report.specialisations[0].status, Status::TooLittleWork);
    // In loops that promise enough work (the count of a while is unknown), and for much work in one call.
    let looped = "(defn f [x] (* x 1.5))
         (while (< i 1) [[i x] [0 [1 2]]] [(+ i 1) (while (< (sum x) 4) [x x] (f x))])";
    assert_eq!(on_device(Jit::Auto, looped).1, ["f"]);
    let large = "(defn f [x] (sum (while (< (sum x) 10) [x x] (* x 2)))) (f (ones [1000 1000]))";
    assert_eq!(on_device(Jit::Auto, large).1, ["f"]);
    let [report] = reports(Jit::Auto, large).try_into().expect("one");
    assert!(matches!(report.specialisations[0].status, Status::Compiled(_)));
    assert_eq!(report.specialisations[0].compiled_calls, 1);
}

/// Errors are found while tracing, with their span in the program, and leave the evaluator usable.
#[test]
fn errors_while_tracing() {
    let (mut interp, world, log) = compiling(Jit::Always);
    let out = run_with(&mut interp, &world, "(defn f [x y] (@ x y))\n(f [1 2] [1 2 3])");
    assert!(out.starts_with("error: (@ a b): f32[2] and f32[3] do not fit"), "{out}");
    assert!(out.contains("test.shf:1:15"), "{out}");
    assert_eq!(run_with(&mut interp, &world, "(defn g [x] (* 2 x)) (print (g [1 2]))"), "[2. 4.]");
    assert_eq!(log.borrow().units.len(), 1);
}

/// `(static x)` marks values that must be known while tracing.
#[test]
fn statics_on_demand() {
    let (out, units) = on_device(
        Jit::Always,
        "(defn f [x n] (let [m (static n)] (* x m))) (print (f [1] 2) (f [1] 3) (f [1] 2))",
    );
    assert_eq!((out.as_str(), units.len()), ("[2.] [3.] [2.]", 2));
    for program in ["(defn f [x] (static x)) (f [1 2])", "(defn f [x] (static (sum x))) (f [1 2])"] {
        let (out, _) = on_device(Jit::Always, program);
        assert!(
            out.starts_with("error: (static x) wants a value that is known while tracing"),
            "{program}: {out}"
        );
    }
}

/// A branch's computations run only if it is taken, in a loop or not.
#[test]
fn branches_compute_within() {
    let (mut interp, world, log) = compiling(Jit::Always);
    let program =
        "(defn f [x] (if (> (sum x) 1) (repeat [i 20] [y (tanh x)] (* y (exp x))) (sin x))) (f [1 2])";
    run_with(&mut interp, &world, program);
    let log = log.borrow();
    let names: Vec<_> = log.units[0].graph.equations.iter().map(|e| e.op.name()).collect();
    assert_eq!(names, ["reduce_sum", "constant", "compare", "cond"]);
}

/// Number of compiled specialisations, and the maximum of one function.
fn counts(reports: &[Report]) -> (usize, usize) {
    let compiled =
        |r: &Report| r.specialisations.iter().filter(|s| matches!(s.status, Status::Compiled(_))).count();
    (reports.iter().map(compiled).sum(), reports.iter().map(|r| r.specialisations.len()).max().unwrap_or(0))
}

/// Arguments that grow, or change in every call, are traced ever more rarely, and hardly compiled.
#[test]
fn arguments_that_keep_changing_make_no_storm() {
    let growing_list = "(print (len (reduce (fn [xs i] (append xs i)) '[] (range 800))))";
    let history = "(defn loss [w x y] (mean (square (- (@ x w) y))))
         (defn step [[w history] x y]
           (let [[l g] ((value-and-grad loss) w x y)] (list (- w (* 0.1 g)) (append history l))))
         (let [x (random-normal (random-key 0) [8 4]) y (random-normal (random-key 1) [8])]
           (print (len (second (repeat [i 600] [s (list (zeros [4]) '[])] (step s x y))))))";
    let generation = "(def E (random-normal (random-key 0) [16 8]))
         (def W (random-normal (random-key 1) [8 16]))
         (defn next-id [ids] (argmax (@ (mean (get E ids) :axis 0) W)))
         (defn generate [ids n] (repeat [i n] [ids ids] (concat ids (reshape (next-id ids) [1]))))
         (print (len (generate (tensor '[1 2 3] :i32) 44)))";
    let names = "(defn pick [d k] (get d k))
         (def d (reduce (fn [d i] (assoc d (str \"k\" i) (full [3] i))) {} (map (fn [i] i) (range 500))))
         (print (reduce (fn [acc i] (+ acc (sum (pick d (str \"k\" i))))) 0 (map (fn [i] i) (range 500))))";
    for (program, printed) in [(growing_list, "800"), (history, "600"), (generation, "47"), (names, "374250")]
    {
        let (mut interp, world, log) = compiling(Jit::Auto);
        let out = run_with(&mut interp, &world, program);
        assert!(out.ends_with(printed), "{out}");
        let (programs, most) = counts(&interp.reports());
        assert!(
            most <= 16 && programs <= 1,
            "{most} specialisations of one function, {programs} programs: {program}"
        );
        assert_eq!(log.borrow().units.len(), programs);
    }
}

/// Loops promise repeated calls that do not come: that is reported once, an error with `--strict`, and ignored with
/// `--jit always`.
#[test]
fn programs_that_do_not_repay_end_in_interpretation() {
    let storm = "(defn f [x] (* x 1.5))
         (let [[i x] (while (< i 1) [[i x] [0 [1]]]
                       [(+ i 1) (second (while (< j 40) [[j x] [0 x]] [(+ j 1) (concat (f x) [1])]))])]
           (print (len x)))";
    let (out, units) = on_device(Jit::Auto, storm);
    assert_eq!(units, ["f"]);
    let said = "warning: f is interpreted for new arguments: its arguments keep changing (x: f32[5] instead of f32[4]), \
                and those seen before do not come again";
    assert!(out.matches("warning").count() == 1 && out.starts_with(said) && out.ends_with("\n41"), "{out}");
    assert_eq!(on_device(Jit::Always, storm).1.len(), 40);
    let (mut interp, world, _) = compiling(Jit::Auto);
    interp.options.strict = true;
    let out = run_with(&mut interp, &world, storm);
    assert!(out.starts_with("error: f cannot be compiled: its arguments keep changing"), "{out}");
    assert!(out.contains("index-update"), "{out}");
}

/// What a gradient of `defgrad` makes of known numbers is part of it, however large.
#[test]
fn a_gradient_of_its_own_makes_large_tensors() {
    let program = "(defn double [x] (* 2 x)) (defgrad double [x] [y] [g] (* g (eye 300)))
        (defn step [x] ((grad (fn [x] (sum (double x)))) x)) (sum (step (ones '[300 300])))";
    let (result, compiled) = on_device(Jit::Always, program);
    assert_eq!(result, "=> tensor f32[] = 300.0");
    assert_eq!(compiled, ["step"]);
}
