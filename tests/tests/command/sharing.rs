//! Irrelevant to a compiled program: names, comments, layout, files and folders of the source.

use std::fs;

use sheaf_tests::Sandbox;

/// One head of attention, and a call of it.
const ONE: &str = "\
(defn attention [q k v]
  (@ (softmax (/ (@ q (transpose k)) (sqrt 8.0))) v))
(print (sum (attention (ones [4 8]) (ones [4 8]) (ones [4 8]))))
";

/// The same, written differently, in two files.
const HEAD: &str = "\
; Vaswani et al., equation 1.
(defn scores [queries keys]
  (/ (@ queries (transpose keys)) (sqrt 8.0)))

(defn look [queries keys values]   ; a head
  (let [weights (softmax (scores queries keys))]
    (@ weights values)))
";
const OTHER: &str = "(use head)\n\n(let [x (ones [4 8])\n      y (ones [4 8])\n      z (ones [4 8])]\n  (print (sum (look x y z))))\n";

#[test]
fn two_projects_with_the_same_attention_share_one_program() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("one/model.shf", ONE);
    sandbox.write("other/src/head.shf", HEAD);
    sandbox.write("other/src/main.shf", OTHER);
    let run = |file: &str| sandbox.run(&[file, "--jit", "always", "--strict"]);
    let first = run("one/model.shf").compiled();
    let claims = || Sandbox::files(&sandbox.home().join("cache/claims-v1"));
    let before = claims();
    assert_eq!(run("other/src/main.shf").silent(), first, "nothing is compiled");
    assert_eq!(claims(), before);
    assert!(fs::metadata(sandbox.path("other/src/__sheaf__/manifest.json")).is_ok(), "it has its own copy");
}
