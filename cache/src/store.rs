//! The user's own store of compiled programs, shared by all projects.
//!
//! ```text
//! <cache>/
//! ├── actions-v1/             what has been compiled, by the key of the action
//! │   └── 3f/
//! │       └── 3f9a…c2.json    a [`Record`]: digest and size of the VMFB, compiler, function, parts of the key
//! └── blobs-v1/               the VMFBs, by their SHA-256
//!     └── b7/
//!         └── b7e0…41
//! ```
//!
//! A bucket's version is in its folder's name: a Sheaf that writes another format uses another folder, and both live
//! side by side. `put` writes the blob before the record, so that a record without its blob means damage. Equal blobs
//! of different actions are one file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::{Action, ActionKey};
use crate::atomic::{self, WriteError};
use crate::content;
use crate::digest::Digest;
use crate::miss::{Lookup, Miss};

/// The version of [`Record`], which is also in the name of its bucket.
const RECORD_VERSION: u64 = 1;
/// More than any record has, in bytes.
const RECORD_LIMIT: u64 = 64 * 1024;
/// How much of a function's name is kept, in characters.
const FUNCTION_LIMIT: usize = 200;
/// Unfinished files of this age are not being written any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The content-addressed store in the user's cache folder.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// What the store knows of one compiled program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u64,
    /// The key of the action that made it.
    pub key: ActionKey,
    /// The SHA-256 of the VMFB.
    pub digest: Digest,
    /// The size of the VMFB in bytes.
    pub size: u64,
    /// The release of the compiler that made it.
    pub compiler: String,
    /// The function that was compiled first to it: a hint for people, cut when very long.
    pub function: String,
    /// The digest of each named part of the key, to tell what differs from a key that misses.
    pub parts: BTreeMap<String, Digest>,
}

impl Store {
    /// The store in the cache folder `folder`, which is made at the first [`put`](Self::put).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The compiled program with this key. The digest of the bytes has been checked. A file that turns out to be
    /// damaged is removed, so that it is in nobody's way.
    pub fn get(&self, key: &ActionKey) -> Lookup<Record> {
        let record_path = self.record_path(key);
        let record = match self.record(key, &record_path) {
            Ok(record) => record,
            Err(miss) => {
                if miss.is_damage() {
                    remove(&record_path);
                }
                return Lookup::Miss(miss);
            }
        };
        let blob_path = self.blob_path(&record.digest);
        match content::read_verified(&blob_path, record.size, &record.digest) {
            Ok(bytes) => Lookup::Hit { bytes, entry: record },
            Err(miss) => {
                if miss.is_damage() {
                    remove(&blob_path);
                    remove(&record_path);
                }
                Lookup::Miss(miss)
            }
        }
    }

    /// Stores what `action` compiled to, and returns its digest. `function` is a hint for people.
    ///
    /// An error leaves the store as it was, and the build need not care.
    pub fn put(&self, action: &Action, function: &str, bytes: &[u8]) -> Result<Digest, WriteError> {
        let record = Record {
            version: RECORD_VERSION,
            key: action.key(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            compiler: action.compiler.clone(),
            function: function.chars().take(FUNCTION_LIMIT).collect(),
            parts: action.parts().into_iter().map(|(name, digest)| (name.to_owned(), digest)).collect(),
        };
        let record_path = self.record_path(&record.key);
        let json =
            serde_json::to_vec(&record).map_err(io::Error::from).map_err(WriteError::at(&record_path))?;
        for (path, bytes) in [(&self.blob_path(&record.digest), bytes), (&record_path, &json)] {
            if let Some(folder) = path.parent() {
                atomic::remove_unfinished(folder, ABANDONED);
            }
            atomic::write(path, bytes)?;
        }
        Ok(record.digest)
    }

    fn record(&self, key: &ActionKey, path: &Path) -> Result<Record, Miss> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Miss::Absent { folder: self.folder.clone() },
            _ => Miss::RecordUnreadable { path: path.into(), cause: error.to_string() },
        };
        let damaged = |cause: String| Miss::RecordDamaged { path: path.into(), cause };
        let json = content::read_limited(path, RECORD_LIMIT).map_err(unreadable)?;
        let record: Record = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        if record.version != RECORD_VERSION {
            let (found, known) = (record.version, RECORD_VERSION);
            return Err(Miss::RecordVersion { path: path.into(), found, known });
        }
        if record.key != *key {
            return Err(damaged(format!("it is the record of {}", record.key)));
        }
        Ok(record)
    }

    fn record_path(&self, key: &ActionKey) -> PathBuf {
        self.folder.join("actions-v1").join(key.0.short(2)).join(format!("{key}.json"))
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs-v1").join(digest.short(2)).join(digest.to_string())
    }
}

