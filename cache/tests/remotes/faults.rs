//! Rare faults of real servers: broken connections, missing answers, wrong bytes, unauthenticated clients.

use std::process::Command;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use sheaf_artifacts::ActionKey;
use sheaf_cache::reapi::action::{Compilation, CompileAction, ToolFile};
use sheaf_cache::reapi::execute::ExecuteError;
use sheaf_cache::remote::grpc::{Grpc, GrpcOptions};
use sheaf_cache::remote::{Address, RemoteError};
use sheaf_foundation::Digest;
use tonic::transport::Identity;

use crate::checks::{self, keeps_its_promises};
use crate::fake::{Fake, Fault, plain};
use crate::skip;

fn client(fake: &Fake) -> Grpc {
    Grpc::new(&format!("grpc://127.0.0.1:{}", fake.port), GrpcOptions::default()).expect("an address")
}

/// The calls that begin with `start`.
fn calls(fake: &Fake, start: &str) -> Vec<String> {
    fake.state().calls.iter().filter(|call| call.starts_with(start)).cloned().collect()
}

#[tokio::test]
async fn blobs_are_compressed_where_the_server_can() {
    let fake = Fake::start(|_| {});
    keeps_its_promises!(client(&fake), "zstd");
    assert!(
        calls(&fake, "BatchUpdateBlobs c").contains(&"BatchUpdateBlobs compressor 1 of 200000 bytes".into())
    );
    let large = Address::of(&checks::bytes("large zstd", 9_000_000)).digest;
    let name = format!("compressed-blobs/zstd/{large}/9000000 from 0");
    assert!(calls(&fake, "Write uploads/").iter().any(|call| call.ends_with(&name)));
    assert!(calls(&fake, "Read compressed-blobs/zstd/").contains(&format!("Read {name}")));
    assert_eq!(calls(&fake, "GetCapabilities").len(), 1);

    // Zeros are transferred compressed, and returned unchanged.
    let zeros = bytes::Bytes::from(vec![0; 3_000_000]);
    client(&fake).write(Address::of(&zeros), zeros.clone()).await.expect("written");
    assert!(client(&fake).read(Address::of(&zeros)).await == Ok(Some(zeros)));
}

#[tokio::test]
async fn an_upload_goes_on_after_a_break() {
    let fake = Fake::start(plain);
    let bytes = checks::bytes("upload", 9_000_000);
    let blob = Address::of(&bytes);
    fake.state().faults.extend([Fault::WriteBreaks(3_000_000), Fault::WriteBreaks(6_000_000)]);
    client(&fake).write(blob, bytes.clone()).await.expect("written");
    let writes = calls(&fake, "Write uploads/");
    let offsets: Vec<_> = writes.iter().map(|call| call.rsplit(' ').next().expect("an offset")).collect();
    assert_eq!(offsets, ["0", "3145728", "6291456"]);
    assert_eq!(fake.state().blobs[&blob.digest.to_string()], bytes);

    // If the server loses the upload, the client starts over under another upload id.
    let other = checks::bytes("forgotten", 9_000_000);
    fake.state().faults.push_back(Fault::WriteForgotten(3_000_000));
    client(&fake).write(Address::of(&other), other).await.expect("written");
    let writes = calls(&fake, "Write uploads/");
    assert!(writes[4].ends_with(" from 0") && writes[3] != writes[4], "{writes:?}");

    // Retries are bounded.
    let third = checks::bytes("never", 9_000_000);
    fake.state().faults.extend(vec![Fault::WriteBreaks(0); 10]);
    let error = client(&fake).write(Address::of(&third), third).await.expect_err("it breaks each time");
    insta::assert_snapshot!(error.to_string().replace(&fake.port.to_string(), "PORT"), @"grpc://127.0.0.1:PORT cannot be reached: going down");
}

#[tokio::test]
async fn a_download_goes_on_after_a_break() {
    let fake = Fake::start(plain);
    let bytes = checks::bytes("download", 9_000_000);
    let blob = Address::of(&bytes);
    fake.state().blobs.insert(blob.digest.to_string(), bytes.to_vec());
    fake.state().faults.extend([Fault::ReadBreaks(3_000_000), Fault::ReadBreaks(1_000_000)]);
    assert!(client(&fake).read(blob).await == Ok(Some(bytes)));
    let name = format!("blobs/{}/9000000", blob.digest);
    assert_eq!(
        calls(&fake, "Read"),
        [0, 3_000_000, 4_000_000].map(|offset| format!("Read {name} from {offset}"))
    );

    // A server that keeps breaking off without progress is not retried forever.
    fake.state().faults.extend([Fault::ReadBreaks(0), Fault::ReadBreaks(0)]);
    assert!(matches!(client(&fake).read(blob).await, Err(RemoteError::Unreachable { .. })));
}

