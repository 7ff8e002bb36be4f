//! Small loops as one kernel, and the choice between forms of a program.

use sheaf_tests::{Sandbox, sample_lines};

/// Loops whose steps make vectors of numbers, and take positions of extremes.
const LOOPS: &str = r"
(defn slope [y] (let [a (nth y 0) b (nth y 1)] (stack [b (- (* 5.0 (- 1.0 (* a a)) b) a)])))
(defn oscillator [(y f32 [2])]
  (first (while (< t 2.0) [[y t] [y 0.0]] [(+ y (* 0.01 (slope y))) (+ t 0.01)])))
(defn padded [(y f32 [2])] (repeat [i 20] [s (zeros 5)] (+ s (pad (reshape (* (sum y) (nth s 1) 0.5) [1]) [[1 3]]) 0.1)))
(defn positions [(x f32 [6]) (n i32 [2 3])]
  (repeat [i 4] [[high low rows columns] [0 0 (zeros 3 :dtype :i32) (zeros 2 :dtype :i32)]]
    (let [moved (* x (+ 1.0 i))]
      [(+ (* 10 high) (argmax moved)) (+ (* 10 low) (argmin moved)) (+ rows (argmin n :axis 0)) (+ columns (argmax n :axis 1))])))
(print (round (* 1000 (oscillator (tensor [2.0 0.0])))))
(print (round (* 1000 (padded (tensor [2.0 0.5])))))
(def n (tensor [[3 -1 3] [2 -1 7]] :i32))
(print (positions (tensor [3.0 7.0 -1.0 7.0 -1.0 2.0]) n))
(print (positions (tensor [3.0 (/ 0.0 0.0) -1.0 (/ 1.0 0.0) (/ 0.0 0.0) (/ -1.0 0.0)]) n))
";

#[test]
fn small_loops_are_kernels() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    sandbox.write("loops.shf", LOOPS);
    for function in ["oscillator", "padded", "positions"] {
        let text = sandbox.run(&["build", "--emit", "stablehlo", "loops.shf", function]).silent();
        assert!(text.contains("flow.dispatch.workgroups") && !text.contains("stablehlo.while"), "{text}");
    }
    let compiled = sandbox.run(&["loops.shf", "--jit", "always", "--strict", "--explain"]);
    assert!(!compiled.stderr.contains("not in its quickest form"), "{compiled}");
    assert_eq!(compiled.stdout, sandbox.run(&["loops.shf", "--no-jit"]).silent());
}

