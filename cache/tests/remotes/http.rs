//! nginx as a cache.

use bytes::Bytes;
use reqwest::Url;
use sheaf_cache::remote::http::HttpCache;
use sheaf_cache::remote::{Address, RemoteError};

use crate::checks::{self, keeps_its_promises};
use crate::servers;

fn client(server: &servers::Server, path: &str) -> HttpCache {
    let address = Url::parse(&format!("http://127.0.0.1:{}/{path}", server.port)).expect("an address");
    HttpCache::new(&address, vec![]).expect("an address")
}

#[tokio::test]
async fn nginx_is_a_cache() {
    let Some(server) = servers::nginx() else { return };
    keeps_its_promises!(client(&server, "cache"), "nginx");

    // The same folder, read-only.
    let reader = client(&server, "read-only/");
    let large = checks::bytes("large nginx", 9_000_000);
    assert!(reader.read(Address::of(&large)).await == Ok(Some(large)));
    let error =
        reader.write(Address::of(b"x"), Bytes::from_static(b"x")).await.expect_err("only for reading");
    assert!(matches!(error, RemoteError::Failed { .. }), "{error}");
    let error = client(&server, "closed").read(Address::of(b"x")).await.expect_err("closed");
    assert!(matches!(error, RemoteError::Refused { .. }), "{error}");
}
