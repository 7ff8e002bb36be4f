//! The project's own server through both of its protocols, under the same checks as other servers, and behind a
//! proxying one.

use reqwest::Url;
use sheaf_cache::remote::Address;
use sheaf_cache::remote::grpc::{Grpc, GrpcOptions};
use sheaf_cache::remote::http::HttpCache;
use sheaf_cache_server::{ServeOptions, Server};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::checks::{self, keeps_its_promises};
use crate::servers;

/// A server in this process, stopped by dropping the sender.
fn serve() -> (String, TempDir, oneshot::Sender<()>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ServeOptions::new(([127, 0, 0, 1], 0).into(), folder.path());
    options.capacity = 200_000_000;
    let server = Server::bind(&options).expect("a port");
    let address = server.address().to_string();
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(server.run(async { drop(stopped.await) }));
    (address, folder, stop)
}

fn grpc(address: &str) -> Grpc {
    Grpc::new(&format!("grpc://{address}"), GrpcOptions::default()).expect("an address")
}

fn http(address: &str) -> HttpCache {
    let address = Url::parse(&format!("http://{address}")).expect("an address");
    HttpCache::new(&address, vec![]).expect("an address")
}

#[tokio::test]
async fn our_server_is_a_cache_by_both_protocols() {
    let (address, _folder, _stop) = serve();
    keeps_its_promises!(grpc(&address), "own grpc");
    keeps_its_promises!(http(&address), "own http");

    // A blob written through one protocol is readable through the other.
    let large = checks::bytes("large own grpc", 9_000_000);
    assert!(http(&address).read(Address::of(&large)).await == Ok(Some(large)));
    let action = Address::of(b"action own http");
    let result = grpc(&address).action_result(action).await.expect("an answer").expect("the result");
    let expected = checks::result(Address::of(&checks::bytes("large own http", 9_000_000)));
    assert_eq!(result.output_files, expected.output_files);
}

/// Several threads: casd calls our server while the test waits for casd.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn casd_stands_before_our_server() {
    let (address, _folder, _stop) = serve();
    let remote = format!("http://{address}");
    let options = [format!("--cas-remote={remote}"), format!("--ac-remote={remote}")];
    let Some(casd) = servers::casd_with(&options) else { return };
    keeps_its_promises!(grpc(&format!("127.0.0.1:{}", casd.port)), "proxy");

    // It has forwarded everything.
    let large = checks::bytes("large proxy", 9_000_000);
    assert!(grpc(&address).read(Address::of(&large)).await == Ok(Some(large)));
    let action = Address::of(b"action proxy");
    assert!(grpc(&address).action_result(action).await.expect("an answer").is_some());
}
