//! The user's store of compiled programs, shared by all projects.
//!
//! ```text
//! <cache>/
//! ├── claims-v1/              claims, by the key of the action
//! │   └── 3f/
//! │       └── 3f9a…c2         a [`SignedClaim`]; its modification time is its last use
//! ├── blobs-v2/               programs and VMFBs by SHA-256, compressed
//! │   └── b7/
//! │       └── b7e0…41.zst
//! ├── locks-v1/               held while an action is compiled
//! │   └── 3f9a…c2
//! ├── lookups-v1.json         hit statistics
//! └── quarantine-v1/          claims of programs that failed an audit
//!     └── 3f9a…c2-b7e0…
//! ```
//!
//! A bucket's version is in its folder's name: a Sheaf with another format uses another folder, and both coexist. `put`
//! writes the blobs before the claim, so a claim without its blobs means damage, or a collection by another process.
//! Equal blobs of different actions are one file.
//!
//! Every file is written atomically, and only single compilation relies on locks: on a network file system without them
//! an action may be compiled twice, and the first result is kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::blobs::Blobs;
use crate::claim::{CLAIM_LIMIT, CLAIM_VERSION, Claim, ClaimError, SignedClaim};
use crate::files;
use sheaf_artifacts::ActionKey;
use sheaf_artifacts::content;
use sheaf_artifacts::{Lookup, Miss};
use sheaf_foundation::atomic::{self, WriteError};

/// Minimum interval between updates of an entry's last use, each a write.
const NOTED: Duration = Duration::from_secs(60 * 60);

/// Maximum number of times that a lock may be lost to another process between waiting and getting it. A file system
/// that gives a file another inode number each time has no usable locks.
const TURNS: usize = 100;

/// Maximum wait for another process that compiles the same action. Longer than almost any compilation: a process that
/// is stopped or hangs must not block others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Interval at which a lock is polled meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// The content-addressed store in the user's cache folder.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    patience: Duration,
    pub(crate) blobs: Blobs,
}

/// An entry of a listing: its claim is parsed but not verified, and its blobs are not checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The claim.
    pub signed: SignedClaim,
    /// Time of its last use, to the hour.
    pub used: SystemTime,
    /// Size of the claim on disk, in bytes.
    pub bytes: u64,
}

/// An exclusive lock, such as that of an action being compiled; not exclusive if the file system has no locks.
#[derive(Debug)]
pub struct Exclusive {
    /// Dropping the file releases the lock.
    _file: File,
    path: PathBuf,
}

/// Progress of waiting for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Another process has the lock.
    Begun,
    /// Another process still has it; no longer waiting.
    GivenUp,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        // Waiting processes have the file open, find that it is gone, and create another.
        let _ = fs::remove_file(&self.path);
    }
}

