//! `sheaf cache serve`.

use sheaf_cache_server::{ServeOptions, TlsFiles, serve};

use super::options::ServeArguments;
use crate::evaluator::Failed;
use crate::messages;

/// Serves until the process is asked to end.
pub fn run(arguments: &ServeArguments) -> Result<(), Failed> {
    let ServeArguments {
        listen,
        folder,
        size,
        max_blob,
        tokens,
        everyone,
        anonymous_read,
        tls_cert,
        tls_key,
        ..
    } = arguments;
    let tls = tls_cert.clone().zip(tls_key.clone());
    let options = ServeOptions {
        capacity: *size,
        max_blob: *max_blob,
        tokens: tokens.clone(),
        everyone: *everyone,
        anonymous_read: *anonymous_read,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        max_connections: arguments.max_connections,
        stop_timeout: std::time::Duration::from_secs(arguments.stop_timeout),
        ..ServeOptions::new(*listen, folder)
    };
    serve(&options, |event| eprintln!("{event}")).map_err(|error| {
        messages::error(&error, Some(error.remedy()));
        Failed
    })
}
