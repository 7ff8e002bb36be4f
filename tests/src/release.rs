//! Archives of a release, as a server has them: `sheaf` with `sheaf-rt`, and the compiler.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sheaf_foundation::Digest;
use tempfile::TempDir;

use crate::{Sandbox, sheaf, skip};

/// Archive of `sheaf` and `sheaf-rt`, in a folder `sheaf-1`.
pub const SHEAF: &str = "sheaf.tar";

/// File of `sheaf toolchain bundle`.
pub const COMPILER: &str = "compiler.tar.gz";

/// The archives of a release, removed on drop.
#[derive(Debug)]
pub struct Release {
    folder: TempDir,
}

impl Release {
    /// The release that another test of this process has made, while it has it, or a new one: to pack the compiler takes
    /// fifteen seconds. `None` without a runtime or a compiler, after printing that.
    ///
    /// # Panics
    /// If it cannot be packed.
    pub fn shared() -> Option<Arc<Release>> {
        static SHARED: Mutex<Weak<Release>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(release) = shared.upgrade() {
            return Some(release);
        }
        let release = Arc::new(Release::new()?);
        *shared = Arc::downgrade(&release);
        Some(release)
    }

    fn new() -> Option<Release> {
        let runtime = sheaf().with_file_name("sheaf-rt");
        if !runtime.is_file() {
            skip("there is no sheaf-rt: cargo build --workspace --bins");
            return None;
        }
        let sandbox = Sandbox::with_compiler()?;
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("sheaf-1");
        fs::create_dir(&bin).expect("a folder");
        for tool in [sheaf(), runtime] {
            let name = tool.file_name().expect("a name");
            done(Command::new("strip").arg("-o").arg(bin.join(name)).arg(&tool));
        }
        done(Command::new("tar").current_dir(folder.path()).args(["-cf", SHEAF, "sheaf-1"]));
        let compiler = folder.path().join(COMPILER);
        let packed = sandbox.run(&["toolchain", "bundle", "-o", &compiler.display().to_string()]);
        assert_eq!(packed.code, Some(0), "{packed}");
        Some(Release { folder })
    }

    /// Path and SHA-256 of an archive.
    pub fn file(&self, name: &str) -> (PathBuf, String) {
        let path = self.folder.path().join(name);
        let digest = Digest::of(&fs::read(&path).expect("a file")).to_string();
        (path, digest)
    }
}

/// Runs a command that must succeed; its standard output.
pub fn done(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
