//! Closed pipes and full disks for output: no command panics, and none reports success falsely.

use std::fs::File;
use std::process::{Command, Stdio};

use sheaf_tests::Sandbox;

/// Commands that print.
const COMMANDS: [&[&str]; 10] = [
    &["run", "program.shf"],
    &["run", "program.shf", "--explain"],
    &["test", "program.shf"],
    &["check", "program.shf"],
    &["expand", "program.shf"],
    &["doc", "map"],
    &["toolchain", "list"],
    &["cache", "size"],
    &["cache", "stats", "--json"],
    &["cache", "key", "list"],
];

const PROGRAM: &str = "(print (sum [1 2 3]))\n(+ 1 2)\n;=> 3\n";

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.write("program.shf", PROGRAM);
    let mut command = sandbox.sheaf(arguments).command();
    command.stdin(Stdio::null());
    command
}

/// The exit code of a command, and its standard error unless that goes to `stderr`.
fn end(mut command: Command, stdout: Stdio, stderr: Option<Stdio>) -> (Option<i32>, String) {
    command.stdout(stdout).stderr(stderr.unwrap_or_else(Stdio::piped));
    let output = command.spawn().expect("the command starts").wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A pipe without a reader.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let sandbox = Sandbox::new();
    for arguments in COMMANDS {
        let (code, said) = end(command(&sandbox, arguments), unread(), None);
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        let (code, _) = end(command(&sandbox, arguments), unread(), Some(unread()));
        assert_eq!(code, Some(0), "{arguments:?}");
    }
    // An error remains an error without a reader.
    let (code, _) = end(command(&sandbox, &["check", "missing.shf"]), unread(), Some(unread()));
    assert_eq!(code, Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("the device"));
    let sandbox = Sandbox::new();
    for arguments in COMMANDS {
        let (code, said) = end(command(&sandbox, arguments), full(), None);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left on device"),
            "{arguments:?}: {said}"
        );
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        let (code, _) = end(command(&sandbox, arguments), full(), Some(full()));
        assert_eq!(code, Some(1), "{arguments:?}");
    }
}
