//! Compiling with the pinned compiler.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use sheaf_target::{Cpu, Target};
use sheaf_toolchain::{CompileError, Compiler, Settings, Severity, Toolchain, install, locate};

use crate::{child, skipped};

pub(crate) const ADD: &str = "module @sheaf {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
";

/// The pinned compiler; prints that the test is skipped if it is `None`.
pub(crate) fn toolchain() -> Option<Toolchain> {
    if let Some(home) = std::env::var_os("SHEAF_TEST_HOME") {
        return Some(install(Path::new(&home), &Settings::default(), &()).expect("the pinned compiler"));
    }
    let home = match std::env::var_os("SHEAF_HOME") {
        Some(home) => PathBuf::from(home).join("data"),
        None => directories::ProjectDirs::from("", "", "sheaf")?.data_dir().to_owned(),
    };
    let toolchain = locate(&home);
    if toolchain.is_none() {
        skipped(&format!("the pinned compiler is not installed under {}", home.display()));
    }
    toolchain
}

pub(crate) fn compiler(toolchain: Toolchain) -> Compiler {
    Compiler::new(|| child(&["worker"]), toolchain)
}

/// A program that takes some seconds to compile.
pub(crate) fn long_program() -> String {
    let lines = (0..5_000).map(|number| {
        let operation = if number % 2 == 0 { "add" } else { "multiply" };
        let last = if number == 0 { "a".to_owned() } else { (number - 1).to_string() };
        format!("    %{number} = stablehlo.{operation} %{last}, %b : tensor<4xf32>")
    });
    let lines: Vec<_> = lines.collect();
    ADD.replace("    %0 = stablehlo.add %a, %b : tensor<4xf32>", &lines.join("\n"))
        .replace("return %0", "return %4999")
}

