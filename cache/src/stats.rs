//! Statistics of cache hits and misses.

use std::fs;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::store::Store;
use sheaf_artifacts::content;

/// Upper limit of the file's size in this version, in bytes.
const LIMIT: u64 = 4096;

/// Outcomes of look-ups of programs not found in an artifact folder; each program counts once, whatever its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheStats {
    /// Found in the store.
    pub stored: u64,
    /// Found in a remote cache.
    pub fetched: u64,
    /// Not found, and compiled.
    pub compiled: u64,
    /// Compile time of the programs found, in seconds.
    pub saved: f64,
    /// Compile time of the rest, in seconds.
    pub spent: f64,
    /// Time of the first count, in seconds since 1970.
    pub since: u64,
}

impl CacheStats {
    /// Number of look-ups.
    pub fn total(&self) -> u64 {
        self.stored.saturating_add(self.fetched).saturating_add(self.compiled)
    }

    /// The fraction found, of 1; `None` without look-ups.
    pub fn hit_rate(&self) -> Option<f64> {
        let (hits, total) = (self.stored.saturating_add(self.fetched), self.total());
        (total > 0).then(|| hits as f64 / total as f64)
    }

    fn add(&mut self, other: &CacheStats) {
        self.stored = self.stored.saturating_add(other.stored);
        self.fetched = self.fetched.saturating_add(other.fetched);
        self.compiled = self.compiled.saturating_add(other.compiled);
        self.saved += other.saved;
        self.spent += other.spent;
    }
}

impl Store {
    /// The counts so far; zero if they cannot be read.
    pub fn stats(&self) -> CacheStats {
        let text = content::read_limited(&self.stats_path(), LIMIT).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Adds counts. If the file cannot be written, or two processes write at once without locks, only a count is lost.
    pub fn count(&self, more: &CacheStats) {
        let _turn = self.lock("lookups", |_| {});
        let mut all = self.stats();
        if all.since == 0 {
            all.since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        }
        all.add(more);
        // Not synced: no run waits for the disk because of a count.
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(self.path())?;
            let mut file = tempfile::NamedTempFile::new_in(self.path())?;
            file.write_all(&serde_json::to_vec(&all)?)?;
            file.persist(self.stats_path())?;
            Ok(())
        };
        let _ = write();
    }

    fn stats_path(&self) -> std::path::PathBuf {
        self.path().join("lookups-v1.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_many_at_once_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("cache"));
        assert_eq!((store.stats(), store.stats().hit_rate()), (CacheStats::default(), None));
        let one = CacheStats { stored: 2, fetched: 1, compiled: 1, saved: 1.5, spent: 0.5, since: 0 };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..5).for_each(|_| store.count(&one)));
            }
        });
        let all = store.stats();
        assert_eq!((all.stored, all.fetched, all.compiled), (80, 40, 40));
        assert_eq!((all.saved, all.spent, all.hit_rate()), (60.0, 20.0, Some(0.75)));
        assert!(all.since > 1_700_000_000);
        assert_eq!(store.size().entries, 0, "a count is no program");
    }

    #[test]
    fn counts_do_not_overflow() {
        let most =
            CacheStats { stored: u64::MAX, fetched: u64::MAX, compiled: u64::MAX, ..CacheStats::default() };
        assert_eq!((most.hit_rate(), most.total()), (Some(1.0), u64::MAX));
    }

    #[test]
    fn what_cannot_be_read_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        for damaged in ["", "{", "[]", "{\"stored\": -1}"] {
            fs::write(folder.path().join("lookups-v1.json"), damaged).unwrap();
            assert_eq!(store.stats(), CacheStats::default());
            store.count(&CacheStats { compiled: 1, ..CacheStats::default() });
            assert_eq!(store.stats().compiled, 1);
        }
    }
}
