//! Ownership of folders: a compiled program is native code, so files placed by other users are not run.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::miss::Miss;

/// Reason, as one line with the remedy, not to use a file or folder with this metadata; `None` to use it.
type Refusal = dyn Fn(&Path, &Metadata) -> Option<String> + Send + Sync;

/// Check before a folder is used and its manifest is read. The default allows all.
#[derive(Default)]
pub struct Guard(Option<Box<Refusal>>);

impl Guard {
    /// A guard that calls `refusal` with the metadata of a folder, links not followed.
    pub fn new(refusal: impl Fn(&Path, &Metadata) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(refusal)))
    }

    /// Errors if the file at `path` with this metadata is refused.
    pub(crate) fn check(&self, path: &Path, metadata: &Metadata) -> Result<(), Miss> {
        let refused = self.0.as_ref().and_then(|refusal| refusal(path, metadata));
        refused.map_or(Ok(()), |line| Err(Miss::Foreign { line }))
    }

    /// Errors if the folder at `path` is refused; a missing folder is allowed.
    pub(crate) fn check_folder(&self, path: &Path) -> Result<(), Miss> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => self.check(path, &metadata),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(())
            }
            Err(error) => Err(Miss::RecordUnreadable { path: path.into(), cause: error.to_string() }),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Guard" } else { "no guard" })
    }
}
