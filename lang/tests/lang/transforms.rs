//! `jvp`, `jacobian`, `hessian`, `vmap`, `scan`, `checkpoint`, and nested transformations.

use crate::support::{check, compiling, run, run_with};
use sheaf_lang::eval::Jit;

#[test]
fn forward() {
    check(&[
        ("((jvp (fn [x] (* x x))) 3.0 2.0)", "=> '[9.0 12.0]"),
        ("((jvp (fn [x] (* x x))) 3 1)", "=> '[9.0 6.0]"),
        ("((jvp (fn [x y] (* x y))) [1 2] [3 4] [1 0] [0 1])", "=> '[[3. 8.] [3. 2.]]"),
        // Trees on both sides; non-differentiable leaves have no tangent.
        (
            "((jvp (fn [p] {:s (* (:a p) (:b p)) :n 3 :k :word})) {:a 2.0 :b 3.0} {:b 1.0 :a 0.0})",
            "=> '[{:s 6.0 :n 3 :k :word} {:s 2.0 :n 0 :k nil}]",
        ),
        ("((jvp (fn [x n] (* x n))) [1 2] (arange 2) [1 1] (arange 2))", "=> '[[0. 2.] [0. 1.]]"),
        ("((jvp (fn [x] (argmax x))) [1 3 2] [1 1 1])", "=> '[1 0]"),
        ("((jvp (fn [x] 5.0)) [1 2] [1 1])", "=> '[5.0 0.0]"),
        ("((jvp sin) 0.0)", "error: 1 arguments for (jvp f): it takes those of f, then a tangent for each"),
        ("((jvp sin) [1 2] [1 2 3])", "error: a tangent has the shape of its value: f32[2] moves by f32[3]"),
        ("((jvp :a) 1 2)", "error: jvp takes a function, got the keyword :a"),
        ("((jvp (fn [p] (:a p))) {:a 1} {:b 1})", "error: the trees differ at the root"),
        ("((jvp (fn [x] (print x) (* x x))) 3.0 1.0)", "3.0\n=> '[9.0 6.0]"),
        ("((jvp (grad (fn [x] (* x x x)))) 2.0 1.0)", "=> '[12.0 12.0]"),
        ("((grad (fn [x] (nth ((jvp (fn [y] (* y y y))) x 1.0) 1))) 2.0)", "=> tensor f32[] = 12.0"),
        ("(jvp 3)", "error: jvp takes a function, got the number 3"),
    ]);
}

#[test]
fn jacobians() {
    check(&[
        ("((jacobian (fn [x] (* x x))) [1 2])", "=> tensor f32[2x2] = [[2. 0.]\n [0. 4.]]"),
        // More results than arguments, and fewer.
        (
            "((jacobian (fn [x] (@ [[1 2] [3 4] [5 6]] x))) [1 1])",
            "=> tensor f32[3x2] = [[1. 2.]\n [3. 4.]\n [5. 6.]]",
        ),
        (
            "((jacobian (fn [x] (@ [[1 2 3] [4 5 6]] x))) [1 1 1])",
            "=> tensor f32[2x3] = [[1. 2. 3.]\n [4. 5. 6.]]",
        ),
        ("((jacobian (fn [x] (sum (* x x)))) [1 2])", "=> tensor f32[2] = [2. 4.]"),
        ("((jacobian (fn [x] [x (* 2 x)])) 3.0)", "=> tensor f32[2] = [1. 2.]"),
        ("((jacobian (fn [x y] (* x y))) [1 2] [3 4])", "=> tensor f32[2x2] = [[3. 0.]\n [0. 4.]]"),
        (
            "((jacobian (fn [p] {:s (* (:a p) (:b p)) :d (sum (:b p))})) {:a 2.0 :b [1 3]})",
            "=> {:s {:a [1. 3.] :b [[2. 0.]\n [0. 2.]]} :d {:a 0.0 :b [1. 1.]}}",
        ),
        ("((jacobian (fn [x] (* x (arange 2)))) [1 2])", "=> tensor f32[2x2] = [[0. 0.]\n [0. 1.]]"),
        ("((jacobian (fn [x] (argmax x))) [1 2])", "=> tensor i32[2] = [0 0]"),
        ("((jacobian (fn [x] x)))", "error: (jacobian f) takes the arguments of f, got none"),
        (
            "((jacobian (fn [p] (:x p))) {:x [1] :name \"a\"})",
            "error: cannot differentiate by a string at [:name]",
        ),
        ("((hessian (fn [x] (sum (* x x x)))) [1 2])", "=> tensor f32[2x2] = [[ 6.  0.]\n [ 0. 12.]]"),
        ("((hessian (fn [x] (* x x))) 3.0)", "=> tensor f32[] = 2.0"),
        (
            "((hessian (fn [p] (* (:a p) (:a p) (:b p)))) {:a 2.0 :b 3.0})",
            "=> {:a {:a 6.0 :b 4.0} :b {:a 4.0 :b 0.0}}",
        ),
        ("(hessian 1)", "error: grad takes a function, got the number 1"),
    ]);
}

