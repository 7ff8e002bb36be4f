//! `sheaf check` on programs in memory: errors found without running anything, and no false ones.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use std::path::Path;

use crate::support::World;
use sheaf_lang::eval::{Checked, Interp, Options};
use sheaf_syntax::render::render;

fn check_in(world: &World, path: &str, text: &str) -> (Checked, String) {
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    let checked = interp.check_program(path, text);
    let shown = checked.errors.iter().map(|d| render(&interp.sources, d, false)).collect();
    (checked, shown)
}

/// The first lines of the errors of a program.
fn found(text: &str) -> Vec<String> {
    let world = World::default();
    let (checked, _) = check_in(&world, "test.shf", text);
    assert!(world.printed.borrow().is_empty(), "a check prints nothing");
    checked.errors.into_iter().map(|d| d.message).collect()
}

#[test]
fn nothing_runs() {
    assert_eq!(found("(print \"hello\") (// 1 0) (defmacro m [] (print \"expanding\") 1) (m)"), [""; 0]);
}

#[test]
fn arity_of_functions_builtins_and_closures() {
    assert_eq!(
        found(
            "(defn f [x] (g x))\n(defn g [x y] x)\n(f 1)\n(sqrt 1 2)\n((fn [x] x))\n(map (fn [x] (exp)) '[1])"
        ),
        [
            "g takes 2 arguments, got 1",
            "sqrt takes 1 argument, got 2",
            "(fn [x] ...) takes 1 argument, got 0",
            "exp takes 1 argument, got 0",
        ]
    );
    assert_eq!(found("(sum [1 2] :axis 0 :keepdims true) (defn f [x & more] x) (f 1 2 3)"), [""; 0]);
    assert_eq!(
        found("(def f (fn [x] x))\n(f 1 2)"),
        [""; 0],
        "what a definition gives is only known to a run"
    );
}

#[test]
fn unknown_names_and_wrong_calls_are_reported_together() {
    assert_eq!(
        found("(defn f [x] (lenght x))\n(defn g [x] (sqrt))\n(f 1)\n(h 2)"),
        ["unknown name lenght", "sqrt takes 1 argument, got 0", "unknown name h"]
    );
}

#[test]
fn shapes_of_typed_functions() {
    assert_eq!(
        found("(defn f [(x f32 [4 2]) (w f32 [3 5])] (@ x w))"),
        ["(@ a b): f32[4x2] and f32[3x5] do not fit"]
    );
    assert_eq!(
        found("(defn layer [x w] (@ x w))\n(defn f [(x [4 2]) (w [3 5])] (print x) (layer x w))"),
        ["(@ a b): f32[4x2] and f32[3x5] do not fit"]
    );
    assert_eq!(
        found("(defn f [(x [2])] x)\n(f [1 2 3])"),
        ["parameter x wants a tensor of shape [2], got a tensor f32[3]"]
    );
}

#[test]
fn the_place_of_a_typed_parameter_is_shown() {
    let (_, shown) = check_in(&World::default(), "test.shf", "(defn f [(x [4 2]) (w [3 5])] (@ x w))");
    assert!(shown.contains("f32[3x5] is declared here"), "{shown}");
}

#[test]
fn what_only_a_run_knows_is_passed_over() {
    for quiet in [
        "(def w (zeros '[3 5]))\n(defn f [(x [4 2])] (@ x w))",
        "(defn f [(x [4 2]) w] (@ x w))",
        "(defn f [(x [])] (if (> x 0) (@ [1 2] [1 2 3]) x))",
        "(defn f [(n i32 [])] (zeros (list n)))",
        "(defn f [(x [2])] (repeat [i 100] [y x] (* y 2)))",
        "(defn f [(x [2])] (io \"load\" \"missing.csv\") x)",
    ] {
        assert_eq!(found(quiet), [""; 0], "{quiet}");
    }
}

#[test]
fn definitions_that_are_written_out_are_known() {
    assert_eq!(
        found("(def width 3)\n(defn f [(x [4 2])] (@ x (zeros (list width 5))))"),
        ["(@ a b): f32[4x2] and f32[3x5] do not fit"]
    );
}

#[test]
fn modules_are_checked_too() {
    let world = World::with(&[("part.shf", "(defn g [x] (sqrt x x))\n(defn h [(x [2])] (+ x [1 2 3]))")]);
    let (checked, shown) = check_in(&world, "test.shf", "(use part)\n(g 1 2)");
    let messages: Vec<&str> = checked.errors.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "g takes 1 argument, got 2",
            "sqrt takes 1 argument, got 2",
            "the shapes of f32[2] and f32[3] do not broadcast",
        ]
    );
    assert!(shown.contains("part.shf:1:13"), "{shown}");
    assert_eq!((checked.files, checked.functions), (2, 2));
}

/// The top-level forms of a corpus file without the expected errors.
fn without_error_cases(text: &str) -> String {
    let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
    let Ok((_, forms)) = interp.read_forms("corpus.shf", text) else { return String::new() };
    let mut out = text.to_string();
    for (i, form) in forms.iter().enumerate().rev() {
        let end = forms.get(i + 1).map_or(text.len(), |next| next.span.start as usize);
        let after = &text[form.span.end as usize..end];
        if after.trim_start().starts_with(";=> error:") {
            out.replace_range(form.span.start as usize..form.span.end as usize, "");
        }
    }
    out
}

#[test]
fn the_examples_and_the_corpus_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut folders = vec![root.join("examples"), root.join("tests/corpus")];
    let world = World::default();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            if path.is_dir() {
                // Packages need their dependencies: the tests of packages check them.
                folders.extend(Some(path).filter(|path| !path.ends_with("examples/packages")));
            } else if path.extension().is_some_and(|e| e == "shf") {
                let text = std::fs::read_to_string(&path).expect("a program");
                world.files.borrow_mut().insert(path.display().to_string(), text.into_bytes());
            }
        }
    }
    let programs: Vec<(String, String)> = world
        .files
        .borrow()
        .iter()
        .map(|(path, text)| (path.clone(), String::from_utf8_lossy(text).into_owned()))
        .collect();
    assert!(programs.len() > 2, "the examples are there");
    let wrong: Vec<String> = programs
        .iter()
        .map(|(path, text)| check_in(&world, path, &without_error_cases(text)).1)
        .filter(|shown| !shown.is_empty())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
