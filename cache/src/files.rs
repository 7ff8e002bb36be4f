//! Many files at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// How many threads visit files: more than there are cores, since they wait for the disk.
const THREADS: usize = 8;

/// What `visit` makes of the files in a folder of folders, in no order.
pub(crate) fn map<T: Send>(
    folder: &Path,
    visit: impl Fn(&Path, &fs::Metadata) -> Option<T> + Sync,
) -> Vec<T> {
    let shards: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|shard| shard.path()).collect();
    in_parallel(&shards, |shard| {
        let files = fs::read_dir(shard).into_iter().flatten().flatten();
        // A file may go while the folder is read.
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

/// Removes files. One that cannot be removed stays, a waste of room.
pub(crate) fn remove(paths: &[PathBuf]) {
    in_parallel(paths, |path| drop(fs::remove_file(path)));
}

/// What `work` makes of the items, in no order.
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