#[test]
fn batches() {
    check(&[
        ("((vmap (fn [x] (sum x))) [[1 2] [3 4]])", "=> tensor f32[2] = [3. 7.]"),
        ("((vmap (fn [x y] (+ x y))) [1 2] [10 20])", "=> tensor f32[2] = [11. 22.]"),
        ("((vmap (fn [x w] (@ x w)) '[0 nil]) [[1 2] [3 4]] [10 1])", "=> tensor f32[2] = [12. 34.]"),
        ("((vmap (fn [x w] (@ x w)) [nil 1]) [10 1] [[1 3] [2 4]])", "=> tensor f32[2] = [12. 34.]"),
        ("((vmap (fn [x] x) 1) [[1 2 3] [4 5 6]])", "=> tensor f32[3x2] = [[1. 4.]\n [2. 5.]\n [3. 6.]]"),
        ("((vmap (fn [x] x) -1) [[1 2 3] [4 5 6]])", "=> tensor f32[3x2] = [[1. 4.]\n [2. 5.]\n [3. 6.]]"),
        ("((vmap (fn [x y] (+ x y)) [1 0]) [[1 2]] [10 20])", "=> tensor f32[2x1] = [[11.]\n [22.]]"),
        // Trees of arguments, of axes, of results.
        (
            "((vmap (fn [p] {:s (sum (:x p)) :d (* 2 (:y p))})) {:x [[1 2] [3 4]] :y [5 6]})",
            "=> {:s [3. 7.] :d [10. 12.]}",
        ),
        (
            "((vmap (fn [p x] (+ (@ x (:w p)) (:b p))) [{:w nil :b 0} nil]) {:w [1 1] :b [1 2]} [3 4])",
            "=> tensor f32[2] = [8. 9.]",
        ),
        ("((vmap (fn [[a b]] (list (+ a b) (* a b)))) (list [1 2] [3 4]))", "=> '[[4. 6.] [3. 8.]]"),
        // Results that do not depend on the batch are repeated; non-tensors stay.
        ("((vmap (fn [x] 7)) [1 2])", "=> tensor i32[2] = [7 7]"),
        ("((vmap (fn [x] (list x true :k nil))) [1 2])", "=> '[[1. 2.] [true true] :k nil]"),
        ("(let [w [1 2]] ((vmap (fn [x] w)) [5 6 7]))", "=> tensor f32[3x2] = [[1. 2.]\n [1. 2.]\n [1. 2.]]"),
        ("((vmap (fn [x] (where (> x 0) 1 2))) [1 -1])", "=> tensor i32[2] = [1 2]"),
        ("((vmap (fn [x n] (zeros [n])) [0 nil]) [1 2] 3)", "=> tensor f32[2x3] = [[0. 0. 0.]\n [0. 0. 0.]]"),
        ("((vmap (fn [x] (* 2 x))) (zeros '[0 2]))", "=> tensor f32[0x2] = []"),
        // Nested.
        (
            "((vmap (fn [x] ((vmap (fn [y] (* x y))) [1 10]))) [1 2 3])",
            "=> tensor f32[3x2] = [[ 1. 10.]\n [ 2. 20.]\n [ 3. 30.]]",
        ),
        ("((vmap (vmap (fn [x] (* x x)))) [[1 2] [3 4]])", "=> tensor f32[2x2] = [[ 1.  4.]\n [ 9. 16.]]"),
        ("((vmap (grad (fn [x] (* x x x)))) [1 2])", "=> tensor f32[2] = [ 3. 12.]"),
        (
            "((vmap (value-and-grad (fn [x] (sum (* x x))))) [[1 2] [3 4]])",
            "=> '[[ 5. 25.] [[2. 4.]\n [6. 8.]]]",
        ),
        ("((grad (fn [w] (sum ((vmap (fn [x] (* w x))) [1 2 3])))) 2.0)", "=> tensor f32[] = 6.0"),
        ("((grad (fn [x] (sum ((vmap (fn [y] (* y y))) x)))) [1 2])", "=> tensor f32[2] = [2. 4.]"),
        (
            "((grad (fn [w] (sum ((vmap (fn [x] ((grad (fn [y] (* w y y))) x))) [1 2])))) 1.0)",
            "=> tensor f32[] = 6.0",
        ),
        ("((vmap (jacobian (fn [x] (* x x)))) [[1 2]])", "=> tensor f32[1x2x2] = [[[2. 0.]\n  [0. 4.]]]"),
        ("((vmap (fn [x] (repeat [i 3] [a x] (* a x)))) [1 2])", "=> tensor f32[2] = [ 1. 16.]"),
        ("((vmap (fn [i] (get [10 20 30] i))) [2 0])", "=> tensor f32[2] = [30. 10.]"),
        ("((vmap sum) [[1 2] [3 4]])", "=> tensor f32[2] = [3. 7.]"),
    ]);
}

