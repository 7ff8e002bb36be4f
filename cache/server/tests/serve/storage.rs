//! The storage folder: kept, evicted and damaged entries.

use std::fs;

use sheaf_cache_server::{ServeError, Server};
use sheaf_foundation::Digest;

use crate::common::{Serving, encoded, files, noise, options, text};

#[tokio::test]
async fn a_new_server_finds_what_an_older_one_kept() {
    let server = Serving::start();
    let (plain, packed, action) = (noise(300_000, 1), text(300_000, 1), Digest::of(b"action"));
    for bytes in [&plain, &packed] {
        server.put_blob(bytes).await;
    }
    server.put(&format!("ac/{action}"), encoded(&plain)).send().await.unwrap();
    let space = server.number("bytes").await;
    let folder = server.stop().await;
    let names = files(folder.path());
    let name = |bytes: &[u8]| Digest::of(bytes).to_string();
    assert!(names.contains(&format!("cas/{}/{}", &name(&plain)[..2], name(&plain))), "{names:?}");
    assert!(
        names.contains(&format!("cas/{}/{}.300000.zst", &name(&packed)[..2], name(&packed))),
        "{names:?}"
    );
    assert!(names.contains(&format!("ac/{}/{action}", &action.to_string()[..2])), "{names:?}");

    // Foreign files are kept, and unfinished ones removed.
    fs::write(folder.path().join("cas/notes.txt"), "mine").unwrap();
    fs::write(folder.path().join("unfinished/x"), "half").unwrap();
    let server = Serving::on(folder, |_| ());
    assert_eq!(server.number("bytes").await, space);
    assert_eq!((server.number("actions").await, server.number("blobs").await), (1, 2));
    for bytes in [plain, packed] {
        assert_eq!(server.bytes(&format!("cas/{}", Digest::of(&bytes))).await, bytes);
    }
    assert_eq!(server.status(&format!("ac/{action}")).await, 200);
    let folder = server.stop().await;
    assert!(folder.path().join("cas/notes.txt").exists());
    assert!(!folder.path().join("unfinished/x").exists());
}

#[tokio::test]
async fn what_was_not_used_for_longest_goes_first() {
    // Capacity for four blobs of 100 kB, each of which takes 25 blocks.
    let server = Serving::with(|options| options.capacity = 4 * 25 * 4096);
    let blobs: Vec<_> = (0..6).map(|seed| noise(100_000, seed)).collect();
    let path = |index: usize| format!("cas/{}", Digest::of(&blobs[index]));
    for blob in &blobs[..4] {
        server.put_blob(blob).await;
    }
    assert_eq!(server.number("evictions").await, 0);
    server.bytes(&path(0)).await;
    for blob in &blobs[4..] {
        server.put_blob(blob).await;
    }
    let mut there = Vec::new();
    for index in 0..6 {
        there.push(server.status(&path(index)).await == 200);
    }
    assert_eq!(there, [true, false, false, true, true, true]);
    assert_eq!((server.number("evictions").await, server.number("bytes").await), (2, 4 * 25 * 4096));
    // A blob larger than the capacity is refused at once.
    let large = noise(4 * 25 * 4096 + 1, 9);
    assert_eq!(server.put(&format!("cas/{}", Digest::of(&large)), large).send().await.unwrap().status(), 413);
    assert_eq!(server.number("blobs").await, 4);
    let folder = server.stop().await;

    // A smaller capacity: the next server evicts in the same order.
    server_with_room_for_one(folder, &path(5)).await;
}

async fn server_with_room_for_one(folder: tempfile::TempDir, last: &str) {
    let server = Serving::on(folder, |options| options.capacity = 25 * 4096);
    assert_eq!(server.number("blobs").await, 1);
    assert_eq!(server.status(last).await, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_entry_that_is_used_keeps_its_blobs() {
    let server = Serving::with(|options| options.capacity = 3 * 25 * 4096 + 4096);
    let (program, action) = (noise(100_000, 0), Digest::of(b"action"));
    server.put_blob(&program).await;
    server.put(&format!("ac/{action}"), encoded(&program)).send().await.unwrap();
    for seed in 1..10 {
        assert_eq!(server.status(&format!("ac/{action}")).await, 200);
        server.put_blob(&noise(100_000, seed)).await;
    }
    assert_eq!(server.bytes(&format!("cas/{}", Digest::of(&program))).await, program);
    server.stop().await;
}

#[tokio::test]
async fn a_damaged_file_is_never_given_out_whole() {
    for bytes in [noise(300_000, 1), text(300_000, 1)] {
        let server = Serving::start();
        let path = format!("cas/{}", server.put_blob(&bytes).await);
        let name = files(server.folder.path()).into_iter().find(|name| name.starts_with("cas")).unwrap();
        let file = server.folder.path().join(&name);
        let mut damaged = fs::read(&file).unwrap();
        let last = damaged.len() - 10;
        damaged[last] ^= 1;
        fs::write(&file, damaged).unwrap();
        let response = server.get(&path).send().await.unwrap();
        assert!(response.bytes().await.is_err());
        // After that it is a miss, and can be rewritten.
        assert_eq!(server.status(&path).await, 404);
        assert!(!file.exists());
        server.put_blob(&bytes).await;
        assert_eq!(server.bytes(&path).await, bytes);
        // A truncated file, and a missing one.
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert!(server.get(&path).send().await.unwrap().bytes().await.is_err());
        server.put_blob(&bytes).await;
        fs::remove_file(&file).unwrap();
        assert_eq!(server.status(&path).await, 404);
        assert_eq!(server.number("blobs").await, 0);
        server.stop().await;
    }
}

#[tokio::test]
async fn two_servers_do_not_share_a_folder() {
    let server = Serving::start();
    let error = Server::bind(&options(server.folder.path())).err().unwrap();
    assert!(matches!(&error, ServeError::FolderInUse { .. }), "{error}");
    assert_eq!(error.remedy(), "stop the other server, or give this one another folder");
    let folder = server.stop().await;
    Server::bind(&options(folder.path())).unwrap();
}

#[tokio::test]
async fn one_blob_from_many_at_once_is_kept_once() {
    let server = Serving::start();
    let bytes = text(500_000, 1);
    let path = format!("cas/{}", Digest::of(&bytes));
    let puts = (0..20).map(|_| server.put(&path, bytes.clone()).send());
    for response in futures_util::future::join_all(puts).await {
        assert_eq!(response.unwrap().status(), 201);
    }
    assert_eq!(server.number("blobs").await, 1);
    assert_eq!(server.bytes(&path).await, bytes);
    let folder = server.stop().await;
    assert_eq!(files(folder.path()).len(), 2);
}
