//! Servers of the Remote Execution API as caches.

use sheaf_cache::remote::grpc::{Grpc, GrpcOptions};
use sheaf_cache::remote::{Address, RemoteError};

use crate::checks::keeps_its_promises;
use crate::servers;

fn client(address: &str) -> Grpc {
    Grpc::new(address, GrpcOptions::default()).expect("an address")
}

#[tokio::test]
async fn buildgrid_is_a_cache() {
    let Some(server) = servers::buildgrid("") else { return };
    let remote = client(&format!("grpc://127.0.0.1:{}", server.port));
    keeps_its_promises!(remote, "buildgrid");
}

#[tokio::test]
async fn an_instance_of_buildgrid_is_a_cache() {
    let Some(server) = servers::buildgrid("team/main") else { return };
    let remote = client(&format!("grpc://127.0.0.1:{}/team/main", server.port));
    keeps_its_promises!(remote, "instance");

    let other = client(&format!("grpc://127.0.0.1:{}/team/other", server.port));
    let error = other.read(Address::of(b"x")).await.expect_err("no such instance");
    assert!(matches!(&error, RemoteError::Failed { .. }), "{error}");
}

#[tokio::test]
async fn casd_is_a_cache() {
    let Some(server) = servers::casd() else { return };
    let remote = client(&format!("grpc://127.0.0.1:{}", server.port));
    keeps_its_promises!(remote, "casd");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let error = client(&format!("grpc://127.0.0.1:{port}"))
        .action_result(Address::of(b"x"))
        .await
        .expect_err("no server");
    let RemoteError::Unreachable { address, cause } = &error else { panic!("{error}") };
    assert_eq!(*address, format!("grpc://127.0.0.1:{port}"));
    assert!(cause.contains("refused"), "{cause}");
}