#[test]
fn batches_that_cannot_be() {
    check(&[
        ("(vmap 3)", "error: vmap takes a function, got the number 3"),
        (
            "((vmap (fn [x y] x)) [1 2] [1 2 3])",
            "error: vmap maps over axes of different extents: 2 along axis 0 of argument 0 (f32[2]), 3 along axis 0 of \
             argument 1 (f32[3])",
        ),
        (
            "((vmap (fn [x y] x)) [1 2] 3)",
            "error: vmap maps over an axis of each tensor, but argument 1 is the number 3",
        ),
        ("((vmap (fn [x] x) 1) [1 2])", "error: vmap maps over axis 1, but argument 0 is a tensor f32[2]"),
        ("((vmap (fn [x] x) -2) [1 2])", "error: vmap maps over axis -2, but argument 0 is a tensor f32[2]"),
        (
            "((vmap (fn [x] x) [0 0]) [1 2])",
            "error: vmap takes in-axes second, the axes of the one argument of f, got a tensor f32[2]",
        ),
        (
            "((vmap (fn [x y] x) '[0 0 0]) [1 2] [3 4])",
            "error: vmap takes in-axes second, the axes of the 2 arguments of f, got a list of 3 items",
        ),
        (
            "((vmap (fn [& xs] (first xs)) '[0 0 0]) [1 2] [3 4])",
            "error: in-axes speaks of 3 arguments, the call has 2",
        ),
        ("((vmap (fn [x] x) '[nil]) [1 2])", "error: vmap has no tensor to map over"),
        ("((vmap (fn [x] x) [{:a 0}]) {:b [1]})", "error: the in-axes {:a 0} do not fit argument 0"),
        (
            "((vmap (fn [x] (if (> x 0) [x] x))) [1 2])",
            "error: inside vmap a condition cannot depend on an entry",
        ),
        (
            "((vmap (fn [x] (print x))) [1 2])",
            "error: inside vmap a text cannot depend on an entry of the batch",
        ),
        ("((vmap (fn [x] (fn [] x))) [1 2])", "error: a function came out of a transformation"),
        (
            "(vmap (fn [x] x) 0.5)",
            "error: vmap takes in-axes second, the axes of the one argument of f, got the number 0.5",
        ),
    ]);
}

