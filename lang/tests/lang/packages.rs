//! `(use name)` of dependencies (SPEC section 8).

use sheaf_lang::builtins::repr;
use sheaf_lang::eval::{Interp, Options};

use crate::support::{World, run_in};

/// A program with two dependencies, one of which needs an older version of the other.
fn world() -> World {
    World::with(&[
        (
            "/s/attention/src/lib.shf",
            "(use masks)\n(use maths)\n(defn attend [x] (list :attend x (mask x) (twice x)))",
        ),
        ("/s/attention/src/masks.shf", "(defn mask [x] (list :mask x))\n(defn -own [] 1)"),
        (
            "/s/attention/src/heads/split.shf",
            "(use ../masks.shf)\n(use maths)\n(defn split [x] (list :split (mask x)))",
        ),
        ("/s/attention/src/escape.shf", "(use ../../maths-2/src/lib.shf)"),
        ("/s/attention/src/missing.shf", "(use plots)"),
        ("/s/maths-1/src/lib.shf", "(defn twice [x] (list :twice-of-1 x))"),
        ("/s/maths-2/src/lib.shf", "(defn twice [x] (list :twice-of-2 x))"),
        ("/s/cyclic/src/lib.shf", "(use other)"),
        ("/s/cyclic/src/other.shf", "(use ./lib.shf)"),
        ("/s/wrong/src/lib.shf", "(defn broken [x] (+ x y))"),
        ("masks.shf", "(defn mask [x] (list :mine x))"),
    ])
    .with_dependencies(&[
        ("", "attention", "/s/attention"),
        ("", "maths", "/s/maths-2"),
        ("", "cyclic", "/s/cyclic"),
        ("", "wrong", "/s/wrong"),
        ("", "nn", "/s/maths-2"),
        ("/s/attention", "maths", "/s/maths-1"),
    ])
}

fn run(text: &str) -> String {
    run_in(&world(), text)
}

#[test]
fn a_dependency_and_its_modules_are_used_by_name() {
    assert_eq!(run("(use attention)\n(attend 1)"), "=> '[:attend 1 [:mask 1] [:twice-of-1 1]]");
    assert_eq!(run("(use attention :as a)\n(a/attend 1)"), "=> '[:attend 1 [:mask 1] [:twice-of-1 1]]");
    assert_eq!(run("(use attention/heads/split :only [split])\n(split 1)"), "=> '[:split [:mask 1]]");
}

#[test]
fn two_versions_of_a_package_stand_side_by_side() {
    let program = "(use maths :as m)\n(use attention :only [attend])\n(list (m/twice 1) (nth (attend 1) 3))";
    assert_eq!(run(program), "=> '[[:twice-of-2 1] [:twice-of-1 1]]");
}

#[test]
fn files_of_the_program_and_the_standard_library_come_first() {
    assert_eq!(run("(use masks)\n(mask 1)"), "=> '[:mine 1]");
    assert_eq!(
        run("(use attention :as a)\n(use masks)\n(list (mask 1) (nth (a/attend 1) 2))"),
        "=> '[[:mine 1] [:mask 1]]"
    );
    assert!(run("(use nn :only [twice])").starts_with("error: nn does not define twice"));
}

