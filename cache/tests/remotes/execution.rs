//! Compilation on a cluster: the real compiler in the sandbox of buildbox-casd.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use sheaf_artifacts::ActionKey;
use sheaf_cache::reapi::action::{Compilation, CompileAction, ToolFile};
use sheaf_cache::reapi::execute::ExecuteError;
use sheaf_cache::remote::Address;
use sheaf_cache::remote::grpc::{Grpc, GrpcOptions};
use sheaf_foundation::Digest;

use crate::{checks, servers, skip};

/// Path of the compiler in the input tree.
const COMMAND: &str = "iree/iree-compile";

const ADD: &str = "module @sheaf {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
";

const FLAGS: [&str; 4] = [
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
];

fn client(server: &servers::Server) -> Grpc {
    Grpc::new(&format!("grpc://127.0.0.1:{}", server.port), GrpcOptions::default()).expect("an address")
}

fn compilation(program: &str, flags: &[&str], tool: &[ToolFile]) -> CompileAction {
    let flags: Vec<_> = flags.iter().map(ToString::to_string).collect();
    let key = ActionKey(Digest::of(program.as_bytes()));
    let program = program.as_bytes();
    Compilation { program, flags: &flags, key, tool, command: COMMAND }.action().expect("an action")
}

/// The address of a file, streamed from disk.
fn address_of(path: &Path) -> Address {
    let mut file = fs::File::open(path).expect("a file");
    let mut hash = Sha256::new();
    let size = std::io::copy(&mut file, &mut Hashing(&mut hash)).expect("readable");
    Address { digest: Digest(hash.finalize().into()), size }
}

struct Hashing<'a>(&'a mut Sha256);

impl std::io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The pinned compiler's files for Linux on x86-64, with their paths on this machine. `None` if they are not installed,
/// after printing that.
fn compiler() -> Option<Vec<(ToolFile, PathBuf)>> {
    let command = servers::tool("SHEAF_TEST_IREE_COMPILE", "iree-compile-3.13.0/iree-compile", "")?;
    let home = std::env::var_os("SHEAF_TEST_HOME").map_or_else(
        // Next to the tests' folder, target/PROFILE/deps.
        || std::env::current_exe().expect("a path").ancestors().nth(3).expect("a folder").join("test-home"),
        PathBuf::from,
    );
    let folder = home.join("toolchains/iree-compiler-3.13.0-linux-x86_64");
    if !folder.join("libIREECompiler.so").is_file() {
        skip("the compiler is not installed: run the tests of sheaf-toolchain first, or set SHEAF_TEST_HOME");
        return None;
    }
    let paths = [command, folder.join("libIREECompiler.so"), folder.join("iree-lld")];
    let file = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        let executable = path.metadata().expect("a file").permissions().mode() & 0o111 != 0;
        (ToolFile { path: format!("iree/{name}"), address: address_of(&path), executable }, path)
    };
    Some(paths.map(file).into())
}

/// A shell script as the tool, run with a compiler's inputs.
fn script(folder: &Path, text: &str) -> (Vec<ToolFile>, PathBuf) {
    let path = folder.join("script");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    (vec![ToolFile { path: COMMAND.into(), address: address_of(&path), executable: true }], path)
}

#[tokio::test]
async fn a_program_is_compiled_in_a_sandbox() {
    let Some(files) = compiler() else { return };
    let Some(server) = servers::casd() else { return };
    let remote = client(&server);
    let tool: Vec<_> = files.iter().map(|(file, _)| file.clone()).collect();
    let local = |file: &ToolFile| files.iter().find(|(found, _)| found == file).map(|(_, path)| path.clone());

    let start = Instant::now();
    let action = compilation(ADD, &FLAGS, &tool);
    let first = remote.execute(&action, false, local).await.expect("compiled");
    eprintln!("the first, with the compiler's upload: {:.1} s", start.elapsed().as_secs_f64());
    assert!(first.program.windows(5).any(|bytes| bytes == b"sheaf"), "the module's name is in the program");
    assert!(!first.cached);

    // The cluster has the compiler now: a machine without it can compile another program.
    let start = Instant::now();
    let other = compilation(&ADD.replace("add", "multiply"), &FLAGS, &tool);
    let second = remote.execute(&other, false, |_| None).await.expect("compiled");
    eprintln!("the second: {:.1} s", start.elapsed().as_secs_f64());
    assert_ne!(second.program, first.program);

    // It reads the first one's result from the action cache, as any cache does.
    let again = remote.execute(&action, false, |_| None).await.expect("found");
    assert!(again.cached);
    assert_eq!(again.program, first.program);
    let found = remote.action_result(action.address).await.expect("an answer").expect("the result");
    assert_eq!(found.output_files, again.result.output_files);

    // A program rejected by the compiler comes with its messages.
    let broken = compilation(&ADD.replace("stablehlo.add", "stablehlo.ad"), &FLAGS, &tool);
    let error = remote.execute(&broken, false, |_| None).await.expect_err("no such operation");
    let ExecuteError::Compiler { exit_code: 1, messages, .. } = &error else { panic!("{error}") };
    assert!(messages.contains("program.mlir:3"), "{messages}");
}

