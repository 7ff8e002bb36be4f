//! Whose folder is it? A compiled program is native code, so one that somebody else put on the way is not run.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::miss::Miss;

/// Says why a file or folder is not used that has this metadata, in one line with what to do; none if it is.
type Refusal = dyn Fn(&Path, &Metadata) -> Option<String> + Send + Sync;

/// What is asked before a folder is used, and the list in it is read. The default has nothing against any.
#[derive(Default)]
pub struct Guard(Option<Box<Refusal>>);

impl Guard {
    /// A guard that asks `refusal`, which is given the metadata of a folder without following links.
    pub fn new(refusal: impl Fn(&Path, &Metadata) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(refusal)))
    }

    /// That there is nothing against the file at `path` with this metadata.
    pub(crate) fn check(&self, path: &Path, metadata: &Metadata) -> Result<(), Miss> {
        let refused = self.0.as_ref().and_then(|refusal| refusal(path, metadata));
        refused.map_or(Ok(()), |line| Err(Miss::Foreign { line }))
    }

    /// That there is nothing against the folder at `path`; nothing is against one that is not there.
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
