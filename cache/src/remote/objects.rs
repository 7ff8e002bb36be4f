//! Object stores and shared folders: an entry of the action cache is the object `PREFIX/ac/<sha256>`, a blob is
//! `PREFIX/cas/<sha256>`.
//!
//! `s3://BUCKET/PREFIX` is Amazon S3 or a compatible store; its credentials, region and endpoint are those of the
//! environment variables common to S3 clients (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
//! `AWS_ENDPOINT_URL` and the rest). They must allow `s3:ListBucket`: without it, Amazon S3 answers 403 for missing
//! objects. `file:///FOLDER` is a folder, created at the first write; its files are written atomically.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt as _, RetryConfig};
use prost::Message as _;
use reqwest::Url;

use super::{Address, RemoteError};
use sheaf_foundation::Digest;

/// Upper limit of an action result's size, in bytes; larger entries are invalid.
const MAX_RESULT: u64 = 4 << 20;

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 16;

/// Time limit of one request; callers of look-ups set a shorter one.
const REQUEST: Duration = Duration::from_secs(300);

/// A bucket or a folder.
#[derive(Clone)]
pub struct Objects {
    shown: String,
    prefix: Path,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Debug for Objects {
    /// Leaves out the store, which holds keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.shown).finish()
    }
}

impl Objects {
    /// The store of `address`: `s3://BUCKET/PREFIX` or `file:///FOLDER`. Reads the S3 settings among `variables`, the
    /// names and values of the environment.
    pub fn new(
        address: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RemoteError> {
        Self::open(address, variables, true)
    }

    /// Like [`new`](Self::new) without credentials: requests are not signed, and only those `variables` are read that
    /// locate the store.
    pub fn anonymous(
        address: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RemoteError> {
        Self::open(address, variables, false)
    }

    fn open(
        address: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        signed: bool,
    ) -> Result<Self, RemoteError> {
        let url = Url::parse(address).ok();
        match url.as_ref().map(|url| (url.scheme(), url)) {
            Some(("s3", url)) => Self::s3(url, variables, signed),
            Some(("file", url)) => Self::folder(url),
            _ => {
                let address = address.rsplit_once('@').map_or(address, |(_, rest)| rest).into();
                let cause = "it is neither of the form s3://BUCKET/PREFIX nor file:///FOLDER".into();
                Err(RemoteError::Address { address, cause })
            }
        }
    }

    fn s3(
        url: &Url,
        variables: impl IntoIterator<Item = (String, String)>,
        signed: bool,
    ) -> Result<Self, RemoteError> {
        let bucket = url.host_str().unwrap_or_default();
        let shown = format!("s3://{bucket}{}", url.path().trim_end_matches('/'));
        let invalid = |cause: String| RemoteError::Address { address: shown.clone(), cause };
        if bucket.is_empty() || url.port().is_some() || !url.username().is_empty() || url.password().is_some()
        {
            return Err(invalid(
                "it is not of the form s3://BUCKET/PREFIX; keys are environment variables".into(),
            ));
        }
        // The process selects the cryptography library; an earlier selection is not an error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder =
            AmazonS3Builder::new().with_client_options(ClientOptions::new().with_timeout(REQUEST));
        // Otherwise the library would search for keys itself, such as those of the machine's role.
        builder = builder.with_skip_signature(!signed);
        for (name, value) in variables {
            let Some(key) = setting(&name).filter(|key| signed || is_place(*key)) else { continue };
            // Plain http is limited to servers on this machine, unless AWS_ALLOW_HTTP is set.
            if key == AmazonS3ConfigKey::Endpoint && is_loopback(&value) {
                builder = builder.with_allow_http(true);
            }
            builder = builder.with_config(key, value);
        }
        let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() };
        let store = builder
            .with_bucket_name(bucket)
            .with_retry(RetryConfig { backoff, max_retries: 2, retry_timeout: Duration::from_secs(10) })
            .build()
            .map_err(|error| invalid(chain(&error)))?;
        let prefix = Path::from_url_path(url.path()).map_err(|error| invalid(chain(&error)))?;
        Ok(Self { prefix, store: Arc::new(store), shown })
    }

    fn folder(url: &Url) -> Result<Self, RemoteError> {
        let shown = url.as_str().trim_end_matches('/').to_owned();
        let invalid = |cause: String| RemoteError::Address { address: shown.clone(), cause };
        let path = url.to_file_path().map_err(|()| invalid("it is not of the form file:///FOLDER".into()))?;
        let prefix = Path::from_absolute_path(path).map_err(|error| invalid(chain(&error)))?;
        Ok(Self { prefix, store: Arc::new(LocalFileSystem::new().with_fsync(true)), shown })
    }

    /// The address, without credentials.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The stored result of an action; `None` if there is none.
    pub async fn action_result(&self, action: Address) -> Result<Option<api::ActionResult>, RemoteError> {
        let Some(bytes) = self.get(&self.path("ac", action), MAX_RESULT).await? else { return Ok(None) };
        let result = api::ActionResult::decode(bytes);
        result
            .map(Some)
            .map_err(|error| self.unreadable(format!("the result of action {}: {error}", action.digest)))
    }

    /// Stores the result of an action, whose blobs are already written.
    pub async fn set_action_result(
        &self,
        action: Address,
        result: &api::ActionResult,
    ) -> Result<(), RemoteError> {
        self.put(&self.path("ac", action), result.encode_to_vec().into()).await
    }

    /// Those of `blobs` that are missing or have another size.
    pub async fn missing(&self, blobs: &[Address]) -> Result<Vec<Address>, RemoteError> {
        let each = stream::iter(blobs.iter().copied()).map(|blob| async move {
            match self.store.head(&self.path("cas", blob)).await {
                Ok(meta) => Ok((meta.size != blob.size).then_some(blob)),
                Err(Error::NotFound { .. }) => Ok(Some(blob)),
                Err(error) => Err(self.error(&error)),
            }
        });
        each.buffered(AT_ONCE).try_filter_map(|blob| async move { Ok(blob) }).try_collect().await
    }

    /// The bytes of a blob, their SHA-256 checked; `None` if it is missing.
    pub async fn read(&self, blob: Address) -> Result<Option<Bytes>, RemoteError> {
        let Some(bytes) = self.get(&self.path("cas", blob), blob.size).await? else { return Ok(None) };
        let found = Digest::of(&bytes);
        if found == blob.digest {
            return Ok(Some(bytes));
        }
        Err(RemoteError::Altered { address: self.shown.clone(), expected: blob.digest, found })
    }

    /// Stores a blob.
    pub async fn write(&self, blob: Address, bytes: Bytes) -> Result<(), RemoteError> {
        self.put(&self.path("cas", blob), bytes).await
    }

    fn path(&self, kind: &'static str, address: Address) -> Path {
        self.prefix.clone().join(kind).join(address.digest.to_string())
    }

    /// An object of at most `limit` bytes; reading stops there.
    async fn get(&self, path: &Path, limit: u64) -> Result<Option<Bytes>, RemoteError> {
        let object = match self.store.get(path).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.error(&error)),
        };
        let mut pieces = object.into_stream();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.try_next().await.map_err(|error| self.error(&error))? {
            if piece.len() as u64 > limit - bytes.len() as u64 {
                return Err(self.unreadable(format!("{path} has more than {limit} bytes")));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Some(bytes.into()))
    }

