//! A program signed by a trusted key that differs from the compiler's output.

use std::fs;

use crate::entries::{push, pushed, replace_program, vmfb};
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, SQUARES, warnings, writer};
use crate::web::{Fault, Web};

#[test]
fn an_audit_finds_what_computes_something_else_and_names_its_signer() {
    let Some(files) = pushed() else { return };
    let Some(cubes) = push("squares.shf", &SQUARES.replace("(* x x)", "(* x x x)")) else { return };
    let mut files = files.clone();
    let other = cubes[&vmfb(&cubes)].clone();
    replace_program(&mut files, &other, Some(writer()));
    let web = Web::start(files, Fault::None);
    let Some(machine) = Machine::compiling(&web.remote()) else { return };
    let machine = machine.squares();
    let run = || machine.run(&RUN_SQUARES);
    assert_eq!(run().stdout, "36.0\n", "it is signed, and believed");

    let output = machine.run(&["cache", "audit", "--sample", "100%"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(
        output.stderr.contains("is not what its compiler makes of it: it computes something else"),
        "{output}"
    );
    assert!(output.stderr.contains(&format!("signed by {}", writer().public())), "{output}");
    assert!(output.stdout.contains(": 0 of the same bytes"), "{output}");

    // It is not downloaded again, though the remote still has it.
    fs::remove_dir_all(machine.sandbox.path("__sheaf__")).expect("artifacts");
    assert_eq!(run().compiled(), FOURTEEN);
    let output = machine.run(&["cache", "audit", "--sample", "100%"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains("audited 1 program: 1 of the same bytes"), "{output}");
}

/// Audits follow revocations: programs signed by the revoked key are not run, not even for comparison.
#[test]
fn an_audit_runs_nothing_of_somebody_who_is_not_trusted() {
    let Some(files) = pushed() else { return };
    let web = Web::start(files.clone(), Fault::None);
    let Some(machine) = Machine::compiling(&web.remote()) else { return };
    let machine = machine.squares();
    assert_eq!(machine.run(&RUN_SQUARES).compiled_nothing(), FOURTEEN);
    let revoked = machine.run(&["cache", "key", "revoke", "trunk"]);
    assert_eq!(revoked.code, Some(0), "{revoked}");
    let output = machine.run(&["cache", "audit", "--sample", "100%"]);
    assert_eq!((output.code, warnings(&output).len()), (Some(0), 1), "{output}");
    assert!(
        output.stderr.contains("not audited, since nobody trusted has signed them: 1 program"),
        "{output}"
    );
    assert_eq!(output.stdout, "chosen: none of 1 program\n");
}
