//! Gradients of user functions: against derivations by hand, and finite differences.

use crate::support::{check, run};
use proptest::prelude::*;

#[test]
fn by_hand() {
    check(&[
        ("((grad (fn [x] (* x x))) 3.0)", "=> tensor f32[] = 6.0"),
        ("((grad (fn [x] (* x x x))) [2.0])", "error: the gradient of <lambda> wants a scalar float loss"),
        ("((grad (fn [x] (sum (* x x x)))) [1 2])", "=> tensor f32[2] = [ 3. 12.]"),
        ("((value-and-grad (fn [x] (sum (* x x)))) [1 2])", "=> '[5.0 [2. 4.]]"),
        // The structure of the first argument, keys in its order.
        ("((grad (fn [p] (sum (* (:w p) (:b p))))) {:w [1 2] :b [3 4]})", "=> {:w [3. 4.] :b [1. 2.]}"),
        ("((grad (fn [[a b]] (sum (* a b)))) (list [1 2] [3 4]))", "=> '[[3. 4.] [1. 2.]]"),
        ("((grad (fn [p] (sum (:w (:l1 p))))) {:l1 {:w [1 2]} :l2 '[]})", "=> {:l1 {:w [1. 1.]} :l2 []}"),
        // Leaves that the loss does not depend on.
        ("((grad (fn [p] (sum (:a p)))) {:a [1] :b [1 2]})", "=> {:a [1.] :b [0. 0.]}"),
        ("((grad (fn [x] 3.0)) [1 2])", "=> tensor f32[2] = [0. 0.]"),
        // :wrt
        ("((grad (fn [x y] (sum (* x y))) :wrt 1) [1 2] [3 4])", "=> tensor f32[2] = [1. 2.]"),
        ("((grad (fn [x y] (sum (* x y))) :wrt '[0 1]) [1 2] [3 4])", "=> '[[3. 4.] [1. 2.]]"),
        ("((grad (fn [x y] (sum (* x y))) :wrt [1 0]) [1 2] [3 4])", "=> '[[1. 2.] [3. 4.]]"),
        ("((grad (fn [x y] (sum (* x y))) :wrt '[1]) [1 2] [3 4])", "=> '[[1. 2.]]"),
        (
            "((grad (fn [x y] (sum x)) :wrt 2) [1] [2])",
            "error: no argument 2 to differentiate by: 2 were given",
        ),
        ("((grad (fn [x] (sum x)) :wrt '[0 0]) [1])", "error: :wrt names argument 0 twice"),
        ("((grad (fn [x] (sum x)) :wrt -1) [1])", "error: :wrt counts arguments from 0"),
        // :aux
        ("((value-and-grad (fn [x] (list (sum x) :extra)) :aux) [1 2])", "=> '[[3.0 :extra] [1. 1.]]"),
        ("((grad (fn [x] (list (sum x) {:y (* 2 x) :n 1})) :aux) [1 2])", "=> '[[1. 1.] {:y [2. 4.] :n 1}]"),
        ("((value-and-grad (fn [x] [(sum x) (max x)]) :aux) [1 2])", "=> '[[3.0 2.0] [1. 1.]]"),
        ("((grad (fn [x] (sum x)) :aux) [1])", "error: with :aux the function gives [loss extra]"),
        // Numbers, integers and booleans among parameters.
        ("((grad (fn [p] (* (:a p) (:b p)))) {:a 3 :b 2.5})", "=> {:a 2.5 :b 3.0}"),
        ("((grad (fn [p] (sum (* (:w p) (:n p))))) {:w [1 2] :n (arange 2)})", "=> {:w [0. 1.] :n [0 0]}"),
        (
            "((grad (fn [p] (sum (where (:m p) (:w p) 0)))) {:w [1 2] :m [true false]})",
            "=> {:w [1. 0.] :m [false false]}",
        ),
        ("((grad (fn [x] (sum x))) :a)", "error: cannot differentiate by the keyword :a"),
        (
            "((grad (fn [x] (sum (cast x :i32)))) [1 2])",
            "error: the gradient of <lambda> wants a scalar float loss, it gave a tensor i32[]",
        ),
        (
            "((grad (fn [x] nil)) [1 2])",
            "error: the gradient of <lambda> wants a scalar float loss, it gave nil",
        ),
        ("(grad 3)", "error: grad takes a function, got the number 3"),
        ("((grad sum) [1 2])", "=> tensor f32[2] = [1. 1.]"),
        // Closures and nesting.
        ("(let [k [2 3]] ((grad (fn [x] (sum (* k x)))) [1 1]))", "=> tensor f32[2] = [2. 3.]"),
        ("((grad (grad (fn [x] (* x x x)))) 2.0)", "=> tensor f32[] = 12.0"),
        ("((grad (grad (grad (fn [x] (* x x x))))) 2.0)", "=> tensor f32[] = 6.0"),
        ("((grad (fn [x] (* x ((grad (fn [y] (* x y y))) x)))) 3.0)", "=> tensor f32[] = 54.0"),
        ("((grad (fn [x] (sum ((grad (fn [y] (sum (* x y y)))) x)))) [1 2])", "=> tensor f32[2] = [4. 8.]"),
        ("((grad (fn [x] (* x (stop-gradient x)))) 3.0)", "=> tensor f32[] = 3.0"),
        ("((grad (fn [x] (repeat [i 3] [a x] (* a x)))) 2.0)", "=> tensor f32[] = 32.0"),
        ("((grad (fn [x] (if (> x 1) (* x x) x))) 3.0)", "=> tensor f32[] = 6.0"),
        (
            "((grad (fn [x] (reduce + 0 (map (fn [r] (sum (* r r))) x)))) [[1 2] [3 4]])",
            "=> tensor f32[2x2] = [[2. 4.]\n [6. 8.]]",
        ),
        ("((grad (fn [x] (sum (get x [0 2 2])))) [1 2 3])", "=> tensor f32[3] = [1. 0. 2.]"),
        ("((grad (fn [x] (x -1))) [1 2 3])", "=> tensor f32[3] = [0. 0. 1.]"),
        ("((grad relu) 0.0)", "=> tensor f32[] = 0.0"),
        ("((grad (fn [x] (sqrt (sum (* x x))))) [3 4])", "=> tensor f32[2] = [0.6 0.8]"),
        ("((grad (fn [x] (** x 3))) 2.0)", "=> tensor f32[] = 12.0"),
        ("((grad (fn [x] (** x 3))) -2.0)", "=> tensor f32[] = 12.0"),
        ("((grad (fn [x] (max x))) [1 3 2])", "=> tensor f32[3] = [0. 1. 0.]"),
        // Effects happen once.
        ("((grad (fn [x] (print x) (* x x))) 3.0)", "3.0\n=> tensor f32[] = 6.0"),
        ("((grad (fn [x] (print (str \"x = \" x)) (* x x))) 3.0)", "x = 3.0\n=> tensor f32[] = 6.0"),
        ("((grad (fn [x] ((grad (fn [y] (print y) (* x y y))) x))) 3.0)", "3.0\n=> tensor f32[] = 12.0"),
    ]);
}

