//! Limits of one compilation, and the record of one that crashed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use sheaf_foundation::{atomic, machine_memory};

/// The limits of a compile worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// Maximum time for one program; then its worker is killed. `None` for no limit.
    pub time: Option<Duration>,
    /// Maximum address space of the worker, in bytes; the compiler itself takes 2 GiB of it. `None` for the system's
    /// limit, which may exceed the machine's memory. Has no effect on Windows, nor on macOS, which ignores the limit.
    pub memory: Option<u64>,
    /// The folder for copies of programs that crashed the compiler. `None` to keep no copies.
    pub crashes: Option<PathBuf>,
}

/// The environment variables that set limits: seconds, and MiB. 0 is no limit. Anything but a number counts as unset
/// here; the command line has already rejected it.
const TIME_VARIABLE: &str = "SHEAF_COMPILE_SECONDS";
const MEMORY_VARIABLE: &str = "SHEAF_COMPILE_MIB";

/// Default time limit, longer than any program takes.
const USUAL_TIME: Duration = Duration::from_secs(3600);

/// Address space of a worker besides the memory that it uses, in bytes: the compiler's code, and reserved memory that
/// is never touched.
const UNTOUCHED: u64 = 4 << 30;

/// Maximum number of crashes kept.
const KEPT_CRASHES: usize = 10;

/// The folder for crashes in the data folder.
const CRASHES: &str = "compiler-crashes";

/// Files in the folder of a crash.
const PROGRAM: &str = "program.mlir";
const FLAGS: &str = "flags.txt";
const REASON: &str = "reason.txt";

impl CompileLimits {
    /// The default limits, or those of the environment, with the folder for crashes in the data folder that has this
    /// `toolchain` folder.
    pub(crate) fn for_toolchain(toolchain: &Path) -> Self {
        let variable = |name| std::env::var(name).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let time = variable(TIME_VARIABLE).unwrap_or(USUAL_TIME.as_secs());
        let data = toolchain.parent().and_then(Path::parent);
        Self {
            time: (time > 0).then(|| Duration::from_secs(time)),
            memory: match variable(MEMORY_VARIABLE) {
                Some(0) => None,
                Some(mib) => Some(mib.saturating_mul(1 << 20)),
                // A program that takes more than the machine has would stop everything else there.
                None => machine_memory().map(|bytes| bytes.saturating_add(UNTOUCHED)),
            },
            crashes: data.map(|data| data.join(CRASHES)),
        }
    }

    /// Copies a program with its flags and the reason to a folder of its own, and removes the oldest crashes beyond the
    /// limit. Returns the folder, or `None` if it could not be written: the crash is the more important error.
    pub(crate) fn keep(&self, program: &str, flags: &[String], reason: &str) -> Option<PathBuf> {
        let crashes = self.crashes.as_deref()?;
        let mut hasher = Sha256::new();
        for part in std::iter::once(program).chain(flags.iter().map(String::as_str)) {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let folder = crashes.join(&hex::encode(hasher.finalize())[..16]);
        let kept = write(&folder, program, flags, reason).and_then(|()| remove_oldest(crashes, &folder));
        kept.ok().map(|()| folder)
    }
}

/// Writes the files of a crash. The same crash gets the same folder, whose time is that of the last one.
fn write(folder: &Path, program: &str, flags: &[String], reason: &str) -> io::Result<()> {
    let flags = flags.iter().map(|flag| format!("{flag}\n")).collect::<String>();
    for (name, text) in [(PROGRAM, program), (FLAGS, &flags), (REASON, reason)] {
        atomic::write(&folder.join(name), text.as_bytes()).map_err(|error| error.source)?;
    }
    Ok(())
}

/// Removes the oldest crashes, but not `newest`. Ignores folders that cannot be removed.
fn remove_oldest(crashes: &Path, newest: &Path) -> io::Result<()> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(crashes)? {
        let entry = entry?;
        // The reason is written last.
        let time = fs::metadata(entry.path().join(REASON)).and_then(|file| file.modified());
        folders.push((time.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
    }
    folders.sort();
    let excess = folders.len().saturating_sub(KEPT_CRASHES);
    for (_, folder) in folders.iter().filter(|(_, folder)| folder != newest).take(excess) {
        let _ = fs::remove_dir_all(folder);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(folder: &Path) -> CompileLimits {
        CompileLimits { time: None, memory: None, crashes: Some(folder.join("crashes")) }
    }

    #[test]
    fn a_crash_is_kept_once_and_can_be_compiled_again() {
        let place = tempfile::tempdir().expect("a folder");
        let flags = ["--a=1".to_owned(), "--b".to_owned()];
        let folder = limits(place.path()).keep("module {}", &flags, "signal 6").expect("kept");
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
        assert_eq!([read(PROGRAM), read(FLAGS), read(REASON)], ["module {}", "--a=1\n--b\n", "signal 6"]);
        assert_eq!(limits(place.path()).keep("module {}", &flags, "signal 11"), Some(folder.clone()));
        assert_eq!(fs::read_to_string(folder.join(REASON)).expect("a file"), "signal 11");
        assert_ne!(limits(place.path()).keep("module {}", &flags[..1], "signal 6"), Some(folder));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_worker_may_use_what_the_machine_has() {
        let limits = CompileLimits::for_toolchain(Path::new("/nowhere/toolchains/3"));
        let text = fs::read_to_string("/proc/meminfo").expect("a text");
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("a line");
        let kib: u64 = total.trim().trim_end_matches(" kB").parse().expect("a number");
        assert_eq!(limits.memory.expect("a limit"), (kib << 10) + UNTOUCHED);
        assert_eq!(limits.time, Some(USUAL_TIME));
    }

    #[test]
    fn only_the_newest_crashes_are_kept() {
        let place = tempfile::tempdir().expect("a folder");
        let limits = limits(place.path());
        let keep = |number: usize| limits.keep(&format!("module {number}"), &[], "").expect("kept");
        let folders: Vec<_> = (0..KEPT_CRASHES + 5).map(keep).collect();
        let there: Vec<_> = folders.iter().map(|folder| folder.exists()).collect();
        assert_eq!(there.iter().filter(|there| **there).count(), KEPT_CRASHES, "{there:?}");
        assert_eq!(there.last(), Some(&true));
    }

    #[test]
    fn what_cannot_be_kept_is_no_error() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("crashes"), "in the way").expect("a file");
        assert_eq!(limits(place.path()).keep("module {}", &[], ""), None);
        let none = CompileLimits { crashes: None, ..limits(place.path()) };
        assert_eq!(none.keep("module {}", &[], ""), None);
    }
}
