//! Keeping the store within a size: what saves the fewest seconds for its bytes, and was not used for the longest time,
//! goes first.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use crate::action::ActionKey;
use crate::digest::Digest;
use crate::files;
use crate::miss::{Lookup, Miss};
use crate::store::{Listed, Store};

/// What is in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// How many programs.
    pub entries: usize,
    /// What they take on the disk, in bytes.
    pub bytes: u64,
}

/// What a collection removed and left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// What went.
    pub removed: Size,
    /// What stayed.
    pub kept: Size,
}

/// An entry that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The entry.
    pub key: ActionKey,
    /// What is wrong.
    pub miss: Miss,
}

impl Store {
    /// How many programs there are, and what they take on the disk.
    pub fn size(&self) -> Size {
        let claims = files::map(&self.claims(), |_, metadata| Some(metadata.len()));
        let blobs = self.blobs.list();
        let bytes = claims.iter().sum::<u64>() + blobs.iter().map(|blob| blob.bytes).sum::<u64>();
        Size { entries: claims.len(), bytes }
    }

    /// Removes entries until the rest takes at most `cap` bytes, and blobs that no entry names.
    ///
    /// An entry is worth the seconds that it saves for each of its bytes, halved for each day since its last use. Blobs of
    /// the last hour stay, since somebody may be about to write their claims.
    pub fn collect(&self, cap: u64) -> Collected {
        let listed = self.blobs.list();
        let blobs: HashMap<Digest, u64> = listed.iter().map(|blob| (blob.digest, blob.bytes)).collect();
        let now = SystemTime::now();
        let mut entries = self.list();
        let worth = |entry: &Listed| {
            let idle = now.duration_since(entry.used).unwrap_or_default();
            entry.signed.claim.worth() * (-idle.as_secs_f64() / DAY.as_secs_f64()).exp2()
        };
        // The most useful last, where they are taken from.
        entries.sort_by(|a, b| worth(a).total_cmp(&worth(b)));
        let mut kept = Size::default();
        let mut named: HashSet<Digest> = HashSet::new();
        while let Some(entry) = entries.pop() {
            let claim = &entry.signed.claim;
            let new = [claim.vmfb.digest, claim.program.digest].into_iter().filter(|d| !named.contains(d));
            let bytes = entry.bytes + new.filter_map(|digest| blobs.get(&digest)).sum::<u64>();
            if kept.bytes + bytes > cap {
                // A smaller one that is worth less would fit, but the order says what is missed least.
                entries.push(entry);
                break;
            }
            named.extend([claim.vmfb.digest, claim.program.digest]);
            kept.bytes += bytes;
            kept.entries += 1;
        }
        let mut removed =
            Size { entries: entries.len(), bytes: entries.iter().map(|entry| entry.bytes).sum() };
        let digests = |entry: &Listed| [entry.signed.claim.vmfb.digest, entry.signed.claim.program.digest];
        let ours: HashSet<Digest> = entries.iter().flat_map(digests).collect();
        let unnamed = listed.iter().filter(|blob| {
            !named.contains(&blob.digest) && (ours.contains(&blob.digest) || blob.is_settled())
        });
        let unnamed: Vec<_> = unnamed.inspect(|blob| removed.bytes += blob.bytes).collect();
        // Claims before what they name.
        let claims: Vec<_> = entries.iter().map(|entry| self.claim_path(&entry.signed.claim.key)).collect();
        files::remove(&claims);
        let blobs: Vec<_> = unnamed.iter().map(|blob| self.blobs.path(&blob.digest)).collect();
        files::remove(&blobs);
        Collected { removed, kept }
    }

    /// Removes everything.
    pub fn clear(&self) -> Collected {
        let mut collected = self.collect(0);
        let blobs = self.blobs.list();
        collected.removed.bytes += blobs.iter().map(|blob| blob.bytes).sum::<u64>();
        files::remove(&blobs.iter().map(|blob| self.blobs.path(&blob.digest)).collect::<Vec<_>>());
        collected
    }

    /// Whether it is time to look at the size of the store: `added` programs were put into it in this run, of which
    /// there are `many`, or nobody has looked for a day. Says so once: the next to ask waits for another day.
    pub fn is_due(&self, many: usize, added: usize) -> bool {
        let mark = self.path().join("collected");
        let last = std::fs::metadata(&mark).and_then(|metadata| metadata.modified());
        let due = added >= many || last.is_ok_and(|last| last.elapsed().is_ok_and(|age| age >= DAY));
        // The first run has nothing to collect yet.
        if due || !mark.exists() {
            let _ = std::fs::write(&mark, b"");
        }
        due
    }

    /// Reads every entry whole, and removes those that are damaged.
    pub fn verify(&self) -> Vec<Fault> {
        let keys =
            files::map(&self.claims(), |path, _| path.file_name()?.to_str()?.parse::<ActionKey>().ok());
        let mut faults = Vec::new();
        for key in keys {
            let program = self.claim(&key).and_then(|signed| self.program(&signed.claim));
            if let Err(miss) = program {
                if let (Ok(signed), true) = (self.claim(&key), miss.is_damage()) {
                    self.blobs.remove(&signed.claim.program.digest);
                    // Without the claim nobody would look at the other blob, and one that is there is not written again.
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

/// An entry that was not used for a day is worth half.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::example;
    use crate::claim::{Claim, Compilation, SignedClaim};

    fn put(store: &Store, program: &str, seconds: f64, vmfb: &[u8]) -> ActionKey {
        let action = example(program);
        let compilation = Compilation { seconds, ..Compilation::default() };
        let claim = Claim::new(&action, program.as_bytes(), vmfb, compilation);
        store.put(&SignedClaim::new(claim, None), program.as_bytes(), vmfb).unwrap();
        action.key()
    }

    /// Bytes that do not become fewer.
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
        let Collected { removed, kept } = store.collect(30_000);
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
        // Using it again would have saved it.
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
