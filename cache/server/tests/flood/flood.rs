//! Malicious load on the server: its memory, and its service to other clients meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use prost::Message as _;
use sheaf_foundation::Digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use crate::common::{client, digest, install_provider, noise};
use crate::process::Process;

/// Serialises the tests, each of which needs the whole machine.
static TURN: Mutex<()> = Mutex::const_new(());

/// A server with the tokens `read` and `write`.
fn guarded(folder: &Path) -> Process {
    let lines = ["write", "read"].map(|role| format!("{role} {}", Digest::of(role.as_bytes())));
    std::fs::write(folder.join("tokens"), lines.join("\n")).unwrap();
    Process::start(folder)
}

impl Process {
    async fn put_with_token(&self, path: &str, bytes: Vec<u8>) {
        let url = format!("http://{}/{path}", self.address);
        let put = client().put(url).bearer_auth("write").body(bytes).send().await.unwrap();
        assert_eq!(put.status(), 201);
    }

    /// The answer to a message that lacks its last byte; `None` without an answer within some seconds.
    async fn unfinished(
        &self,
        client: &reqwest::Client,
        path: &str,
        length: usize,
        token: &str,
    ) -> Option<Code> {
        let mut message = vec![0];
        message.extend((length as u32).to_be_bytes());
        // Empty parts, of which the most fit into a message.
        let rest = [0x12, 0].repeat(length / 2);
        message.extend(&rest[..length - 1]);
        let pieces = stream::iter(message.chunks(64 * 1024).map(<[u8]>::to_vec).collect::<Vec<_>>());
        let body = pieces.map(std::io::Result::Ok).chain(stream::pending());
        let request = client.post(format!("http://{}/{path}", self.address));
        let request = request.body(reqwest::Body::wrap_stream(body)).bearer_auth(token);
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        // A refused stream may end before its answer is read.
        let response = timeout(Duration::from_secs(5), request.send()).await.ok()?.ok()?;
        Some(Status::from_header_map(response.headers()).unwrap().code())
    }
}

