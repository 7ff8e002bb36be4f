//! Compilations that exceed their limits, and several workers at once.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use sheaf_target::{Target, bytecode_version, is_loadable};
use sheaf_toolchain::{CompileError, CompileLimits, Compiler};

use crate::compile::{ADD, compiler, long_program, toolchain};
use crate::worker::nowhere;

fn no_limits() -> CompileLimits {
    CompileLimits { time: None, memory: None, crashes: None }
}

/// The error of a worker that is this shell script, under these limits.
fn with_script(script: &'static str, limits: CompileLimits) -> CompileError {
    let command = move || {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    Compiler::new(command, nowhere()).with_limits(limits).compile("module {}", &[]).expect_err("no compiler")
}

/// The files of the one crash in a folder.
fn kept(folder: &Path) -> [String; 3] {
    let entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    ["program.mlir", "flags.txt", "reason.txt"]
        .map(|name| fs::read_to_string(entries[0].join(name)).expect("a file"))
}

#[test]
fn a_worker_that_never_answers_is_ended() {
    let limits = || CompileLimits { time: Some(Duration::from_millis(300)), ..no_limits() };
    // One that does not even read, and one that reads, keeps its output open and is silent.
    for script in ["exec sleep 60", "exec 3>&1; exec cat > /dev/null"] {
        let clock = Instant::now();
        let error = with_script(script, limits());
        assert!(matches!(error, CompileError::TimedOut { .. }), "{error:?}");
        assert!(clock.elapsed() < Duration::from_secs(20), "{:?}", clock.elapsed());
        assert_eq!(error.to_string(), "the compiler was stopped after 0.3 seconds");
    }
}

#[test]
fn a_program_that_takes_too_long_is_stopped_and_kept_and_the_next_one_works() {
    let Some(toolchain) = toolchain() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let crashes = folder.path().join("crashes");
    let limits = CompileLimits { crashes: Some(crashes.clone()), ..no_limits() };
    let mut compiler = compiler(toolchain).with_limits(limits.clone());
    // Loading has no time limit.
    compiler.start().expect("a compiler");
    let first = compiler.worker_id();
    let mut compiler = compiler.with_time(Some(Duration::from_millis(300)));
    assert_eq!(compiler.worker_id(), first);
    let error = compiler.compile(&long_program(), &Target::CPU.flags()).expect_err("too long");
    assert!(matches!(error, CompileError::TimedOut { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("its flags are in\n{}", crashes.display())), "{error}");
    let [program, flags, reason] = kept(&crashes);
    assert_eq!(program, long_program());
    assert_eq!(flags.lines().collect::<Vec<_>>(), Target::CPU.flags());
    assert!(reason.contains("stopped after 0.3 seconds"), "{reason}");

    let mut compiler = compiler.with_time(None);
    compiler.compile(ADD, &Target::CPU.flags()).expect("a program after the long one");
    assert_ne!(compiler.worker_id(), first);
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_keeps_to_its_memory() {
    let Some(toolchain) = toolchain() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let crashes = folder.path().join("crashes");
    let limits = CompileLimits { memory: Some(64 << 20), crashes: Some(crashes), ..no_limits() };
    // Too small even for the compiler itself.
    let error = compiler(toolchain.clone()).with_limits(limits.clone()).compile(ADD, &Target::CPU.flags());
    let error = error.expect_err("no room");
    assert!(matches!(error, CompileError::Crashed { .. } | CompileError::Load { .. }), "{error:?}");
    let enough = CompileLimits { memory: Some(16 << 30), ..limits };
    compiler(toolchain).with_limits(enough).compile(ADD, &Target::CPU.flags()).expect("a program");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_takes_too_much_memory_is_kept_and_the_next_one_works() {
    let Some(toolchain) = toolchain() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let crashes = folder.path().join("crashes");
    let mut compiler =
        compiler(toolchain).with_limits(CompileLimits { crashes: Some(crashes.clone()), ..no_limits() });
    compiler.start().expect("a compiler");
    let worker = compiler.worker_id().expect("a worker").to_string();
    compiler.compile(ADD, &Target::CPU.flags()).expect("a program");
    // From here on every allocation fails, as if a limit is reached during a compilation.
    let status = fs::read_to_string(format!("/proc/{worker}/statm")).expect("a process");
    let pages: u64 = status.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = format!("--as={}", pages * 4096 + (1 << 20));
    if !Command::new("prlimit").args(["--pid", &worker, &limit]).status().is_ok_and(|status| status.success())
    {
        crate::skipped("there is no prlimit on this system");
        return;
    }
    let error = compiler.compile(&long_program(), &Target::CPU.flags()).expect_err("no room");
    assert!(matches!(error, CompileError::Crashed { reproducer: Some(_), .. }), "{error:?}");
    assert_eq!(kept(&crashes)[0], long_program());
    compiler.compile(ADD, &Target::CPU.flags()).expect("a program in a new worker");
}

#[test]
fn one_worker_and_many_give_the_same_programs() {
    let Some(toolchain) = toolchain() else { return };
    let count: usize = if std::env::var_os("SHEAF_NIGHTLY").is_some() { 8 } else { 4 };
    let programs: Vec<_> =
        (1..=count).map(|size| ADD.replace("tensor<4xf32>", &format!("tensor<{size}x8xf32>"))).collect();
    let programs: Vec<_> = programs.iter().map(String::as_str).collect();
    let all = |compiler: &mut Compiler, programs: &[&str]| -> Vec<Vec<u8>> {
        let compiled = programs.iter().map(|program| compiler.compile(program, &Target::CPU.flags()));
        compiled.map(|program| program.expect("a program")).collect()
    };
    let one = all(&mut compiler(toolchain.clone()), &programs);
    let many: Vec<Vec<u8>> = thread::scope(|scope| {
        // Each in another order, with another history.
        let workers: Vec<_> = programs
            .chunks(count.div_ceil(3))
            .map(|chunk| {
                let toolchain = toolchain.clone();
                scope.spawn(move || {
                    let backwards: Vec<_> = chunk.iter().rev().copied().collect();
                    let mut programs = all(&mut compiler(toolchain), &backwards);
                    programs.reverse();
                    programs
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(one == many, "other bytes");
}

#[test]
fn a_real_program_tells_the_version_of_its_bytecode() {
    let Some(toolchain) = toolchain() else { return };
    let release = sheaf_target::Release::host().expect("a compiler");
    let program = compiler(toolchain).compile(ADD, &Target::CPU.flags()).expect("a program");
    assert_eq!(bytecode_version(&program), Some(release.bytecode));
    assert!(is_loadable(release.bytecode));
    for length in (0..program.len().min(4096)).chain([program.len() - 1]) {
        let _ = bytecode_version(&program[..length]);
    }
}
