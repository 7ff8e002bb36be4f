//! Packages at the size of use: a git registry of 10,000 packages with 10 versions each, behind a `git daemon` on loopback.
//!
//! `cargo bench -p sheaf-registry --bench packages [-- --graph FILE]` prints a line for each figure: its name, the median,
//! and the quickest run, in milliseconds. `FILE` gets the registry as JSON, for other package managers (`benches/peers/packages.py`).

#![allow(clippy::unwrap_used)]

mod git;
mod site;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_project::{LockedPackage, Owners, Project};
use sheaf_registry::Logins;
use sheaf_registry::plan::{self, Access, Installed, Resolve, Universe};
use sheaf_registry::store::{Item, SourceStore};

use site::Site;

/// Number of runs of what takes milliseconds.
const RUNS: usize = 21;

/// Number of runs of what takes long.
const LONG_RUNS: usize = 5;

/// Number of packages of a fetch.
const FETCHED: usize = 50;

/// Numbers of fetches at a time.
const JOBS: [usize; 5] = [1, 2, 4, 8, 16];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // A process of its own, as a command is one.
        ["resolve", place, address] => {
            let (project, access) = site::at_hand(Path::new(place), address);
            let outcome = plan::lock(&project, &access, &Resolve::default()).unwrap();
            assert!(outcome.lock.packages.len() >= site::LEAST);
        }
        ["--graph", file] => measure(Some(Path::new(file))),
        [] => measure(None),
        _ => panic!("usage: packages [--graph FILE]"),
    }
}

fn measure(graph: Option<&Path>) {
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::new(folder.path());
    if let Some(file) = graph {
        fs::write(file, site.graph()).unwrap();
    }
    resolutions(&site);
    no_change(&site);
    updates(&mut site);
    fetches(&site);
}

/// Resolutions without a lock, from the local copy of the index.
fn resolutions(site: &Site) {
    let (project, online) = site.project(false);
    let begun = Instant::now();
    let first = plan::lock(&project, &online, &Resolve::default()).unwrap();
    report("first resolution, the index fetched", &mut [begun.elapsed()]);
    println!("# {} packages", first.lock.packages.len());
    let mut times = times(RUNS, || {
        let (project, access) = site.at_hand();
        let begun = Instant::now();
        let outcome = plan::lock(&project, &access, &Resolve::default()).unwrap();
        let time = begun.elapsed();
        assert_eq!(outcome.lock, first.lock);
        time
    });
    report("warm resolution", &mut times);
    let mut times = times_of_processes(RUNS, || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["resolve".as_ref(), site.folder.as_os_str(), site.address.as_ref()]);
        vec![command]
    });
    report("warm resolution, a process", &mut times);
}

/// The start of a command that finds everything as it was: lock, sources, and the folder of each package.
fn no_change(site: &Site) {
    let (project, access) = site.project(false);
    let outcome = plan::lock(&project, &access, &Resolve::default()).unwrap();
    outcome.lock.write(&project.lock_file()).unwrap();
    let begun = Instant::now();
    plan::fetch(&outcome.lock, &access).unwrap();
    report("fetch of the graph", &mut [begun.elapsed()]);
    let parts = |names: [&str; 3]| names.map(|name| (name.to_owned(), Vec::new()));
    let mut parts = parts(["no change: lock", "no change: sources", "no change: folders"]);
    let mut all = times(RUNS, || {
        let begun = Instant::now();
        let project = Project::locate_from(&project.root, Owners::of_process(|_| None, &[])).unwrap();
        let (_, access) = site.project(true);
        let outcome = plan::lock(&project, &access, &Resolve::default()).unwrap();
        parts[0].1.push(begun.elapsed());
        let step = Instant::now();
        let sources = plan::fetch(&outcome.lock, &access).unwrap();
        assert!(sources.fetched.is_empty());
        parts[1].1.push(step.elapsed());
        let step = Instant::now();
        let store = SourceStore::new(&access.sources);
        let installed = Installed::new(&project, outcome.lock.clone(), store, sources.folders);
        let found = folders(&installed, &outcome.lock);
        assert_eq!(found, outcome.lock.packages.len());
        parts[2].1.push(step.elapsed());
        begun.elapsed()
    });
    for (name, times) in &mut parts {
        report(name, times);
    }
    report("no change, with all of it", &mut all);
    fs::remove_file(project.lock_file()).unwrap();
}

/// Asks for the folder of each package once, as the `use` of its dependent does. Returns their number.
fn folders(installed: &Installed, lock: &sheaf_project::PackagesLock) -> usize {
    let mut met = HashSet::new();
    let packages: HashMap<&str, &LockedPackage> =
        lock.packages.iter().map(|package| (&*package.name, package)).collect();
    let mut open: Vec<(Option<PathBuf>, &[sheaf_project::LockedEdge])> = vec![(None, &lock.roots)];
    while let Some((asking, edges)) = open.pop() {
        for edge in edges.iter().filter(|edge| met.insert(&edge.package)) {
            let folder = installed.folder(asking.as_deref(), &edge.name).unwrap().unwrap();
            open.push((Some(folder), &packages[&*edge.package].dependencies));
        }
    }
    met.len()
}