#[tokio::test]
async fn a_tool_that_is_nowhere_is_named() {
    let Some(server) = servers::casd() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (tool, path) = script(folder.path(), "cp program.mlir main.vmfb");
    let remote = client(&server);
    let error = remote.execute(&compilation("x", &[], &tool), false, |_| None).await.expect_err("no tool");
    let ExecuteError::NoTool { file, .. } = &error else { panic!("{error}") };
    assert_eq!(*file, tool[0].address);
    assert!(error.to_string().contains("does not have the compiler's file `iree/iree-compile`"), "{error}");

    let absent = folder.path().join("absent");
    let error = remote.execute(&compilation("x", &[], &tool), false, |_| Some(absent.clone())).await;
    assert!(matches!(error, Err(ExecuteError::Tool { path, .. }) if path == absent));

    // The cluster refuses a file whose bytes do not match the tool's digest.
    let altered = folder.path().join("altered");
    fs::write(&altered, fs::read_to_string(&path).expect("read").replace("cp", "mv")).expect("written");
    let error = remote.execute(&compilation("x", &[], &tool), false, |_| Some(altered.clone())).await;
    assert!(matches!(error, Err(ExecuteError::Remote(_))), "{error:?}");

    let done =
        remote.execute(&compilation("x", &[], &tool), false, |_| Some(path.clone())).await.expect("executed");
    assert_eq!(done.program, "x");
}

#[tokio::test]
async fn a_worker_sees_the_inputs_and_nothing_else() {
    let Some(server) = servers::casd() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (tool, path) = script(
        folder.path(),
        "echo \"$@\" > main.vmfb; ls | grep -v main.vmfb >> main.vmfb; ls /home /root /etc && echo more >> main.vmfb; true",
    );
    let action = compilation("x", &["--a=1 b"], &tool);
    let done = client(&server).execute(&action, false, |_| Some(path.clone())).await.expect("executed");
    let seen = String::from_utf8_lossy(&done.program).into_owned();
    // The mounts are those of the worker (servers.rs); /home, /root and /etc are not mounted.
    insta::assert_snapshot!(seen, @"
    --a=1 b program.mlir -o main.vmfb
    bin
    dev
    iree
    lib
    lib64
    proc
    program.mlir
    tmp
    usr
    ");
}

#[tokio::test]
async fn failures_of_a_worker_are_told_apart() {
    let Some(server) = servers::casd() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let remote = client(&server);
    let run = async |text: &str| {
        let (tool, path) = script(folder.path(), text);
        remote.execute(&compilation("x", &[], &tool), true, |_| Some(path.clone())).await.expect_err(text)
    };
    let error = run("echo 'no memory' >&2; exit 3").await;
    assert!(
        matches!(&error, ExecuteError::Compiler { exit_code: 3, messages, .. } if messages == "no memory"),
        "{error}"
    );
    let error = run("echo to standard output; exit 4").await;
    assert!(
        matches!(&error, ExecuteError::Compiler { exit_code: 4, messages, .. } if messages == "to standard output")
    );
    let error = run("true").await;
    assert!(matches!(error, ExecuteError::NoProgram { .. }), "{error}");
    // A large program is streamed.
    let (tool, path) = script(folder.path(), "head -c 9000000 /dev/zero > main.vmfb");
    let large =
        remote.execute(&compilation("x", &[], &tool), false, |_| Some(path.clone())).await.expect("executed");
    assert!(large.program == vec![0; 9_000_000]);
}

#[tokio::test]
async fn the_time_of_an_execution_is_the_callers() {
    let Some(server) = servers::casd() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (tool, path) = script(folder.path(), "sleep 60");
    let remote = client(&server);
    let action = compilation("x", &[], &tool);
    let execution = remote.execute(&action, false, |_| Some(path.clone()));
    assert!(tokio::time::timeout(Duration::from_secs(2), execution).await.is_err());
    // The client remains usable.
    assert_eq!(remote.read(Address::of(&checks::bytes("none", 10))).await, Ok(None));
}

#[tokio::test]
async fn a_cache_executes_nothing() {
    let Some(server) = servers::buildgrid("") else { return };
    let tool = [ToolFile { path: COMMAND.into(), address: Address::of(b"x"), executable: true }];
    let error =
        client(&server).execute(&compilation("x", &[], &tool), false, |_| None).await.expect_err("a cache");
    assert!(matches!(error, ExecuteError::CacheOnly { .. }), "{error}");
}
