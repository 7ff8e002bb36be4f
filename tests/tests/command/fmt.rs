//! `sheaf fmt`: files, folders, standard input.

use std::fs;

use sheaf_tests::Sandbox;

const UNTIDY: &str = "(defn f [x]\n (* x  2))   ; twice\n\n\n(print (f 1))";
const TIDY: &str = "(defn f [x]\n  (* x 2))   ; twice\n\n(print (f 1))\n";

#[test]
fn files_are_formatted_in_place_and_once() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", UNTIDY);
    sandbox.write("b.shf", TIDY);
    assert_eq!(sandbox.run(&["fmt", "a.shf", "b.shf"]).silent(), "formatted a.shf\n");
    assert_eq!(fs::read_to_string(sandbox.path("a.shf")).unwrap(), TIDY);
    assert_eq!(sandbox.run(&["fmt", "a.shf", "b.shf"]).silent(), "");
    assert_eq!(Sandbox::files(&sandbox.path("")), ["a.shf", "b.shf"]);
}

#[test]
fn folders_are_searched_for_programs() {
    let sandbox = Sandbox::new();
    for name in ["src/main.shf", "src/deep/er.shf", "src/.hidden/x.shf", "__sheaf__/x.shf", "notes.txt"] {
        sandbox.write(name, UNTIDY);
    }
    assert_eq!(sandbox.run(&["fmt"]).silent(), "formatted src/deep/er.shf\nformatted src/main.shf\n");
    assert_eq!(sandbox.run(&["fmt", "src"]).silent(), "");
    assert_eq!(fs::read_to_string(sandbox.path("notes.txt")).unwrap(), UNTIDY);
}

#[test]
fn a_check_changes_nothing_and_fails() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", UNTIDY);
    sandbox.write("b.shf", TIDY);
    let output = sandbox.run(&["fmt", "--check"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "a.shf is not formatted\n"));
    assert_eq!(fs::read_to_string(sandbox.path("a.shf")).unwrap(), UNTIDY);
    assert_eq!(sandbox.run(&["fmt", "--check", "b.shf"]).silent(), "");
}

#[test]
fn what_does_not_read_is_left_alone_and_the_others_are_formatted() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", "(print [1 2)\n");
    sandbox.write("b.shf", UNTIDY);
    insta::assert_snapshot!(sandbox.run(&["fmt", "a.shf", "b.shf", "none.shf"]));
    assert_eq!(fs::read_to_string(sandbox.path("a.shf")).unwrap(), "(print [1 2)\n");
    assert_eq!(fs::read_to_string(sandbox.path("b.shf")).unwrap(), TIDY);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.sheaf(&["fmt", "-"]).input(UNTIDY).run().silent(), TIDY);
    assert_eq!(sandbox.sheaf(&["fmt", "-", "--check"]).input(TIDY).run().silent(), "");
    assert_eq!(sandbox.sheaf(&["fmt", "-", "--check"]).input(UNTIDY).run().code, Some(1));
    let output = sandbox.sheaf(&["fmt", "-"]).input("(f").run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("never closed"), "{output}");
}

#[test]
fn a_project_chooses_its_width() {
    let sandbox = Sandbox::new();
    sandbox.write("Sheaf.toml", "[fmt]\nwidth = 20\n");
    assert_eq!(
        sandbox.sheaf(&["fmt", "-"]).input("(let [a 1 b 2] (f a b))").run().silent(),
        "(let [a 1 b 2]\n  (f a b))\n"
    );
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", UNTIDY);
    fs::set_permissions(sandbox.path("a.shf"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(sandbox.run(&["fmt", "a.shf"]).silent(), "formatted a.shf\n");
    assert_eq!(fs::metadata(sandbox.path("a.shf")).unwrap().permissions().mode() & 0o777, 0o600);
}