#[test]
fn scans() {
    check(&[
        ("(scan (fn [c x] [(+ c x) (* c x)]) 0 [1 2 3])", "=> '[6.0 [0. 2. 9.]]"),
        ("(scan (fn [c x] (list (+ c x) x)) 0 '[1 2 3])", "=> '[6 [1 2 3]]"),
        ("(scan (fn [c x] (list (+ c 1) (* 2 x))) 0 [[1 2] [3 4]])", "=> '[2 [[2. 4.]\n [6. 8.]]]"),
        (
            "(scan (fn [{:keys [a b]} x] (list {:a (+ a x) :b (* b x)} {:sum a})) {:a 0 :b 1} [2 3])",
            "=> '[{:a 5.0 :b 6.0} {:sum [0. 2.]}]",
        ),
        ("(scan (fn [c {:keys [x y]}] (list (+ c (* x y)) nil)) 0 {:x [1 2] :y '(3 4)})", "=> '[11.0 nil]"),
        ("(dtype (first (scan (fn [c x] (list (+ c x) x)) 0 (zeros '[0]))))", "=> :f32"),
        ("(scan (fn [c x] (list (+ c (sum x)) {:a x})) 0 (zeros '[0 2]))", "=> '[0.0 {:a []}]"),
        ("(scan (fn [c x] (list c x)) 5 '[])", "=> '[5 []]"),
        ("(dtype (second (scan (fn [c x] (list (+ c x) c)) 0 [1 2])))", "=> :f32"),
        ("((grad (fn [w] (first (scan (fn [c x] [(* c w) c]) 1.0 [1 2 3])))) 2.0)", "=> tensor f32[] = 12.0"),
        (
            "((vmap (fn [x] (first (scan (fn [c y] [(+ c (* x y)) c]) 0 [1 2 3])))) [1 2])",
            "=> tensor f32[2] = [ 6. 12.]",
        ),
        ("(scan (fn [c x] (print x) (list c nil)) 0 [1 2])", "1.0\n2.0\n=> '[0 nil]"),
        (
            "(scan (fn [c x] (+ c x)) 0 [1 2])",
            "error: scan wants [state output] of its function, got a tensor f32[]",
        ),
        ("(scan (fn [c x] [c x]) 0 3)", "error: scan goes over a tensor along axis 0"),
        (
            "(scan (fn [c x] [c x]) 0 {:a [1] :b [1 2]})",
            "error: scan takes items side by side: :a has 1, :b has 2",
        ),
        ("(scan 1 0 [1])", "error: scan takes a function first, got the number 1"),
        ("(scan (fn [c x] (list c (if (> x 1) {:a x} x))) 0 [1 2])", "error: the trees differ at the root"),
    ]);
}

