//! Eviction of the store down to a size limit: entries that save the fewest seconds per byte and were least recently
//! used go first.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files;
use crate::store::{Listed, Store};
use sheaf_artifacts::ActionKey;
use sheaf_artifacts::{Lookup, Miss};
use sheaf_foundation::Digest;

/// Size of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of programs.
    pub entries: usize,
    /// Size on disk, in bytes.
    pub bytes: u64,
}

/// Result of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Removed entries.
    pub removed: Size,
    /// Remaining entries.
    pub kept: Size,
    /// The first file that could not be removed, with the error.
    pub stuck: Option<(PathBuf, String)>,
}

impl Collected {
    /// Removes files with their sizes, all entries or all blobs, and returns for each true if it remains.
    fn remove(&mut self, files: &[(PathBuf, u64)], are_entries: bool) -> Vec<bool> {
        let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
        let failures = files::remove(&paths);
        let each = files.iter().zip(failures).map(|((path, bytes), failure)| {
            let size = if failure.is_some() { &mut self.kept } else { &mut self.removed };
            size.entries += usize::from(are_entries);
            size.bytes += bytes;
            let stays = failure.is_some();
            if let (Some(failure), None) = (failure, &self.stuck) {
                self.stuck = Some((path.clone(), failure.to_string()));
            }
            stays
        });
        each.collect()
    }
}

/// A damaged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The entry.
    pub key: ActionKey,
    /// The damage.
    pub miss: Miss,
}

impl Store {
    /// The number of programs and their size on disk.
    pub fn size(&self) -> Size {
        let claims = files::map(&self.claims(), |path, metadata| self.key_at(path).map(|_| metadata.len()));
        let blobs = self.blobs.list();
        let bytes = claims.iter().sum::<u64>() + blobs.iter().map(|blob| blob.bytes).sum::<u64>();
        Size { entries: claims.len(), bytes }
    }

    /// Removes entries until the rest takes at most `cap` bytes, and blobs that no entry names.
    ///
    /// An entry's worth is the seconds saved per byte, halved for each day since its last use. Blobs of the last hour
    /// are kept, since their claims may be about to be written.
    pub fn collect(&self, cap: u64) -> Collected {
        let listed = self.blobs.list();
        let blobs: HashMap<Digest, u64> = listed.iter().map(|blob| (blob.digest, blob.bytes)).collect();
        let now = SystemTime::now();
        let mut entries = self.list();
        let worth = |entry: &Listed| {
            let idle = now.duration_since(entry.used).unwrap_or_default();
            entry.signed.claim.worth() * (-idle.as_secs_f64() / DAY.as_secs_f64()).exp2()
        };
        // Most valuable last, to be popped first.
        entries.sort_by(|a, b| worth(a).total_cmp(&worth(b)));
        let mut collected = Collected::default();
        let kept = &mut collected.kept;
        let mut named: HashSet<Digest> = HashSet::new();
        let digests = |entry: &Listed| [entry.signed.claim.vmfb.digest, entry.signed.claim.program.digest];
        let blob_bytes = |entry: &Listed, named: &HashSet<Digest>| {
            let new = HashSet::from(digests(entry)).into_iter().filter(|digest| !named.contains(digest));
            new.filter_map(|digest| blobs.get(&digest)).sum::<u64>()
        };
        while let Some(entry) = entries.pop() {
            let bytes = entry.bytes + blob_bytes(&entry, &named);
            if kept.bytes + bytes > cap {
                // A smaller entry of less worth may fit, but eviction strictly follows the order of worth.
                entries.push(entry);
                break;
            }
            named.extend(digests(&entry));
            kept.bytes += bytes;
            kept.entries += 1;
        }
        // Claims first: the blobs of a claim that cannot be removed are kept.
        let claims: Vec<_> =
            entries.iter().map(|e| (self.claim_path(&e.signed.claim.key), e.bytes)).collect();
        let mut ours: HashSet<Digest> = HashSet::new();
        for (entry, stays) in entries.iter().zip(collected.remove(&claims, true)) {
            if stays {
                collected.kept.bytes += blob_bytes(entry, &named);
                named.extend(digests(entry));
            } else {
                ours.extend(digests(entry));
            }
        }
        let unnamed = listed.iter().filter(|blob| {
            !named.contains(&blob.digest) && (ours.contains(&blob.digest) || blob.is_settled())
        });
        let unnamed: Vec<_> = unnamed.map(|blob| (self.blobs.path(&blob.digest), blob.bytes)).collect();
        collected.remove(&unnamed, false);
        files::tidy(&self.claims());
        self.blobs.tidy();
        collected
    }

