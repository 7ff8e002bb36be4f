//! Buckets and folders as caches.

use std::fs;

use sheaf_cache::remote::objects::Objects;
use sheaf_cache::remote::{Address, RemoteError};

use crate::checks::{self, keeps_its_promises};
use crate::servers;

fn folder(folder: &std::path::Path) -> Objects {
    Objects::new(&format!("file://{}", folder.display()), []).expect("an address")
}

fn bucket(address: &str, port: u16, key: &str) -> Objects {
    let variables = [
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", if key == "S3RVER" { key } else { "wrong-secret" }),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}")),
    ];
    Objects::new(address, variables.map(|(name, value)| (name.into(), value.into()))).expect("an address")
}

#[tokio::test]
async fn a_folder_is_a_cache() {
    let base = tempfile::tempdir().expect("a folder");
    let path = base.path().join("made at the first write/100%");
    let remote =
        Objects::new(&format!("file://{}/made%20at%20the%20first%20write/100%25", base.path().display()), []);
    let remote = remote.expect("an address");
    keeps_its_promises!(remote, "folder");
    assert!(path.join("cas").join(Address::of(b"").digest.to_string()).is_file());
    let names: Vec<_> =
        fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn nothing_is_made_by_reading() {
    let base = tempfile::tempdir().expect("a folder");
    let remote = folder(&base.path().join("cache"));
    assert_eq!(remote.read(Address::of(b"x")).await, Ok(None));
    assert_eq!(remote.missing(&[Address::of(b"x")]).await, Ok(vec![Address::of(b"x")]));
    assert!(!base.path().join("cache").exists());
}

#[tokio::test]
async fn what_is_damaged_in_a_folder_is_refused_and_written_anew() {
    let base = tempfile::tempdir().expect("a folder");
    let remote = folder(base.path());
    let bytes = checks::bytes("damage", 5000);
    let blob = Address::of(&bytes);
    let file = base.path().join("cas").join(blob.digest.to_string());
    remote.write(blob, bytes.clone()).await.expect("written");

    // Truncated and extended: missing for writers, refused for readers.
    fs::write(&file, &bytes[..4000]).expect("cut");
    assert!(matches!(remote.read(blob).await, Err(RemoteError::Altered { .. })));
    assert_eq!(remote.missing(&[blob]).await, Ok(vec![blob]));
    fs::write(&file, [&bytes[..], b"more"].concat()).expect("made longer");
    let error = remote.read(blob).await.expect_err("too long");
    assert!(
        matches!(&error, RemoteError::Unreadable { cause, .. } if cause.contains("more than 5000 bytes")),
        "{error}"
    );
    assert_eq!(remote.missing(&[blob]).await, Ok(vec![blob]));
    remote.write(blob, bytes.clone()).await.expect("written again");
    assert_eq!(remote.read(blob).await, Ok(Some(bytes)));

    // An invalid entry.
    let action = Address::of(b"action");
    fs::create_dir_all(base.path().join("ac")).expect("a folder");
    fs::write(base.path().join("ac").join(action.digest.to_string()), b"\xff\xff\xff").expect("written");
    assert!(matches!(remote.action_result(action).await, Err(RemoteError::Unreadable { .. })));
}

#[tokio::test]
async fn a_bucket_is_a_cache() {
    let Some(server) = servers::s3rver() else { return };
    keeps_its_promises!(bucket("s3://sheaf", server.port, "S3RVER"), "bucket");
    keeps_its_promises!(bucket("s3://sheaf/team/main/", server.port, "S3RVER"), "prefix");
}

#[tokio::test]
async fn unknown_keys_are_refused_and_not_shown() {
    let Some(server) = servers::s3rver() else { return };
    let remote = bucket("s3://sheaf", server.port, "STRANGER");
    assert!(!format!("{remote:?}").contains("wrong-secret"));
    let error = remote.write(Address::of(b"x"), "x".into()).await.expect_err("an unknown key");
    assert!(matches!(error, RemoteError::Refused { .. }), "{error}");
    assert!(!error.to_string().contains("wrong-secret"));
}

#[tokio::test]
async fn a_store_that_is_not_there_is_unreachable() {
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let error = bucket("s3://sheaf", port, "S3RVER").read(Address::of(b"x")).await.expect_err("no server");
    assert!(matches!(error, RemoteError::Unreachable { .. }), "{error}");
}

#[test]
fn other_addresses_are_refused_without_their_keys() {
    let refused = |address| Objects::new(address, []).expect_err(address).to_string();
    insta::assert_snapshot!(refused("http://a/b"), @"`http://a/b` is not the address of a remote cache: it is neither of the form s3://BUCKET/PREFIX nor file:///FOLDER");
    insta::assert_snapshot!(refused("s3://key:secret@bucket"), @"`s3://bucket` is not the address of a remote cache: it is not of the form s3://BUCKET/PREFIX; keys are environment variables");
    for address in ["", "s3://", "s3:bucket", "file://host/folder", "x://key:secret@bucket"] {
        assert!(!refused(address).contains("secret"));
    }
}