/// A client with connections of its own.
fn http2() -> reqwest::Client {
    install_provider();
    reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

const REAPI: &str = "build.bazel.remote.execution.v2";

/// The methods whose requests are single messages.
fn methods() -> [String; 7] {
    [
        format!("{REAPI}.ActionCache/GetActionResult"),
        format!("{REAPI}.ActionCache/UpdateActionResult"),
        format!("{REAPI}.Capabilities/GetCapabilities"),
        format!("{REAPI}.ContentAddressableStorage/FindMissingBlobs"),
        format!("{REAPI}.ContentAddressableStorage/GetTree"),
        "google.bytestream.ByteStream/Read".into(),
        "google.bytestream.ByteStream/QueryWriteStatus".into(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_strangers_are_not_taken_in() {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let (server_ref, methods) = (&server, methods());
    let clients: Vec<_> = (0..4).map(|_| http2()).collect();
    let requests = clients.iter().flat_map(|client| {
        let methods = methods.iter().cycle().take(64);
        methods.map(move |path| server_ref.unfinished(client, path, 5_000_000, "unknown"))
    });
    let codes = join_all(requests).await;
    assert!(codes.iter().flatten().all(|code| *code == Code::Unauthenticated), "{codes:?}");
    // A connection that keeps sending an unwanted body is closed.
    assert!(codes.iter().flatten().count() > 0, "{codes:?}");
    server.check_memory(100, "256 messages of 5 MB without a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_taken_in_as_there_is_room() {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let server_ref = &server;
    let path = format!("{REAPI}.ContentAddressableStorage/FindMissingBlobs");
    let clients: Vec<_> = (0..4).map(|_| http2()).collect();
    // Requests of the maximum size wait. Larger ones are refused at once.
    for (length, expected) in [(2_000_000, None), (5_000_000, Some(Code::OutOfRange))] {
        let requests = clients
            .iter()
            .flat_map(|client| (0..64).map(|_| server_ref.unfinished(client, &path, length, "read")));
        let codes = join_all(requests).await;
        assert!(codes.iter().all(|code| code.is_none() || *code == expected), "{codes:?}");
    }
    // No method accepts a message larger than it needs.
    let small =
        methods().into_iter().filter(|path| !path.contains("UpdateAction") && !path.contains("FindMissing"));
    for path in small {
        let code = server.unfinished(&http2(), &path, 100_000, "read").await;
        assert_eq!(code, Some(Code::OutOfRange), "{path}");
    }
    server.check_memory(300, "512 messages of 2 and 5 MB of a reader");
}

/// Ways in which a malicious client keeps a connection open.
#[derive(Clone, Copy)]
enum Manner {
    /// Sends nothing.
    Idle,
    /// Sends a head, byte by byte.
    Trickling,
    /// Speaks HTTP/2, and sends pings.
    Pinging,
    /// Sends a body without a token.
    Sending,
}

/// Reconnects as soon as it is disconnected, until it is dropped.
async fn stranger(address: String, manner: Manner) {
    loop {
        if let Ok(mut socket) = TcpStream::connect(&address).await {
            let _ = keep(&mut socket, manner).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn keep(socket: &mut TcpStream, manner: Manner) -> std::io::Result<()> {
    match manner {
        Manner::Idle => {
            socket.read_to_end(&mut Vec::new()).await?;
        }
        Manner::Trickling => {
            for byte in b"GET /status HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
                socket.write_all(&[*byte]).await?;
                sleep(Duration::from_millis(100)).await;
            }
        }
        Manner::Pinging => {
            socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
            loop {
                socket.write_all(b"\0\0\x08\x06\0\0\0\0\0pingping").await?;
                sleep(Duration::from_millis(100)).await;
            }
        }
        Manner::Sending => {
            let path = Digest::of(b"bytes");
            let head =
                format!("PUT /cas/{path} HTTP/1.1\r\nHost: cache\r\nContent-Length: 100000000\r\n\r\n");
            socket.write_all(head.as_bytes()).await?;
            loop {
                socket.write_all(&[0; 10_000]).await?;
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make nightly runs it"]
async fn a_reader_is_served_beside_four_hundred_strangers() {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let blob = noise(300_000, 1);
    server.put_with_token(&format!("cas/{}", Digest::of(&blob)), blob.clone()).await;
    let manners = [Manner::Idle, Manner::Trickling, Manner::Pinging, Manner::Sending];
    let strangers = (0..400).map(|number| stranger(server.address.clone(), manners[number % 4]));
    let strangers: Vec<_> = strangers.map(tokio::spawn).collect();
    sleep(Duration::from_secs(1)).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let start = Instant::now();
        // A new connection, as in a run.
        let response = client().get(server.url(&blob)).bearer_auth("read").send().await.unwrap();
        assert_eq!(response.bytes().await.unwrap().len(), blob.len());
        slowest = slowest.max(start.elapsed());
        sleep(Duration::from_millis(250)).await;
    }
    strangers.iter().for_each(tokio::task::JoinHandle::abort);
    println!("the slowest of 20 reads took {} ms", slowest.as_millis());
    assert!(slowest < Duration::from_secs(2), "a reader had to wait for {slowest:?}");
    server.check_memory(300, "400 connections without a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_tree_costs_no_more_than_its_bytes() {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    // Empty folders: two bytes each, and fifty times as much when decoded.
    for (action, length) in [(b"small", 4_000_000), (b"large", 16_000_000)] {
        let tree = [0x12, 0].repeat(length / 2);
        let folder = reapi::OutputDirectory { tree_digest: Some(digest(&tree)), ..Default::default() };
        let result = reapi::ActionResult { output_directories: vec![folder; 100], ..Default::default() };
        server.put_with_token(&format!("cas/{}", Digest::of(&tree)), tree).await;
        let path = format!("ac/{}", Digest::of(action));
        server.put_with_token(&path, result.encode_to_vec()).await;
        let url = format!("http://{}/{path}", server.address);
        let gets = (0..8).map(|_| client().get(&url).bearer_auth("read").send());
        for response in join_all(gets).await {
            assert_eq!(response.unwrap().status(), 200);
        }
    }
    // A result of the same kind is refused.
    let result = [0x12, 0].repeat(100_000);
    let url = format!("http://{}/ac/{}", server.address, Digest::of(b"empty"));
    let put = client().put(url).bearer_auth("write").body(result).send().await.unwrap();
    assert_eq!(put.status(), 400);
    server.check_memory(150, "16 reads of results with large trees");
}
