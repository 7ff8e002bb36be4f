//! `sheaf build --emit`: the compilation stages of a function.

use std::fs;

use sheaf_tests::Sandbox;

const PROGRAM: &str = "(defparams Net {:w [2 3] :b [3]})
(defmacro squared [e] `(let [v ~e] (* v v)))
(defn loss [(p :as Net) (x f32 [4 2])]
  (mean (squared (-> x (@ (:w p)) (+ (:b p))))))
(defn untyped [x] (sum x))
(print (untyped [1 2 3]))
";

fn emitted(form: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("net.shf", PROGRAM);
    sandbox.run(&["build", "--emit", form, "net.shf", "loss"]).silent()
}

#[test]
fn forms() {
    insta::assert_snapshot!(emitted("forms"));
}

#[test]
fn graph() {
    insta::assert_snapshot!(emitted("graph"));
}

#[test]
fn grad() {
    insta::assert_snapshot!(emitted("grad"));
}

#[test]
fn stablehlo() {
    insta::assert_snapshot!(emitted("stablehlo"));
}

#[test]
fn vmfb() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("net.shf", PROGRAM);
    insta::assert_snapshot!(sandbox.run(&["build", "--emit", "vmfb", "net.shf", "loss"]));
    assert!(sandbox.path("loss.cpu.vmfb").exists() && !sandbox.path("__sheaf__").exists());
    let output = sandbox.run(&[
        "build",
        "--emit",
        "vmfb",
        "net.shf",
        "loss",
        "-o",
        "out/l.vmfb",
        "--device",
        "cuda:sm_89",
    ]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(fs::metadata(sandbox.path("out/l.vmfb")).is_ok_and(|file| file.len() > 1000));
    let json = sandbox.run(&["build", "--emit", "vmfb", "net.shf", "loss", "--json"]).silent();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["file"], "loss.cpu.vmfb");
}

#[test]
fn of_a_recorded_call() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("net.shf", PROGRAM);
    assert_eq!(sandbox.run(&["net.shf", "--record", "shapes.json"]).code, Some(0));
    insta::assert_snapshot!(sandbox.run(&[
        "build",
        "--emit",
        "graph",
        "net.shf",
        "untyped",
        "--shapes",
        "shapes.json"
    ]));
    insta::assert_snapshot!(
        "emit_without_types",
        sandbox.run(&["build", "--emit", "graph", "net.shf", "untyped"])
    );
    insta::assert_snapshot!(
        "emit_forms_of_nothing",
        sandbox.run(&["build", "--emit", "forms", "net.shf", "nothing"])
    );
}
