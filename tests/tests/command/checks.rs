//! Checks of compiled programs, with the real compiler.

use sheaf_tests::{Sandbox, sample};

/// A program, its output, and the error it ends with.
const CASES: [(&str, &str, &str); 9] = [
    (
        "(defn f [x i] (index-update x i 9)) (print (f [1 2 3] -1)) (print (f [1 2 3] 7))",
        "[1. 2. 9.]\n",
        "error: index 7 is outside of axis 0 of f32[3]",
    ),
    (
        "(defn f [E ids] (sum (embedding E ids))) (print (f (ones [4 3]) [0 -1])) (print (f (ones [4 3]) [0 9]))",
        "6.0\n",
        "error: index 9 is outside of axis 0 of f32[4x3]",
    ),
    (
        "(defn f [x i n] (repeat [k n] [s 0.0] (+ s (nth x i)))) (print (f [1 2 3] 5 0)) (print (f [1 2 3] 5 3))",
        "0.0\n",
        "error: index 5 is outside of axis 0 of f32[3]",
    ),
    (
        "(defn f [x i] (while (< (nth x i) 9) [[x i] [x i]] [(* 2 x) (+ i 1)])) (print (f [1 9] 1)) (print (f [1 2] 0))",
        "[[1. 9.] 1]\n",
        "error: index 2 is outside of axis 0 of f32[2]",
    ),
    (
        "(defn f [x i] ((value-and-grad (fn [x] (first (scan (fn [s a] [(+ s (square (nth x i))) nil]) 0.0 (arange 20))))) x))
         (print (f [1 2 3] 1)) (print (f [1 2 3] 3))",
        "[80.0 [ 0. 80.  0.]]\n",
        "error: index 3 is outside of axis 0 of f32[3]",
    ),
    (
        "(defn f [x is] ((vmap (fn [i] (if (< i 3) (nth x i) 0.0))) is)) (print (f [1 2 3] [0 9 2])) (print (f [1 2 3] [0 -4 2]))",
        "[1. 0. 3.]\n",
        "error: index -4 is outside of axis 0 of f32[3]",
    ),
    (
        "(defn f [x i] (if (> (sum x) 0) {:a (nth x i)} (error \"sum {}\" (sum x)))) (print (f [1 2 3] 1)) (print (f [-1 2 -3] 4))",
        "{:a 2.0}\n",
        "error: sum -2.0",
    ),
    (
        "(defn f [x n] (do (assert (< n 3) \"{} for {}\" n x) (* n x))) (print (f [1 2] 2)) (print (f [1 2] 5000000000))",
        "[2. 4.]\n",
        "error: 5000000000 for [1. 2.]",
    ),
    (
        "(defn f [x] (while (< (sum x) 100) [x x] (do (assert (< (max x) 20) \"x is {}\" x) (* 2 x)))) (print (f [18 18 18])) (print (f [1 2]))",
        "[36. 36. 36.]\n",
        "error: x is [16. 32.]",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_values() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    for (program, printed, error) in sample(CASES, 3) {
        sandbox.write("case.shf", program);
        for way in [&["run", "--no-jit", "case.shf"][..], &["run", "--jit", "always", "--strict", "case.shf"]]
        {
            let found = sandbox.run(way);
            assert_eq!(found.stdout, printed, "{program}\n{found}");
            assert!(found.stderr.contains(error), "{program}\n{found}");
        }
    }
}

/// The manifest lists a program's checks, and a later run without a compiler reports them as well.
#[test]
fn the_manifest_lists_what_is_checked() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("case.shf", "(defn f [x i]\n  (nth x i))\n(print (f [1 2 3] 7))");
    let first = sandbox.run(&["run", "--jit", "always", "case.shf"]);
    let manifest = std::fs::read_to_string(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    assert!(
        manifest.contains(r#"{"message": "index of axis 0 of f32[3]", "place": "case.shf:2:3"}"#),
        "{manifest}"
    );
    assert!(manifest.contains(r#""path": "flag""#), "{manifest}");
    let second = sandbox.run(&["run", "--jit", "always", "case.shf"]);
    assert!(first.stderr.ends_with(&second.stderr), "{first}\n{second}");
    let clamped = sandbox.run(&["run", "--jit", "always", "--no-bounds-check", "case.shf"]);
    assert_eq!(clamped.stdout, "3.0\n", "{clamped}");
}