#[tokio::test]
async fn other_bytes_and_more_bytes_are_refused() {
    for (size, compressed) in [(1000, false), (1000, true), (2_000_000, false), (2_000_000, true)] {
        let fake = Fake::start(|state| {
            if !compressed {
                plain(state);
            }
        });
        let bytes = checks::bytes("right", size);
        let blob = Address::of(&bytes);
        fake.state().blobs.insert(blob.digest.to_string(), bytes.to_vec());
        let read = async |other: Vec<u8>| {
            fake.state().faults.push_back(Fault::ReadsAs(other));
            client(&fake).read(blob).await.expect_err("other bytes")
        };
        for other in [checks::bytes("wrong", size).to_vec(), bytes[..size - 1].to_vec(), vec![]] {
            assert!(matches!(read(other).await, RemoteError::Altered { .. }));
        }
        // A hundred megabytes of zeros are a few kilobytes in transit.
        let error = read(vec![0; if compressed { 100_000_000 } else { size + 1 }]).await;
        assert!(matches!(error, RemoteError::Unreadable { .. } | RemoteError::Altered { .. }), "{error}");
        assert_eq!(client(&fake).read(blob).await, Ok(Some(bytes)));
    }
}

#[tokio::test]
async fn a_server_that_hangs_costs_the_time_that_it_is_given() {
    let fake = Fake::start(|_| {});
    let remote = client(&fake);
    let blob = Address::of(b"x");
    for _ in 0..2 {
        fake.state().faults.push_back(Fault::Hangs);
        let limited = tokio::time::timeout(Duration::from_millis(200), remote.read(blob));
        assert!(limited.await.is_err());
    }
    assert_eq!(remote.read(blob).await, Ok(None));
}

#[test]
fn a_server_that_was_away_is_found_again() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    };
    let (first, user) = (runtime(), runtime());
    let fake = first.block_on(async { Fake::start(|_| {}) });
    let remote = client(&fake);
    let read = || user.block_on(remote.read(Address::of(b"x")));
    assert_eq!(read(), Ok(None));
    first.shutdown_timeout(Duration::from_secs(10));
    let error = read().expect_err("the server is gone");
    assert!(matches!(error, RemoteError::Unreachable { .. }), "{error}");
    let second = runtime();
    let _back = second.block_on(async { Fake::start_with(fake.port, None, |_| {}) });
    assert_eq!(read(), Ok(None));

    // A server restart between two calls goes unnoticed.
    second.shutdown_timeout(Duration::from_secs(10));
    let third = runtime();
    let _back = third.block_on(async { Fake::start_with(fake.port, None, |_| {}) });
    assert_eq!(read(), Ok(None));
}

#[tokio::test]
async fn a_token_is_sent_and_not_shown() {
    let fake = Fake::start(|state| state.authorization = Some("Bearer right-token".into()));
    let address = format!("grpc://127.0.0.1:{}", fake.port);
    let with = |token: &str| {
        let headers = vec![("Authorization".into(), format!("Bearer {token}"))];
        Grpc::new(&address, GrpcOptions { headers, authorities: None }).expect("an address")
    };
    assert_eq!(with("right-token").read(Address::of(b"x")).await, Ok(None));
    let remote = with("wrong-token");
    let error = remote.read(Address::of(b"x")).await.expect_err("another token");
    insta::assert_snapshot!(error.to_string().replace(&address, "ADDRESS"), @"ADDRESS refuses access: Unauthenticated: *** is not the token");
    assert!(!format!("{remote:?}").contains("wrong-token"));
}

