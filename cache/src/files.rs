//! Operations on many files in parallel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sheaf_foundation::atomic;

/// Number of threads that visit files: more than cores, since they wait for the disk.
const THREADS: usize = 8;

/// Age from which an unfinished file is abandoned.
pub(crate) const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The results of `visit` for the files of a sharded folder, unordered.
pub(crate) fn map<T: Send>(
    folder: &Path,
    visit: impl Fn(&Path, &fs::Metadata) -> Option<T> + Sync,
) -> Vec<T> {
    in_parallel(&shards(folder), |shard| {
        let files = fs::read_dir(shard).into_iter().flatten().flatten();
        // A file may disappear while the folder is read.
        let visited = files.filter_map(|file| {
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            visit(&file.path(), &metadata)
        });
        visited.collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect()
}

/// All files of a sharded folder, of any kind, with their sizes on disk in bytes.
pub(crate) fn all(folder: &Path) -> Vec<(PathBuf, u64)> {
    map(folder, |path, metadata| Some((path.to_owned(), metadata.len())))
}

/// Removes unfinished files of killed processes from a sharded folder.
pub(crate) fn tidy(folder: &Path) {
    in_parallel(&shards(folder), |shard| atomic::remove_unfinished(shard, ABANDONED));
}

fn shards(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|shard| shard.path()).collect()
}

/// Removes files; returns for each the error if it remains.
pub(crate) fn remove(paths: &[PathBuf]) -> Vec<Option<io::Error>> {
    // A file removed by another process counts as removed.
    in_parallel(paths, |path| fs::remove_file(path).err().filter(|e| e.kind() != io::ErrorKind::NotFound))
}

/// The results of `work` for the items, in their order.
fn in_parallel<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let size = items.len().div_ceil(THREADS).max(1);
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items
            .chunks(size)
            .map(|chunk| scope.spawn(move || chunk.iter().map(work).collect::<Vec<_>>()))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Vec<T>>| match thread.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().flat_map(join).collect()
    })
}
