//! Bazel's simple http cache.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use sheaf_foundation::Digest;

use crate::common::{Serving, encoded, files, noise, text};

#[tokio::test]
async fn what_is_put_is_got() {
    let server = Serving::start();
    for bytes in [b"".to_vec(), b"a".to_vec(), noise(300_000, 1), text(300_000, 1), text(131_072, 2)] {
        let digest = server.put_blob(&bytes).await;
        assert_eq!(server.bytes(&format!("cas/{digest}")).await, bytes);
        // The same cache below any path.
        let response = server.get(&format!("any/path/cas/{digest}")).send().await.unwrap();
        assert_eq!(response.content_length(), Some(bytes.len() as u64));
        assert_eq!(response.bytes().await.unwrap(), bytes);
        let head = server.http.head(server.url(&format!("cas/{digest}"))).send().await.unwrap();
        assert_eq!(head.status(), 200);
        assert_eq!(head.headers()["content-length"], bytes.len().to_string());
    }

    let (program, action) = (noise(1000, 2), Digest::of(b"action"));
    server.put_blob(&program).await;
    let response = server.put(&format!("cache/ac/{action}"), encoded(&program)).send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(server.bytes(&format!("ac/{action}")).await, encoded(&program));
    assert_eq!(server.http.head(server.url(&format!("ac/{action}"))).send().await.unwrap().status(), 200);
    // The digest of an action is not a blob.
    assert_eq!(server.status(&format!("cas/{action}")).await, 404);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let server = Serving::start();
    let digest = Digest::of(b"nothing");
    for path in [format!("ac/{digest}"), format!("cas/{digest}"), "cas/abc".into(), "x".into(), String::new()]
    {
        assert_eq!(server.status(&path).await, 404, "{path}");
        let head = server.http.head(server.url(&path)).send().await.unwrap();
        assert_eq!(head.status(), 404, "{path}");
    }
    let delete = server.http.delete(server.url(&format!("cas/{digest}"))).send().await.unwrap();
    assert_eq!(
        (delete.status().as_u16(), &delete.headers()["allow"]),
        (405, &"GET, HEAD, PUT".parse().unwrap())
    );
    assert_eq!(server.put("x", "bytes").send().await.unwrap().status(), 404);
    server.stop().await;
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_not_kept() {
    let server = Serving::start();
    let digest = Digest::of(b"right");
    for wrong in [b"wrong".to_vec(), b"".to_vec(), noise(500_000, 1)] {
        let response = server.put(&format!("cas/{digest}"), wrong).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let found = response.text().await.unwrap();
        assert!(found.contains(&format!("not {digest}")), "{found}");
    }
    assert_eq!(server.status(&format!("cas/{digest}")).await, 404);
    let folder = server.stop().await;
    assert_eq!(files(folder.path()), ["lock"]);
}

#[tokio::test]
async fn only_action_results_are_entries_of_the_action_cache() {
    let server = Serving::start();
    let action = Digest::of(b"action");
    let path = format!("ac/{action}");
    for wrong in [b"{\"json\": 1}".to_vec(), noise(1000, 1)] {
        assert_eq!(server.put(&path, wrong).send().await.unwrap().status(), 400);
    }
    // A protobuf message, with a malformed digest.
    let mut result = crate::common::result(b"program");
    result.output_files[0].digest.as_mut().unwrap().hash = "../../etc/passwd".into();
    let response = server.put(&path, prost::Message::encode_to_vec(&result)).send().await.unwrap();
    assert_eq!(response.status(), 400);
    insta::assert_snapshot!(response.text().await.unwrap(), @"the body is no ActionResult: `../../etc/passwd` with 7 bytes is no digest");
    result.stdout_raw = noise(1_100_000, 1);
    let response = server.put(&path, prost::Message::encode_to_vec(&result)).send().await.unwrap();
    assert_eq!(response.status(), 413);
    let folder = server.stop().await;
    assert_eq!(files(folder.path()), ["lock"]);
}

#[tokio::test]
async fn an_entry_without_its_blobs_is_a_miss() {
    let server = Serving::start();
    let (program, action) = (noise(1000, 1), Digest::of(b"action"));
    let path = format!("ac/{action}");
    assert_eq!(server.put(&path, encoded(&program)).send().await.unwrap().status(), 201);
    assert_eq!(server.status(&path).await, 404);
    server.put_blob(&program).await;
    assert_eq!(server.status(&path).await, 200);
    assert_eq!((server.number("action_hits").await, server.number("action_misses").await), (1, 1));
    server.stop().await;
}

#[tokio::test]
async fn entries_are_given_out_as_they_were_written() {
    let server = Serving::start();
    // A field of no version of the message: number 999, a text.
    let mut bytes = encoded(b"");
    bytes.extend([0xba, 0x3e, 3]);
    bytes.extend(b"new");
    let path = format!("ac/{}", Digest::of(b"action"));
    assert_eq!(server.put(&path, bytes.clone()).send().await.unwrap().status(), 201);
    assert_eq!(server.bytes(&path).await, bytes);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_before_sending_need_not_send_in_vain() {
    let server = Serving::with(|options| options.max_blob = 1_000_000);
    let ask = |length: usize| {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        let head = format!(
            "PUT /cas/{} HTTP/1.1\r\nHost: cache\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n",
            Digest::of(b"bytes")
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.into()).unwrap()
    };
    assert_eq!(ask(2_000_000), "HTTP/1.1 413");
    assert_eq!(ask(5), "HTTP/1.1 100");
    server.stop().await;
}

#[tokio::test]
async fn blobs_have_a_largest_size() {
    let server = Serving::with(|options| options.max_blob = 1_000_000);
    let (fits, large) = (noise(1_000_000, 1), noise(1_000_001, 2));
    server.put_blob(&fits).await;
    let path = format!("cas/{}", Digest::of(&large));
    assert_eq!(server.put(&path, large.clone()).send().await.unwrap().status(), 413);
    // The same with chunked encoding.
    let pieces =
        large.chunks(10_000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let response = server.put(&path, body).send().await.unwrap();
    assert_eq!(response.status(), 413);
    insta::assert_snapshot!(response.text().await.unwrap(), @"more than the 1000000 bytes that this server takes");
    assert_eq!(server.status(&path).await, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_leaves_nothing() {
    let server = Serving::start();
    let (bytes, path) = (noise(200_000, 1), format!("cas/{}", Digest::of(&noise(200_000, 1))));
    for sent in [0, 10, 199_999] {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        let head = format!("PUT /{path} HTTP/1.1\r\nHost: cache\r\nContent-Length: {}\r\n\r\n", bytes.len());
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(&bytes[..sent]).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        // The server closes the connection once it has dropped the body.
        let _ = socket.read_to_end(&mut Vec::new());
        assert_eq!(server.status(&path).await, 404);
    }
    let folder = server.stop().await;
    assert_eq!(files(folder.path()), ["lock"]);
}

#[tokio::test]
async fn metrics_tell_look_ups_of_actions_from_blobs() {
    let server = Serving::start();
    let (program, action) = (noise(1000, 1), Digest::of(b"action"));
    server.put_blob(&program).await;
    server.put(&format!("ac/{action}"), encoded(&program)).send().await.unwrap();
    server.bytes(&format!("ac/{action}")).await;
    server.bytes(&format!("cas/{}", Digest::of(&program))).await;
    server.status(&format!("cas/{action}")).await;
    let response = server.get("metrics").send().await.unwrap();
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = response.text().await.unwrap();
    let lines = [
        "sheaf_cache_action_lookups_total{outcome=\"hit\"} 1",
        "sheaf_cache_action_lookups_total{outcome=\"miss\"} 0",
        "sheaf_cache_requests_total{protocol=\"http\",request=\"blob_read\",outcome=\"ok\"} 1",
        "sheaf_cache_requests_total{protocol=\"http\",request=\"blob_read\",outcome=\"miss\"} 1",
        "sheaf_cache_requests_total{protocol=\"http\",request=\"action_write\",outcome=\"ok\"} 1",
        "sheaf_cache_actions 1",
        "sheaf_cache_blobs 1",
        "sheaf_cache_size_bytes 8192",
        "sheaf_cache_capacity_bytes 100000000",
        "sheaf_cache_evictions_total 0",
        "# EOF",
    ];
    for line in lines {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    server.stop().await;
}