#[tokio::test]
async fn a_server_that_takes_no_results_says_so() {
    let fake = Fake::start(|state| {
        let cache = state.capabilities.cache_capabilities.as_mut().expect("a cache");
        cache.action_cache_update_capabilities = None;
        cache.max_cas_blob_size_bytes = 2_000_000;
    });
    let error = client(&fake).set_action_result(Address::of(b"x"), &api::ActionResult::default()).await;
    assert!(matches!(error, Err(RemoteError::Refused { .. })));
    assert_eq!(calls(&fake, "Update").len(), 0);

    let large = checks::bytes("too large", 2_000_001);
    let error = client(&fake).write(Address::of(&large), large).await.expect_err("too large");
    assert!(
        matches!(&error, RemoteError::TooLarge { cause, .. } if cause.contains("2000000 bytes")),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_cannot_serve_is_asked_again_later() {
    let fake = Fake::start(|state| state.capabilities = api::ServerCapabilities::default());
    let remote = client(&fake);
    for _ in 0..2 {
        let error = remote.missing(&[Address::of(b"x")]).await.expect_err("no cache");
        assert!(matches!(error, RemoteError::Unreadable { .. }), "{error}");
    }
    assert_eq!(fake.state().calls, ["GetCapabilities", "GetCapabilities"]);
}

/// A key and a certificate for `localhost` by the system's openssl.
fn certificate() -> Option<(Vec<u8>, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut openssl = Command::new("openssl");
    openssl.args(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(' '),
    );
    openssl.args([
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    openssl.args(["-keyout", "key", "-out", "certificate"]);
    if !openssl.current_dir(folder.path()).output().is_ok_and(|output| output.status.success()) {
        skip("openssl makes no certificate here");
        return None;
    }
    let read = |name| std::fs::read(folder.path().join(name)).expect("read");
    Some((read("certificate"), read("key")))
}

#[tokio::test]
async fn tls_wants_a_certificate_that_is_trusted() {
    let Some((certificate, key)) = certificate() else { return };
    let fake = Fake::start_with(0, Some(Identity::from_pem(&certificate, key)), |_| {});
    let address = format!("grpcs://localhost:{}", fake.port);
    let trusting = GrpcOptions { authorities: Some(certificate), ..GrpcOptions::default() };
    let remote = Grpc::new(&address, trusting).expect("an address");
    keeps_its_promises!(remote, "tls");

    let stranger = Grpc::new(&address, GrpcOptions::default()).expect("an address");
    let error = stranger.read(Address::of(b"x")).await.expect_err("nobody vouches for it");
    assert!(
        matches!(&error, RemoteError::Unreachable { cause, .. } if cause.contains("certificate")),
        "{error}"
    );
    let plain = Grpc::new(&address.replace("grpcs", "grpc"), GrpcOptions::default()).expect("an address");
    assert!(plain.read(Address::of(b"x")).await.is_err());
}

fn compilation() -> CompileAction {
    let tool =
        [ToolFile { path: "iree/iree-compile".into(), address: Address::of(b"program"), executable: true }];
    let key = ActionKey(Digest([1; 32]));
    let compilation =
        Compilation { program: b"x", flags: &[], key, tool: &tool, command: "iree/iree-compile" };
    compilation.action().expect("an action")
}

#[tokio::test]
async fn an_execution_goes_on_after_a_break() {
    let started = |faults: &[Fault]| {
        let fake = Fake::start(|state| {
            state.blobs.insert(Digest::of(b"program").to_string(), b"program".to_vec());
            state.faults.extend(faults.iter().cloned());
        });
        (client(&fake), fake)
    };
    let calls_of = |fake: &Fake| [calls(fake, "Execute").len(), calls(fake, "WaitExecution").len()];
    let action = compilation();

    let (remote, fake) = started(&[]);
    assert_eq!(remote.execute(&action, false, |_| None).await.expect("executed").program, "program");
    assert_eq!(calls_of(&fake), [1, 0]);

    let (remote, fake) = started(&[Fault::ExecutionBreaks]);
    assert_eq!(remote.execute(&action, false, |_| None).await.expect("executed").program, "program");
    assert_eq!(calls_of(&fake), [1, 1]);

    let (remote, fake) = started(&[Fault::ExecutionForgotten]);
    assert_eq!(remote.execute(&action, false, |_| None).await.expect("executed").program, "program");
    assert_eq!(calls_of(&fake), [2, 1]);

    // The lost input is uploaded again; the compiler, which has no local file now, is named in the error.
    let (remote, _fake) = started(&[Fault::LosesInput]);
    let error = remote.execute(&action, false, |_| None).await.expect_err("the compiler is lost");
    assert!(matches!(error, ExecuteError::NoTool { .. }), "{error}");
    let (remote, fake) = started(&[Fault::LosesInput]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tool");
    std::fs::write(&path, "program").expect("written");
    let executed = remote.execute(&action, false, |_| Some(path.clone())).await.expect("executed");
    assert_eq!(executed.program, "program");
    assert_eq!(calls_of(&fake), [2, 0]);
}
