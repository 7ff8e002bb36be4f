//! `sheaf test`: the examples of source files, including the language corpus.

use std::time::Duration;

use sheaf_tests::Sandbox;

const GOOD: &str = "(defn twice [x] (* 2 x))\n(twice [1 2]) ;=> [2 4]\n(twice \"a\") ;=> error: string\n";
const BAD: &str = "(+ [1 2] 1) ;=> [2 4]\n\n(sum [[1 2] [3 4]] :axis 2) ;=> [3 7]\n(+ 1 2) ;=> 3\n";

fn shown(files: &[(&str, &str)], arguments: &[&str]) -> String {
    let world = Sandbox::new();
    for (name, text) in files {
        world.write(name, text);
    }
    world.run(arguments).to_string()
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
    let Some(world) = Sandbox::with_compiler() else { return };
    world.write("good.shf", GOOD);
    let output = world.run(&["test"]).compiled();
    assert!(output.contains("2 passed, 0 failed; 1 ran compiled, 1 needed no program"), "{output}");
    assert!(!world.path("__sheaf__").exists(), "examples leave nothing beside the sources");
}

#[test]
fn without_a_compiler_they_are_interpreted_unless_that_is_ruled_out() {
    let world = Sandbox::new();
    world.write("good.shf", GOOD);
    insta::assert_snapshot!(world.run(&["test", "--offline"]));
    insta::assert_snapshot!(world.run(&["test", "--offline", "--jit", "always"]));
}

#[test]
fn the_corpus_interpreted() {
    let world = Sandbox::new();
    world.folder("corpus");
    let output = world.run(&["test", "--no-jit", "corpus"]);
    assert_eq!(output.code, Some(0), "{output}");
    println!("{}", output.stdout);
}

#[test]
fn the_corpus_compiled() {
    let Some(world) = Sandbox::with_compiler() else { return };
    world.folder("corpus");
    let output = world.sheaf(&["test", "--jit", "always", "corpus"]).within(Duration::from_mins(15)).run();
    assert_eq!(output.code, Some(0), "{output}");
    println!("{}", output.stdout);
}