    /// Removes everything, including files that are not entries.
    pub fn clear(&self) -> Collected {
        let mut collected = Collected::default();
        // Claims before their blobs.
        let (entries, others): (Vec<_>, Vec<_>) =
            files::all(&self.claims()).into_iter().partition(|(path, _)| self.key_at(path).is_some());
        collected.remove(&entries, true);
        collected.remove(&others, false);
        collected.remove(&self.blobs.files(), false);
        collected
    }

    /// The key of the entry whose claim has this path; files with other names are not entries.
    pub(crate) fn key_at(&self, path: &Path) -> Option<ActionKey> {
        let key = path.file_name()?.to_str()?.parse().ok()?;
        (self.claim_path(&key) == path).then_some(key)
    }

    /// True if a collection is due: at least `many` programs were `added` in this run, or a day has passed since the
    /// last check. Returning true restarts the day.
    pub fn is_due(&self, many: usize, added: usize) -> bool {
        let mark = self.path().join("collected");
        let last = std::fs::metadata(&mark).and_then(|metadata| metadata.modified());
        let due = added >= many || last.is_ok_and(|last| last.elapsed().is_ok_and(|age| age >= DAY));
        // Nothing to collect in the first run.
        if due || !mark.exists() {
            let _ = std::fs::write(&mark, b"");
        }
        due
    }

    /// Reads every entry completely, and removes damaged ones.
    pub fn verify(&self) -> Vec<Fault> {
        let keys = files::map(&self.claims(), |path, _| self.key_at(path));
        let mut faults = Vec::new();
        for key in keys {
            let program = self.claim(&key).and_then(|signed| self.program(&signed.claim));
            if let Err(miss) = program {
                if let (Ok(signed), true) = (self.claim(&key), miss.is_damage()) {
                    self.blobs.remove(&signed.claim.program.digest);
                    // Without its claim, the other blob would never be checked, and an existing blob is not rewritten.
                    if self.vmfb(&signed.claim).is_err_and(|miss| miss.is_damage()) {
                        self.blobs.remove(&signed.claim.vmfb.digest);
                    }
                }
                if miss.is_damage() {
                    self.remove(&key);
                }
                faults.push(Fault { key, miss });
                continue;
            }
            if let Lookup::Miss(miss) = self.get(&key) {
                faults.push(Fault { key, miss });
            }
        }
        faults
    }
}