#[test]
fn remaining() {
    check(&[
        ("((checkpoint (fn [x] (* x x))) 3)", "=> 9"),
        ("((grad (checkpoint (fn [x] (* x x)))) 3.0)", "=> tensor f32[] = 6.0"),
        // Functions keep inner captured values.
        ("((grad (fn [a] (((checkpoint (fn [v] (fn [x] (* x v)))) a) 2.0))) 3.0)", "=> tensor f32[] = 2.0"),
        (
            "((grad (fn [a] (((checkpoint (fn [v] (let [b (* 2 a)] (fn [x] (* x b))))) a) 2.0))) 3.0)",
            "=> tensor f32[] = 4.0",
        ),
        ("(checkpoint 1)", "error: checkpoint takes a function, got the number 1"),
        ("((grad (fn [p] (sum (:w p)))) {:w [1 2] :b nil :t true})", "=> {:w [1. 1.] :b nil :t false}"),
        (
            "((grad (fn [p] (* 2 (:w p)))) {:w 1 :n {:k \"a\"}})",
            "error: cannot differentiate by a string at [:n :k]",
        ),
        (
            "((grad (fn [x] (list (sum x) 1))) [1 2])",
            "error: the gradient of <lambda> wants a scalar float loss",
        ),
        ("((grad (fn [x] (list (sum x) (fn [] x))) :aux) [1 2])", "error: a function came out of"),
        ("(grad (fn [x] x) (fn [x] x))", "error: grad takes one function, got 2 arguments"),
        ("((grad (fn [x] x) :wrt '[]) 1)", "error: :wrt names no argument"),
    ]);
}

/// Transformed functions compile as one unit each, keyed by code and types: a new closure of the same code reuses it.
#[test]
fn compiled_once_for_all_closures() {
    let cases = [
        ("vmap", "(defn f [w x] (+ (* w x) x)) (print (f [1 2] [1 2])) (print ((vmap f [nil 0]) 2.0 [1 2]))", vec!["f", "f-vmap"]),
        (
            "closures",
            "(defn batch [w xs] ((vmap (fn [x] (* w x))) xs)) (print (batch [1 2] [[1 2] [3 4]]))
             (print (batch [5 6] [[1 2] [3 4]]))",
            vec!["batch"],
        ),
        (
            "closures called from the top",
            "(def fs (map (fn [k] (vmap (fn [x] (* k x)))) '[2.0 3.0])) (print (map (fn [f] (f [1 2])) fs))",
            vec!["lambda-vmap"],
        ),
        ("in axes", "(defn f [x] (sum x)) (print ((vmap f) [[1 2] [3 4]]) ((vmap f 1) [[1 2] [3 4]]))", vec!["f-vmap", "f-vmap"]),
        ("jvp", "(defn f [x] (* x x)) (print ((jvp f) [1 2] [1 0]))", vec!["f-jvp"]),
        ("jacobian", "(defn f [x] (* x x)) (print ((jacobian f) [1 2]))", vec!["f-jacobian"]),
        ("hessian", "(defn f [x] (sum (* x x x))) (print ((hessian f) [1 2]))", vec!["f-jacobian"]),
        ("nested", "(defn f [x] (sum (* x x))) (print ((vmap (grad f)) [[1 2] [3 4]]))", vec!["f-vmap"]),
        (
            "inside a compiled function",
            "(defn f [xs] {:a ((vmap (fn [x] (* x (sum x)))) xs) :b ((jacobian (fn [x] (* x x))) (xs 0))})
             (print (f [[1 2] [3 4]]))",
            vec!["f"],
        ),
        (
            "scan",
            "(defn rnn [p xs] (scan (fn [h x] (let [h (tanh (+ (@ (:w p) h) x))] (list h (sum h)))) [0 0] xs))
             (print (rnn {:w [[1 2] [3 4]]} [[1 2] [3 4] [5 6]]))",
            vec!["rnn"],
        ),
    ];
    for (what, program, wanted) in cases {
        let (mut interp, world, log) = compiling(Jit::Always);
        let out = run_with(&mut interp, &world, program);
        assert_eq!(out, run(program), "{what}");
        let units: Vec<String> = log
            .borrow()
            .units
            .iter()
            .map(|u| {
                if u.transform.is_empty() {
                    u.function.clone()
                } else {
                    format!("{}-{}", u.function, u.transform)
                }
            })
            .collect();
        assert_eq!(units, wanted, "{what}: {out}");
    }
}

