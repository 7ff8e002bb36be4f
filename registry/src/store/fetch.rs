//! Parallel fetches into the store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Inserted, SourceStore, StoreError};
use crate::git::{Address, CommitId, GitError, Options, Progress, Repository, Want};
use crate::tree::TreeHash;

/// A package to be fetched.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name, for reports.
    pub name: String,
    /// The address of its repository.
    pub address: Address,
    /// The reference that has the commit.
    pub want: Want,
    /// The commit in the lock file or the index; `None` for the one that `want` names now.
    pub commit: Option<CommitId>,
    /// The package's folder in the repository; `None` for its root.
    pub subfolder: Option<String>,
    /// The hash in the lock file or the index; `None` if it is not known yet.
    pub hash: Option<TreeHash>,
    /// Settings of the fetch, such as credentials.
    pub options: Options,
}

/// A fetched package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The hash of its tree.
    pub hash: TreeHash,
    /// The folder with its files.
    pub path: PathBuf,
    /// The commit; `None` if the sources were in the store, and the item names no commit.
    pub commit: Option<CommitId>,
}

/// Reports of parallel fetches, called from several threads. Each method does nothing by default.
pub trait FetchReporter: Sync {
    /// The fetch of an item begins. Items that are in the store are not reported.
    fn started(&self, item: &Item) {
        let _ = item;
    }
    /// Progress of an item's fetch.
    fn progressed(&self, item: &Item, progress: Progress) {
        let _ = (item, progress);
    }
    /// An item's sources in the store had changed; they are moved away and fetched anew.
    fn damaged(&self, item: &Item, error: &StoreError) {
        let _ = (item, error);
    }
    /// The fetch of an item has ended.
    fn finished(&self, item: &Item, result: Result<&Fetched, &StoreError>) {
        let _ = (item, result);
    }
}

/// A reporter that reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl FetchReporter for Silent {}

/// Fetches `items` in at most `jobs` threads, through bare repositories in `repositories`, such as `<cache>/git`. The
/// results are in the items' order. After an error the items that have begun are finished, for the next run, and others
/// are left out: their result is [`GitError::Interrupted`].
pub fn fetch_all(
    store: &SourceStore,
    repositories: &std::path::Path,
    items: &[Item],
    jobs: usize,
    interrupt: &AtomicBool,
    reporter: &dyn FetchReporter,
) -> Vec<Result<Fetched, StoreError>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<_> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < items.len())
        {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let result = fetch(store, repositories, &items[index], interrupt, reporter);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..jobs.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    let left_out = |item: &Item| Err(GitError::Interrupted { address: item.address.clone() }.into());
    let results =
        results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.zip(items).map(|(result, item)| result.unwrap_or_else(|| left_out(item))).collect()
}

fn fetch(
    store: &SourceStore,
    repositories: &std::path::Path,
    item: &Item,
    interrupt: &AtomicBool,
    reporter: &dyn FetchReporter,
) -> Result<Fetched, StoreError> {
    if let Some(hash) = item.hash {
        match store.get(&hash) {
            Ok(Some(path)) => return Ok(Fetched { hash, path, commit: item.commit }),
            Ok(None) => {}
            Err(error @ StoreError::Damaged { .. }) => reporter.damaged(item, &error),
            Err(error) => return Err(error),
        }
    }
    reporter.started(item);
    let result = receive(store, repositories, item, interrupt, reporter);
    reporter.finished(item, result.as_ref());
    result
}

fn receive(
    store: &SourceStore,
    repositories: &std::path::Path,
    item: &Item,
    interrupt: &AtomicBool,
    reporter: &dyn FetchReporter,
) -> Result<Fetched, StoreError> {
    let repository = Repository::in_cache(repositories, item.address.clone(), item.options.clone());
    let progress = |progress| reporter.progressed(item, progress);
    let id = match item.commit {
        Some(commit) => {
            repository.fetch_locked(&item.want, commit, interrupt, progress)?;
            commit
        }
        None => repository.fetch(&item.want, interrupt, progress)?,
    };
    let gone = || GitError::NoCommit {
        address: item.address.clone(),
        commit: id,
        cause: "it was removed meanwhile".into(),
    };
    let commit = repository.commit(id)?.ok_or_else(gone)?;
    let Inserted { hash, path } =
        store.insert(&commit, item.subfolder.as_deref(), item.hash.as_ref(), interrupt)?;
    Ok(Fetched { hash, path, commit: Some(id) })
}
