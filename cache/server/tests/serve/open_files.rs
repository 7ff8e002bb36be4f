//! Exhausted file descriptors: a real limit, that of a child process.

use std::fs::File;
use std::process::Command;

use sheaf_foundation::Digest;
use tonic::Code;

use crate::common::{Serving, digest, noise};

const CHILD: &str = "SHEAF_TEST_FEW_FILES";

#[test]
fn a_server_without_files_to_open_says_to_come_back() {
    if std::env::var_os(CHILD).is_some() {
        tokio::runtime::Runtime::new().unwrap().block_on(without_files());
        return;
    }
    let name = "open_files::a_server_without_files_to_open_says_to_come_back";
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n 200 && exec "$0" --exact "$1""#]).env(CHILD, "1");
    assert!(command.arg(std::env::current_exe().unwrap()).arg(name).status().unwrap().success());
}

async fn without_files() {
    let server = Serving::start();
    let blob = noise(100_000, 1);
    // Existing connections stay open.
    let path = format!("cas/{}", server.put_blob(&blob).await);
    let mut clients = server.clients().await;
    let other = noise(100_000, 2);
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();

    // The client's connection comes back to its pool a moment after the answer; there is no file for another.
    let mut get = server.get(&path).send().await;
    for _ in 0..100 {
        if !get.as_ref().is_err_and(reqwest::Error::is_connect) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        get = server.get(&path).send().await;
    }
    let get = get.unwrap();
    assert_eq!(get.status(), 503);
    insta::assert_snapshot!(get.text().await.unwrap(), @"the server has too many files open: try again later");
    let put = server.put(&format!("cas/{}", Digest::of(&other)), other).send().await.unwrap();
    assert_eq!(put.status(), 503);
    let digests = vec![digest(&blob)];
    let read = bazel_remote_apis::build::bazel::remote::execution::v2::BatchReadBlobsRequest {
        digests,
        ..Default::default()
    };
    let responses = clients.cas.batch_read_blobs(read).await.unwrap().into_inner().responses;
    assert_eq!(responses[0].status.as_ref().unwrap().code, Code::Unavailable as i32);

    drop(taken);
    assert_eq!(server.bytes(&path).await, blob);
    server.stop().await;
}
