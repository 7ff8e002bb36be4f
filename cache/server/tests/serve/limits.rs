//! Slow clients, many clients, and shutdown.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sheaf_foundation::Digest;
use tonic::{Code, Status};

use crate::common::{Serving, files, noise};

/// Time for which the server keeps a connection that sends `sent` and nothing more.
async fn kept(server: &Serving, sent: String) -> Duration {
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let read = move || {
        let start = Instant::now();
        socket.write_all(sent.as_bytes()).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
        start.elapsed()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_send_nothing_are_let_go() {
    let server = Serving::with(|options| {
        options.header_timeout = Duration::from_millis(300);
        options.idle_timeout = Duration::from_millis(600);
    });
    let digest = Digest::of(b"bytes");
    let body = format!("PUT /cas/{digest} HTTP/1.1\r\nHost: cache\r\nContent-Length: 5\r\n\r\nby");
    for sent in [String::new(), "GET /sta".into(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), body] {
        let kept = kept(&server, sent.clone()).await;
        assert!(kept < Duration::from_secs(10), "{sent:?} was kept for {kept:?}");
    }
    assert_eq!(server.status("status").await, 200);
    assert_eq!(files(server.folder.path()), ["lock"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_allowed_wait() {
    let mut server = Serving::with(|options| options.max_connections = 2);
    let path = format!("cas/{}", server.put_blob(&noise(100_000, 1)).await);
    // The client's keep-alive connection is one of them.
    server.http = crate::common::client();
    let held: Vec<TcpStream> = (0..2).map(|_| unfinished(&server)).collect();
    while files(server.folder.path()).iter().filter(|name| name.starts_with("unfinished/")).count() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut get = Box::pin(server.bytes(&path));
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut get).await.is_err(), "a third is served");
    drop(held);
    assert_eq!(get.await.len(), 100_000);
    server.stop().await;
}

/// A request whose rest never arrives.
fn unfinished(server: &Serving) -> TcpStream {
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let digest = Digest::of(b"bytes");
    let head = format!("PUT /cas/{digest} HTTP/1.1\r\nHost: cache\r\nContent-Length: 5\r\n\r\nby");
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

/// The status of a batch that is sent too slowly to end.
async fn slow_batch(client: &reqwest::Client, server: &Serving, method: &str, token: &str) -> Code {
    let url = server.url(&format!("build.bazel.remote.execution.v2.ContentAddressableStorage/{method}"));
    // A message of 65,536 bytes, as its head says.
    let pieces = futures_util::stream::unfold(vec![0, 0, 1, 0, 0], async |piece| {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Some((std::io::Result::Ok(piece), vec![0]))
    });
    let request = client.post(url).body(reqwest::Body::wrap_stream(pieces)).bearer_auth(token);
    let response = request.header("content-type", "application/grpc").header("te", "trailers").send().await;
    Status::from_header_map(response.unwrap().headers()).unwrap().code()
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_do_not_come_keep_others_out_for_a_while_only() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let lines = ["write", "read"].map(|role| format!("{role} {}", Digest::of(role.as_bytes())));
    std::fs::write(&tokens, lines.join("\n")).unwrap();
    let server = Serving::on(folder, |options| {
        options.tokens = Some(tokens);
        options.header_timeout = Duration::from_secs(1);
        options.idle_timeout = Duration::from_secs(5);
    });
    let client = || reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    crate::common::install_provider();

    // A read-only client gets no permit for writing.
    let start = Instant::now();
    assert_eq!(slow_batch(&client(), &server, "BatchUpdateBlobs", "read").await, Code::PermissionDenied);
    assert!(start.elapsed() < Duration::from_secs(1));
    let start = Instant::now();

    let one = async |method| slow_batch(&client(), &server, method, "write").await;
    let eight = futures_util::future::join_all((0..8).map(|_| one("BatchUpdateBlobs")));
    let ninth = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        (one("BatchReadBlobs").await, Instant::now())
    };
    let (eight, (ninth, refused)) = tokio::join!(eight, ninth);
    assert_eq!(eight, [Code::DeadlineExceeded; 8]);
    assert_eq!(ninth, Code::Unavailable);
    assert!(refused.duration_since(start) < Duration::from_secs(5), "it is told before a turn is free");
    // Then there are permits again.
    assert_eq!(one("BatchReadBlobs").await, Code::DeadlineExceeded);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_are_finished_at_the_end() {
    let mut server = Serving::with(|options| options.stop_timeout = Duration::from_secs(20));
    let bytes = noise(2_000_000, 1);
    let path = format!("cas/{}", Digest::of(&bytes));
    let (sender, receiver) = tokio::sync::mpsc::channel::<std::io::Result<Vec<u8>>>(1);
    let body = reqwest::Body::wrap_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let put = tokio::spawn(server.put(&path, body).send());
    for piece in bytes[..1_000_000].chunks(100_000) {
        sender.send(Ok(piece.to_vec())).await.unwrap();
    }
    // Once the server has received some of it, the request is in progress.
    while !files(server.folder.path()).iter().any(|name| name.starts_with("unfinished/")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.ask_to_stop();
    // New connections are refused.
    while TcpStream::connect(&server.address).is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for piece in bytes[1_000_000..].chunks(100_000) {
        sender.send(Ok(piece.to_vec())).await.unwrap();
    }
    drop(sender);
    assert_eq!(put.await.unwrap().unwrap().status(), 201);
    let folder = server.stop().await;
    let server = Serving::on(folder, |_| ());
    assert_eq!(server.bytes(&path).await, bytes);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_ever() {
    let server = Serving::with(|options| options.stop_timeout = Duration::from_millis(300));
    let _socket = unfinished(&server);
    while files(server.folder.path()).len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let start = Instant::now();
    let folder = server.stop().await;
    assert!(start.elapsed() < Duration::from_secs(20));
    drop(Serving::on(folder, |_| ()).stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_trickle_are_let_go() {
    let server = Serving::with(|options| options.header_timeout = Duration::from_millis(500));
    let head = "GET /status HTTP/1.1\r\nx: ";
    // An HTTP/2 ping; each is answered.
    let hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for (hello, more) in [(head, "y"), (hello, "\0\0\x08\x06\0\0\0\0\0pingping")] {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        let trickle = move || {
            let start = Instant::now();
            socket.write_all(hello.as_bytes()).unwrap();
            while start.elapsed() < Duration::from_secs(20) && socket.write_all(more.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
            start.elapsed()
        };
        let kept = tokio::task::spawn_blocking(trickle).await.unwrap();
        assert!(kept < Duration::from_secs(10), "{hello:?} was kept for {kept:?}");
    }
    assert_eq!(server.status("status").await, 200);
    server.stop().await;
}