/// Gradients of rearranging, joining, sorting and replacing.
#[test]
fn gradients_of_parts_and_places() {
    let id2 = "=> tensor f32[2x2] = [[1. 0.]\n [0. 1.]]";
    check(&[
        (
            "((grad (fn [x] (sum (einsum \"ij,jk->ik\" x [[1 2] [3 4]])))) [[1 1] [1 1]])",
            "=> tensor f32[2x2] = [[3. 7.]\n [3. 7.]]",
        ),
        ("((grad (fn [x] (einsum \"i,j,i->\" [1 2] x [3 4]))) [1 1])", "=> tensor f32[2] = [11. 11.]"),
        ("((grad (fn [x] (einsum \"ii\" x))) [[1 2] [3 4]])", id2),
        ("((grad trace) [[1 2] [3 4]])", id2),
        ("((grad (fn [x] (sum (outer x [1 2])))) [1 1])", "=> tensor f32[2] = [3. 3.]"),
        ("((grad (fn [x] (dot x [3 4]))) [1 1])", "=> tensor f32[2] = [3. 4.]"),
        ("((grad (fn [x] (sum (* [1 2 3] (sort x))))) [3 1 2])", "=> tensor f32[3] = [3. 1. 2.]"),
        ("((grad (fn [x] (sum (* [1 2 3] (sort x :reverse))))) [3 1 2])", "=> tensor f32[3] = [1. 3. 2.]"),
        ("((grad (fn [x] (sum (first (top_k x 2))))) [1 5 3])", "=> tensor f32[3] = [0. 1. 1.]"),
        ("((grad (fn [x] (sum (* [1 2 3] (index-update x 1 5))))) [1 1 1])", "=> tensor f32[3] = [1. 0. 3.]"),
        (
            "((grad (fn [x] (sum (* [1 2 3] (index-update x [0 0] [8 9]))))) [1 1 1])",
            "=> tensor f32[3] = [0. 2. 3.]",
        ),
        (
            "((grad (fn [v] (sum (* [1 2 3] (index-update [0 0 0] [0 0] v))))) [8 9])",
            "=> tensor f32[2] = [0. 1.]",
        ),
        (
            "((grad (fn [v] (sum (* [1 2 3] (index-update [0 0 0] 1:3 v))))) [8 9])",
            "=> tensor f32[2] = [2. 3.]",
        ),
        (
            "((grad (fn [v] (sum (* [1 2 3] (scatter-add [0 0 0] [2 0 2] v))))) [1 1 1])",
            "=> tensor f32[3] = [3. 1. 3.]",
        ),
        ("((grad (fn [x] (sum (dynamic-slice x 1 2)))) [1 2 3 4])", "=> tensor f32[4] = [0. 1. 1. 0.]"),
        ("((grad (fn [x] (sum (* [1 2 3 4] (pad x 1))))) [1 1])", "=> tensor f32[2] = [2. 3.]"),
        ("((grad (fn [x] (sum (* [1 2 3 4] (tile x 2))))) [1 1])", "=> tensor f32[2] = [4. 6.]"),
        ("((grad (fn [x] (sum (* [1 2 3] (roll x 1))))) [1 1 1])", "=> tensor f32[3] = [2. 3. 1.]"),
        ("((grad (fn [x] (sum (* [1 2 3] (flip x))))) [1 1 1])", "=> tensor f32[3] = [3. 2. 1.]"),
        (
            "((grad (fn [x] (sum (* [[1 2] [3 4]] (tril x))))) [[1 1] [1 1]])",
            "=> tensor f32[2x2] = [[1. 0.]\n [3. 4.]]",
        ),
        ("((grad (fn [x] (sum (* [[1 2] [3 4]] (diag x))))) [1 1])", "=> tensor f32[2] = [1. 4.]"),
        (
            "((grad (fn [x] (sum (* [1 2 3] (append-and-roll x 9))))) [1 1 1])",
            "=> tensor f32[3] = [0. 1. 2.]",
        ),
        (
            "((grad (fn [x] (sum (* 2 (second (tensor-split x 2)))))) [1 1 1 1])",
            "=> tensor f32[4] = [0. 0. 2. 2.]",
        ),
        ("((grad (fn [x] (sum (mapv (fn [r] (* r r)) x)))) [1 2])", "=> tensor f32[2] = [2. 4.]"),
        ("((grad (fn [x] (sum (x 0:2 [0 0])))) [[1 2] [3 4]])", "=> tensor f32[2x2] = [[2. 0.]\n [2. 0.]]"),
        (
            "((grad (fn [x] (sum (* [1 2] (squeeze (swapaxes (expand-dims x 0) 0 1)))))) [1 1])",
            "=> tensor f32[2] = [1. 2.]",
        ),
    ]);
}

