//! `sheaf cache why`: the differences from the most similar earlier compilation.

use std::thread;
use std::time::Duration;

use sheaf_cache::{SignedClaim, Store};
use sheaf_foundation::Digest;
use sheaf_tests::Output;

use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, SQUARES};
use crate::shared::folder;

/// The same with types, to build without a run.
const TYPED: &str = "(defn sum-of-squares [(x f32 [4])] (sum (* x x)))\n";

/// A machine with the compiler only.
fn machine() -> Option<Machine> {
    let (_folder, remote) = folder();
    Some(Machine::compiling(&remote)?.env("SHEAF_CACHE_REMOTE", ""))
}

/// Times of claims are in seconds.
fn wait() {
    thread::sleep(Duration::from_millis(1100));
}

/// Compiles the current file.
#[track_caller]
fn build(machine: &Machine, options: &[&str]) {
    let output = machine.run(&[&["build", "typed.shf"], options].concat());
    assert_eq!(output.code, Some(0), "{output}");
}

/// The explanation of the last compilation, without figures.
#[track_caller]
fn why(machine: &Machine) -> Output {
    let output = machine.run(&["cache", "why", "sum-of-squares"]);
    assert_eq!(output.code, Some(0), "{output}");
    output
}

/// Compares with the snapshot of this name.
macro_rules! assert_told {
    ($output:expr, $name:expr) => {
        insta::with_settings!({ filters => vec![(r"in \d+\.\d s", "in [n] s"), (r"just now|\d+ min ago", "[then]")] }, {
            insta::assert_snapshot!($name, $output);
        });
    };
}

#[test]
fn nothing_like_it() {
    let Some(machine) = machine() else { return };
    let output = machine.run(&["cache", "why", "sum-of-squares"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("why_never_compiled", output);
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    assert_told!(why(&machine), "why_first");
}

#[test]
fn another_source() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    wait();
    machine.sandbox.write("typed.shf", TYPED.replace("(* x x)", "(exp x)"));
    build(&machine, &["--cpu", "x86-64-v2"]);
    assert_told!(why(&machine), "why_source");
    // Names, comments and layout make no difference: nothing is compiled, so nothing is reported.
    machine
        .sandbox
        .write("typed.shf", TYPED.replace("(* x x)", "; of all\n  (exp  y)").replace("(x f32", "(y f32"));
    build(&machine, &["--cpu", "x86-64-v2"]);
    assert_told!(why(&machine), "why_source");
}

#[test]
fn another_shape() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    wait();
    machine.sandbox.write("typed.shf", TYPED.replace("[4]", "[8]"));
    build(&machine, &["--cpu", "x86-64-v2"]);
    assert_told!(why(&machine), "why_shape");
}

#[test]
fn another_processor() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    wait();
    build(&machine, &["--cpu", "x86-64-v3"]);
    assert_told!(why(&machine), "why_cpu");
}

#[test]
fn another_flag() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    wait();
    build(&machine, &["--cpu", "x86-64-v2", "--debug"]);
    assert_told!(why(&machine), "why_debug");
}

/// The most similar of several is reported, not the latest: here one of another shape, not one of another source and
/// processor.
#[test]
fn the_nearest_of_several() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    machine.sandbox.write("typed.shf", TYPED.replace("(* x x)", "(exp x)"));
    build(&machine, &["--cpu", "x86-64-v3"]);
    wait();
    machine.sandbox.write("typed.shf", TYPED.replace("[4]", "[8]"));
    build(&machine, &["--cpu", "x86-64-v2"]);
    assert_told!(why(&machine), "why_shape");
}

/// A compilation by the previous release; its claim is made here, since a second compiler would have to be downloaded.
#[test]
fn another_compiler() {
    let Some(machine) = machine() else { return };
    machine.sandbox.write("typed.shf", TYPED);
    build(&machine, &["--cpu", "x86-64-v2"]);
    let store = Store::new(machine.sandbox.home().join("cache"));
    let listed = store.list().pop().expect("an entry").signed;
    let (program, vmfb) =
        (store.program(&listed.claim).expect("text"), store.vmfb(&listed.claim).expect("bytes"));
    let digest = Digest(sheaf_target::compiler_digest("3.12.0").expect("an earlier release"));
    let mut claim = listed.claim;
    claim.time -= 120;
    claim.compiler = "3.12.0".into();
    claim.compiler_digest = digest;
    claim.key = claim.action(std::str::from_utf8(&program).expect("a text")).key();
    store.put(&SignedClaim::new(claim, None), &program, &vmfb).expect("kept");
    assert_told!(why(&machine), "why_compiler");
}

/// A machine without earlier compilations learns them from the remote cache.
#[test]
fn the_remote_cache_knows_more() {
    let (_folder, remote) = folder();
    let Some(a) = Machine::writing(&remote) else { return };
    let _ = a.push_squares();
    let Some(b) = Machine::compiling(&remote) else { return };
    b.sandbox.write("squares.shf", SQUARES.replace("[1 2 3]", "[1 2 3 0]"));
    assert_eq!(b.run(&RUN_SQUARES).compiled(), FOURTEEN);
    assert_told!(why(&b), "why_by_the_remote");
    let json = b.run(&["cache", "why", "sum-of-squares", "--json"]).silent();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["nearest"]["from"], "the remote cache, signed by trunk", "{json}");
    assert_eq!(json["nearest"]["differences"][0], "argument 1: f32[3] -> f32[4]", "{json}");
}
