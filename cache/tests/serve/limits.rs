//! Slow clients, many clients, and the end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use sheaf_cache::Digest;

use crate::common::{Serving, files, noise};

/// How long the server keeps a connection on which `sent` came and nothing more.
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
    let server = Serving::with(|options| {
        options.max_connections = 2;
        options.header_timeout = Duration::from_millis(500);
        options.idle_timeout = Duration::from_secs(30);
    });
    let path = format!("cas/{}", server.put_blob(&noise(100_000, 1)).await);
    // Each client has a connection of its own; the server serves two at a time.
    let gets = (0..20).map(|_| async {
        let client = crate::common::client();
        let response = client.get(server.url(&path)).header("connection", "close").send().await.unwrap();
        response.bytes().await.unwrap().len()
    });
    assert_eq!(futures_util::stream::iter(gets).buffer_unordered(3).collect::<Vec<_>>().await, [100_000; 20]);
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
    // Once the server has some of it, the request is under way.
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
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("PUT /cas/{} HTTP/1.1\r\nHost: cache\r\nContent-Length: 5\r\n\r\nby", Digest::of(b"bytes"));
    socket.write_all(head.as_bytes()).unwrap();
    while files(server.folder.path()).len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let start = Instant::now();
    let folder = server.stop().await;
    assert!(start.elapsed() < Duration::from_secs(20));
    drop(Serving::on(folder, |_| ()).stop().await);
}