/// Forward mode transposes the gradient of a `defgrad`, which is impossible for a loop of unknown length; reverse mode
/// runs it.
#[test]
fn a_gradient_with_a_loop_of_unknown_length_goes_one_way() {
    let f = "(defn f [x] (* x x))
         (defgrad f [x] [y] [dy] (while (< (abs g) 10) [g (* dy x)] (* g 2)))";
    assert_eq!(run(&format!("{f} (print ((grad f) 3.0) ((jacobian f) 3.0))")), "12.0 12.0");
    for program in [
        "((jvp f) 3.0 1.0)",
        "((jvp (fn [x] (repeat [i 20] [x x] (f x)))) 3.0 1.0)",
        "((jvp (fn [x] (if (> x 2) (f x) x))) 3.0 1.0)",
    ] {
        let out = run(&format!("{f} {program}"));
        let message =
            "error: there is no derivative in forward mode here: the gradient that defgrad gives would";
        assert!(out.starts_with(message) && out.contains("test.shf:"), "{program}: {out}");
    }
}

/// A loop of unknown length has no VJP; constants may pass through one inside varying code.
#[test]
fn what_does_not_vary_passes_through_any_loop() {
    let loop_of = |start: &str| format!("(repeat [i (+ 1 (argmax v))] [w {start}] (* 2 w))");
    let inside = |body: &str| {
        format!("((value-and-grad (fn [a] (sum ((checkpoint (fn [v] {body})) (* 2 a))))) [1 2])")
    };
    let captured = inside(&loop_of("(stop-gradient a)"));
    let beside = inside(&format!(
        "(let [[x t] ((checkpoint (fn [u] (list u (stop-gradient u)))) v)] (+ x {}))",
        loop_of("t")
    ));
    let chosen = inside(&format!("(let [t (stop-gradient v)] (if (> (sum v) 0) (+ v {}) v))", loop_of("t")));
    let state = inside(&format!(
        "(let [[s t] (repeat [k 20] [[s t] [v [1 1]]] [(* s t) {}])] (+ s t))",
        loop_of("(* 0.25 t)")
    ));
    let rows = inside(&format!(
        "(let [[s xs] (scan (fn [s x] (list (+ s x) {})) v (stop-gradient (ones [20 2])))] (+ s (mean xs :axis 0)))",
        loop_of("x")
    ));
    let pushed = "((jvp (fn [a] ((checkpoint (fn [v] (let [t (stop-gradient v)] (if (> v 0) (+ v (unpushable t)) v)))) a))) 3.0 1.0)";
    let source =
        "(defn unpushable [x] (* 2 x)) (defgrad unpushable [x] [y] [dy] (repeat [i (int y)] [g dy] (* 1 g)))";
    check(&[
        (&captured, "=> '[12.0 [0. 0.]]"),
        (&beside, "=> '[30.0 [2. 2.]]"),
        (&chosen, "=> '[30.0 [2. 2.]]"),
        (&state, "=> '[8.0 [2. 2.]]"),
        (&rows, "=> '[54.0 [2. 2.]]"),
        (&format!("{source} {pushed}"), "=> '[9.0 1.0]"),
    ]);
}

/// Computations of a checkpoint on captured tensors alone belong to it: they are computed twice, once for the backward
/// pass, which would store them otherwise.
#[test]
fn a_checkpoint_encloses_all_that_it_computes() {
    let program = "(defn f [w x] (sum (square ((checkpoint (fn [v] (* v (exp w)))) x))))
                   (print ((value-and-grad f) [0 0] [1 2]))";
    let (mut interp, world, log) = compiling(Jit::Always);
    let out = run_with(&mut interp, &world, program);
    assert_eq!(out, run(program));
    let mut times = 0;
    log.borrow().units[0].graph.visit(&mut |_, eqn| times += usize::from(eqn.op.name() == "exp"));
    assert_eq!(times, 2);
}
