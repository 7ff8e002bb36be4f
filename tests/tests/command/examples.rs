//! `sheaf test`: the examples of source files, including the language corpus.

use std::path::Path;
use std::time::Duration;

use sheaf_tests::{Sandbox, sample};

const GOOD: &str = "(defn twice [x] (* 2 x))\n(twice [1 2]) ;=> [2 4]\n(twice \"a\") ;=> error: string\n";
const BAD: &str = "(+ [1 2] 1) ;=> [2 4]\n\n(sum [[1 2] [3 4]] :axis 2) ;=> [3 7]\n(+ 1 2) ;=> 3\n";

fn shown(files: &[(&str, &str)], arguments: &[&str]) -> String {
    let sandbox = Sandbox::new();
    for (name, text) in files {
        sandbox.write(name, text);
    }
    sandbox.run(arguments).to_string()
}

#[test]
fn folders_are_searched_and_what_is_not_ours_left_alone() {
    let files = [("src/good.shf", GOOD), ("__sheaf__/bad.shf", BAD), (".git/bad.shf", BAD), ("b.txt", BAD)];
    insta::assert_snapshot!(shown(&files, &["test", "--no-jit"]));
}

#[test]
fn what_differs_is_shown_with_its_place() {
    insta::assert_snapshot!(shown(&[("bad.shf", BAD)], &["test", "--no-jit", "bad.shf"]));
}

#[test]
fn a_file_that_cannot_be_read_or_has_no_examples() {
    insta::assert_snapshot!(shown(&[("open.shf", "(+ 1 ;=> 2")], &["test", "--no-jit", "open.shf"]));
    insta::assert_snapshot!(shown(&[("none.shf", "(+ 1 2)")], &["test", "--no-jit"]));
    insta::assert_snapshot!(shown(&[], &["test", "--no-jit", "missing.shf"]));
}

#[test]
fn counts_as_json() {
    insta::assert_snapshot!(shown(&[("good.shf", GOOD), ("bad.shf", BAD)], &["test", "--no-jit", "--json"]));
}

#[test]
fn compiled_by_default_where_there_is_a_compiler() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("good.shf", GOOD);
    let output = sandbox.run(&["test"]).compiled();
    assert!(output.contains("2 passed, 0 failed; 1 ran compiled, 1 needed no program"), "{output}");
    assert!(!sandbox.path("__sheaf__").exists(), "examples leave nothing beside the sources");
}

#[test]
fn without_a_compiler_they_are_interpreted_unless_that_is_ruled_out() {
    let sandbox = Sandbox::new();
    sandbox.write("good.shf", GOOD);
    insta::assert_snapshot!(sandbox.run(&["test", "--offline"]));
    insta::assert_snapshot!(sandbox.run(&["test", "--offline", "--jit", "always"]));
}

/// The files of the corpus: in `make nightly` all, else one in `part`.
fn corpus(sandbox: &Sandbox, part: usize) -> Vec<String> {
    sandbox.folder("corpus");
    let files = Sandbox::files(&sandbox.path("corpus"));
    let files = files.iter().filter(|file| Path::new(file).extension().is_some_and(|e| e == "shf"));
    sample(files, part).map(|file| format!("corpus/{file}")).collect()
}

/// Checks files of examples.
#[track_caller]
fn passes(sandbox: &Sandbox, arguments: &[&str], files: &[String]) {
    let arguments = [arguments, &files.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let output = sandbox.sheaf(&arguments).within(Duration::from_secs(30 * 60)).run();
    assert_eq!(output.code, Some(0), "{output}");
    println!("{}", output.stdout);
}

/// A part: a test of `lang` runs the whole corpus interpreted and traced.
#[test]
fn the_corpus_interpreted() {
    let sandbox = Sandbox::new();
    let files = corpus(&sandbox, 10);
    passes(&sandbox, &["test", "--no-jit"], &files);
}

/// Its programs are compared with host evaluation.
#[test]
fn the_corpus_compiled() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    let files = corpus(&sandbox, 120);
    passes(&sandbox, &["test", "--jit", "always"], &files);
}