impl Store {
    /// The store in the cache folder `folder`, created by the first [`put`](Self::put).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { blobs: Blobs::new(folder.join("blobs-v2")), folder, patience: PATIENCE }
    }

    /// The same store with another maximum wait.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The store's path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The compiled program with this key, its digest checked. A damaged file is removed.
    pub fn get(&self, key: &ActionKey) -> Lookup<SignedClaim> {
        let path = self.claim_path(key);
        let signed = match self.claim(key) {
            Ok(signed) => signed,
            Err(miss) => {
                if miss.is_damage() {
                    remove(&path);
                }
                return Lookup::Miss(miss);
            }
        };
        match self.blobs.read(&signed.claim.vmfb) {
            Ok(bytes) => {
                note_use(&path);
                Lookup::Hit { bytes, entry: signed }
            }
            Err(miss) => {
                if miss.is_damage() {
                    self.blobs.remove(&signed.claim.vmfb.digest);
                    remove(&path);
                }
                Lookup::Miss(miss)
            }
        }
    }

    /// The source program of a claim.
    pub fn program(&self, claim: &Claim) -> Result<Vec<u8>, Miss> {
        self.blobs.read(&claim.program)
    }

    /// The compiled program of a claim.
    pub fn vmfb(&self, claim: &Claim) -> Result<Vec<u8>, Miss> {
        self.blobs.read(&claim.vmfb)
    }

    /// Stores a claim with its program and VMFB, whose digests must match; see [`SignedClaim::new`].
    ///
    /// An error leaves the store unchanged and must not fail the build.
    pub fn put(&self, signed: &SignedClaim, program: &[u8], vmfb: &[u8]) -> Result<(), WriteError> {
        let mut written = Vec::new();
        let mut write = || {
            for (blob, bytes) in [(&signed.claim.program, program), (&signed.claim.vmfb, vmfb)] {
                if self.blobs.write(blob, bytes)? {
                    written.push(blob.digest);
                }
            }
            self.put_claim(signed)
        };
        let result = write();
        if result.is_err() {
            written.iter().for_each(|digest| self.blobs.remove(digest));
        }
        result
    }

    /// Writes a claim, unless the same signer has made the same claim. A file that another machine may have seen is not
    /// replaced needlessly: on file systems that cache sizes, that machine would see the new one truncated.
    fn put_claim(&self, signed: &SignedClaim) -> Result<(), WriteError> {
        let path = self.claim_path(&signed.claim.key);
        path.parent().into_iter().for_each(|shard| atomic::remove_unfinished(shard, files::ABANDONED));
        if atomic::create(&path, signed.text())? {
            return Ok(());
        }
        let said = |kept: SignedClaim| {
            let (kept_claim, claim) = (&kept.claim, &signed.claim);
            kept.signer == signed.signer
                && (&kept_claim.vmfb, &kept_claim.program) == (&claim.vmfb, &claim.program)
        };
        if self.claim(&signed.claim.key).is_ok_and(said) {
            Ok(())
        } else {
            atomic::write(&path, signed.text())
        }
    }

    /// Waits until no other process compiles the action, for at most two minutes. `report` is called when waiting
    /// begins and when the time is up. `None` then, and if there are no locks or the folder cannot be written: an
    /// action may be compiled twice, and both write the same entry, each of them whole.
    pub fn exclusive(&self, key: &ActionKey, report: impl FnMut(Wait)) -> Option<Exclusive> {
        self.lock(&key.to_string(), report)
    }

    /// Waits for the lock of this name.
    pub(crate) fn lock(&self, name: &str, mut report: impl FnMut(Wait)) -> Option<Exclusive> {
        let folder = self.folder.join("locks-v1");
        fs::create_dir_all(&folder).ok()?;
        let path = folder.join(name);
        let mut began = None;
        for _ in 0..TURNS {
            let file = File::options().create(true).truncate(false).write(true).open(&path).ok()?;
            loop {
                match file.try_lock() {
                    Ok(()) => break,
                    Err(fs::TryLockError::WouldBlock) => {
                        let began = *began.get_or_insert_with(|| {
                            report(Wait::Begun);
                            Instant::now()
                        });
                        if began.elapsed() >= self.patience {
                            report(Wait::GivenUp);
                            return None;
                        }
                        std::thread::sleep(PAUSE);
                    }
                    Err(fs::TryLockError::Error(_)) => return None,
                }
            }
            // Its previous holder removed the file, and the next one created another.
            if is_at(&file, &path) {
                return Some(Exclusive { _file: file, path });
            }
        }
        None
    }

    /// All entries of the store, unordered. Unreadable ones are left out; [`verify`](Self::verify) reports them.
    pub fn list(&self) -> Vec<Listed> {
        files::map(&self.claims(), |path, metadata| {
            let key = self.key_at(path)?;
            let text = content::read_limited(path, CLAIM_LIMIT).ok()?;
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let signed = SignedClaim::parse(&text).ok().filter(|signed| signed.claim.key == key)?;
            Some(Listed { signed, used, bytes: metadata.len() })
        })
    }

    /// Quarantines an entry: it is not used again, from here or from a remote, while its file lies in quarantine.
    pub fn quarantine(&self, signed: &SignedClaim) -> Result<(), WriteError> {
        atomic::write(&self.quarantine_path(&signed.claim), signed.text())?;
        self.remove(&signed.claim.key);
        Ok(())
    }

    /// True if this program is quarantined; another one for the same key may be good.
    pub fn is_quarantined(&self, claim: &Claim) -> bool {
        self.quarantine_path(claim).exists()
    }

    fn quarantine_path(&self, claim: &Claim) -> PathBuf {
        self.folder.join("quarantine-v1").join(format!("{}-{}", claim.key, claim.vmfb.digest.short(16)))
    }

    /// Removes an entry; its blobs remain until collected.
    pub fn remove(&self, key: &ActionKey) {
        remove(&self.claim_path(key));
    }

    /// The claim for a key, its signature verified if present.
    pub fn claim(&self, key: &ActionKey) -> Result<SignedClaim, Miss> {
        let path = self.claim_path(key);
        let text = content::read_limited(&path, CLAIM_LIMIT).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Miss::Absent { folder: self.folder.clone() }
            }
            _ => Miss::RecordUnreadable { path: path.clone(), cause: error.to_string() },
        })?;
        let damaged = |cause: String| Miss::RecordDamaged { path: path.clone(), cause };
        let signed = SignedClaim::read(&text).map_err(|error| match error {
            ClaimError::Version { found, .. } => {
                Miss::RecordVersion { path: path.clone(), found, known: CLAIM_VERSION }
            }
            other => damaged(other.to_string()),
        })?;
        if signed.claim.key != *key {
            return Err(damaged(format!("it is the claim for {}", signed.claim.key)));
        }
        Ok(signed)
    }

    pub(crate) fn claims(&self) -> PathBuf {
        self.folder.join("claims-v1")
    }

    pub(crate) fn claim_path(&self, key: &ActionKey) -> PathBuf {
        self.claims().join(key.0.short(2)).join(key.to_string())
    }
}

