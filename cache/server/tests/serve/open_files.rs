//! Exhausted file descriptors: a real limit, that of a child process.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::BatchReadBlobsRequest;
use reqwest::{RequestBuilder, Response};
use sheaf_foundation::Digest;
use tonic::Code;

use crate::common::{Serving, digest, noise};

const CHILD: &str = "SHEAF_TEST_FEW_FILES";

/// Maximum number of requests until one of them finds no file to open.
const TRIES: usize = 200;

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
    let mut taken = Vec::new();

    let digests = vec![digest(&blob)];
    let read = BatchReadBlobsRequest { digests, ..Default::default() };
    let mut code = 0;
    for _ in 0..TRIES {
        take_files(&mut taken).await;
        let responses = clients.cas.batch_read_blobs(read.clone()).await.unwrap().into_inner().responses;
        code = responses[0].status.as_ref().unwrap().code;
        if code != 0 {
            break;
        }
    }
    assert_eq!(code, Code::Unavailable as i32);

    let get = refused(&mut taken, || server.get(&path)).await;
    assert_eq!(get.status(), 503);
    insta::assert_snapshot!(get.text().await.unwrap(), @"the server has too many files open: try again later");
    // A refused upload comes last: the server may close its connection, which frees files.
    let other_path = format!("cas/{}", Digest::of(&other));
    let put = refused(&mut taken, || server.put(&other_path, other.clone())).await;
    assert_eq!(put.status(), 503);

    drop(taken);
    assert_eq!(server.bytes(&path).await, blob);
    server.stop().await;
}

/// Takes the files that the process may still open, of those too that were closed a moment after the last response.
async fn take_files(taken: &mut Vec<File>) {
    tokio::time::sleep(Duration::from_millis(20)).await;
    taken.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
}

/// The first refusal of a request, sent over an existing connection.
///
/// A connection returns to the client's pool a moment after its last response: until then the client fails to connect.
async fn refused(taken: &mut Vec<File>, request: impl Fn() -> RequestBuilder) -> Response {
    for _ in 0..TRIES {
        take_files(taken).await;
        match request().send().await {
            Ok(response) if response.status().is_success() => {}
            Err(error) if error.is_connect() => {}
            response => return response.unwrap(),
        }
    }
    panic!("neither refused nor sent over an existing connection");
}