/// Updates of the local copy after ten packages got a version each, beside `git fetch` into a clone.
fn updates(site: &mut Site) {
    let clone = site.folder.join("clone");
    let mut command = git::command(&site.folder);
    command.args(["clone", "--quiet", "--bare", "--depth", "1", &site.address]).arg(&clone);
    git::run(&mut command);
    let mut ours = Vec::new();
    let mut peer = Vec::new();
    for round in 0..LONG_RUNS {
        site.publish(round);
        let (project, access) = site.project(false);
        let begun = Instant::now();
        let owners = Owners::of_process(|_| None, &[]);
        let universe = Universe::new(&access, &project.root, &owners, HashMap::new());
        let index = universe.index(&site.address).unwrap();
        ours.push(begun.elapsed());
        assert_eq!(index.entries(&site::name(round)).unwrap().len(), 11);
        let mut command = git::command(&clone);
        command.args(["fetch", "--quiet", "--depth", "1", "origin", "HEAD"]);
        let begun = Instant::now();
        git::run(&mut command);
        peer.push(begun.elapsed());
    }
    report("index update", &mut ours);
    report("index update, git fetch --depth 1", &mut peer);
}

/// Fetches into an empty store, beside clones of the same repositories.
fn fetches(site: &Site) {
    let (project, access) = site.at_hand();
    let lock = plan::lock(&project, &access, &Resolve::default()).unwrap().lock;
    let packages: Vec<&LockedPackage> = lock.packages.iter().take(FETCHED).collect();
    let items: Vec<Item> = packages.iter().map(|package| site::item(package)).collect();
    let fetch = |jobs: usize| {
        // Kept until the end: file systems are slow to create files where many were removed a moment ago.
        let empty = tempfile::tempdir_in(&site.folder).unwrap().keep();
        let store = SourceStore::new(empty.join("sources"));
        let reporter = sheaf_registry::store::Silent;
        let begun = Instant::now();
        let copies = empty.join("git");
        let go = std::sync::atomic::AtomicBool::new(false);
        let results = sheaf_registry::store::fetch_all(&store, &copies, &items, jobs, &go, &reporter);
        let time = begun.elapsed();
        assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
        time
    };
    let mut ours = JOBS.map(|jobs| (jobs, Vec::new()));
    let (mut server, mut client) = (Vec::new(), Vec::new());
    let mut clones = Vec::new();
    for _ in 0..LONG_RUNS {
        for (jobs, times) in &mut ours {
            let before = site.daemon.processor_times();
            times.push(fetch(*jobs));
            if let (8, Some([server_before, own_before]), Some([server_after, own_after])) =
                (*jobs, before, site.daemon.processor_times())
            {
                server.push(server_after.saturating_sub(server_before));
                client.push(own_after.saturating_sub(own_before));
            }
        }
        let empty = tempfile::tempdir_in(&site.folder).unwrap().keep();
        clones.push(git::clones(&items, &empty, 8));
    }
    for (jobs, times) in &mut ours {
        report(&format!("fetch of 50 packages, {jobs} at a time"), times);
    }
    if !server.is_empty() {
        report("the same, 8 at a time: processor time of the server", &mut server);
        report("the same, 8 at a time: processor time of this process", &mut client);
    }
    report("git clone --depth 1 of the same, 8 processes at a time", &mut clones);
}

fn times(runs: usize, mut work: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..runs).map(|_| work()).collect()
}

fn times_of_processes(runs: usize, commands: impl Fn() -> Vec<Command>) -> Vec<Duration> {
    times(runs, || {
        let begun = Instant::now();
        for mut command in commands() {
            assert!(command.stdout(Stdio::null()).status().unwrap().success());
        }
        begun.elapsed()
    })
}

fn report(name: &str, times: &mut [Duration]) {
    times.sort();
    let [median, quickest] = [times[times.len() / 2], times[0]].map(|time| time.as_secs_f64() * 1e3);
    println!("{name}\t{median:.1}\t{quickest:.1}");
}

/// The access of a command in this bench.
fn access(folder: &Path, address: &str, offline: bool) -> Access {
    Access {
        registries: folder.join("registries"),
        repositories: folder.join("registries/git"),
        sources: folder.join("sources"),
        vendor: None,
        logins: Logins::default(),
        named: BTreeSet::default(),
        indexes: [("default".to_owned(), address.to_owned())].into(),
        mirrors: BTreeMap::new(),
        offline,
        interrupt: Arc::default(),
        fetched: RefCell::default(),
        reporter: Box::new(sheaf_registry::store::Silent),
    }
}
