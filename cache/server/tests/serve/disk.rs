//! A full disk, a real one: a small file system that a child process mounts in its own mount namespace, which
//! disappears with the process.

use std::path::Path;
use std::process::{Command, Stdio};

use sheaf_foundation::Digest;

use crate::common::{Serving, encoded, files, noise};

const DISK: &str = "SHEAF_TEST_SERVE_DISK";

/// Command prefix for a new mount namespace, with a user namespace or as root; `None` if not permitted.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["--mount", "--map-root-user"], &["--mount"]];
    ways.into_iter().find(|way| {
        let mut trial = Command::new("unshare");
        trial.args(*way).args(["mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    })
}

#[test]
fn a_full_disk_is_said_and_keeps_nothing() {
    let Some(disk) = std::env::var_os(DISK) else {
        let Some(way) = namespace() else {
            eprintln!("SKIPPED a_full_disk_is_said_and_keeps_nothing: no mount namespace here");
            return;
        };
        let disk = tempfile::tempdir().unwrap();
        let script = r#"mount -t tmpfs -o size=1m none "$SHEAF_TEST_SERVE_DISK" && exec "$0" --exact "$1" --nocapture"#;
        let mut command = Command::new("unshare");
        let name = "disk::a_full_disk_is_said_and_keeps_nothing";
        command.args(way).args(["sh", "-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
        assert!(command.env(DISK, disk.path()).status().unwrap().success());
        return;
    };
    tokio::runtime::Runtime::new().unwrap().block_on(on_a_small_disk(Path::new(&disk)));
}

async fn on_a_small_disk(disk: &Path) {
    // The server's own limit is larger than the disk.
    let server = Serving::with(|options| options.folder = disk.into());
    let small = noise(100_000, 1);
    server.put_blob(&small).await;
    let before = files(disk);
    let large = noise(2_000_000, 2);
    let response = server.put(&format!("cas/{}", Digest::of(&large)), large).send().await.unwrap();
    assert_eq!(response.status(), 507);
    insta::assert_snapshot!(response.text().await.unwrap(), @"the server's disk is full");
    assert_eq!(files(disk), before);

    // Filled to the last byte: an action cache entry does not fit either.
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    assert!(std::io::copy(&mut std::io::repeat(0), &mut filler).is_err());
    let path = format!("ac/{}", Digest::of(b"action"));
    assert_eq!(server.put(&path, encoded(&small)).send().await.unwrap().status(), 507);
    // Earlier entries are still served, and uploads work again once there is space.
    assert_eq!(server.bytes(&format!("cas/{}", Digest::of(&small))).await, small);
    drop(filler);
    std::fs::remove_file(disk.join("filler")).unwrap();
    assert_eq!(server.put(&path, encoded(&small)).send().await.unwrap().status(), 201);
    assert_eq!(server.bytes(&path).await, encoded(&small));
    server.stop().await;
}
