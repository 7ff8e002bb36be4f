//! How an installation tells what it is doing; whoever called it draws that.

use std::path::Path;

/// A part of an installation that takes noticeable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Fetching the wheel from an index or a folder.
    Download,
    /// Unpacking the compiler out of the wheel.
    Unpack,
    /// Waiting for the disk and moving the folder to its place.
    Commit,
    /// Reading what is installed.
    Verify,
    /// Writing what is installed to a file.
    Bundle,
}

/// Receives the progress of an installation. Methods do nothing unless implemented.
pub trait Progress {
    /// Another process is installing; this one waits until `lock` is free.
    fn waiting(&self, lock: &Path) {
        let _ = lock;
    }

    /// A stage begins. `from` says where bytes come from, without passwords; `total` is their number, 0 if unknown.
    /// A stage begins anew if a download has to start over.
    fn begin(&self, stage: Stage, from: &str, total: u64) {
        let _ = (stage, from, total);
    }

    /// `bytes` more are done.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// The download broke off and is tried again; `cause` says why.
    fn retrying(&self, cause: &str) {
        let _ = cause;
    }

    /// Something is not as it should be, and the installation goes on without it.
    fn warning(&self, message: &str) {
        let _ = message;
    }

    /// The stage is done.
    fn finished(&self, stage: Stage) {
        let _ = stage;
    }
}

/// Says nothing.
impl Progress for () {}
