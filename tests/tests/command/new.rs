//! `sheaf new`, `sheaf init`, and running a package.

use std::fs;

use sheaf_tests::Sandbox;

const FILES: [&str; 5] = [".gitignore", "Sheaf.toml", "src/main.shf", "src/model.shf", "tests/model.shf"];

#[test]
fn a_new_package_runs_at_once() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["new", "my-model"]).silent(), @r"
    made the package my-model; next:
      cd my-model
      sheaf run
    ");
    assert_eq!(Sandbox::files(&sandbox.path("my-model")), FILES);
    let text = sandbox.run(&["run", "my-model/src/main.shf", "--no-jit"]).silent();
    assert_eq!(text, "loss 0.000000\ny = 2.00 x + 1.00\n");
    assert_eq!(sandbox.run(&["fmt", "--check", "my-model"]).silent(), "");
}

#[test]
fn a_package_runs_without_a_file() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["init", "--name", "here"]).code, Some(0));
    assert_eq!(Sandbox::files(&sandbox.path("")), FILES);
    assert!(sandbox.run(&["run", "--no-jit"]).silent().starts_with("loss 0.000000\n"));
    sandbox.write("Sheaf.toml", "[package]\nmain = \"other.shf\"\n");
    sandbox.write("other.shf", "(print 7)");
    assert_eq!(sandbox.run(&["run", "--no-jit"]).silent(), "7\n");
    sandbox.write("Sheaf.toml", "[package]\nmain = \"none.shf\"\n");
    insta::assert_snapshot!(sandbox.run(&["run", "--no-jit"]));
}

#[test]
fn what_is_there_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("src/main.shf", "(print 1)");
    sandbox.write(".gitignore", "*.log\n");
    insta::assert_snapshot!(sandbox.run(&["init", "--name", "here"]).silent(), @r"
    kept .gitignore
    made the package here; next:
      sheaf run
    ");
    assert_eq!(Sandbox::files(&sandbox.path("")), [".gitignore", "Sheaf.toml", "src/main.shf"]);
    assert_eq!(fs::read_to_string(sandbox.path("src/main.shf")).unwrap(), "(print 1)");
    insta::assert_snapshot!(sandbox.run(&["init", "--name", "again"]));
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("taken/notes.txt", "mine");
    sandbox.write("file", "mine");
    insta::assert_snapshot!(sandbox.run(&["new", "taken"]));
    assert_eq!(Sandbox::files(&sandbox.path("taken")), ["notes.txt"]);
    assert_eq!(sandbox.run(&["new", "file"]).code, Some(1));
    fs::create_dir(sandbox.path("empty")).unwrap();
    assert_eq!(sandbox.run(&["new", "empty"]).code, Some(0));
}

#[test]
fn bad_names_are_refused() {
    for name in ["2fast", "My-Model", "a b", "über", "nn", "data", "..", "a/.."] {
        let sandbox = Sandbox::new();
        let output = sandbox.run(&["new", name]);
        assert_eq!(output.code, Some(1), "{output}");
        assert!(output.stderr.starts_with("error: "), "{output}");
        assert_eq!(Sandbox::files(&sandbox.path("")), [""; 0]);
    }
    insta::assert_snapshot!(Sandbox::new().run(&["new", "My-Model"]));
    insta::assert_snapshot!(Sandbox::new().run(&["init", "--name", "optim"]));
}
