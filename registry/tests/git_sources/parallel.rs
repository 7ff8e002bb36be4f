//! Parallel fetches.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use sheaf_registry::git::{Address, GitError, Options};
use sheaf_registry::store::{FetchReporter, Fetched, Item, Silent, StoreError, fetch_all};
use sheaf_registry::tree::TreeHash;

use crate::fixture::{GO, Origin, Place, tag};
use crate::servers::{self, Daemon};

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn take(&self) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.0.lock().unwrap());
        lines.sort();
        lines
    }

    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl FetchReporter for Recorder {
    fn started(&self, item: &Item) {
        self.push(format!("{} started", item.name));
    }

    fn damaged(&self, item: &Item, _: &StoreError) {
        self.push(format!("{} damaged", item.name));
    }

    fn finished(&self, item: &Item, result: Result<&Fetched, &StoreError>) {
        self.push(format!("{} finished {}", item.name, if result.is_ok() { "well" } else { "badly" }));
    }
}

fn item(name: &str, address: Address) -> Item {
    Item {
        name: name.into(),
        address,
        want: tag("v1"),
        commit: None,
        subfolder: None,
        hash: None,
        options: Options::default(),
    }
}

#[test]
fn packages_are_fetched_in_parallel() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let mut items: Vec<_> = (0..12)
        .map(|index| {
            let name = format!("p{index:02}");
            let origin = Origin::new(&place.path(&name));
            origin.commit_file("src/lib.shf", format!("(def x {index})"));
            origin.git(&["tag", "v1"]);
            item(&name, daemon.address(&name))
        })
        .collect();
    // One repository with two packages.
    items.push(Item { name: "inner".into(), subfolder: Some("src".into()), ..items[0].clone() });
    let recorder = Recorder::default();
    let repositories = place.path("git");
    let results = fetch_all(&place.store, &repositories, &items, 4, &GO, &recorder);
    let fetched: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    for (index, fetched) in fetched.iter().take(12).enumerate() {
        let text = fs::read_to_string(fetched.path.join("src/lib.shf")).unwrap();
        assert_eq!(text, format!("(def x {index})"), "results are in order");
    }
    assert!(fetched[12].path.join("lib.shf").exists());
    let reports = recorder.take();
    assert_eq!(reports.len(), 26);
    assert_eq!(reports[..2], ["inner finished well", "inner started"]);

    // As a lock file has them, and without a server.
    drop(daemon);
    for (item, fetched) in items.iter_mut().zip(&fetched) {
        (item.commit, item.hash) = (fetched.commit, Some(fetched.hash));
    }
    let again = fetch_all(&place.store, &repositories, &items, 4, &GO, &recorder);
    assert_eq!(again.into_iter().map(Result::unwrap).collect::<Vec<_>>(), fetched);
    assert_eq!(recorder.take(), [""; 0], "nothing is fetched");

    // A damaged entry is made anew from the bare repository.
    fs::write(fetched[3].path.join("more"), "").unwrap();
    let again = fetch_all(&place.store, &repositories, &items, 4, &GO, &recorder);
    assert!(again.iter().all(Result::is_ok));
    assert_eq!(recorder.take(), ["p03 damaged", "p03 finished well", "p03 started"]);
    assert!(!fetched[3].path.join("more").exists());
}

#[test]
fn a_failure_stops_the_rest() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    place.origin.commit_file("a", "1");
    place.origin.git(&["tag", "v1"]);
    let unreachable = Address::parse(&format!("git://127.0.0.1:{}/a", servers::free_port())).unwrap();
    let good = item("good", daemon.address("origin"));
    let items = [good.clone(), item("bad", unreachable), item("later", daemon.address("later"))];
    let recorder = Recorder::default();
    let results = fetch_all(&place.store, &place.path("git"), &items, 1, &GO, &recorder);
    assert!(results[0].is_ok());
    assert!(matches!(results[1], Err(StoreError::Git(GitError::Unreachable { .. }))));
    assert!(matches!(results[2], Err(StoreError::Git(GitError::Interrupted { .. }))));
    assert_eq!(recorder.take(), ["bad finished badly", "bad started", "good finished well", "good started"]);
    assert_eq!(place.listing().len(), 1);

    let wrong = Item { hash: TreeHash::from_hex(&"0".repeat(64)), ..good.clone() };
    let results = fetch_all(&place.store, &place.path("git"), &[wrong], 8, &GO, &Silent);
    assert!(matches!(results[0], Err(StoreError::Changed { .. })));
    assert_eq!(place.listing().len(), 1);
    assert!(fetch_all(&place.store, &place.path("git"), &[], 8, &GO, &Silent).is_empty());

    let results = fetch_all(&place.store, &place.path("git"), &[good], 8, &AtomicBool::new(true), &Silent);
    assert!(matches!(results[0], Err(StoreError::Git(GitError::Interrupted { .. }))));
}
