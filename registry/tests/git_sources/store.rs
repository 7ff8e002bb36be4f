//! The store of sources.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use sheaf_registry::git::Options;
use sheaf_registry::git::Repository;
use sheaf_registry::git::Want;
use sheaf_registry::store::{Inserted, StoreError};
use sheaf_registry::tree::{self, TreeHash};

use crate::fixture::{GO, Place, fetch};
use crate::servers::Daemon;

/// A package of a few files.
fn package(place: &Place) -> sheaf_registry::git::Commit {
    place.origin.write("Sheaf.toml", "[package]\nname = \"vision\"\n");
    place.origin.write("packages/inner/src/lib.shf", "(def y 1)\n");
    place.origin.write("__sheaf__/manifest.json", "{}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        place.origin.write("run", "#!/bin/sh\n");
        fs::set_permissions(place.path("origin/run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("packages/inner", place.path("origin/inner")).unwrap();
    }
    let id = place.origin.commit_file("src/lib.shf", "(def x 1)\n");
    place.origin.open(id)
}

fn insert(place: &Place, expected: Option<&TreeHash>) -> Result<Inserted, StoreError> {
    let id = place.origin.git(&["rev-parse", "HEAD"]).parse().unwrap();
    place.store.insert(&place.origin.open(id), None, expected, &GO)
}

#[cfg(unix)]
fn writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
#[cfg(unix)]
fn a_commit_is_exported_whole() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let commit = package(&place);
    let inserted = place.store.insert(&commit, None, None, &GO).unwrap();
    let path = &inserted.path;
    assert_eq!(fs::read_to_string(path.join("src/lib.shf")).unwrap(), "(def x 1)\n");
    assert_eq!(fs::read_to_string(path.join("inner/src/lib.shf")).unwrap(), "(def y 1)\n");
    assert_eq!(fs::metadata(path.join("run")).unwrap().permissions().mode() & 0o333, 0o111);
    assert_eq!(fs::metadata(path.join("Sheaf.toml")).unwrap().permissions().mode() & 0o333, 0);
    assert_eq!(place.listing(), [inserted.hash.hex()]);
    // The hash is that of git's own checkout.
    fs::remove_dir_all(place.path("origin/.git")).unwrap();
    assert_eq!(tree::hash(&place.path("origin")).unwrap(), inserted.hash);
    assert_eq!(place.store.get(&inserted.hash).unwrap().as_ref(), Some(path));
    assert_eq!(place.store.verify(&inserted.hash).unwrap().as_ref(), Some(path));
    let other = TreeHash::from_hex(&"0".repeat(64)).unwrap();
    assert_eq!(place.store.get(&other).unwrap(), None);
}

#[test]
fn a_folder_of_a_commit_is_a_package() {
    let place = Place::new();
    let commit = package(&place);
    let inner = place.store.insert(&commit, Some("packages/inner"), None, &GO).unwrap();
    assert_eq!(fs::read_to_string(inner.path.join("src/lib.shf")).unwrap(), "(def y 1)\n");
    for folder in
        ["nothing", "src/lib.shf", "../origin", "/src", "packages//inner", "packages/../src", ".git"]
    {
        let error = place.store.insert(&commit, Some(folder), None, &GO).unwrap_err();
        assert!(matches!(error, StoreError::NoFolder { .. }), "{folder}: {error}");
    }
    let error = place.store.insert(&commit, Some("\u{1b}x"), None, &GO).unwrap_err();
    let error = place.neutral(error).replace(&commit.id().to_string(), "COMMIT");
    insta::assert_snapshot!(error, @r#"~/origin has no folder `\u{1b}x` in commit COMMIT; check the package's folder"#);
    assert_eq!(place.listing(), [inner.hash.hex()]);
}

#[test]
fn another_tree_than_the_expected_one_is_refused() {
    let place = Place::new();
    package(&place);
    let hash = insert(&place, None).unwrap().hash;
    let changed = place.origin.commit_file("src/lib.shf", "(def x 2)\n");
    let before = place.listing();
    fs::rename(place.path("sources").join(hash.hex()), place.path("aside")).unwrap();
    let error = insert(&place, Some(&hash)).unwrap_err();
    assert!(matches!(&error, StoreError::Changed { expected, .. } if *expected == hash));
    let error =
        place.neutral(error).replace(&changed.to_string(), "COMMIT").replace(&hash.to_string(), "HASH");
    insta::assert_snapshot!(error, @"the sources of ~/origin changed: commit COMMIT has the tree hash sha256-21ykODN42ATZvj7iBpBrRypEdnUwoEqKGpKL25dOC/o=, but HASH was expected; a registry or a lock file names other sources than its author published: tell them, and do not use either");
    assert_eq!(place.listing(), [""; 0]);
    // The expected one is there already: the commit is not looked at.
    fs::rename(place.path("aside"), place.path("sources").join(hash.hex())).unwrap();
    assert_eq!(insert(&place, Some(&hash)).unwrap().hash, hash);
    assert_eq!(place.listing(), before);
}

#[test]
#[cfg(unix)]
fn changed_entries_are_moved_away_and_made_anew() {
    let place = Place::new();
    package(&place);
    let hash = insert(&place, None).unwrap().hash;
    let changes: [&dyn Fn(&Path); 6] = [
        &|path| {
            let file = path.join("src/lib.shf");
            // Of the same size, and with the time of before.
            let time = fs::metadata(&file).unwrap().modified().unwrap();
            writable(&file);
            fs::write(&file, "(def x 9)\n").unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        },
        &|path| fs::write(path.join("more"), "").unwrap(),
        &|path| fs::remove_file(path.join("Sheaf.toml")).unwrap(),
        &|path| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path.join("src/lib.shf"), fs::Permissions::from_mode(0o555)).unwrap();
        },
        &|path| {
            fs::remove_file(path.join("inner")).unwrap();
            std::os::unix::fs::symlink("packages", path.join("inner")).unwrap();
        },
        &|path| fs::remove_dir_all(path).unwrap(),
    ];
    for (index, change) in changes.iter().enumerate() {
        let path = insert(&place, Some(&hash)).unwrap().path;
        change(&path);
        let error = place.store.get(&hash).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{index}: {error}");
        assert_eq!(place.listing(), [""; 0], "{index}");
        assert_eq!(place.store.get(&hash).unwrap(), None, "{index}");
        assert_eq!(fs::read_dir(place.path("sources/damaged")).unwrap().count(), index + 1);
    }
    // Inserting notices it too.
    let path = insert(&place, Some(&hash)).unwrap().path;
    fs::write(path.join("more"), "").unwrap();
    assert_eq!(insert(&place, None).unwrap().path, path);
    assert!(!path.join("more").exists());
    let path = insert(&place, Some(&hash)).unwrap().path;
    fs::write(path.join("more"), "").unwrap();
    let error = place.neutral(place.store.verify(&hash).unwrap_err()).replace(&hash.hex(), "HEX");
    let filters = [(r"sha256-\S+", "SHA256"), (r"damaged/[^/]+", "damaged/RANDOM")];
    insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(error, @"the sources in ~/sources/HEX changed after they were verified (their tree hash is SHA256 now); they are moved to ~/sources/damaged/RANDOM/HEX: run the command again to fetch them anew"); });
}