    async fn put(&self, path: &Path, bytes: Bytes) -> Result<(), RemoteError> {
        self.store.put(path, bytes.into()).await.map(|_| ()).map_err(|error| self.error(&error))
    }

    fn unreadable(&self, cause: String) -> RemoteError {
        RemoteError::Unreadable { address: self.shown.clone(), cause }
    }

    fn error(&self, error: &Error) -> RemoteError {
        let address = self.shown.clone();
        let cause = match error {
            // The kind of store is clear from the address.
            Error::Generic { source, .. } => chain(source.as_ref()),
            error => chain(error),
        };
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let unreachable =
            |error: &HttpError| matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
        if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
            || causes(error).any(|cause| cause.downcast_ref().is_some_and(denied))
        {
            return RemoteError::Refused { address, cause };
        }
        if causes(error).any(|cause| cause.downcast_ref().is_some_and(unreachable)) {
            return RemoteError::Unreachable { address, cause };
        }
        RemoteError::Failed { address, cause }
    }
}

/// The S3 setting of an environment variable.
fn setting(name: &str) -> Option<AmazonS3ConfigKey> {
    if !name.starts_with("AWS_") {
        return None;
    }
    name.to_ascii_lowercase().parse().ok()
}

/// True if a setting locates the store, rather than identifying the client.
fn is_place(key: AmazonS3ConfigKey) -> bool {
    use AmazonS3ConfigKey as Key;
    matches!(key, Key::Region | Key::DefaultRegion | Key::Endpoint | Key::VirtualHostedStyleRequest)
}

fn is_loopback(endpoint: &str) -> bool {
    Url::parse(endpoint).is_ok_and(|url| match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    })
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source())
}

/// An error with its causes on one line of bounded length, without repetitions.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text.replace(|c: char| c.is_control(), " ").chars().take(500).collect()
}
