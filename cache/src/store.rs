//! The user's own store of compiled programs, shared by all projects.
//!
//! ```text
//! <cache>/
//! ├── claims-v1/              what has been compiled, by the key of the action
//! │   └── 3f/
//! │       └── 3f9a…c2         a [`SignedClaim`]; its time is that of its last use
//! ├── blobs-v2/               programs and VMFBs by their SHA-256, compressed
//! │   └── b7/
//! │       └── b7e0…41.zst
//! ├── locks-v1/               held while an action is compiled
//! │   └── 3f9a…c2
//! ├── lookups-v1.json         how often programs were there already
//! └── quarantine-v1/          claims of programs that an audit found to compute something else
//!     └── 3f9a…c2-b7e0…
//! ```
//!
//! A bucket's version is in its folder's name: a Sheaf that writes another format uses another folder, and both live
//! side by side. `put` writes the blobs before the claim, so that a claim without its blobs means damage, or that they
//! were collected by somebody else. Equal blobs of different actions are one file.
//!
//! Every file is written beside its place and renamed, and nothing relies on locks but that an action is compiled once:
//! on a network file system without them it may be compiled twice, and the first one stays.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::action::ActionKey;
use crate::atomic::{self, WriteError};
use crate::blobs::Blobs;
use crate::claim::{CLAIM_LIMIT, CLAIM_VERSION, Claim, ClaimError, SignedClaim};
use crate::content;
use crate::files;
use crate::miss::{Lookup, Miss};

/// A use is noted when the last one was noted this long ago: notes are writes.
const NOTED: Duration = Duration::from_secs(60 * 60);

/// How often a lock may go to somebody else between waiting and getting it. Where a file system gives a file another number
/// each time, it has no locks worth the name.
const TURNS: usize = 100;

/// How long is waited for another process that compiles the same. Longer than almost any compilation takes: one that was
/// stopped, or hangs, must not stop others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Interval at which a lock is tried meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// The content-addressed store in the user's cache folder.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    patience: Duration,
    pub(crate) blobs: Blobs,
}

/// An entry as a listing finds it: its claim has been read, not verified, and its blobs have not been looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The claim.
    pub signed: SignedClaim,
    /// When it was last used, to the hour.
    pub used: SystemTime,
    /// What the claim itself takes on the disk, in bytes.
    pub bytes: u64,
}

/// While this lives, nobody else has the lock, such as that of an action that is compiled, unless the file system has none.
#[derive(Debug)]
pub struct Exclusive {
    /// Dropping the file lets the next one in.
    _file: File,
    path: PathBuf,
}

/// Progress of waiting for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Another process has the lock.
    Begun,
    /// It still has it, and is waited for no longer.
    GivenUp,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        // Whoever waits has the file open, finds that it is gone, and makes another.
        let _ = fs::remove_file(&self.path);
    }
}