#[test]
fn a_store_that_was_copied_is_verified_once() {
    let place = Place::new();
    package(&place);
    let inserted = insert(&place, None).unwrap();
    let stamp = place.path("sources").join(inserted.hash.hex()).join("stamp");
    for bad in ["", "sheaf-stamp 9\n", "sheaf-stamp 2\n", "sheaf-stamp 2\nend\n", "\u{0}"] {
        fs::write(&stamp, bad).unwrap();
        assert!(place.store.get(&inserted.hash).unwrap().is_some());
        assert!(fs::read_to_string(&stamp).unwrap().starts_with("sheaf-stamp 2\n"), "it is written anew");
    }
    fs::remove_file(&stamp).unwrap();
    assert!(place.store.get(&inserted.hash).unwrap().is_some());
    assert!(stamp.exists());
}

#[test]
fn a_small_package_is_checked_quickly() {
    let place = Place::new();
    package(&place);
    let hash = insert(&place, None).unwrap().hash;
    let quickest = (0..50)
        .map(|_| {
            let begun = Instant::now();
            place.store.get(&hash).unwrap();
            begun.elapsed()
        })
        .min()
        .unwrap();
    eprintln!("check of a small package: {quickest:?}");
    assert!(quickest < Duration::from_millis(5), "{quickest:?}");
}

#[test]
fn leftovers_of_a_killed_insertion_are_removed() {
    let place = Place::new();
    package(&place);
    let left = place.path("sources/staging/abc");
    fs::create_dir_all(left.join("entry/tree/src")).unwrap();
    fs::write(left.join("lock"), "").unwrap();
    fs::write(left.join("entry/tree/src/lib.shf"), "(def").unwrap();
    // In use: its process holds the lock.
    let used = place.path("sources/staging/def");
    fs::create_dir_all(&used).unwrap();
    let lock = fs::File::create(used.join("lock")).unwrap();
    lock.lock().unwrap();
    let hash = insert(&place, None).unwrap().hash;
    assert_eq!(place.listing(), [hash.hex(), "staging/def".into()]);
    drop(lock);
    let second = place.origin.commit_file("src/lib.shf", "(def x 2)\n");
    place.store.insert(&place.origin.open(second), None, None, &GO).unwrap();
    assert!(!used.exists());
}

#[test]
fn an_interrupted_insertion_leaves_nothing() {
    let place = Place::new();
    let commit = package(&place);
    let error = place.store.insert(&commit, None, None, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().contains("was interrupted"), "{error}");
    assert_eq!(place.listing(), [""; 0]);
}

#[test]
fn parallel_insertions_of_one_tree_agree() {
    let place = Place::new();
    package(&place);
    for _ in 0..5 {
        let inserted: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| insert(&place, None).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(inserted.iter().all(|other| *other == inserted[0]));
        assert_eq!(place.listing(), [inserted[0].hash.hex()]);
        assert!(place.store.verify(&inserted[0].hash).unwrap().is_some());
        fs::remove_dir_all(place.path("sources")).unwrap();
    }
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let place = Place::new();
    package(&place);
    fs::write(place.path("sources"), "").unwrap();
    insta::assert_snapshot!(place.neutral(insert(&place, None).unwrap_err()), @"~/sources: Not a directory (os error 20); make the folder readable and writable, with room on the disk");
}

#[test]
fn what_comes_over_the_network_has_the_same_hash() {
    let place = Place::new();
    package(&place);
    let local = insert(&place, None).unwrap();
    fs::remove_dir_all(place.path("sources")).unwrap();
    let daemon = Daemon::new(&place.path(""));
    let repository = Repository::new(place.path("bare"), daemon.address("origin"), Options::default());
    let (id, _) = fetch(&repository, &Want::Head).unwrap();
    let commit = repository.commit(id).unwrap().unwrap();
    assert_eq!(place.store.insert(&commit, None, Some(&local.hash), &GO).unwrap(), local);
}
