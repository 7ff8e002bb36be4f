//! TLS of this crate's connections.

/// Makes ring the cryptography of the process, unless another was chosen before.
pub(crate) fn install() {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