/// Half-life of an entry's worth since its last use.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Claim, Compilation, SignedClaim};
    use crate::example::example;

    fn put(store: &Store, program: &str, seconds: f64, vmfb: &[u8]) -> ActionKey {
        let action = example(program);
        let compilation = Compilation { seconds, ..Compilation::default() };
        let claim = Claim::new(&action, program.as_bytes(), vmfb, compilation);
        store.put(&SignedClaim::new(claim, None), program.as_bytes(), vmfb).unwrap();
        action.key()
    }

    /// Incompressible bytes.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("cache"));
        (folder, store)
    }

    #[test]
    fn what_saves_least_for_its_bytes_goes_first() {
        let (_folder, store) = store();
        let quick = put(&store, "quick", 0.1, &noise(1, 20_000));
        let slow = put(&store, "slow", 10.0, &noise(2, 20_000));
        let large = put(&store, "large", 1.0, &noise(3, 60_000));
        assert_eq!(store.size().entries, 3);
        let Collected { removed, kept, stuck } = store.collect(30_000);
        assert_eq!(stuck, None);
        assert_eq!((removed.entries, kept.entries), (2, 1));
        assert!(kept.bytes > 20_000 && kept.bytes < 22_000, "{kept:?}");
        assert_eq!(store.size(), kept);
        assert!(removed.bytes > 80_000);
        assert!(matches!(store.get(&slow), Lookup::Hit { .. }));
        for gone in [quick, large] {
            assert!(matches!(store.get(&gone), Lookup::Miss(miss) if !miss.is_trouble()));
        }
    }

    #[test]
    fn what_was_not_used_for_long_goes_before_what_was() {
        let (_folder, store) = store();
        let old = put(&store, "old", 2.0, &noise(1, 20_000));
        let new = put(&store, "new", 1.0, &noise(2, 20_000));
        let file = std::fs::File::options().write(true).open(store.claim_path(&old)).unwrap();
        file.set_modified(SystemTime::now() - 3 * DAY).unwrap();
        store.collect(30_000);
        assert!(store.claim(&old).is_err());
        // A new use would have kept it.
        let older = std::fs::File::options().write(true).open(store.claim_path(&new)).unwrap();
        older.set_modified(SystemTime::now() - 3 * DAY).unwrap();
        assert!(matches!(store.get(&new), Lookup::Hit { .. }));
        assert!(store.list()[0].used.elapsed().unwrap() < DAY);
    }

    #[test]
    fn blobs_of_two_entries_stay_with_the_other() {
        let (_folder, store) = store();
        let vmfb = noise(1, 10_000);
        let a = put(&store, "a", 1.0, &vmfb);
        let b = put(&store, "b", 1.0, &vmfb);
        store.remove(&a);
        store.collect(u64::MAX);
        assert!(matches!(store.get(&b), Lookup::Hit { .. }));
        assert_eq!(store.clear().kept, Size::default());
        assert_eq!(store.size(), Size::default());
    }

    #[test]
    fn what_is_no_entry_is_not_counted_and_goes_in_the_end() {
        let (_folder, store) = store();
        let key = put(&store, "p", 1.0, b"vmfb");
        let shard = store.claim_path(&key).parent().unwrap().to_owned();
        let claim = std::fs::read(store.claim_path(&key)).unwrap();
        let strays = [".unfinished-new", ".unfinished-old", "junk", &key.to_string().to_uppercase()];
        for name in strays {
            std::fs::write(shard.join(name), &claim).unwrap();
        }
        let leave_behind = || {
            let file = std::fs::File::create(shard.join(".unfinished-old")).unwrap();
            file.set_modified(SystemTime::now() - 2 * DAY).unwrap();
        };
        leave_behind();
        assert_eq!((store.size().entries, store.list().len(), store.verify()), (1, 1, vec![]));

        // Unfinished files of killed processes are removed once old.
        let collected = store.collect(u64::MAX);
        assert_eq!((collected.kept, collected.removed), (store.size(), Size::default()));
        assert!(!shard.join(".unfinished-old").exists() && shard.join(".unfinished-new").exists());
        leave_behind();
        put(&store, "p", 1.0, b"vmfb");
        assert!(!shard.join(".unfinished-old").exists());

        let cleared = store.clear();
        assert_eq!((cleared.removed.entries, cleared.kept, cleared.stuck), (1, Size::default(), None));
        assert_eq!(std::fs::read_dir(shard).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_removed_is_said_and_counted_as_there() {
        let (_folder, store) = store();
        put(&store, "p", 1.0, b"vmfb");
        let before = store.size();
        let other = put(&store, "q", 1.0, b"other vmfb");
        // A folder, which cannot be removed as a file, stands for a file that cannot be removed.
        let mut collected = Collected::default();
        let folder = store.claims();
        let stays = collected.remove(&[(folder.clone(), 5), (store.claim_path(&other), 7)], true);
        assert_eq!(stays, [true, false]);
        assert_eq!(collected.kept, Size { entries: 1, bytes: 5 });
        assert_eq!(collected.removed, Size { entries: 1, bytes: 7 });
        assert_eq!(collected.stuck.unwrap().0, folder);
        // A file removed by another process counts as removed.
        let mut collected = Collected::default();
        assert_eq!(collected.remove(&[(store.claim_path(&other), 7)], true), [false]);
        store.collect(u64::MAX);
        assert_eq!(store.size().entries, before.entries);
    }

    #[test]
    fn a_blob_that_is_about_to_be_named_again_stays() {
        let (_folder, store) = store();
        let first = put(&store, "a", 1.0, b"vmfb");
        let claim = store.claim(&first).unwrap().claim;
        let path = store.blobs.path(&claim.vmfb.digest);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        store.remove(&first);
        // Another process writes the same blob, and collects before writing its claim.
        assert!(!store.blobs.write(&claim.vmfb, b"vmfb").unwrap());
        store.collect(u64::MAX);
        assert!(path.exists());
    }

    #[test]
    fn verification_finds_and_removes_what_is_damaged() {
        let (_folder, store) = store();
        let good = put(&store, "good", 1.0, b"good vmfb");
        let bad = put(&store, "bad", 1.0, b"bad vmfb");
        let worse = put(&store, "worse", 1.0, b"worse vmfb");
        assert_eq!(store.verify(), []);
        let claim = |key| store.claim(key).unwrap().claim;
        std::fs::write(store.blobs.path(&claim(&bad).vmfb.digest), b"?").unwrap();
        std::fs::write(store.blobs.path(&claim(&worse).program.digest), b"?").unwrap();
        let mut faulty: Vec<_> = store.verify().into_iter().map(|fault| fault.key).collect();
        let mut expected = [bad, worse];
        faulty.sort();
        expected.sort();
        assert_eq!(faulty, expected);
        assert_eq!(store.verify(), []);
        assert!(matches!(store.get(&good), Lookup::Hit { .. }));
    }
}