#[test]
fn one_worker_compiles_the_same_twice_and_survives_errors() {
    let Some(toolchain) = toolchain() else { return };
    let mut compiler = compiler(toolchain.clone());
    let clock = Instant::now();
    let version = compiler.start().expect("a compiler").clone();
    eprintln!("loaded {} in {:?}", version.revision, clock.elapsed());
    assert!(version.revision.contains("3.13.0") && version.api.0 == 1);
    let worker = compiler.worker_id();

    let mut timed = || {
        let clock = Instant::now();
        let program = compiler.compile(ADD, &Target::CPU.flags()).expect("a program");
        eprintln!("{} bytes in {:?}", program.len(), clock.elapsed());
        program
    };
    let first = timed();
    assert_eq!(first, timed(), "the same program twice");
    let verified = self::compiler(toolchain).verifying().compile(ADD, &Target::CPU.flags());
    assert_eq!(first, verified.expect("a program"), "verification changes nothing");
    // A FlatBuffer with the identifier of IREE's bytecode modules, behind its length.
    assert!(first.windows(4).take(64).any(|window| window == b"IREE"), "{:?}", &first[..32]);

    let wrong = ADD.replace("-> tensor<4xf32>", "-> tensor<5xf32>");
    let error = compiler.compile(&wrong, &Target::CPU.flags()).expect_err("a wrong type");
    insta::assert_snapshot!(error, @r"
    the compiler rejected the program:
    error: sheaf.mlir:4:5: type of return operand 0 ('tensor<4xf32>') doesn't match function result type ('tensor<5xf32>') in function @main
    ");
    let CompileError::Rejected { diagnostics, .. } = error else { panic!("another error") };
    assert_eq!(diagnostics[0].severity, Severity::Error);

    insta::assert_snapshot!(compiler.compile("modul", &Target::CPU.flags()).expect_err("no module"), @r"
    the compiler rejected the program:
    error: sheaf.mlir:1:1: custom op 'modul' is unknown (tried 'builtin.modul' as well)
    ");
    insta::assert_snapshot!(compiler.compile(ADD, &["--no-such-flag".to_owned()]).expect_err("a wrong flag"), @r"
    the compiler failed: Error parsing flags:
      option not found: no-such-flag
    ");
    insta::assert_snapshot!(compiler.compile("module {\0}", &Target::CPU.flags()).expect_err("a zero"), @"the compiler failed: the program: nul byte found in provided data at position: 8");
    compiler.compile(ADD, &Target::CPU.flags()).expect("a program after errors");
    assert_eq!(compiler.worker_id(), worker, "the same process all the time");
}

#[cfg(unix)]
#[test]
fn the_first_command_line_with_which_a_program_compiles_gives_it() {
    let Some(toolchain) = toolchain() else { return };
    let mut compiler = compiler(toolchain);
    let plain = Target::CPU.flags();
    let no_backend: Vec<String> =
        plain.iter().map(|flag| flag.replace("backends=llvm-cpu", "backends=none-such")).collect();
    let tiled = [&plain[..], &["--iree-opt-data-tiling=true".to_owned()]].concat();
    let first =
        |compiler: &mut Compiler, attempts: &[Vec<String>]| compiler.compile_first(ADD, attempts, None);

    let expected = compiler.compile(ADD, &plain).expect("a program");
    let (bytes, position) = first(&mut compiler, &[no_backend.clone(), plain.clone()]).expect("a program");
    assert_eq!((bytes == expected, position), (true, 1));
    let (_, position) = first(&mut compiler, &[tiled, plain]).expect("a program");
    assert_eq!(position, 0);
    let error = first(&mut compiler, &[no_backend.clone(), no_backend]).expect_err("no such backend");
    assert!(error.to_string().contains("none-such"), "{error}");
}

#[test]
fn a_data_folder_with_any_name_gives_the_same_program() {
    let Some(toolchain) = toolchain() else { return };
    let place = tempfile::tempdir().expect("a folder");
    // The compiler gives these paths to a shell.
    let folder = place.path().join("it's $HOME; `x`");
    std::os::unix::fs::symlink(&toolchain.folder, &folder).expect("a link");
    let library = folder.join(toolchain.library.file_name().expect("a name"));
    let linker = folder.join(toolchain.linker.file_name().expect("a name"));
    let elsewhere = Toolchain { folder, library, linker, ..toolchain.clone() };
    let program = |toolchain| compiler(toolchain).compile(ADD, &Target::CPU.flags()).expect("a program");
    assert_eq!(program(elsewhere), program(toolchain));
}

#[test]
fn a_linker_that_is_missing_is_named() {
    let Some(toolchain) = toolchain() else { return };
    let mut compiler = compiler(Toolchain { linker: PathBuf::from("/nowhere/iree-lld"), ..toolchain });
    let error = compiler.compile(ADD, &Target::CPU.flags()).expect_err("no linker").to_string();
    assert!(error.contains("failed to link executable") && error.contains("/nowhere/iree-lld"), "{error}");
}

#[test]
fn another_release_is_refused() {
    let Some(toolchain) = toolchain() else { return };
    let library = toolchain.library.display().to_string();
    let mut compiler = compiler(Toolchain { version: "3.14.0".to_owned(), ..toolchain });
    let error = compiler.start().expect_err("another release").to_string();
    insta::assert_snapshot!(error.replace(&library, "[library]"), @"the compiler [library] is IREE 3.13.0rc20261016 @ 89ece87b89852100c0a4ac3d515e14842d090967, but Sheaf needs 3.14.0");
}

#[cfg(unix)]
#[test]
fn a_compiler_that_crashes_is_an_error_and_the_next_one_works() {
    let Some(toolchain) = toolchain() else { return };
    // After a crash it asks again, unless it verifies already.
    let mut compiler = compiler(toolchain).verifying();
    compiler.start().expect("a compiler");
    let first = compiler.worker_id().expect("a worker");
    let (started, starting) = mpsc::channel();
    let crasher = thread::spawn(move || {
        starting.recv().expect("a start");
        thread::sleep(Duration::from_millis(300));
        let status = Command::new("kill").args(["-ABRT", &first.to_string()]).status();
        assert!(status.expect("kill").success());
    });
    started.send(()).expect("a listener");
    let error = compiler.compile(&long_program(), &Target::CPU.flags()).expect_err("a crash");
    crasher.join().expect("no panic");
    assert!(matches!(error, CompileError::Crashed { signal: Some(6), .. }), "{error:?}");

    compiler.compile(ADD, &Target::CPU.flags()).expect("a program after the crash");
    let second = compiler.worker_id().expect("a worker");
    assert_ne!(first, second);
    // A worker that ends while idle is not an error.
    assert!(Command::new("kill").args(["-KILL", &second.to_string()]).status().expect("kill").success());
    thread::sleep(Duration::from_millis(100));
    compiler.compile(ADD, &Target::CPU.flags()).expect("a program after the end");
}

#[cfg(unix)]
#[test]
fn a_worker_ends_with_its_input_even_while_it_compiles() {
    let Some(toolchain) = toolchain() else { return };
    for busy in [false, true] {
        let mut worker = child(&["worker"])
            .arg(&toolchain.library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a worker");
        let mut input = worker.stdin.take().expect("its input");
        let mut output = worker.stdout.take().expect("its output");
        if busy {
            input_request(&mut input, &long_program());
            output.read_exact(&mut [0; 4]).expect("ready");
        } else {
            output.read_exact(&mut [0; 4]).expect("ready");
        }
        drop(input);
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).expect("the end of its output");
        let status = worker.wait().expect("its end");
        // Killed if it was compiling; the program, which is larger than this, was not finished.
        assert_eq!(status.success(), !busy, "{status:?}");
        assert!(rest.len() < 1_000);
    }
}

/// Writes a request as the worker reads it.
fn input_request(input: &mut impl std::io::Write, program: &str) {
    let flags = Target::CPU.flags();
    let parts: Vec<&str> = std::iter::once(program).chain(flags.iter().map(String::as_str)).collect();
    let mut frame = b"shf1\0".to_vec();
    frame.extend((parts.len() as u32).to_le_bytes());
    for part in parts {
        frame.extend((part.len() as u64).to_le_bytes());
        frame.extend(part.as_bytes());
    }
    input.write_all(&frame).expect("a reader");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_recorded_processor_has_every_feature_that_the_compiler_uses() {
    let Some(toolchain) = toolchain() else { return };
    // A compiler that cannot link prints its linker command, with the features.
    let mut compiler = compiler(Toolchain { linker: PathBuf::from("/nowhere/iree-lld"), ..toolchain });
    let error = compiler.compile(ADD, &Target::CPU.flags()).expect_err("no linker");
    let CompileError::Rejected { diagnostics, .. } = error else { panic!("{error}") };
    let text = diagnostics.iter().find_map(|said| said.message.split_once("cpu_features = \""));
    let (_, text) = text.expect("the features");
    let (features, _) = text.split_once('"').expect("a closing quote");
    // The features of every x86-64 processor, those used only by system software and intrinsics, and hints.
    let irrelevant: BTreeSet<&str> = "64bit cmov cx8 fxsr mmx sse sse2 x87 sahf crc32 clflushopt clwb clzero cldemote \
        enqcmd fsgsbase hreset invpcid kl widekl lwp movdir64b movdiri mwaitx pconfig pku prefetchi prfchw ptwrite raoint \
        rdpid rdpru rdrnd rdseed rtm serialize sgx shstk tsxldtrk uintr usermsr waitpkg wbnoinvd cmpccxadd \
        xsave xsavec xsaveopt xsaves amx-tile amx-int8 amx-bf16 amx-fp16 amx-complex evex512"
        .split_whitespace()
        .collect();
    let own: BTreeSet<String> = Cpu::host().features().map(str::to_owned).collect();
    let unknown: Vec<&str> = features
        .split(',')
        .filter_map(|feature| feature.strip_prefix('+'))
        .filter(|feature| !irrelevant.contains(feature))
        .map(|feature| match feature {
            "bmi" => "bmi1",
            "pclmul" => "pclmulqdq",
            "cx16" => "cmpxchg16b",
            same => same,
        })
        .filter(|feature| !own.contains(*feature))
        .collect();
    assert!(unknown.is_empty(), "the compiler uses {unknown:?}, which keys and manifests would not record");
}

#[test]
fn nothing_is_left_in_the_folder_for_temporary_files() {
    let Some(toolchain) = toolchain() else { return };
    let scratch = || {
        let entries = fs::read_dir(std::env::temp_dir()).expect("a folder").filter_map(Result::ok);
        entries
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().starts_with("main_dispatch"))
            .count()
    };
    let before = scratch();
    compiler(toolchain).compile(ADD, &Target::CPU.flags()).expect("a program");
    assert_eq!(scratch(), before);
}
