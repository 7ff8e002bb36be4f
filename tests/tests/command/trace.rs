//! `--trace`: the call tree in the layout of the language's front page, interpreted and compiled.

use sheaf_tests::Sandbox;

/// The example of the front page: one step, and the forward pass.
pub const XOR: &str = "(def X [[0 0] [0 1] [1 0] [1 1]])
(def Y [[0] [1] [1] [0]])
(def p {:l1 {:W [[1 -1 2] [0.5 1 -1]] :b (zeros [3])} :l2 {:W [[1] [-2] [0.5]] :b (zeros [1])}})
(defn forward [x p]
  (as-> x h
    (with-params [p :l1] (relu (+ (@ h W) b)))
    (with-params [p :l2] (sigmoid (+ (@ h W) b)))))
(defn loss [p x y] (mean (** (- (forward x p) y) 2)))
(defn train-step [p x y lr]
  (let [[value grads] ((value-and-grad loss) p x y)]
    (sgd-step p grads lr)))
(print (forward X (train-step p X Y 0.7)))
";

#[test]
fn the_tree_of_calls() {
    let sandbox = Sandbox::new();
    sandbox.write("xor.shf", XOR);
    insta::assert_snapshot!("interpreted", sandbox.run(&["xor.shf", "--trace", "--no-jit"]));
    // An existing program after the option is the program.
    insta::assert_snapshot!("named", sandbox.run(&["--trace", "forward,relu", "xor.shf", "--no-jit"]));
    let plain = sandbox.run(&["xor.shf", "--no-jit"]).silent();
    let traced = sandbox.run(&["--no-jit", "--trace", "xor.shf"]);
    assert_eq!((traced.code, traced.stdout), (Some(0), plain));
}

#[test]
fn the_inside_of_compiled_functions() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("xor.shf", XOR);
    let plain = sandbox.run(&["xor.shf", "--jit", "always"]);
    let traced = sandbox.run(&["xor.shf", "--jit", "always", "--trace", "--explain"]);
    assert_eq!(plain.stdout, traced.stdout, "{traced}");
    insta::assert_snapshot!("compiled", traced);
    // The twins are there: neither they nor the plain programs are compiled again.
    let again = sandbox.run(&["xor.shf", "--trace", "--offline"]);
    assert!(again.stderr.contains("[time], compiled") || again.stderr.contains(", compiled)"), "{again}");
    assert!(!again.stderr.contains("compiling"), "{again}");
}
