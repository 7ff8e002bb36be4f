//! Progress of an installation, displayed by the caller.

use std::path::Path;

/// A part of an installation that takes noticeable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Fetching the wheel from an index or a folder.
    Download,
    /// Unpacking the compiler out of the wheel.
    Unpack,
    /// Syncing to disk and renaming the folder.
    Commit,
    /// Reading an installation.
    Verify,
    /// Writing an installation to a file.
    Bundle,
}

/// Callbacks for the progress of an installation. Methods do nothing by default.
pub trait Progress {
    /// Another process is installing; this one waits until `lock` is free.
    fn waiting(&self, lock: &Path) {
        let _ = lock;
    }

    /// A stage begins. `from` is the source of the bytes, without passwords; `total` their number, 0 if unknown. A
    /// stage begins anew if a download has to start over.
    fn begin(&self, stage: Stage, from: &str, total: u64) {
        let _ = (stage, from, total);
    }

    /// `bytes` more are done.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// The download broke off for `cause` and is retried.
    fn retrying(&self, cause: &str) {
        let _ = cause;
    }

    /// A problem that does not stop the installation.
    fn warning(&self, message: &str) {
        let _ = message;
    }

    /// The stage is done.
    fn finished(&self, stage: Stage) {
        let _ = stage;
    }
}

/// Ignores all progress.
impl Progress for () {}