/// Losses, as text, of a vector `x` of three numbers, and points where they are smooth.
const LOSSES: [&str; 14] = [
    "(sum (* x x (exp (neg x))))",
    "(mean (square (- (@ [[1 2 3] [4 5 6]] x) [1 0])))",
    "(logsumexp (* 2 x))",
    "(neg (log-softmax x 0))",
    "(sum (* [1 2 3] (softmax x)))",
    "(sum (tanh (/ x (+ 1 (* x x)))))",
    "(sum (sigmoid (concat x (reverse x))))",
    "(sum (* (reshape x '[3 1]) (reshape x '[1 3])))",
    "(sum (where (> x 0) (sin x) (cos x)))",
    "(std (concat x [1 -1]))",
    "(sparse-cross-entropy (reshape (concat x (* 2 x)) '[2 3]) [0 2])",
    "(sum (** (+ 2 (square x)) 1.5))",
    "(sum (softplus (slice x 1 3)))",
    "(with-params {:W x :b (sum x)} (sum (silu (* W b))))",
];

fn number(program: &str) -> f64 {
    let out = run(program);
    out.trim().parse().unwrap_or_else(|_| panic!("{program}: {out}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finite_differences(x in prop::array::uniform3(0.3..1.5_f64), signs in prop::array::uniform3(any::<bool>()), which in 0..LOSSES.len()) {
        let loss = LOSSES[which].replace("(neg (log-softmax x 0))", "(neg ((log-softmax x) 0))");
        let x: Vec<f64> = x.iter().zip(signs).map(|(x, s)| if s { *x } else { -x }).collect();
        let at = |x: &[f64]| format!("(defn f [x] {loss}) (print (f [{} {} {}]))", x[0], x[1], x[2]);
        for i in 0..3 {
            let step = 5e-3;
            let moved = |by: f64| { let mut y = x.clone(); y[i] += by; number(&at(&y)) };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            let program = format!("(defn f [x] {loss}) (print (((grad f) [{} {} {}]) {i}))", x[0], x[1], x[2]);
            let gradient = number(&program);
            prop_assert!((gradient - slope).abs() < 2e-2 * (1.0 + slope.abs()), "{loss} at {x:?}, {i}: {gradient}, differences give {slope}");
        }
    }
}
