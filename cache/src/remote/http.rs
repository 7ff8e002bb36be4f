//! Bazel's simple HTTP cache: `GET` and `PUT` of `ac/<sha256>` and `cas/<sha256>` below an address. Supported by
//! `bazel-remote`, nginx with `WebDAV` and most file stores.

use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use bytes::Bytes;
use prost::Message as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};

use sheaf_foundation::shown;

use super::credentials::{Headers, Secret};
use super::{Address, RESULT_LIMIT, RemoteError, verified};

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum length of a refusal's text in an error, in characters.
const SAID: usize = 200;

/// A cache at an HTTP address.
#[derive(Debug, Clone)]
pub struct HttpCache {
    client: Client,
    address: Url,
    /// Texts to remove from messages.
    secrets: Vec<Secret>,
}

impl HttpCache {
    /// The cache at `address`; sends nothing yet.
    pub fn new(address: &Url, credentials: Headers) -> Result<Self, RemoteError> {
        let bad = |cause: String| RemoteError::Address { address: shown(address), cause };
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, value) in credentials {
            let name = HeaderName::try_from(name).map_err(|error| bad(error.to_string()))?;
            hide(&mut secrets, value.reveal());
            let mut value = HeaderValue::try_from(value.reveal())
                .map_err(|_| bad("its credentials cannot be sent: they hold a line's end".into()))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        super::choose_tls();
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .default_headers(headers)
            // Credentials must not follow redirects to another server.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sheaf/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| bad(root_cause(&error)))?;
        let mut address = address.clone();
        let _ = address.set_username("");
        let _ = address.set_password(None);
        Ok(Self { client, address, secrets })
    }

    /// The stored result of an action; `None` if there is none.
    pub async fn action_result(&self, action: Address) -> Result<Option<ActionResult>, RemoteError> {
        let url = self.url("ac", &action);
        let Some(body) = self.get(&url, RESULT_LIMIT).await? else { return Ok(None) };
        ActionResult::decode(body)
            .map(Some)
            .map_err(|error| RemoteError::Unreadable { address: shown(&url), cause: error.to_string() })
    }

    /// Stores the result of an action, whose blobs are already written.
    pub async fn set_action_result(&self, action: Address, result: &ActionResult) -> Result<(), RemoteError> {
        self.put(&self.url("ac", &action), result.encode_to_vec().into()).await
    }

    /// The missing ones of `blobs`.
    pub async fn missing(&self, blobs: &[Address]) -> Result<Vec<Address>, RemoteError> {
        let mut missing = Vec::new();
        for blob in blobs {
            let url = self.url("cas", blob);
            let response = self.client.head(url.clone()).send().await.map_err(|e| self.unreachable(&e))?;
            match response.status() {
                status if status.is_success() => {}
                // Some servers do not support `HEAD`: then the blob is uploaded.
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                    missing.push(*blob);
                }
                _ => return Err(self.failed(&url, response).await),
            }
        }
        Ok(missing)
    }

    /// The bytes of a blob, their SHA-256 checked; `None` if it is missing.
    pub async fn read(&self, blob: Address) -> Result<Option<Bytes>, RemoteError> {
        let url = self.url("cas", &blob);
        if blob.size == 0 {
            return verified(Bytes::new(), &blob, || shown(&url)).map(Some);
        }
        let Some(body) = self.get(&url, blob.size).await? else { return Ok(None) };
        verified(body, &blob, || shown(&url)).map(Some)
    }

    /// Stores a blob.
    pub async fn write(&self, blob: Address, bytes: Bytes) -> Result<(), RemoteError> {
        // nginx answers an empty body with 500; the empty blob need not be stored.
        if blob.size == 0 {
            return Ok(());
        }
        self.put(&self.url("cas", &blob), bytes).await
    }

    fn url(&self, folder: &str, address: &Address) -> Url {
        let mut url = self.address.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{folder}/{}", address.digest));
        url
    }

    /// The body of at most `limit` bytes; `None` if missing. Reading stops at the first byte over the limit.
    async fn get(&self, url: &Url, limit: u64) -> Result<Option<Bytes>, RemoteError> {
        let response = self.client.get(url.clone()).send().await.map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            _ => return Err(self.failed(url, response).await),
        }
        let too_long = || RemoteError::Unreadable {
            address: shown(url),
            cause: format!("it has more than the {limit} bytes that were expected"),
        };
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(too_long());
        }
        let mut body = Vec::with_capacity(response.content_length().unwrap_or(0).min(limit) as usize);
        let mut response: Response = response;
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_long());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body.into()))
    }

    async fn put(&self, url: &Url, body: Bytes) -> Result<(), RemoteError> {
        let response = self.client.put(url.clone()).body(body).send().await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() { Ok(()) } else { Err(self.failed(url, response).await) }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RemoteError {
        RemoteError::Unreachable { address: shown(&self.address), cause: root_cause(error) }
    }

    /// The error of an answer with an error status.
    async fn failed(&self, url: &Url, response: Response) -> RemoteError {
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                let said = self.said(response).await.map(|said| format!("{status}: {said}"));
                let cause = said.unwrap_or_else(|| status.to_string());
                RemoteError::Refused { address: shown(&self.address), cause }
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                RemoteError::TooLarge { address: shown(&self.address), cause: status.to_string() }
            }
            _ => RemoteError::Failed { address: shown(url), cause: status.to_string() },
        }
    }

    /// The first line of a plain-text answer, such as that a token has expired. A server may repeat secrets of the
    /// request.
    async fn said(&self, mut response: Response) -> Option<String> {
        let kind = response.headers().get(reqwest::header::CONTENT_TYPE)?;
        if !kind.as_bytes().starts_with(b"text/plain") {
            return None;
        }
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await
            && body.len() < SAID
        {
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&body);
        let mut line = text.lines().next()?.trim().to_owned();
        for secret in &self.secrets {
            line = line.replace(secret.reveal(), "***");
        }
        let line: String = line.chars().filter(|c| !c.is_control()).take(SAID).collect();
        (!line.is_empty()).then_some(line)
    }
}

/// Adds the secret parts of a header's value: all of it, a token in it, a password in the token.
fn hide(secrets: &mut Vec<Secret>, value: &str) {
    use base64::Engine as _;
    let token = value.split_once(' ').map_or("", |(_, token)| token);
    let pair = base64::engine::general_purpose::STANDARD.decode(token).unwrap_or_default();
    let pair = String::from_utf8(pair).unwrap_or_default();
    let password = pair.split_once(':').map_or("", |(_, password)| password);
    let all = [value, token, password].into_iter().filter(|secret| !secret.is_empty());
    secrets.extend(all.map(Secret::new));
}

/// The innermost cause: the outer ones repeat the address, including its credentials.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
