//! An index on an http(s) server: a static copy of the files of its repository.
//!
//! Each file is kept with its entity tag and a digest; a later run asks whether it has changed, in a request without a body.
//! A token goes to the index's own server, over https or to this machine itself, and not along with redirects to another.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::blocking::Client;
use reqwest::header::{AUTHORIZATION, ETAG, HeaderValue, IF_NONE_MATCH};
use reqwest::redirect::{Attempt, Policy};
use sha2::{Digest as _, Sha256};
use sheaf_foundation::{atomic, is_private};
use url::Url;

use super::config::CONFIG_NAME;
use super::entry::MAX_FILE;
use super::files::{FilesError, IndexFiles};

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum number of redirects of a request.
const REDIRECTS: usize = 5;

/// Maximum number of requests at a time.
const CONNECTIONS: usize = 16;

/// The contents of a file, if it exists.
type Answer = Result<Option<Vec<u8>>, FilesError>;

/// An index on an http(s) server.
pub struct HttpFiles {
    address: Url,
    client: Client,
    /// Folder of the files that were read before.
    cache: PathBuf,
    authorization: Option<HeaderValue>,
    /// True if there is a token that the address keeps from being sent.
    withheld: bool,
    offline: bool,
    patience: Duration,
    /// Files that were asked for before they are wanted.
    fresh: Mutex<HashMap<String, Answer>>,
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
        if !address.path().ends_with('/') {
            address.set_path(&format!("{}/", address.path()));
        }
        let build = || {
            // A redirect to another host is followed by reqwest without the Authorization header.
            Client::builder().connect_timeout(PATIENCE).redirect(Policy::custom(redirect)).build()
        };
        let client = build().map_err(|error| FilesError {
            cause: error.to_string(),
            remedy: "check the system's certificates".into(),
        })?;
        let withheld = token.is_some() && !is_private(&address);
        let authorization = token.filter(|_| !withheld).and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let (patience, fresh) = (PATIENCE, Mutex::default());
        Ok(Self { address, client, cache, authorization, withheld, offline, patience, fresh })
    }

    /// The same index with another time limit of requests.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A file as the server has it now, or its copy if that has not changed.
    fn request(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        let failed = |cause: String, remedy: &str| FilesError { cause, remedy: remedy.into() };
        let copy = self.copy(path);
        if self.offline {
            // Without it nothing was read before; of a package there may be nothing to read.
            if copy.is_none() && path == CONFIG_NAME {
                let cause = "it was not read before, and --offline or SHEAF_OFFLINE forbids to ask it".into();
                return Err(failed(cause, "run the command once with a network"));
            }
            return Ok(copy.map(|(bytes, _)| bytes));
        }
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
        let mut request = self.client.get(url).timeout(self.patience);
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
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if self.withheld => {
                let cause = format!("the server answers {}", response.status());
                Err(failed(cause, "use an https address: tokens are not sent without encryption"))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let host = self.address.host_str().unwrap_or_default();
                let port = self.address.port().map(|port| format!(":{port}")).unwrap_or_default();
                let cause = format!("the server answers {}", response.status());
                Err(failed(cause, &format!("run `sheaf login {host}{port}` with a token that may read it")))
            }
            StatusCode::OK => {
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

    /// The copy of a file, and its entity tag; `None` if it is not as it was written.
    fn copy(&self, path: &str) -> Option<(Vec<u8>, String)> {
        let mut bytes = fs::read(self.copy_path(path)).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let contents = bytes.split_off(end + 1);
        let head = str::from_utf8(&bytes[..end]).ok()?;
        let (digest, tag) = head.split_once(' ')?;
        (digest == hex::encode(Sha256::digest(&contents))).then(|| (contents, tag.to_owned()))
    }

    /// Copies are files named by digest: a path of an index is not one of this machine.
    fn copy_path(&self, path: &str) -> PathBuf {
        self.cache.join(hex::encode(Sha256::digest(path.as_bytes())))
    }

    /// Keeps a copy. A failure costs a request later.
    fn keep(&self, path: &str, tag: &str, bytes: &[u8]) {
        let head = format!("{} {tag}\n", hex::encode(Sha256::digest(bytes)));
        let _ = atomic::write(&self.copy_path(path), &[head.as_bytes(), bytes].concat());
    }
}

impl IndexFiles for HttpFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        match self.fresh.lock().unwrap_or_else(PoisonError::into_inner).remove(path) {
            Some(found) => found,
            None => self.request(path),
        }
    }

    fn prefetch(&self, paths: &[String]) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = self.request(path);
                self.fresh.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), found);
            }
        };
        thread::scope(|scope| {
            (1..CONNECTIONS.min(paths.len())).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
    }

    fn forget(&self, path: &str) {
        // Otherwise the server would confirm the copy again and again.
        let _ = fs::remove_file(self.copy_path(path));
    }

    fn list(&self) -> Result<Option<Vec<String>>, FilesError> {
        Ok(None)
    }
}

/// A refusal of redirects that leave https, and of too many.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    match refusal(attempt.previous(), attempt.url()) {
        Some(cause) => attempt.error(cause),
        None => attempt.follow(),
    }
}

fn refusal(before: &[Url], to: &Url) -> Option<String> {
    let host = to.host_str().unwrap_or_default();
    if before.len() > REDIRECTS {
        return Some(format!("it redirects more than {REDIRECTS} times, at last to {host}"));
    }
    let leaves = to.scheme() != "https" && before.iter().any(|url| url.scheme() == "https");
    leaves.then(|| {
        format!("it redirects from https to {} on {host}, which anyone on the way could change", to.scheme())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_never_redirects_to_http() {
        let refused = |before: &[&str], to: &str| {
            let before: Vec<Url> = before.iter().map(|url| url.parse().unwrap()).collect();
            refusal(&before, &to.parse().unwrap())
        };
        insta::assert_snapshot!(refused(&["https://a.example/x"], "http://b.example/x").unwrap(), @"it redirects from https to http on b.example, which anyone on the way could change");
        assert!(refused(&["https://a.example/x", "https://b.example/x"], "http://a.example/x").is_some());
        for (from, to) in [("https", "https"), ("http", "https"), ("http", "http")] {
            let from = format!("{from}://a.example/x");
            assert_eq!(refused(&[&from], &format!("{to}://b.example/x")), None);
        }
        insta::assert_snapshot!(refused(&["https://a.example/x"; 6], "https://b.example/x").unwrap(), @"it redirects more than 5 times, at last to b.example");
    }
}
