//! Installing from real sources over real connections, and compiling in real processes.
//!
//! The installations use small stand-in wheels, served from this machine. Tests of compilation need the pinned
//! compiler. They use the one under `SHEAF_HOME`, or in the user's data folder, and without it print that they are
//! skipped. If `SHEAF_TEST_HOME` names a data folder, then they use that one, and first install the compiler there.

mod archives;
mod bundle;
mod compile;
mod executor;
mod failures;
mod killed;
mod limits;
mod listed;
mod locked;
mod resumed;
mod server;
mod sources;
mod together;
mod verify;
mod wheel;
mod worker;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sheaf_toolchain::{InstallError, Limits, Setting, Settings, Toolchain, install_release};

use crate::wheel::Wheel;

/// A command of the child process.
fn child(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolchain-child"));
    command.args(arguments);
    command
}

/// Prints on the terminal, bypassing output capture, that a test is skipped.
fn skipped(reason: &str) {
    let line = format!("SKIPPED {}: {reason}\n", std::thread::current().name().unwrap_or_default());
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Settings with one source and short timeouts.
fn settings(place: &str) -> Settings {
    Settings {
        index: Some(Setting { value: place.to_owned(), origin: "the test".to_owned() }),
        limits: Limits { pause: Duration::from_millis(1), attempts: 3, ..Limits::default() },
        ..Settings::default()
    }
}

/// Installs a stand-in wheel from one place.
fn install(wheel: &Wheel, home: &Path, place: &str) -> Result<Toolchain, InstallError> {
    install_release(&wheel.release(), home, &settings(place), &())
}

/// The sorted files and folders under `home/toolchains`, without the lock and partial downloads.
fn installed(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.join("toolchains")) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name != ".lock" && !name.starts_with(".partial-")).collect();
    names.sort();
    names
}

/// The partial download of a wheel.
fn partial(home: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(home.join("toolchains")).expect("a folder");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".partial-")))
}

/// Checks that the stand-in is installed with the expected content, and no other files.
fn assert_installed(wheel: &Wheel, home: &Path) {
    let toolchain = sheaf_toolchain::locate_release(&wheel.release(), home).expect("an installation");
    assert!(std::fs::read(&toolchain.library).expect("a library") == wheel.library, "another library");
    assert!(std::fs::read(&toolchain.linker).expect("a linker") == wheel::LINKER, "another linker");
    assert!(std::fs::read(&toolchain.program).expect("a program") == wheel::PROGRAM, "another program");
    assert!(toolchain.folder.join("METADATA").is_file());
    assert_eq!(installed(home), [wheel.release().folder()]);
    assert_eq!(partial(home), None);
}
