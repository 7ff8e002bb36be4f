//! Capabilities of a server.

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::build::bazel::remote::execution::v2::capabilities_client::CapabilitiesClient;
use bazel_remote_apis::build::bazel::semver::SemVer as Version;

use super::super::RemoteError;
use super::{Grpc, MAX_MESSAGE};

/// Maximum size of a blob sent in a single message; servers accept messages of 4 MiB unless they state another limit.
const BATCH: u64 = 4 << 20;

/// Maximum size of a message's other parts.
const AROUND: u64 = 64 << 10;

/// Capabilities of a server.
#[expect(clippy::struct_excessive_bools, reason = "each is an ability of its own")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Maximum size of a blob sent in a batch, in bytes.
    pub batch: u64,
    /// Maximum size of a blob, in bytes.
    pub largest: Option<u64>,
    /// True if streams, and blobs read in batches, may be compressed with zstd.
    pub compresses_streams: bool,
    /// True if blobs written in batches may be compressed with zstd.
    pub compresses_batches: bool,
    /// True if it accepts action results.
    pub takes_results: bool,
    /// True if it executes actions.
    pub executes: bool,
}

/// Asks the server; an unsupported server is an error.
pub(super) async fn ask(grpc: &Grpc) -> Result<Capabilities, RemoteError> {
    let mut client = CapabilitiesClient::new(grpc.channel().await?).max_decoding_message_size(MAX_MESSAGE);
    let request = grpc.request(api::GetCapabilitiesRequest { instance_name: grpc.instance() });
    let response = client.get_capabilities(request).await.map_err(|status| grpc.error(&status))?;
    read(&response.into_inner()).map_err(|cause| grpc.unreadable(cause))
}

fn read(server: &api::ServerCapabilities) -> Result<Capabilities, String> {
    // Servers of the first version report none.
    let version =
        |version: &Option<_>, default| version.as_ref().map_or(default, |version: &Version| version.major);
    let (low, high) = (version(&server.low_api_version, 2), version(&server.high_api_version, 2));
    if low > 2 || high < 2 {
        return Err(format!(
            "it speaks the Remote Execution API from version {low} to {high}, Sheaf version 2"
        ));
    }
    let cache = server.cache_capabilities.as_ref().ok_or("it is no cache (no cache_capabilities)")?;
    if !cache.digest_functions.contains(&api::digest_function::Value::Sha256.into()) {
        return Err("it does not know SHA-256".into());
    }
    let zstd = i32::from(api::compressor::Value::Zstd);
    // Zero means no limit.
    let limit = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);
    let batch = limit(cache.max_batch_total_size_bytes).map_or(BATCH, |limit| limit.min(BATCH));
    Ok(Capabilities {
        batch: batch.saturating_sub(AROUND),
        largest: limit(cache.max_cas_blob_size_bytes),
        compresses_streams: cache.supported_compressors.contains(&zstd),
        compresses_batches: cache.supported_batch_update_compressors.contains(&zstd),
        takes_results: cache.action_cache_update_capabilities.as_ref().is_some_and(|can| can.update_enabled),
        executes: server.execution_capabilities.as_ref().is_some_and(|can| can.exec_enabled),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(
        change: impl FnOnce(&mut api::ServerCapabilities, &mut api::CacheCapabilities),
    ) -> api::ServerCapabilities {
        let mut cache = api::CacheCapabilities {
            digest_functions: vec![api::digest_function::Value::Sha256.into()],
            ..Default::default()
        };
        let mut server = api::ServerCapabilities::default();
        change(&mut server, &mut cache);
        server.cache_capabilities.get_or_insert(cache);
        server
    }

    #[test]
    fn a_server_that_says_little_can_little() {
        let found = read(&server(|_, _| {})).expect("usable");
        let least = Capabilities {
            batch: BATCH - AROUND,
            largest: None,
            compresses_streams: false,
            compresses_batches: false,
            takes_results: false,
            executes: false,
        };
        assert_eq!(found, least);
    }

    #[test]
    fn limits_and_abilities_are_read() {
        let found = read(&server(|server, cache| {
            cache.max_batch_total_size_bytes = 1_000_000;
            cache.max_cas_blob_size_bytes = 5_000_000;
            cache.supported_compressors = vec![api::compressor::Value::Zstd.into()];
            cache.supported_batch_update_compressors = vec![api::compressor::Value::Zstd.into()];
            cache.action_cache_update_capabilities =
                Some(api::ActionCacheUpdateCapabilities { update_enabled: true });
            server.execution_capabilities =
                Some(api::ExecutionCapabilities { exec_enabled: true, ..Default::default() });
            server.low_api_version = Some(Version { major: 2, minor: 1, ..Default::default() });
            server.high_api_version = Some(Version { major: 2, minor: 12, ..Default::default() });
        }));
        let all = Capabilities {
            batch: 1_000_000 - AROUND,
            largest: Some(5_000_000),
            compresses_streams: true,
            compresses_batches: true,
            takes_results: true,
            executes: true,
        };
        assert_eq!(found, Ok(all));
        // A tiny or invalid limit leaves streams only.
        assert_eq!(read(&server(|_, cache| cache.max_batch_total_size_bytes = 10)).expect("usable").batch, 0);
        assert_eq!(
            read(&server(|_, cache| cache.max_batch_total_size_bytes = -1)).expect("usable").batch,
            BATCH - AROUND
        );
    }

    #[test]
    fn servers_that_cannot_serve_are_named() {
        let other =
            read(&server(|_, cache| cache.digest_functions = vec![api::digest_function::Value::Sha1.into()]));
        assert_eq!(other, Err("it does not know SHA-256".into()));
        assert!(read(&api::ServerCapabilities::default()).is_err());
        let version = |major| Some(Version { major, ..Default::default() });
        let newer = read(&server(|server, _| {
            server.low_api_version = version(3);
            server.high_api_version = version(4);
        }));
        insta::assert_snapshot!(newer.expect_err("too new"), @"it speaks the Remote Execution API from version 3 to 4, Sheaf version 2");
    }
}