impl Store {
    /// The store in the cache folder `folder`, which is made at the first [`put`](Self::put).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { blobs: Blobs::new(folder.join("blobs-v2")), folder, patience: PATIENCE }
    }

    /// The same store, where nobody is waited for longer than this.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The compiled program with this key. The digest of the bytes has been checked. A file that turns out to be
    /// damaged is removed, so that it is in nobody's way.
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

    /// The program that a claim names, as it was compiled.
    pub fn program(&self, claim: &Claim) -> Result<Vec<u8>, Miss> {
        self.blobs.read(&claim.program)
    }

    /// The compiled program that a claim names.
    pub fn vmfb(&self, claim: &Claim) -> Result<Vec<u8>, Miss> {
        self.blobs.read(&claim.vmfb)
    }

    /// Stores a claim with what it speaks of, which must be of these digests; see [`SignedClaim::new`].
    ///
    /// An error leaves the store as it was, and the build need not care.
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

    /// Writes a claim down, unless the same signer has said the same. A file that another machine may have seen is not
    /// replaced without need: where file systems remember sizes, that machine would see the new one cut off.
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

    /// Waits until nobody else compiles the action, for two minutes. `told` learns that it takes time, and that the time is
    /// up. `None` then, and where there are no locks, or the folder cannot be written: an action may be compiled twice, and
    /// both write the same entry, each of them whole.
    pub fn exclusive(&self, key: &ActionKey, told: impl FnMut(Wait)) -> Option<Exclusive> {
        self.lock(&key.to_string(), told)
    }

    /// Waits for the lock of this name.
    pub(crate) fn lock(&self, name: &str, mut told: impl FnMut(Wait)) -> Option<Exclusive> {
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
                            told(Wait::Begun);
                            Instant::now()
                        });
                        if began.elapsed() >= self.patience {
                            told(Wait::GivenUp);
                            return None;
                        }
                        std::thread::sleep(PAUSE);
                    }
                    Err(fs::TryLockError::Error(_)) => return None,
                }
            }
            // Whoever had it before has removed the file, and the next one made another.
            if is_at(&file, &path) {
                return Some(Exclusive { _file: file, path });
            }
        }
        None
    }

    /// Everything in the store, in no order. What cannot be read is left out; [`verify`](Self::verify) tells of it.
    pub fn list(&self) -> Vec<Listed> {
        files::map(&self.claims(), |path, metadata| {
            let key = self.key_at(path)?;
            let text = content::read_limited(path, CLAIM_LIMIT).ok()?;
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let signed = SignedClaim::parse(&text).ok().filter(|signed| signed.claim.key == key)?;
            Some(Listed { signed, used, bytes: metadata.len() })
        })
    }

    /// Puts an entry away: it is not used again, from here or from a remote, as long as its file lies in quarantine.
    pub fn quarantine(&self, signed: &SignedClaim) -> Result<(), WriteError> {
        atomic::write(&self.quarantine_path(&signed.claim), signed.text())?;
        self.remove(&signed.claim.key);
        Ok(())
    }

    /// Whether this program was put away; another one for the same key may be good.
    pub fn is_quarantined(&self, claim: &Claim) -> bool {
        self.quarantine_path(claim).exists()
    }

    fn quarantine_path(&self, claim: &Claim) -> PathBuf {
        self.folder.join("quarantine-v1").join(format!("{}-{}", claim.key, claim.vmfb.digest.short(16)))
    }

    /// Removes an entry; its blobs stay until they are collected.
    pub fn remove(&self, key: &ActionKey) {
        remove(&self.claim_path(key));
    }

    /// The claim for a key, its signature verified if it has one.
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

/// Whether a file that is open has this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(open) = file.metadata() else { return true };
    match fs::metadata(path) {
        Ok(named) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Elsewhere nobody can make a file in the place of one that is open.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// Removes a damaged file. Where that fails, the file stays a miss.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Notes that an entry was used now. Where the disk is read-only it is not.
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
    use crate::action::example as action;
    use crate::claim::Compilation;
    use crate::digest::Digest;

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

        /// Asserts that the next `put` repairs what was wrong.
        fn assert_repaired(&self) {
            put(&self.store, "p", "forward", b"vmfb").unwrap();
            assert!(matches!(self.store.get(&self.key), Lookup::Hit { .. }));
        }
    }

    #[test]
    fn who_holds_a_lock_too_long_is_passed_by() {
        let Fixture { folder: _folder, store, key } = fixture();
        let held = store.exclusive(&key, |_| panic!("it is free")).unwrap();
        let beside = store.clone().with_patience(Duration::from_millis(100));
        let mut told = Vec::new();
        assert!(beside.exclusive(&key, |wait| told.push(wait)).is_none());
        assert_eq!(told, [Wait::Begun, Wait::GivenUp]);
        put(&beside, "p", "forward", b"vmfb").unwrap();
        put(&store, "p", "forward", b"vmfb").unwrap();
        drop(held);
        assert!(beside.exclusive(&key, |_| panic!("it is free")).is_some());
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
