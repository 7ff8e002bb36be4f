//! Concurrent processes on one artifact folder and one store, and processes killed while writing.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use crate::common::{action, child, files, found, put, record, vmfb};
use sheaf_artifacts::{ArtifactFolder, Lookup, Miss};
use sheaf_cache::Store;

const FOLDER: &str = "SHEAF_TEST_FOLDER";

/// A number that differs from call to call.
fn random(below: u64) -> u64 {
    RandomState::new().hash_one(0) % below
}

/// Child process that records ten functions, if `FOLDER` is set.
#[test]
fn child_that_records() {
    let Some(value) = std::env::var_os(FOLDER) else { return };
    let value = value.into_string().unwrap();
    let (path, name) = value.split_once('|').unwrap();
    let folder = ArtifactFolder::open(path);
    for index in 0..10 {
        record(&folder, &format!("{name}-{index}"), 4, &format!("{name} {index}"));
    }
}

#[test]
fn processes_that_record_at_once_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("__sheaf__");
    let names = ["a", "b", "c", "d"];
    let start = |name| child("processes::child_that_records", FOLDER, format!("{}|{name}", path.display()));
    for child in names.map(start) {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let folder = ArtifactFolder::open(&path);
    assert_eq!(folder.entries().unwrap().len(), 40);
    for name in names {
        for index in 0..10 {
            found(&folder, &format!("{name} {index}"));
        }
    }
}

#[test]
fn threads_that_share_a_folder_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::open(root.path().join("__sheaf__"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for index in 0..5 {
                    let program = format!("{thread} {index}");
                    record(folder, "f", thread * 10 + index, &program);
                    found(folder, &program);
                }
            });
        }
    });
    assert_eq!(folder.entries().unwrap().len(), 20);
}

/// Number of versions of a function's source: few, so that programs of the killed process are looked up again.
const SOURCES: usize = 5;

/// Programs of the killed process: three functions whose sources change in every round.
fn programs(round: usize) -> [(String, String); 3] {
    [0, 1, 2].map(|function| (format!("f{function}"), format!("body {round} of {function}")))
}

/// Child process that records and stores forever.
#[test]
fn child_to_be_killed() {
    let Some(root) = std::env::var_os(FOLDER) else { return };
    let root = Path::new(&root);
    let store = Store::new(root.join("cache"));
    for round in 0.. {
        // A new folder object in each round is a new run: entries of the previous round are outdated.
        let folder = ArtifactFolder::open(root.join("__sheaf__"));
        for (function, program) in programs(round % SOURCES) {
            record(&folder, &function, 4, &program);
            put(&store, &program, &function, &vmfb(&program)).unwrap();
            println!("recorded");
        }
    }
}

#[test]
fn a_process_killed_at_any_moment_leaves_what_the_next_can_use() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("__sheaf__");
    for kill in 0..100 {
        let mut child = child("processes::child_to_be_killed", FOLDER, root.path());
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut recorded = output.lines().map_while(Result::ok).filter(|line| line.contains("recorded"));
        recorded.by_ref().take(1 + random(20) as usize).for_each(drop);
        std::thread::sleep(Duration::from_micros(random(5_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        // Closed earlier, the pipe would have ended the child normally.
        drop(recorded);

        // The manifest is whole; at most the one program being replaced does not match it.
        let folder = ArtifactFolder::open(&path);
        let entries = folder.entries().unwrap_or_else(|miss| panic!("kill {kill}: {miss}"));
        let misses: Vec<_> = entries
            .iter()
            .filter_map(|entry| match folder.find(&entry.key) {
                Lookup::Hit { .. } => None,
                Lookup::Miss(miss) => Some(miss),
            })
            .collect();
        assert!(misses.len() <= 1, "kill {kill}: {misses:?}");
        assert!(
            misses.iter().all(|miss| matches!(miss, Miss::ContentDigest { .. } | Miss::ContentSize { .. })),
            "kill {kill}: {misses:?}"
        );

        // The next run works, and leaves only the files that it needs.
        let folder = ArtifactFolder::open(&path);
        let store = Store::new(root.path().join("cache"));
        assert_eq!(store.verify(), [], "kill {kill}");
        for (function, program) in programs(kill % SOURCES) {
            if let Lookup::Miss(miss) = store.get(&action(&program).key()) {
                assert!(!miss.is_trouble(), "kill {kill}: {miss}");
            }
            put(&store, &program, &function, &vmfb(&program)).unwrap();
            assert!(matches!(store.get(&action(&program).key()), Lookup::Hit { .. }));
            record(&folder, &function, 4, &program);
            found(&folder, &program);
        }
        assert_eq!(files(&path), ["f0.cpu.vmfb", "f1.cpu.vmfb", "f2.cpu.vmfb", "manifest.json"]);
    }
}
