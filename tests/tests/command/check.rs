//! `sheaf check`.

use std::path::Path;

use sheaf_tests::Sandbox;

const WRONG: &str =
    "(use ./part.shf)\n(defn f [(x f32 [4 2])] (@ x (weights 3)))\n(f 1 2)\n(print (lenght [1 2]))\n";
const PART: &str = "(defn weights [n] (ones (list n 5)))\n(defn unused [] (sqrt))\n";

fn wrong() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("train.shf", WRONG);
    sandbox.write("part.shf", PART);
    sandbox
}

#[test]
fn all_errors_of_all_files() {
    let sandbox = wrong();
    sandbox.write("other.shf", "(defn g [x] y)\n");
    let output = sandbox.run(&["check", "train.shf", "other.shf", "missing.shf"]);
    assert_eq!(output.code, Some(1), "{output}");
    for message in [
        "(@ a b): f32[4x2] and f32[3x5] do not fit",
        "f takes 1 argument, got 2",
        "unknown name lenght",
        "sqrt takes 1 argument, got 0",
        "unknown name y",
        "missing.shf does not exist",
    ] {
        assert!(output.stderr.contains(&format!("error: {message}")), "{message}\n{output}");
    }
    assert!(output.stdout.starts_with("6 errors; checked 3 files"), "{output}");
}

#[test]
fn a_folder_by_default_the_current_one() {
    let sandbox = wrong();
    sandbox.write("more/deep.shf", "(defn g [x] y)\n");
    for paths in [&["check"][..], &["check", "."], &["check", "more", "train.shf"]] {
        let output = sandbox.run(paths);
        assert_eq!(output.code, Some(1), "{output}");
        for message in ["unknown name lenght", "unknown name y", "sqrt takes 1 argument, got 0"] {
            assert_eq!(output.stderr.matches(&format!("error: {message}")).count(), 1, "{message}\n{output}");
        }
    }
    let empty = Sandbox::new().run(&["check"]);
    assert_eq!(empty.code, Some(1), "{empty}");
    assert!(empty.stderr.contains("there are no programs to check"), "{empty}");
}

#[test]
fn as_json() {
    let output = wrong().run(&["check", "--json", "train.shf"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    let report: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
    let diagnostics = report["diagnostics"].as_array().expect("a list");
    assert_eq!(diagnostics.len(), 4);
    let shape = diagnostics.iter().find(|d| d["message"] == "(@ a b): f32[4x2] and f32[3x5] do not fit");
    let shape = shape.expect("the shapes do not fit");
    assert_eq!(
        (&shape["file"], &shape["line"], &shape["column"]),
        (&"train.shf".into(), &2.into(), &25.into())
    );
    assert_eq!(shape["severity"], "error");
    assert!(shape["labels"].as_array().is_some_and(|l| l.iter().any(|l| l["file"] == "part.shf")), "{shape}");
    assert!(shape["help"].is_string());
}

#[test]
fn a_right_program_is_not_run() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "right.shf",
        "(defn f [(x [4 2])] (sum (* x x)))\n(print (f (io \"load\" \"nowhere.csv\")))\n",
    );
    let output = sandbox.run(&["check", "right.shf"]);
    assert_eq!(
        output.silent(),
        "no errors; checked 1 file: 1 function, 5 calls, the shapes in 1 typed function\n"
    );
}

#[test]
fn the_examples_are_right() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples");
    for program in Sandbox::files(&examples)
        .iter()
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "shf"))
    {
        let path = examples.join(program).display().to_string();
        let output = Sandbox::new().run(&["check", &path]);
        assert_eq!(output.code, Some(0), "{output}");
    }
}
