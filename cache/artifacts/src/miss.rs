//! Reasons for cache misses.

use std::path::PathBuf;

use sheaf_foundation::Digest;

/// Result of a cache look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup<E> {
    /// The compiled program, its SHA-256 checked.
    Hit {
        /// The VMFB.
        bytes: Vec<u8>,
        /// The cache's metadata of it.
        entry: E,
    },
    /// Not available, with the reason.
    Miss(Miss),
}

/// Remedy for a file of a newer Sheaf.
pub(crate) const UPDATE: &str = "update Sheaf, or delete the file to compile anew";
/// Remedy for a file that the user may not read.
pub(crate) const MAKE_READABLE: &str = "make it readable for you, or delete it to compile anew";

/// Reason for not taking a compiled program from a cache. The message gives the path and the cause;
/// [`remedy`](Self::remedy) the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// The cache does not have it.
    #[error("{folder} does not have it")]
    Absent {
        /// The folder of the cache.
        folder: PathBuf,
    },
    /// The folder, or its manifest, is not the user's.
    #[error("{line}")]
    Foreign {
        /// One line: the ignored file or setting, the reason and the remedy.
        line: String,
    },
    /// The file that lists the program cannot be read.
    #[error("{path} cannot be read: {cause}")]
    RecordUnreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: String,
    },
    /// The file that lists the program is malformed.
    #[error("{path} is damaged: {cause}")]
    RecordDamaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        cause: String,
    },
    /// The file that lists the program is of another format version.
    #[error("{path} is written in format {found}, but this Sheaf reads format {known}")]
    RecordVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u64,
        /// The supported version.
        known: u64,
    },
    /// The file that lists the program names a path that may lead anywhere.
    #[error("{path} names {name:?}, which is not a plain file name ending in .vmfb")]
    UnsafeName {
        /// The file that lists it.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// The compiled program is listed but missing.
    #[error("{path} is missing")]
    ContentMissing {
        /// The file.
        path: PathBuf,
    },
    /// The compiled program cannot be read.
    #[error("{path} cannot be read: {cause}")]
    ContentUnreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: String,
    },
    /// The compiled program cannot be decompressed.
    #[error("{path} is damaged: {cause}")]
    ContentDamaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        cause: String,
    },
    /// The compiled program has another size: it was truncated or replaced.
    #[error("{path} is damaged: it has {found} bytes instead of {expected}")]
    ContentSize {
        /// The file.
        path: PathBuf,
        /// Its recorded size in bytes.
        expected: u64,
        /// Its size in bytes.
        found: u64,
    },
    /// The compiled program has another digest.
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
    /// True if the miss is an error worth a warning, rather than mere absence.
    pub fn is_trouble(&self) -> bool {
        !matches!(self, Self::Absent { .. })
    }

    /// The fix to suggest to the user; `None` if the next compilation repairs it.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::RecordVersion { found, known, .. } if found > known => Some(UPDATE),
            Self::RecordUnreadable { .. } | Self::ContentUnreadable { .. } => Some(MAKE_READABLE),
            _ => None,
        }
    }

    /// True if a file was read completely and is damaged, so that it can never be used again.
    pub fn is_damage(&self) -> bool {
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