/// Removes a damaged file. Where that fails, the file stays a miss.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Model;

    fn action(program: &str) -> Action {
        Action {
            program: program.into(),
            compiler: "3.13.0".into(),
            model: Model::Hal,
            flags: vec![],
            device: "cuda".into(),
            cpu: None,
            donation: [].into(),
            debug: false,
        }
    }

    struct Fixture {
        folder: tempfile::TempDir,
        store: Store,
        key: ActionKey,
    }

    /// A store that holds one program.
    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("cache"));
        store.put(&action("p"), "forward", b"vmfb").unwrap();
        Fixture { folder, store, key: action("p").key() }
    }

    impl Fixture {
        fn record_path(&self) -> PathBuf {
            self.store.record_path(&self.key)
        }

        fn blob_path(&self) -> PathBuf {
            self.store.blob_path(&Digest::of(b"vmfb"))
        }

        fn miss(&self) -> Miss {
            match self.store.get(&self.key) {
                Lookup::Miss(miss) => miss,
                Lookup::Hit { .. } => panic!("it should miss"),
            }
        }

        fn message(&self) -> String {
            let path = self.folder.path().to_string_lossy().into_owned();
            self.miss().to_string().replace(&path, "~")
        }

        /// Asserts that the next `put` repairs what was wrong.
        fn assert_repaired(&self) {
            self.store.put(&action("p"), "forward", b"vmfb").unwrap();
            assert!(matches!(self.store.get(&self.key), Lookup::Hit { .. }));
        }
    }

    #[test]
    fn what_was_put_is_got() {
        let fixture = fixture();
        let Lookup::Hit { bytes, entry } = fixture.store.get(&fixture.key) else { panic!("it should hit") };
        assert_eq!(bytes, b"vmfb");
        assert_eq!(entry.digest, Digest::of(b"vmfb"));
        assert_eq!((entry.size, &*entry.compiler, &*entry.function), (4, "3.13.0", "forward"));
        for (name, digest) in action("p").parts() {
            assert_eq!(entry.parts[name], digest);
        }
    }

    #[test]
    fn the_tree_is_the_drawn_one() {
        let Fixture { folder, key, .. } = fixture();
        let (key, digest) = (key.to_string(), Digest::of(b"vmfb").to_string());
        let cache = folder.path().join("cache");
        assert!(cache.join("actions-v1").join(&key[..2]).join(key + ".json").is_file());
        assert!(cache.join("blobs-v1").join(&digest[..2]).join(digest).is_file());
    }

    #[test]
    fn an_unknown_key_is_an_ordinary_miss() {
        let fixture = Fixture { key: action("q").key(), ..fixture() };
        assert!(!fixture.miss().is_trouble());
        insta::assert_snapshot!(fixture.message(), @"~/cache does not have it");
    }

    #[test]
    fn equal_programs_are_one_blob() {
        let fixture = fixture();
        fixture.store.put(&action("q"), "backward", b"vmfb").unwrap();
        let shard = fixture.blob_path().parent().unwrap().to_owned();
        assert_eq!(fs::read_dir(shard).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_blob_misses_and_goes() {
        for damaged in [&b"vmf"[..], b"VMFB", b"", b"vmfb and more"] {
            let fixture = fixture();
            fs::write(fixture.blob_path(), damaged).unwrap();
            let miss = fixture.miss();
            assert!(matches!(miss, Miss::ContentSize { .. } | Miss::ContentDigest { .. }), "{miss:?}");
            assert!(!fixture.blob_path().exists());
            assert!(!fixture.record_path().exists());
            assert!(!fixture.miss().is_trouble());
            fixture.assert_repaired();
        }
    }

    #[test]
    fn a_missing_blob_misses_and_its_record_goes() {
        let fixture = fixture();
        fs::remove_file(fixture.blob_path()).unwrap();
        assert_eq!(fixture.miss(), Miss::ContentMissing { path: fixture.blob_path() });
        assert!(!fixture.record_path().exists());
        fixture.assert_repaired();
    }

    #[test]
    fn a_damaged_record_misses_and_goes() {
        let whole = fs::read_to_string(fixture().record_path()).unwrap();
        for damaged in [&whole[..whole.len() / 2], "", "[]", "\u{0}"] {
            let fixture = fixture();
            fs::write(fixture.record_path(), damaged).unwrap();
            assert!(matches!(fixture.miss(), Miss::RecordDamaged { .. }));
            assert!(!fixture.record_path().exists());
            assert!(fixture.blob_path().exists(), "another action may need it");
            fixture.assert_repaired();
        }
    }

    #[test]
    fn a_record_of_another_key_misses() {
        let fixture = fixture();
        let other = action("q");
        fixture.store.put(&other, "backward", b"other").unwrap();
        fs::copy(fixture.store.record_path(&other.key()), fixture.record_path()).unwrap();
        let (key, other) = (fixture.key.to_string(), other.key().to_string());
        let message = fixture.message().replace(&key, "KEY").replace(&other, "OTHER");
        insta::assert_snapshot!(message.replace(&key[..2], "KE"), @"~/cache/actions-v1/KE/KEY.json is damaged: it is the record of OTHER");
        fixture.assert_repaired();
    }

    #[test]
    fn a_record_of_another_version_misses() {
        let fixture = fixture();
        let json = fs::read_to_string(fixture.record_path()).unwrap();
        fs::write(fixture.record_path(), json.replace("\"version\":1", "\"version\":9")).unwrap();
        let miss = fixture.miss();
        assert_eq!(miss, Miss::RecordVersion { path: fixture.record_path(), found: 9, known: 1 });
        fixture.assert_repaired();
    }

    #[test]
    fn a_record_that_cannot_be_read_misses_and_stays() {
        let fixture = fixture();
        fs::remove_file(fixture.record_path()).unwrap();
        fs::create_dir(fixture.record_path()).unwrap();
        assert!(matches!(fixture.miss(), Miss::RecordUnreadable { .. }));
        assert!(fixture.record_path().exists());
    }

    #[test]
    fn a_store_that_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        fs::write(&cache, b"a file in the way").unwrap();
        let error = Store::new(&cache).put(&action("p"), "forward", b"vmfb").unwrap_err();
        assert!(error.path.starts_with(&cache));
        assert_eq!(fs::read(&cache).unwrap(), b"a file in the way");
    }

    #[test]
    fn long_function_names_are_cut() {
        let fixture = fixture();
        fixture.store.put(&action("p"), &"é".repeat(100_000), b"vmfb").unwrap();
        assert!(matches!(fixture.store.get(&fixture.key), Lookup::Hit { .. }));
    }
}
