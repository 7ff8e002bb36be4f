//! An index on an http(s) server: a static copy of the files of its repository.
//!
//! Each file is kept with its entity tag; a later run asks whether it has changed, in a request without a body.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::blocking::Client;
use reqwest::header::{AUTHORIZATION, ETAG, HeaderValue, IF_NONE_MATCH};
use reqwest::redirect::Policy;
use sha2::{Digest as _, Sha256};
use sheaf_foundation::is_private;
use url::Url;

use super::entry::MAX_FILE;
use super::files::{FilesError, IndexFiles};

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum number of requests at a time.
const CONNECTIONS: usize = 16;

/// Maximum number of redirects of a request.
const REDIRECTS: usize = 5;

/// An index on an http(s) server.
pub struct HttpFiles {
    address: Url,
    client: Client,
    /// Folder of the files that were read before.
    cache: PathBuf,
    authorization: Option<HeaderValue>,
    offline: bool,
    /// Files that were asked for before they are wanted.
    fresh: Mutex<HashMap<String, Option<Vec<u8>>>>,
}

impl HttpFiles {
    /// The index at `address`, with copies of its files in the folder `cache`. `token` is for this server alone;
    /// `offline` reads the copies only.
    pub fn new(
        mut address: Url,
        cache: PathBuf,
        token: Option<&str>,
        offline: bool,
    ) -> Result<Self, FilesError> {
        crate::tls::install();
        if token.is_some() && !is_private(&address) {
            let host = address.host_str().unwrap_or_default();
            return Err(FilesError {
                cause: format!("the token for {host} goes over https only"),
                remedy: format!("name the registry with https, or run `sheaf login {host} --remove`"),
            });
        }
        if !address.path().ends_with('/') {
            address.set_path(&format!("{}/", address.path()));
        }
        let build = || {
            // A redirect to another host is followed by reqwest without the Authorization header.
            let redirects = Policy::custom(|attempt| match refusal(attempt.previous(), attempt.url()) {
                Some(cause) => attempt.error(cause),
                None => attempt.follow(),
            });
            Client::builder().redirect(redirects).connect_timeout(PATIENCE).timeout(PATIENCE).build()
        };
        let client = build().map_err(|error| FilesError {
            cause: error.to_string(),
            remedy: "check the system's certificates".into(),
        })?;
        let authorization = token.and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { address, client, cache, authorization, offline, fresh: Mutex::default() })
    }

    /// A file as the server has it now, or its copy if that has not changed.
    fn request(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        let copy = self.copy(path);
        if self.offline {
            return Ok(copy.map(|(bytes, _)| bytes));
        }
        let failed = |cause: String, remedy: &str| FilesError { cause, remedy: remedy.into() };
        let unreachable = |error: &dyn std::error::Error| {
            let mut cause = error.to_string();
            let mut source = error.source();
            while let Some(error) = source {
                cause = error.to_string();
                source = error.source();
            }
            failed(cause, "check the address and the network, or use --offline")
        };
        let url = self.address.join(path).map_err(|error| unreachable(&error))?;
        let mut request = self.client.get(url);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some((_, tag)) = copy.as_ref().filter(|(_, tag)| !tag.is_empty()) {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let response = request.send().map_err(|error| unreachable(&error.without_url()))?;
        match response.status() {
            StatusCode::NOT_MODIFIED if copy.is_some() => Ok(copy.map(|(bytes, _)| bytes)),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let host = self.address.host_str().unwrap_or_default();
                let cause = format!("the server answers {}", response.status());
                Err(failed(cause, &format!("run `sheaf login {host}` with a token that may read it")))
            }
            status if status.is_success() => {
                let tag = response
                    .headers()
                    .get(ETAG)
                    .and_then(|tag| tag.to_str().ok())
                    .unwrap_or_default()
                    .to_owned();
                let mut bytes = Vec::new();
                response
                    .take(MAX_FILE as u64 + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| unreachable(&error))?;
                if bytes.len() > MAX_FILE {
                    return Err(failed(
                        format!("{path} has more than {MAX_FILE} bytes"),
                        "tell who keeps the registry",
                    ));
                }
                self.keep(path, &tag, &bytes);
                Ok(Some(bytes))
            }
            status => Err(failed(format!("the server answers {status} for {path}"), "try again later")),
        }
    }

    /// The copy of a file, and its entity tag.
    fn copy(&self, path: &str) -> Option<(Vec<u8>, String)> {
        let bytes = fs::read(self.copy_path(path)).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let tag = String::from_utf8(bytes[..end].to_vec()).ok()?;
        Some((bytes[end + 1..].to_vec(), tag))
    }

    /// Copies are files named by digest: a path of an index is not one of this machine.
    fn copy_path(&self, path: &str) -> PathBuf {
        self.cache.join(hex::encode(Sha256::digest(path.as_bytes())))
    }

    /// Keeps a copy. A failure costs a request later.
    fn keep(&self, path: &str, tag: &str, bytes: &[u8]) {
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.cache)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.cache)?;
            io::Write::write_all(&mut file, &[tag.as_bytes(), b"\n", bytes].concat())?;
            file.persist(self.copy_path(path))?;
            Ok(())
        };
        let _ = write();
    }
}

/// The cause why a redirect is not followed.
fn refusal(previous: &[Url], next: &Url) -> Option<&'static str> {
    if previous.len() > REDIRECTS {
        return Some("it redirects again and again");
    }
    let was_encrypted = previous.last().is_some_and(|url| url.scheme() == "https");
    (was_encrypted && next.scheme() != "https").then_some("it redirects to an address that is not encrypted")
}

impl IndexFiles for HttpFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        match self.fresh.lock().unwrap_or_else(PoisonError::into_inner).remove(path) {
            Some(found) => Ok(found),
            None => self.request(path),
        }
    }

    fn prefetch(&self, paths: &[String]) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Ok(found) = self.request(path) {
                    self.fresh.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), found);
                }
            }
        };
        thread::scope(|scope| {
            (1..CONNECTIONS.min(paths.len())).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
    }

    fn list(&self) -> Result<Option<Vec<String>>, FilesError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_few_and_stay_encrypted() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (safe, plain) = (url("https://a.example/x"), url("http://a.example/x"));
        assert_eq!(refusal(std::slice::from_ref(&safe), &url("https://b.example/x")), None);
        assert_eq!(refusal(std::slice::from_ref(&plain), &safe), None);
        assert!(refusal(std::slice::from_ref(&safe), &plain).is_some());
        assert!(refusal(&vec![safe.clone(); REDIRECTS + 1], &safe).is_some());
    }

    #[test]
    fn a_token_goes_over_encrypted_or_local_connections_only() {
        let open = |address: &str| {
            HttpFiles::new(Url::parse(address).unwrap(), PathBuf::new(), Some("secret"), true)
        };
        assert!(open("https://registry.example/index").is_ok());
        assert!(open("http://127.0.0.1:1/index").is_ok());
        let Err(error) = open("http://registry.example/index") else { panic!("the token would be readable") };
        let text = format!("{}; {}", error.cause, error.remedy);
        insta::assert_snapshot!(text, @"the token for registry.example goes over https only; name the registry with https, or run `sheaf login registry.example --remove`");
    }
}
