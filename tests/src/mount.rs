//! File systems for one process: small or read-only, in a mount namespace that disappears with it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::skip;

/// A file system for one run.
#[derive(Clone, Copy, Debug)]
pub enum Mount {
    /// An empty one of this many KiB.
    Small(u32),
    /// The existing files, read-only.
    ReadOnly,
}

/// Mounts, runs the rest, and lists the files at the end.
const SCRIPT: &str = r#"
eval "$MOUNT" || exit 99
"$0" "$@"
code=$?
cd "$AT" && find . -type f >"$LISTING"
exit $code
"#;

impl Mount {
    /// True if tests can mount on this machine; prints a message if not.
    pub fn available() -> bool {
        let available = namespace().is_some();
        if !available {
            skip("no mount namespace here (`unshare --mount` fails)");
        }
        available
    }

    /// A command that runs `program` with this file system at the folder `at`.
    pub(crate) fn command(self, at: &Path, listing: &Path, program: &Path) -> Command {
        let mount = match self {
            Mount::Small(size) => format!(r#"mount -t tmpfs -o size={size}k none "{}""#, at.display()),
            Mount::ReadOnly => {
                format!(r#"mount --bind "{0}" "{0}" && mount -o remount,bind,ro "{0}""#, at.display())
            }
        };
        let script =
            format!("MOUNT='{mount}'; AT='{}'; LISTING='{}'; {SCRIPT}", at.display(), listing.display());
        let mut command = Command::new("unshare");
        command.args(namespace().expect("a mount namespace")).args(["sh", "-c", &script]).arg(program);
        command
    }
}

/// Command prefix for a new mount namespace: with a user namespace, or as root.
fn namespace() -> Option<&'static [&'static str]> {
    static WAY: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    *WAY.get_or_init(|| {
        let ways: [&[&str]; 2] = [&["--mount", "--map-root-user"], &["--mount"]];
        ways.into_iter().find(|way| {
            let mut trial = Command::new("unshare");
            trial.args(*way).args(["mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
            trial.status().is_ok_and(|status| status.success())
        })
    })
}