#[test]
fn a_package_sees_its_own_files_and_dependencies_alone() {
    insta::assert_snapshot!(run("(use attention/escape)"), @"
    error: /s/maths-2/src/lib.shf is outside the package of this file
      ┌─ /s/attention/src/escape.shf:1:1
      │
    1 │ (use ../../maths-2/src/lib.shf)
      │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ used here
      │
      ┌─ test.shf:1:1
      │
    1 │ (use attention/escape)
      │ ---------------------- while loading attention/escape here
      │
      = help: a package uses its own files, and its dependencies by name
    ");
    insta::assert_snapshot!(run("(use attention/missing)"), @"
    error: cannot use plots: /s/attention/src/plots.shf does not exist
      ┌─ /s/attention/src/missing.shf:1:1
      │
    1 │ (use plots)
      │ ^^^^^^^^^^^ used here
      │
      ┌─ test.shf:1:1
      │
    1 │ (use attention/missing)
      │ ----------------------- while loading attention/missing here
      │
      = help: `sheaf add plots` adds a package; a file of yours is used as (use ./file.shf); the standard library has nn, optim, data, text, generate, linalg, distributions, training, solvers, fourier
    ");
}

#[test]
fn a_test_uses_its_package_by_path_and_by_name() {
    let files = [
        ("src/lib.shf", "(use masks)\n(defn f [x] (list :f (mask x)))"),
        ("src/masks.shf", "(defn mask [x] (- x))"),
    ];
    let run = |text: &str| {
        let world = World::with(&files);
        let mut interp = Interp::new(Box::new(world), None, Options::default());
        interp.run_program("tests/a.shf", text).map(|value| repr(&value)).map_err(|e| e[0].message.clone())
    };
    for text in
        ["(use ../src/lib.shf)\n(f 1)", "(use mine)\n(f 1)", "(use mine)\n(use ../src/lib.shf)\n(f 1)"]
    {
        assert_eq!(run(text).as_deref(), Ok("'[:f -1]"), "{text}");
    }
    assert_eq!(run("(use mine/masks)\n(mask 2)").as_deref(), Ok("-2"));
    assert!(run("(use mine/nothing)").unwrap_err().contains("there is no package mine"));
}

#[test]
fn failures_are_shown_with_the_users_line() {
    insta::assert_snapshot!(run("(use cyclic)"), @"
    error: modules use each other in a cycle: /s/cyclic/src/lib.shf uses /s/cyclic/src/other.shf uses /s/cyclic/src/lib.shf
      ┌─ /s/cyclic/src/other.shf:1:1
      │
    1 │ (use ./lib.shf)
      │ ^^^^^^^^^^^^^^^ the cycle closes here
      │
      ┌─ /s/cyclic/src/lib.shf:1:1
      │
    1 │ (use other)
      │ ----------- while loading other here
      │
      ┌─ test.shf:1:1
      │
    1 │ (use cyclic)
      │ ------------ while loading cyclic here
      │
      = help: put what both need into a module of its own
    ");
    insta::assert_snapshot!(run("(use wrong)"), @"
    error: unknown name y
      ┌─ /s/wrong/src/lib.shf:1:23
      │
    1 │ (defn broken [x] (+ x y))
      │                       ^ not defined here
      │
      ┌─ test.shf:1:1
      │
    1 │ (use wrong)
      │ ----------- while loading wrong here
      │
      = help: define it with (def ...) or (defn ...), or (use ...) the module that does
    ");
    insta::assert_snapshot!(run("(use attention/nothing)"), @"
    error: cannot use attention/nothing: /s/attention/src/nothing.shf does not exist
      ┌─ test.shf:1:1
      │
    1 │ (use attention/nothing)
      │ ^^^^^^^^^^^^^^^^^^^^^^^ used here
      │
      = help: a package's entry is its src/lib.shf, and (use package/module) its src/module.shf
    ");
    insta::assert_snapshot!(run("(use broken)"), @"
    error: cannot use broken: it is not installed
      ┌─ test.shf:1:1
      │
    1 │ (use broken)
      │ ^^^^^^^^^^^^ used here
      │
      = help: run `sheaf install`
    ");
    insta::assert_snapshot!(run("(use attention :only [-own])"), @"
    error: attention does not define -own
      ┌─ test.shf:1:1
      │
    1 │ (use attention :only [-own])
      │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(run("(use plots)"), @"
    error: cannot use plots: plots.shf does not exist
      ┌─ test.shf:1:1
      │
    1 │ (use plots)
      │ ^^^^^^^^^^^ used here
      │
      = help: `sheaf add plots` adds a package; a file of yours is used as (use ./file.shf); the standard library has nn, optim, data, text, generate, linalg, distributions, training, solvers, fourier
    ");
}
