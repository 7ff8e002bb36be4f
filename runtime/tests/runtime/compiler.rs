//! Finding and running the compiler.

#![allow(clippy::unwrap_used, reason = "only tests use this")]

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};

/// Compiles a module, once per test run; `None` without a compiler.
pub fn compile(mlir: &str) -> Option<Arc<[u8]>> {
    type Compiled = Arc<Mutex<Option<Arc<[u8]>>>>;
    static DONE: LazyLock<Mutex<HashMap<String, Compiled>>> = LazyLock::new(Mutex::default);

    let Some(compiler) = &*COMPILER else {
        println!("skipped: no compiler");
        return None;
    };
    let slot = Arc::clone(DONE.lock().unwrap().entry(mlir.to_owned()).or_default());
    let mut slot = slot.lock().unwrap();
    Some(Arc::clone(slot.get_or_insert_with(|| compiler.run(mlir).into())))
}

static COMPILER: LazyLock<Option<Compiler>> = LazyLock::new(Compiler::find);

enum Compiler {
    /// `iree-compile`.
    Program(PathBuf),
    /// The shared library, as Sheaf installs it.
    Library(PathBuf),
}

impl Compiler {
    fn find() -> Option<Self> {
        if let Some(program) = std::env::var_os("SHEAF_TEST_IREE_COMPILE") {
            return Some(Self::Program(program.into()));
        }
        let named = |variable| std::env::var_os(variable).map(PathBuf::from);
        let home =
            named("SHEAF_TEST_HOME").or_else(|| named("SHEAF_HOME").map(|home| home.join("data"))).or_else(
                || directories::ProjectDirs::from("", "", "sheaf").map(|dirs| dirs.data_dir().to_owned()),
            )?;
        let installed = std::fs::read_dir(home.join("toolchains")).ok()?.filter_map(Result::ok);
        installed.map(|entry| entry.path()).filter(|folder| folder.join("complete").is_file()).find_map(
            |folder| {
                let library = folder.join(libloading::library_filename("IREECompiler"));
                library.is_file().then_some(Self::Library(library))
            },
        )
    }

    fn run(&self, mlir: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("program.mlir"), folder.path().join("program.vmfb"));
        std::fs::write(&source, mlir).unwrap();
        let output = self.command(&arguments(&source, &target)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(target).unwrap()
    }

    fn command(&self, arguments: &[String]) -> Command {
        match self {
            Self::Program(program) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            // The library's entry point may be called once per process, so this test program is started for it.
            Self::Library(library) => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", "library_process", "--ignored", "--nocapture"]);
                command.env("SHEAF_TEST_LIBRARY", library);
                command.env("SHEAF_TEST_ARGUMENTS", arguments.join("\n"));
                command
            }
        }
    }
}

fn arguments(source: &Path, target: &Path) -> Vec<String> {
    let mut arguments = vec![
        source.display().to_string(),
        "-o".to_owned(),
        target.display().to_string(),
        "--iree-input-type=stablehlo".to_owned(),
        "--iree-input-demote-f64-to-f32=false".to_owned(),
        "--iree-hal-target-device=local".to_owned(),
        "--iree-hal-local-target-device-backends=llvm-cpu".to_owned(),
        "--iree-llvmcpu-target-cpu=host".to_owned(),
        "--iree-llvmcpu-debug-symbols=false".to_owned(),
        "--iree-vm-bytecode-module-strip-source-map=true".to_owned(),
        "--iree-vm-emit-polyglot-zip=false".to_owned(),
        "--iree-opt-strip-assertions=true".to_owned(),
    ];
    // For measurements of a flag's effect.
    let more = std::env::var("SHEAF_TEST_FLAGS").unwrap_or_default();
    arguments.extend(more.split_whitespace().map(str::to_owned));
    arguments
}

/// True if this process was started by `Compiler::command` to run the library.
pub fn is_library_process() -> bool {
    std::env::var_os("SHEAF_TEST_LIBRARY").is_some()
}

/// Runs the library's entry point and ends the process.
#[allow(unsafe_code, reason = "the compiler is a C library")]
pub fn library_process() -> ! {
    type Main = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;
    let path = std::env::var_os("SHEAF_TEST_LIBRARY").unwrap();
    let arguments = std::env::var("SHEAF_TEST_ARGUMENTS").unwrap();
    let arguments: Vec<_> = std::iter::once("iree-compile")
        .chain(arguments.lines())
        .map(|argument| CString::new(argument).unwrap())
        .collect();
    let pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    // SAFETY: the installed compiler's library has this function, a C `main`, and it is called once.
    let code = unsafe {
        let library = libloading::Library::new(path).unwrap();
        let main: libloading::Symbol<'_, Main> = library.get(b"ireeCompilerRunMain").unwrap();
        main(pointers.len() as c_int, pointers.as_ptr())
    };
    std::process::exit(code)
}
