//! Why a cache had nothing to give.

use std::path::PathBuf;

use crate::digest::Digest;

/// The answer of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup<E> {
    /// The compiled program, its SHA-256 checked.
    Hit {
        /// The VMFB.
        bytes: Vec<u8>,
        /// What the cache knows of it.
        entry: E,
    },
    /// Nothing, and why.
    Miss(Miss),
}

/// What to do about a file of a newer Sheaf.
pub(crate) const UPDATE: &str = "update Sheaf, or delete the file to compile anew";
/// What to do about a file that may not be read.
pub(crate) const MAKE_READABLE: &str = "make it readable for you, or delete it to compile anew";

/// Why a compiled program was not taken from a cache. The message says where and why; [`remedy`](Self::remedy) what
/// to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// The cache does not have it.
    #[error("{folder} does not have it")]
    Absent {
        /// The folder of the cache.
        folder: PathBuf,
    },
    /// The folder, or the file that lists it, is not the user's.
    #[error("{line}")]
    Foreign {
        /// One line: the file or setting that is passed over, the reason and the remedy.
        line: String,
    },
    /// The file that lists it cannot be read.
    #[error("{path} cannot be read: {cause}")]
    RecordUnreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// The file that lists it makes no sense.
    #[error("{path} is damaged: {cause}")]
    RecordDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The file that lists it is of another format.
    #[error("{path} is written in format {found}, but this Sheaf reads format {known}")]
    RecordVersion {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u64,
        /// The version that is understood.
        known: u64,
    },
    /// The file that lists it names a file that may lie anywhere.
    #[error("{path} names {name:?}, which is not a plain file name ending in .vmfb")]
    UnsafeName {
        /// The file that lists it.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// The compiled program is listed but not there.
    #[error("{path} is missing")]
    ContentMissing {
        /// The file.
        path: PathBuf,
    },
    /// The compiled program is there but cannot be read.
    #[error("{path} cannot be read: {cause}")]
    ContentUnreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// The compiled program is there but cannot be unpacked.
    #[error("{path} is damaged: {cause}")]
    ContentDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The compiled program is not as long as it was: it was cut off, or is another file.
    #[error("{path} is damaged: it has {found} bytes instead of {expected}")]
    ContentSize {
        /// The file.
        path: PathBuf,
        /// Its recorded size in bytes.
        expected: u64,
        /// Its size in bytes.
        found: u64,
    },
    /// The compiled program is not what it was.
    #[error("{path} is damaged: its SHA-256 is {found} instead of {expected}")]
    ContentDigest {
        /// The file.
        path: PathBuf,
        /// Its recorded digest.
        expected: Digest,
        /// Its digest.
        found: Digest,
    },
}

impl Miss {
    /// Whether something is wrong, and worth a warning, rather than just not there.
    pub fn is_trouble(&self) -> bool {
        !matches!(self, Self::Absent { .. })
    }

    /// What a person can do about it. None where the next compilation repairs it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::RecordVersion { found, known, .. } if found > known => Some(UPDATE),
            Self::RecordUnreadable { .. } | Self::ContentUnreadable { .. } => Some(MAKE_READABLE),
            _ => None,
        }
    }

    /// Whether a file was read whole and is not what it should be, so that it can never be of use again.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::RecordDamaged { .. }
            | Self::RecordVersion { .. }
            | Self::ContentMissing { .. }
            | Self::ContentDamaged { .. }
            | Self::ContentSize { .. }
            | Self::ContentDigest { .. } => true,
            Self::Absent { .. }
            | Self::Foreign { .. }
            | Self::RecordUnreadable { .. }
            | Self::UnsafeName { .. }
            | Self::ContentUnreadable { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_where_and_why() {
        let record = || PathBuf::from("/p/__sheaf__/manifest.json");
        let content = || PathBuf::from("/p/__sheaf__/forward.cpu.vmfb");
        let misses = [
            Miss::Absent { folder: "/p/__sheaf__".into() },
            Miss::RecordUnreadable { path: record(), cause: "Permission denied (os error 13)".into() },
            Miss::RecordDamaged {
                path: record(),
                cause: "EOF while parsing a list at line 3 column 0".into(),
            },
            Miss::RecordVersion { path: record(), found: 2, known: 1 },
            Miss::UnsafeName { path: record(), name: "../../bin/sh".into() },
            Miss::ContentMissing { path: content() },
            Miss::ContentUnreadable { path: content(), cause: "it is not a regular file".into() },
            Miss::ContentSize { path: content(), expected: 22_011, found: 4096 },
            Miss::ContentDigest { path: content(), expected: Digest::of(b"a"), found: Digest::of(b"b") },
        ];
        let messages: Vec<_> = misses.iter().map(Miss::to_string).collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        /p/__sheaf__ does not have it
        /p/__sheaf__/manifest.json cannot be read: Permission denied (os error 13)
        /p/__sheaf__/manifest.json is damaged: EOF while parsing a list at line 3 column 0
        /p/__sheaf__/manifest.json is written in format 2, but this Sheaf reads format 1
        /p/__sheaf__/manifest.json names "../../bin/sh", which is not a plain file name ending in .vmfb
        /p/__sheaf__/forward.cpu.vmfb is missing
        /p/__sheaf__/forward.cpu.vmfb cannot be read: it is not a regular file
        /p/__sheaf__/forward.cpu.vmfb is damaged: it has 4096 bytes instead of 22011
        /p/__sheaf__/forward.cpu.vmfb is damaged: its SHA-256 is 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d instead of ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
        "#);
        let remedies: Vec<_> = misses.iter().filter_map(Miss::remedy).collect();
        assert_eq!(remedies, [MAKE_READABLE, UPDATE, MAKE_READABLE]);
        assert!(!misses[0].is_trouble());
        assert!(misses[1..].iter().all(Miss::is_trouble));
    }
}
