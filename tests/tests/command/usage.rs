//! Versions, help, and what is said to wrong usage.

use sheaf_tests::World;

fn shown(arguments: &[&str]) -> String {
    World::new().run(arguments).to_string()
}

#[test]
fn version() {
    insta::assert_snapshot!(shown(&["--version"]));
}

#[test]
fn help() {
    insta::assert_snapshot!(shown(&["--help"]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(shown(&["run", "--help"]));
}

#[test]
fn nothing_given() {
    insta::assert_snapshot!(shown(&[]));
}

#[test]
fn no_program() {
    insta::assert_snapshot!(shown(&["run"]));
}

#[test]
fn unknown_option() {
    insta::assert_snapshot!(shown(&["train.shf", "--devise", "cpu"]));
}

#[test]
fn unknown_device() {
    insta::assert_snapshot!(shown(&["train.shf", "--device", "tpu"]));
}

#[test]
fn contradictory_options() {
    insta::assert_snapshot!(shown(&["train.shf", "--no-jit", "--jit", "always"]));
}

#[test]
fn wrong_usage_has_exit_code_2() {
    for arguments in [&[][..], &["run"], &["a.shf", "b.shf"], &["a.shf", "--device"]] {
        assert_eq!(World::new().run(arguments).code, Some(2), "{arguments:?}");
    }
}