/// Products of vectors and large matrices, whose numbers are whole, so that every order of additions gives the same.
const THIN: &str = r"
(defn whole [seed dims] (random-randint (random-key seed) dims -3 4))
(defn numbers [seed dims] (cast (whole seed dims) :f32))
(defn columns [x w] (@ x w))
(defn rows [w x] (@ w x))
(defn transposed [x w] (@ x (transpose w)))
(defn turned [x w] (@ (transpose w) x))
(def matrix (numbers 3 '[300 310]))
(defn captured [x] (@ x matrix))
(defn column-sums [x] (sum x :axis 0))
(defn all-sums [x] (list (sum x :axis '[0 1]) (sum x)))
(defn beside-halves [v w h g] (list (@ v w) (cast (@ h g) :f32) (cast (@ (reshape h '[20 6]) (first g)) :f32)))
(defn halves [seed dims] (cast (whole seed dims) :bf16))
(defn gradient [w x] ((grad (fn [x] (sum (square (@ x w))))) x))
(defn show [y] (print (shape y) (sum y) (max y) (min y) (argmax y) (argmin y)))
(show (columns (numbers 1 '[1 257]) (numbers 2 '[257 259])))
(show (columns (numbers 1 '[1 1 4100]) (numbers 2 '[4100 17])))
(show (columns (numbers 1 '[770]) (numbers 2 '[770 5003])))
(show (columns (numbers 1 '[3 1025]) (numbers 2 '[1025 1033])))
(show (columns (numbers 1 '[3 210]) (numbers 2 '[210 5456])))
(show (rows (numbers 1 '[5003 259]) (numbers 2 '[259])))
(show (transposed (numbers 1 '[1 300]) (numbers 2 '[301 300])))
(show (transposed (numbers 1 '[2 1030]) (numbers 2 '[1031 1030])))
(show (turned (numbers 1 '[770]) (numbers 2 '[770 130])))
(show (column-sums (numbers 1 '[301 1603])))
(show (first (all-sums (numbers 1 '[7 43 1603]))))
(show (expand-dims (second (all-sums (numbers 1 '[7 43 1603]))) 0))
(show (captured (numbers 1 '[300])))
(show (captured (numbers 1 '[40 300])))
(map show (beside-halves (numbers 1 '[1 300]) (numbers 2 '[300 301]) (halves 3 '[4 5 6]) (halves 4 '[4 6 3])))
(show (gradient (numbers 1 '[260 261]) (numbers 2 '[260])))
";

#[test]
fn thin_products_are_kernels() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    sandbox.write("thin.shf", sample_lines(THIN, "(show (", 2, 0));
    let typed = "(defn f [(x f32 [300]) (w f32 [301 300])] (@ x (transpose w)))";
    sandbox.write("typed.shf", typed);
    let text = sandbox.run(&["build", "--emit", "stablehlo", "typed.shf", "f"]).silent();
    assert!(text.contains("flow.dispatch.workgroups") && !text.contains("dot_general"), "{text}");
    let compiled = sandbox.run(&["thin.shf", "--jit", "always", "--strict"]);
    assert_eq!(compiled.stdout, sandbox.run(&["thin.shf", "--no-jit"]).silent());
}

/// Convolutions of whole numbers: in two dimensions and one, with strides, dilations and margins, and their gradients.
const CONVOLUTIONS: &str = r"
(use nn)
(defn numbers [seed dims] (cast (random-randint (random-key seed) dims -3 4) :f32))
(defn show [y] (print (shape y) (sum y) (max y) (min y) (argmax y) (argmin y)))
(defn half-squares [y] (sum (* 0.5 (square y))))
(def image (numbers 1 '[1 20 20 16]))
(def window (numbers 2 '[3 3 16 32]))
(show (conv2d (numbers 1 '[2 32 32 64]) (numbers 2 '[3 3 64 64]) :padding :same))
(show (conv2d (numbers 1 '[3 29 31 1]) (numbers 2 '[5 3 1 16]) :padding :same))
(show (conv2d (numbers 1 '[2 65 33 3]) (numbers 2 '[7 7 3 32]) :stride 2 :padding :same))
(show (conv2d image (numbers 2 '[3 3 16 48])))
(show ((grad (fn [x] (half-squares (conv2d x window :stride 2 :padding :same)))) image))
(show ((grad (fn [k] (half-squares (conv2d image k :padding :same)))) window))
";

#[test]
fn convolutions_are_kernels() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    sandbox.write("convolutions.shf", sample_lines(CONVOLUTIONS, "(show (", 2, 1));
    let typed = "(use nn) (defn f [(x f32 [4 28 28 1]) (k f32 [3 3 1 32])] (conv2d x k))";
    sandbox.write("typed.shf", typed);
    let text = sandbox.run(&["build", "--emit", "stablehlo", "typed.shf", "f"]).silent();
    assert!(text.contains("flow.dispatch.workgroups") && !text.contains("stablehlo.convolution"), "{text}");
    let compiled = sandbox.run(&["convolutions.shf", "--jit", "always", "--strict"]);
    assert_eq!(compiled.stdout, sandbox.run(&["convolutions.shf", "--no-jit"]).silent());
}

/// A program that was compiled in another form for another reason does not count as the second choice.
#[test]
fn the_quickest_form_is_tried_beside_others() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("loops.shf", LOOPS);
    let run =
        |kernels: &str| sandbox.run(&["loops.shf", "--jit", "always", "--explain", "--kernels", kernels]);
    let slow = run("never");
    let quick = run("auto");
    assert_eq!(slow.stdout, quick.stdout);
    assert!(quick.stderr.contains("compiling oscillator"), "{quick}");
    assert!(!quick.stderr.contains("not in its quickest form"), "{quick}");
    assert!(!run("auto").stderr.contains("compiling"));
}

/// Kernels with a padding of a part of another one take the compiler for ever.
#[test]
fn paddings_of_paddings_are_compiled() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write(
        "pads.shf",
        "(defn below [row] (pad (reshape row [1 3]) [[1 0] [0 0]]))
(defn f [(x f32 [2 3]) (w f32 [2 3])]
  (let [a (below (+ (get x 1) (get w 0)))
        b (+ (+ a w) a)]
    (below (+ (get b 1) (get b 1)))))
(print (f (tensor [[1.0 2.0 3.0] [4.0 5.0 6.0]]) (tensor [[1.0 1.0 2.0] [3.0 5.0 8.0]])))
",
    );
    let compiled = sandbox.run(&["pads.shf", "--jit", "always", "--strict"]);
    assert_eq!(compiled.stdout, sandbox.run(&["pads.shf", "--no-jit"]).silent(), "{compiled}");
}
