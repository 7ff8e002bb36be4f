//! Programs compiled by one machine run on another one, through every kind of server.

use sheaf_tests::Output;
use tempfile::TempDir;

use crate::machine::{Machine, Remote, warnings};
use crate::servers::{self, Server, words};

/// JAX's final loss.
const LAST: &str = "epoch 500  loss 0.002041\n";

/// The training, compiled though it is short.
const RUN: [&str; 3] = ["xor/train.shf", "--jit", "always"];

/// `sheaf cache serve`, with both of its protocols.
pub fn own() -> Server {
    Server::start(|folder, port| {
        let (data, listen) = (folder.join("data"), format!("127.0.0.1:{port}"));
        words([&sheaf_tests::sheaf(), &"cache", &"serve", &"--folder", &data, &"--listen", &listen])
    })
}

/// nginx.
pub fn nginx() -> Option<(Server, Remote)> {
    let server = servers::nginx()?;
    let remote = Remote::at(format!("http://127.0.0.1:{}/cache", server.port));
    Some((server, remote))
}

/// A shared folder.
pub fn folder() -> (TempDir, Remote) {
    let folder = tempfile::tempdir().expect("a folder");
    let remote = Remote::at(format!("file://{}", folder.path().join("cache").display()));
    (folder, remote)
}

/// Checks that a run compiled nothing, gave no warning, and interpreted nothing with `--strict`.
#[track_caller]
pub fn taken(output: Output) -> String {
    assert_eq!(warnings(&output), [""; 0], "{output}");
    output.compiled_nothing()
}

/// One machine trains XOR and pushes its programs; another one, with only the sources, trains it as well.
fn trains_there_and_here(remote: &Remote) {
    let Some(a) = Machine::writing(remote) else { return };
    let a = a.example("xor/train.shf");
    let first = a.run(&RUN);
    assert_eq!(warnings(&first), [""; 0], "{first}");
    let first = first.compiled();
    assert!(first.contains(LAST), "{first}");

    let b = Machine::reading(remote).example("xor/train.shf");
    assert!(!b.sandbox.path("xor/__sheaf__").exists() && !b.sandbox.home().join("data").exists());
    assert_eq!(taken(b.run(&[&RUN[..], &["--strict"]].concat())), first);
    assert!(b.sandbox.path("xor/__sheaf__/train-step.cpu.vmfb").is_file());
    assert!(!b.sandbox.home().join("data").exists(), "something was installed");
    // Now it has all programs itself.
    assert_eq!(b.run(&[&RUN[..], &["--strict", "--offline"]].concat()).silent(), first);

    // A machine without trusted keys gets nothing.
    let c = Machine::reading(remote).env("SHEAF_CACHE_TRUSTED_KEYS", "").example("xor/train.shf");
    let output = c.run(&[&RUN[..], &["--strict"]].concat());
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains("who is not trusted"), "{output}");
}

#[test]
fn nginx_with_webdav() {
    let Some((_server, remote)) = nginx() else { return };
    trains_there_and_here(&remote);
}

#[test]
fn buildgrid() {
    let Some(server) = servers::buildgrid("") else { return };
    trains_there_and_here(&Remote::at(format!("grpc://127.0.0.1:{}", server.port)));
}

#[test]
fn buildbox_casd() {
    let Some(server) = servers::casd() else { return };
    trains_there_and_here(&Remote::at(format!("grpc://127.0.0.1:{}", server.port)));
}

/// A bucket.
pub fn bucket() -> Option<(Server, Remote)> {
    let server = servers::s3rver()?;
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let environment = [
        ("AWS_ACCESS_KEY_ID", "S3RVER"),
        ("AWS_SECRET_ACCESS_KEY", "S3RVER"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &endpoint),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Some((server, Remote { address: "s3://sheaf/team".into(), environment }))
}

#[test]
fn s3() {
    let Some((_server, remote)) = bucket() else { return };
    trains_there_and_here(&remote);
}

#[test]
fn the_own_server_by_http() {
    let server = own();
    trains_there_and_here(&Remote::at(format!("http://127.0.0.1:{}", server.port)));
}

#[test]
fn the_own_server_by_grpc() {
    let server = own();
    trains_there_and_here(&Remote::at(format!("grpc://127.0.0.1:{}", server.port)));
}

#[test]
fn a_shared_folder() {
    let (_folder, remote) = folder();
    trains_there_and_here(&remote);
}
