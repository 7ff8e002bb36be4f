//! The pinned compiler, installed once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sheaf_foundation::{Digest, atomic};
use sheaf_target::Release;
use sheaf_toolchain::{CompileError, Compiler, InstallError, Settings, Toolchain, install};

use crate::{kept_folder, skip};

/// The data folder with the pinned compiler: the one that `SHEAF_TEST_HOME` names, or one under `target`. Installs the
/// compiler there if needed. `None` if that is not possible, after printing the reason.
pub(crate) fn data_folder() -> Option<&'static Path> {
    shared().map(|(data, _)| data.as_path())
}

/// The pinned compiler of [`Sandbox::with_compiler`](crate::Sandbox::with_compiler).
pub fn toolchain() -> Option<Toolchain> {
    shared().map(|(_, toolchain)| toolchain.clone())
}

fn shared() -> Option<&'static (PathBuf, Toolchain)> {
    static SHARED: OnceLock<Result<(PathBuf, Toolchain), String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let data = std::env::var_os("SHEAF_TEST_HOME")
            .map_or_else(|| kept_folder().with_file_name("test-home"), PathBuf::from);
        match install(&data, &Settings::default(), &()) {
            Ok(toolchain) => Ok((data, toolchain)),
            Err(error @ (InstallError::NoSource { .. } | InstallError::NotFound { .. })) => {
                Err(error.to_string())
            }
            Err(error) if error.is_network() => Err(error.to_string()),
            Err(error) => panic!("the compiler cannot be installed for the tests: {error}"),
        }
    });
    shared.as_ref().map_err(|reason| skip(&format!("there is no compiler: {reason}"))).ok()
}

/// The program of a module: the one that an earlier run of a test compiled, kept under `target` by release, flags and text,
/// or a new one. For tests of what programs compute.
///
/// # Errors
/// If there is none yet, and the compiler makes none; nothing is kept then.
///
/// # Panics
/// If the program cannot be kept.
pub fn compile_once(compiler: &mut Compiler, mlir: &str, flags: &[String]) -> Result<Vec<u8>, CompileError> {
    let version = Release::host().map_or("", |release| release.version);
    let key = Digest::of([version, &flags.join("\n"), mlir].join("\0").as_bytes());
    let folder = kept_folder().join("programs");
    let file = folder.join(format!("{key}.vmfb"));
    if let Ok(program) = fs::read(&file) {
        return Ok(program);
    }
    let program = compiler.compile(mlir, flags)?;
    fs::create_dir_all(&folder).expect("a folder");
    atomic::write(&file, &program).expect("a file");
    Ok(program)
}

/// The wheel of the pinned compiler, downloaded once by pip. `None` without pip or network, after printing that.
pub fn wheel() -> Option<PathBuf> {
    static WHEEL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    WHEEL.get_or_init(fetch_wheel).as_ref().map_err(|reason| skip(reason)).ok().cloned()
}

fn fetch_wheel() -> Result<PathBuf, String> {
    let release = Release::host().ok_or("no compiler is published for this machine")?;
    let folder = kept_folder().join("wheels");
    let wheel = folder.join(release.wheel);
    let is_whole = |wheel: &Path| fs::metadata(wheel).is_ok_and(|file| file.len() == release.size);
    if is_whole(&wheel) {
        return Ok(wheel);
    }
    fs::create_dir_all(&folder).expect("a folder");
    let staging = tempfile::tempdir_in(&folder).expect("a folder");
    // The last components of the name are the wheel's tags.
    let mut tags = release.wheel.trim_end_matches(".whl").rsplit('-');
    let platforms = tags.next().unwrap_or_default().split('.');
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--python-version=3.12", "--implementation=cp", "--abi=abi3"]);
    for platform in platforms {
        pip.args(["--platform", platform]);
    }
    pip.arg("--dest").arg(staging.path()).arg(format!("iree-base-compiler=={}", release.version));
    pip.env("PIP_REQUIRE_VIRTUALENV", "0");
    let downloaded = pip.output().is_ok_and(|output| output.status.success());
    let staged = staging.path().join(release.wheel);
    if !downloaded || !is_whole(&staged) {
        return Err("pip cannot download the compiler's wheel".into());
    }
    fs::rename(staged, &wheel).expect("renamed");
    Ok(wheel)
}
