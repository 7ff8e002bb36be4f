//! Encrypted connections, with a certificate made for the test.

use std::fs;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use sheaf_cache_server::{ServeError, Server, TlsFiles};
use sheaf_foundation::Digest;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use crate::common::{Clients, Serving, digest, install_provider, options};

#[tokio::test]
async fn http_and_grpc_are_encrypted() {
    install_provider();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let server = Serving::on(folder, |options| options.tls = Some(files));
    let port = server.address.rsplit(':').next().unwrap().to_owned();

    let certificate = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate]).build().unwrap();
    let url = format!("https://localhost:{port}/cas/{}", Digest::of(b"bytes"));
    assert_eq!(client.put(&url).body("bytes").send().await.unwrap().status(), 201);
    let response = client.get(&url).send().await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "bytes");

    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(made.cert.pem()));
    let channel = Channel::from_shared(format!("https://localhost:{port}")).unwrap().tls_config(tls).unwrap();
    let mut clients = Clients::over(channel.connect().await.unwrap());
    let blob_digests = vec![digest(b"bytes"), digest(b"other")];
    let request = reapi::FindMissingBlobsRequest { blob_digests, ..Default::default() };
    let missing = clients.cas.find_missing_blobs(request).await.unwrap().into_inner();
    assert_eq!(missing.missing_blob_digests, [digest(b"other")]);

    // Fails without encryption, and with a client that does not trust the certificate.
    assert!(server.get("status").send().await.is_err());
    let stranger = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(stranger.get(&url).send().await.is_err());
    drop((client, clients, stranger));
    server.stop().await;
}

#[test]
fn files_that_are_no_certificate_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
    let mut options = options(folder.path());
    options.tls = Some(files.clone());
    let message = || {
        let error = Server::bind(&options).err().unwrap();
        assert!(matches!(error, ServeError::Tls { .. }));
        error.to_string().replace(folder.path().to_str().unwrap(), "~")
    };
    assert!(message().contains("the certificate: "), "{}", message());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    fs::write(&files.key, "secret").unwrap();
    insta::assert_snapshot!(message(), @"the certificate ~/c.pem and the key ~/k.pem cannot be used: there is no private key in the file of the key");
    // A key of another certificate.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&files.key, other.signing_key.serialize_pem()).unwrap();
    assert!(message().contains("cannot be used: "), "{}", message());
}
