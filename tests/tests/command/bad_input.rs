//! Invalid user input: programs, data, settings. Each message gives the place, the reason, and the fix.

use std::fs;

use sheaf_tests::{Output, Sandbox};

/// Runs a program without a compiler. It must fail, and leave no files.
fn run(program: &str, files: &[(&str, &[u8])]) -> Output {
    let sandbox = Sandbox::new();
    sandbox.write("program.shf", program);
    for (name, content) in files {
        sandbox.write(name, content);
    }
    let output = sandbox.run(&["program.shf"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(Sandbox::files(&sandbox.home()), [""; 0]);
    assert!(!sandbox.path("__sheaf__").exists());
    output
}

#[test]
fn unbalanced_bracket() {
    insta::assert_snapshot!(run("(defn double [x]\n  (* 2 x)\n\n(print (double 4))\n", &[]));
}

#[test]
fn bracket_too_many() {
    insta::assert_snapshot!(run("(print (+ 1 2)))\n", &[]));
}

#[test]
fn bracket_of_the_other_kind() {
    insta::assert_snapshot!(run("(print [1 2 3))\n", &[]));
}

#[test]
fn unclosed_string() {
    insta::assert_snapshot!(run("(print \"loss)\n", &[]));
}

#[test]
fn unknown_symbol() {
    insta::assert_snapshot!(run("(defn activate [x]\n  (sigmiod x))\n(print (activate [1 2]))\n", &[]));
}

#[test]
fn unknown_module() {
    insta::assert_snapshot!(run("(use optm)\n(print 1)\n", &[]));
}

#[test]
fn wrong_shape_in_a_product() {
    insta::assert_snapshot!(run(
        "(defn forward [x W] (@ x W))\n(print (forward (ones '[4 3]) (ones '[2 8])))\n",
        &[]
    ));
}

#[test]
fn wrong_number_of_arguments() {
    insta::assert_snapshot!(run("(defn f [x y] (+ x y))\n(print (f 1))\n", &[]));
}

#[test]
fn missing_program() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["train.shf"]));
    insta::assert_snapshot!("missing_program_by_absolute_path", sandbox.run(&["/nowhere/train.shf"]));
}

#[test]
fn folder_for_a_program() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("model.shf")).expect("a folder");
    insta::assert_snapshot!(sandbox.run(&["model.shf"]));
}

#[test]
fn program_that_is_not_text() {
    let sandbox = Sandbox::new();
    sandbox.write("model.shf", [0xFF, 0xFE, b'(']);
    insta::assert_snapshot!(sandbox.run(&["model.shf"]).stderr);
}

#[test]
fn missing_csv() {
    insta::assert_snapshot!(run(
        "(def data (io \"load\" \"measurements.csv\"))\n(print (shape data))\n",
        &[]
    ));
}

#[test]
fn csv_with_a_word() {
    insta::assert_snapshot!(run(
        "(def data (io \"load\" \"m.csv\"))\n(print (shape data))\n",
        &[("m.csv", b"1,2,3\n4,five,6\n")]
    ));
}

#[test]
fn csv_with_uneven_rows() {
    insta::assert_snapshot!(run("(print (io \"load\" \"m.csv\"))\n", &[("m.csv", b"1,2,3\n4,5\n")]));
}

#[test]
fn broken_project_file() {
    insta::assert_snapshot!(run("(print 1)\n", &[("Sheaf.toml", b"[package\nname = \"x\"\n")]));
}

#[test]
fn setting_that_means_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("program.shf", "(print 1)\n");
    insta::assert_snapshot!(sandbox.sheaf(&["program.shf"]).env("SHEAF_OFFLINE", "perhaps").run());
}
