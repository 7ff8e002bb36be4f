//! Versions, help, and errors of wrong usage.

use sheaf_tests::Sandbox;

fn shown(arguments: &[&str]) -> String {
    Sandbox::new().run(arguments).to_string()
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
fn help_of_build() {
    insta::assert_snapshot!(shown(&["build", "--help"]));
}

#[test]
fn help_of_each_command_has_an_example() {
    let help = Sandbox::new().run(&["--help"]).silent();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Long descriptions continue on further indented lines.
    let commands = commands.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"run") && commands.contains(&"fmt"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let help = Sandbox::new().run(&[command, "--help"]).silent();
        assert!(help.contains(&format!("  sheaf {command}")), "{help}");
    }
}

#[test]
fn nothing_given_and_nothing_to_read() {
    assert_eq!(Sandbox::new().run(&[]).silent(), "");
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
    for arguments in [&["doc", "a", "b", "c"][..], &["new"], &["a.shf", "b.shf"], &["a.shf", "--device"]] {
        assert_eq!(Sandbox::new().run(arguments).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn a_file_alone_is_run() {
    let sandbox = Sandbox::new();
    sandbox.write("main.shf", "(print (io \"args\"))");
    for options in
        [&["main.shf", "--no-jit"][..], &["--no-jit", "main.shf"], &["run", "--no-jit", "main.shf"]]
    {
        assert_eq!(sandbox.run(&[options, &["--", "a", "--b"]].concat()).silent(), "[a --b]\n");
    }
    assert_eq!(sandbox.run(&["missing.shf"]).code, Some(1));
}

/// A program as an argument: it sees the current folder, or its package, and leaves no files.
#[test]
fn a_program_typed_as_a_text() {
    let sandbox = Sandbox::new();
    sandbox.write("own.shf", "(defn own [x] (+ x 1))");
    let run = |code: &str| sandbox.run(&["run", "-c", code]);
    assert_eq!(run("(use ./own.shf) (print (own 1))").silent(), "2\n");
    assert_eq!(sandbox.run(&["-c", "(print (io \"args\"))", "--", "a", "b"]).silent(), "[a b]\n");
    insta::assert_snapshot!(run("(print 1)\n(+ [1 2] [1 2 3])"));
    insta::assert_snapshot!(shown(&["run", "-c", "(print 1)", "train.shf"]));
    assert!(!sandbox.path("__sheaf__").exists());
    assert_eq!(sandbox.run(&["init", "--name", "here"]).code, Some(0));
    assert_eq!(run("(use model) (print (predict {:slope 2.0 :offset 1.0} 3.0))").silent(), "7.0\n");
}
