//! A full disk and a read-only one, both real: a small file system that a child process mounts in its own mount
//! namespace, which disappears with the process.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{action, files, found, put, record, specialisation};
use sheaf_artifacts::{ArtifactFolder, FolderError, Lookup};
use sheaf_cache::{Size, Store};
use sheaf_foundation::atomic::WriteError;

const DISK: &str = "SHEAF_TEST_DISK";
/// Larger than the whole disk.
static HUGE: [u8; 400_000] = [7; 400_000];

/// Command prefix for a new mount namespace, with a user namespace or as root; `None` if not permitted.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["--mount", "--map-root-user"], &["--mount"]];
    ways.into_iter().find(|way| {
        let mut trial = Command::new("unshare");
        trial.args(*way).args(["mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    })
}

/// Runs the test `name` as a child with a disk of 256 KiB.
fn run_with_small_disk(name: &str) {
    let Some(way) = namespace() else {
        eprintln!("SKIPPED {name}: no mount namespace here (`unshare --mount` fails)");
        return;
    };
    let disk = tempfile::tempdir().unwrap();
    let script =
        r#"mount -t tmpfs -o size=256k none "$SHEAF_TEST_DISK" && exec "$0" --exact "$1" --nocapture"#;
    let mut command = Command::new("unshare");
    command.args(way).args(["sh", "-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
    assert!(command.env(DISK, disk.path()).status().unwrap().success());
}

fn message(error: &impl ToString, disk: &Path) -> String {
    error.to_string().replace(&*disk.to_string_lossy(), "~")
}

#[test]
fn full_disk() {
    let Some(disk) = std::env::var_os(DISK) else { return run_with_small_disk("full_disk::full_disk") };
    let disk = Path::new(&disk);
    let path = disk.join("__sheaf__");
    let folder = ArtifactFolder::open(&path);
    record(&folder, "forward", 4, "p");
    let before = files(&path);

    // A program that does not fit, new or replacing an older one.
    for function in ["loss", "forward"] {
        let error = ArtifactFolder::open(&path).record(&action("q"), specialisation(function, 4), &HUGE, 0);
        let Err(FolderError::Write(WriteError { source, .. })) = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        insta::allow_duplicates! {
            insta::assert_snapshot!(message(&error.unwrap_err(), disk).replace(function, "NAME"), @"~/__sheaf__/NAME.cpu.vmfb could not be written: No space left on device (os error 28)");
        }
        assert_eq!(files(&path), before);
    }

    // A program that fits, and a manifest that does not.
    let free = fs::File::create(disk.join("filler")).unwrap();
    let filled = io::copy(&mut io::repeat(0), &mut &free);
    assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::StorageFull);
    free.set_len(free.metadata().unwrap().len() - 4096).unwrap();
    let error = folder.record(&action("q"), specialisation("loss", 4), b"fits", 0).unwrap_err();
    insta::assert_snapshot!(message(&error, disk), @"~/__sheaf__/manifest.json could not be written: No space left on device (os error 28)");
    assert_eq!(files(&path), before);

    let store = Store::new(disk.join("cache"));
    let error = put(&store, "q", "loss", &HUGE).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(matches!(store.get(&action("q").key()), Lookup::Miss(miss) if !miss.is_trouble()));

    // Earlier entries are intact, and recording works again once there is space.
    found(&ArtifactFolder::open(&path), "p");
    drop(free);
    fs::remove_file(disk.join("filler")).unwrap();
    record(&folder, "loss", 4, "q");
    put(&store, "q", "loss", b"q").unwrap();
    assert!(matches!(store.get(&action("q").key()), Lookup::Hit { .. }));
}

#[test]
fn read_only_disk() {
    let Some(disk) = std::env::var_os(DISK) else { return run_with_small_disk("full_disk::read_only_disk") };
    let disk = Path::new(&disk);
    let folder = ArtifactFolder::open(disk.join("__sheaf__"));
    let store = Store::new(disk.join("cache"));
    record(&folder, "forward", 4, "p");
    put(&store, "p", "forward", b"p").unwrap();
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(disk).status();
    assert!(remount.unwrap().success());

    found(&ArtifactFolder::open(disk.join("__sheaf__")), "p");
    assert!(matches!(store.get(&action("p").key()), Lookup::Hit { .. }));
    let error = folder.record(&action("q"), specialisation("loss", 4), b"q", 0).unwrap_err();
    insta::assert_snapshot!(message(&error, disk), @"~/__sheaf__ could not be written: Read-only file system (os error 30)");
    let error = put(&store, "q", "loss", b"q").unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::ReadOnlyFilesystem);

    // Nothing can be removed, and nothing is reported as removed.
    for collected in [store.collect(0), store.clear()] {
        assert_eq!((collected.removed, collected.kept), (Size::default(), store.size()));
        let (path, cause) = collected.stuck.unwrap();
        assert!(path.starts_with(disk) && cause.contains("Read-only file system"), "{cause}");
    }
    assert!(matches!(store.get(&action("p").key()), Lookup::Hit { .. }));
}
