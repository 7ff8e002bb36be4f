//! The server as a process: shutdown, kills while writing, and its memory while many clients download.

use std::error::Error;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::ReadRequest;
use futures_util::StreamExt as _;
use sheaf_foundation::Digest;
use tonic::Status;
use tonic::transport::Channel;

use crate::common::{Clients, client, digest, files, noise, text};
use crate::process::Process;
#[cfg(unix)]
use crate::process::send;

#[cfg(unix)]
#[tokio::test]
async fn tokens_are_read_anew_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let line = |token: &str| format!("write {}\n", Digest::of(token.as_bytes()));
    std::fs::write(&file, line("one")).unwrap();
    let server = Process::start(folder.path());
    let url = format!("http://{}/status", server.address);
    let client = client();
    let status =
        async |token: &str| client.get(&url).bearer_auth(token).send().await.unwrap().status().as_u16();
    assert_eq!((status("one").await, status("two").await), (200, 401));
    std::fs::write(&file, line("two")).unwrap();
    send("HUP", &server);
    while status("two").await != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status("one").await, 401);
    // A malformed file changes nothing. Its reload is not observable, so a valid one follows.
    std::fs::write(&file, "nonsense").unwrap();
    send("HUP", &server);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(status("two").await, 200);
    std::fs::write(&file, line("three")).unwrap();
    send("HUP", &server);
    while status("three").await != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_token_is_taken_back_also_where_nobody_reads_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let line = |token: &str| format!("write {}\n", Digest::of(token.as_bytes()));
    std::fs::write(&file, line("one")).unwrap();
    let mut server = Process::start(folder.path());
    // Its report panics from now on.
    drop(server.child.stdout.take());
    let url = format!("http://{}/status", server.address);
    let client = client();
    for token in ["two", "three"] {
        std::fs::write(&file, line(token)).unwrap();
        send("HUP", &server);
        while client.get(&url).bearer_auth(token).send().await.unwrap().status() != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(client.get(&url).bearer_auth("one").send().await.unwrap().status(), 401);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_is_asked_to_end_ends_well() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Process::start(folder.path());
        let client = client();
        let put = client.put(server.url(b"bytes")).body("bytes").send().await.unwrap();
        assert_eq!(put.status(), 201);
        send(signal, &server);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert!(client.get(server.url(b"bytes")).send().await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_leaves_no_half_blob() {
    let folder = tempfile::tempdir().unwrap();
    let blobs: Vec<Vec<u8>> =
        (0..40).map(|seed| if seed % 2 == 0 { noise(400_000, seed) } else { text(400_000, seed) }).collect();
    let mut kept = 0;
    for round in 0..10 {
        let mut server = Process::start(folder.path());
        let client = client();
        let put = |bytes: &Vec<u8>| client.put(server.url(bytes)).body(bytes.clone()).send();
        let puts: Vec<_> = blobs.iter().map(put).collect();
        let mut puts = futures_util::stream::iter(puts).buffer_unordered(8);
        // At another time in each round.
        let stop = tokio::time::sleep(Duration::from_millis(5 + 17 * round));
        tokio::pin!(stop);
        let mut answered = Vec::new();
        loop {
            tokio::select! {
                () = &mut stop => break,
                put = puts.next() => match put {
                    Some(Ok(response)) => answered.push(response.status()),
                    Some(Err(error)) => panic!("{error}"),
                    None => break,
                },
            }
        }
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        drop(puts);
        assert!(answered.iter().all(|status| *status == 201));

        // All remaining entries are whole.
        let server = Process::start(folder.path());
        let client = crate::common::client();
        let mut found = 0;
        for bytes in &blobs {
            let response = client.get(server.url(bytes)).send().await.unwrap();
            if response.status() == 200 {
                assert!(response.bytes().await.unwrap() == bytes[..]);
                found += 1;
            } else {
                assert_eq!(response.status(), 404);
            }
        }
        assert!(found >= answered.len(), "{found} of {} that were written", answered.len());
        assert!(found >= kept, "{kept} were there, now {found}");
        kept = found;
        drop(server);
        assert!(!files(folder.path()).iter().any(|name| name.starts_with("unfinished/")));
        // Some blobs are rewritten in the next round.
        if kept == blobs.len() {
            std::fs::remove_dir_all(folder.path().join("cas")).unwrap();
            kept = 0;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make nightly runs it"]
async fn memory_is_bounded_while_many_clients_pull() {
    // Uncompressed and compressed on disk.
    for bytes in [noise(4 << 20, 1), text(4 << 20, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let server = Process::start(folder.path());
        server.put(&client(), &bytes).await;
        let url = server.url(&bytes);
        // All have an answer before any is read to the end.
        let gets = (0..200).map(|_| client().get(&url).send());
        let responses = futures_util::future::join_all(gets).await;
        let reads = responses.into_iter().map(async |response| {
            let mut pieces = response.unwrap().bytes_stream();
            let mut length = 0;
            while let Some(piece) = pieces.next().await {
                length += piece.unwrap().len();
            }
            length
        });
        assert_eq!(futures_util::future::join_all(reads).await, vec![4 << 20; 200]);
        server.check_memory(200, "200 clients pulled 4 MiB each over http");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_while_many_clients_write() {
    let bytes = text(4 << 20, 1);
    let folder = tempfile::tempdir().unwrap();
    let server = Process::start(folder.path());
    // Created first: an idle client would be disconnected.
    let clients: Vec<_> = (0..100).map(|_| client()).collect();
    futures_util::future::join_all(clients.iter().map(|client| server.put(client, &bytes))).await;
    server.check_memory(200, "100 clients wrote 4 MiB each over http");
}

/// The answer to a request on a new connection. On a busy machine the server may put a connection out, for one of the others, before its
/// request has come; such a client comes again.
#[cfg(target_os = "linux")]
async fn unless_put_out<T>(request: impl AsyncFn() -> Result<T, Status>) -> T {
    let is_put_out =
        |status: &Status| status.source().is_some_and(<dyn Error>::is::<tonic::transport::Error>);
    for _ in 0..20 {
        match request().await {
            Err(status) if is_put_out(&status) => tokio::time::sleep(Duration::from_millis(100)).await,
            answer => return answer.unwrap(),
        }
    }
    panic!("put out 20 times");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make nightly runs it"]
async fn memory_is_bounded_while_many_clients_pull_over_grpc() {
    let bytes = text(4_100_000, 1);
    let folder = tempfile::tempdir().unwrap();
    let server = Process::start(folder.path());
    server.put(&client(), &bytes).await;
    let connect = async || {
        let endpoint = Channel::from_shared(format!("http://{}", server.address)).unwrap();
        Ok::<_, Status>(Clients::over(
            endpoint.connect().await.map_err(|error| Status::from_error(error.into()))?,
        ))
    };
    let reads = (0..200).map(|_| async {
        let resource_name = format!("blobs/{}/{}", Digest::of(&bytes), bytes.len());
        let request = ReadRequest { resource_name, ..Default::default() };
        let read = async || connect().await?.stream.read(request.clone()).await;
        let mut pieces = unless_put_out(read).await.into_inner();
        let mut length = 0;
        while let Some(piece) = pieces.message().await.unwrap() {
            length += piece.data.len();
        }
        length
    });
    assert_eq!(futures_util::future::join_all(reads).await, vec![bytes.len(); 200]);
    server.check_memory(200, "200 clients pulled 4 MB each by ByteStream");

    // Whole in one message, which must be in memory as a whole.
    let reads = (0..200).map(|_| async {
        let digests = vec![digest(&bytes)];
        let request = reapi::BatchReadBlobsRequest { digests, ..Default::default() };
        let read = async || connect().await?.cas.batch_read_blobs(request.clone()).await;
        let batch = unless_put_out(read).await.into_inner();
        batch.responses[0].data.len()
    });
    assert_eq!(futures_util::future::join_all(reads).await, vec![bytes.len(); 200]);
    server.check_memory(200, "200 clients pulled 4 MB each by BatchReadBlobs");
}