/// True if an open file has this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(open) = file.metadata() else { return true };
    match fs::metadata(path) {
        Ok(named) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// On other systems, a file cannot be created in the place of an open one.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// Removes a damaged file. On failure, the file remains a miss.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Records the use of an entry now, unless the disk is read-only.
fn note_use(path: &Path) {
    let Ok(file) = File::options().write(true).open(path) else { return };
    let noted = file.metadata().and_then(|metadata| metadata.modified());
    if noted.is_ok_and(|noted| noted.elapsed().is_ok_and(|age| age < NOTED)) {
        return;
    }
    let _ = file.set_modified(SystemTime::now());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Compilation;
    use crate::example::example as action;
    use sheaf_foundation::Digest;

    fn put(store: &Store, program: &str, function: &str, vmfb: &[u8]) -> Result<(), WriteError> {
        let compilation = Compilation { function: function.into(), ..Compilation::default() };
        let claim = Claim::new(&action(program), program.as_bytes(), vmfb, compilation);
        store.put(&SignedClaim::new(claim, None), program.as_bytes(), vmfb)
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
        put(&store, "p", "forward", b"vmfb").unwrap();
        Fixture { folder, store, key: action("p").key() }
    }

    impl Fixture {
        fn claim_path(&self) -> PathBuf {
            self.store.claim_path(&self.key)
        }

        fn blob_path(&self) -> PathBuf {
            self.store.blobs.path(&Digest::of(b"vmfb"))
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

        /// Asserts that the next `put` repairs the damage.
        fn assert_repaired(&self) {
            put(&self.store, "p", "forward", b"vmfb").unwrap();
            assert!(matches!(self.store.get(&self.key), Lookup::Hit { .. }));
        }
    }

    #[test]
    fn who_holds_a_lock_too_long_is_passed_by() {
        let Fixture { folder: _folder, store, key } = fixture();
        let held = store.exclusive(&key, |_| panic!("it is free")).unwrap();
        let impatient = store.clone().with_patience(Duration::from_millis(100));
        let mut report = Vec::new();
        assert!(impatient.exclusive(&key, |wait| report.push(wait)).is_none());
        assert_eq!(report, [Wait::Begun, Wait::GivenUp]);
        put(&impatient, "p", "forward", b"vmfb").unwrap();
        put(&store, "p", "forward", b"vmfb").unwrap();
        drop(held);
        assert!(impatient.exclusive(&key, |_| panic!("it is free")).is_some());
        assert!(matches!(store.get(&key), Lookup::Hit { .. }));
    }

    #[test]
    fn what_was_put_is_got() {
        let fixture = fixture();
        let Lookup::Hit { bytes, entry } = fixture.store.get(&fixture.key) else { panic!("it should hit") };
        assert_eq!(bytes, b"vmfb");
        assert_eq!(entry.claim.vmfb.digest, Digest::of(b"vmfb"));
        let Claim { compiler, function, .. } = &entry.claim;
        assert_eq!((&**compiler, &**function), ("3.13.0", "forward"));
        assert_eq!(fixture.store.program(&entry.claim), Ok(b"p".to_vec()));
        assert_eq!(fixture.store.list().len(), 1);
    }

    #[test]
    fn the_tree_is_the_drawn_one() {
        let Fixture { folder, key, .. } = fixture();
        let (key, digest) = (key.to_string(), Digest::of(b"vmfb").to_string());
        let cache = folder.path().join("cache");
        assert!(cache.join("claims-v1").join(&key[..2]).join(key).is_file());
        assert!(cache.join("blobs-v2").join(&digest[..2]).join(digest + ".zst").is_file());
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
        put(&fixture.store, "q", "backward", b"vmfb").unwrap();
        let shard = fixture.blob_path().parent().unwrap().to_owned();
        assert_eq!(fs::read_dir(shard).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_blob_misses_and_goes() {
        let packed = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let whole = packed(b"vmfb");
        let cut = whole[..whole.len() - 1].to_vec();
        let bomb = packed(&vec![0; 100_000_000]);
        let damages =
            [packed(b"vmf"), packed(b"VMFB"), packed(b"vmfb and more"), b"raw".into(), vec![], cut, bomb];
        for damaged in damages {
            let fixture = fixture();
            fs::write(fixture.blob_path(), damaged).unwrap();
            let miss = fixture.miss();
            assert!(miss.is_damage(), "{miss:?}");
            assert!(!fixture.blob_path().exists());
            assert!(!fixture.claim_path().exists());
            assert!(!fixture.miss().is_trouble());
            fixture.assert_repaired();
        }
    }

    #[test]
    fn a_missing_blob_misses_and_its_record_goes() {
        let fixture = fixture();
        fs::remove_file(fixture.blob_path()).unwrap();
        assert_eq!(fixture.miss(), Miss::ContentMissing { path: fixture.blob_path() });
        assert!(!fixture.claim_path().exists());
        fixture.assert_repaired();
    }

    #[test]
    fn a_damaged_record_misses_and_goes() {
        let whole = fs::read_to_string(fixture().claim_path()).unwrap();
        for damaged in [&whole[..whole.len() / 2], "", "[]", "\u{0}"] {
            let fixture = fixture();
            fs::write(fixture.claim_path(), damaged).unwrap();
            assert!(matches!(fixture.miss(), Miss::RecordDamaged { .. }));
            assert!(!fixture.claim_path().exists());
            assert!(fixture.blob_path().exists(), "another action may need it");
            fixture.assert_repaired();
        }
    }

    #[test]
    fn a_record_of_another_key_misses() {
        let fixture = fixture();
        let other = action("q");
        put(&fixture.store, "q", "backward", b"other").unwrap();
        fs::copy(fixture.store.claim_path(&other.key()), fixture.claim_path()).unwrap();
        let (key, other) = (fixture.key.to_string(), other.key().to_string());
        let message = fixture.message().replace(&key, "KEY").replace(&other, "OTHER");
        insta::assert_snapshot!(message.replace(&key[..2], "KE"), @"~/cache/claims-v1/KE/KEY is damaged: it is the claim for OTHER");
        fixture.assert_repaired();
    }

    #[test]
    fn a_record_of_another_version_misses() {
        let fixture = fixture();
        let json = fs::read_to_string(fixture.claim_path()).unwrap();
        fs::write(fixture.claim_path(), json.replace("\"version\":1", "\"version\":9")).unwrap();
        let miss = fixture.miss();
        assert_eq!(miss, Miss::RecordVersion { path: fixture.claim_path(), found: 9, known: 1 });
        fixture.assert_repaired();
    }

    #[test]
    fn a_record_that_cannot_be_read_misses_and_stays() {
        let fixture = fixture();
        fs::remove_file(fixture.claim_path()).unwrap();
        fs::create_dir(fixture.claim_path()).unwrap();
        assert!(matches!(fixture.miss(), Miss::RecordUnreadable { .. }));
        assert!(fixture.claim_path().exists());
    }

    #[test]
    fn a_store_that_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        fs::write(&cache, b"a file in the way").unwrap();
        let error = put(&Store::new(&cache), "p", "forward", b"vmfb").unwrap_err();
        assert!(error.path.starts_with(&cache));
        assert_eq!(fs::read(&cache).unwrap(), b"a file in the way");
    }

    #[test]
    fn long_function_names_are_cut() {
        let fixture = fixture();
        put(&fixture.store, "p", &"é".repeat(100_000), b"vmfb").unwrap();
        assert!(matches!(fixture.store.get(&fixture.key), Lookup::Hit { .. }));
    }
}
