//! The server's certificate and key.

use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::ServeError;
use super::options::TlsFiles;

/// The rustls configuration.
pub(super) fn config(files: &TlsFiles) -> Result<RustlsConfig, ServeError> {
    let wrong = |cause: String| ServeError::Tls {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        cause,
    };
    let chain =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(format!("the certificate: {error}")))?;
    // Only the kind of error is reported: messages must not quote any part of a key.
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        rustls::pki_types::pem::Error::Io(error) => wrong(format!("the key: {error}")),
        _ => wrong("there is no private key in the file of the key".into()),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(config.into()))
}
