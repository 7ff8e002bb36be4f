//! Downloads of pages and files, with bounded retries.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use netrc::Netrc;
use reqwest::blocking::{RequestBuilder, Response};
use reqwest::header::{ACCEPT, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use reqwest::{StatusCode, Url};
use sha2::{Digest, Sha256};
use sheaf_foundation::{is_private, shown};

use crate::error::{InstallError, file_error};
use crate::index::{self, Page};
use crate::progress::{Progress, Stage};
use crate::source::{Limits, Settings};
use sheaf_target::Release;

/// Maximum size of an index page, in bytes.
const PAGE_LIMIT: u64 = 64 << 20;

/// An HTTP client with the limits of the settings.
pub(crate) struct Client {
    http: reqwest::blocking::Client,
    limits: Limits,
    /// User names and passwords by host; `None` without a readable file.
    netrc: Option<Netrc>,
    /// Addresses that get no credentials.
    no_credentials: Vec<Url>,
}

/// Size and digest of a received file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// Their number.
    pub(crate) bytes: u64,
    /// Their SHA-256, in lower-case hexadecimal.
    pub(crate) sha256: String,
}

impl Client {
    /// A client that uses the system's trust store and the environment's proxies, and user names and passwords from the
    /// file that `NETRC` names or `~/.netrc`.
    pub(crate) fn new(settings: &Settings, progress: &dyn Progress) -> Result<Self, InstallError> {
        let limits = settings.limits;
        let no_credentials = settings.no_credentials.iter().filter_map(|address| Url::parse(address).ok());
        let no_credentials = no_credentials.collect();
        // Fails only if the process has already selected a provider, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder()
            .connect_timeout(limits.connect)
            // In the blocking client this bounds the wait for the answer and for each read, not the whole transfer.
            .timeout(limits.stall)
            .user_agent(concat!("sheaf/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| InstallError::Unreachable {
                address: "the network".to_owned(),
                cause: root_cause(&error),
            })?;
        Ok(Self { http, limits, netrc: netrc(progress), no_credentials })
    }

    /// A request for an address, with the address's user name and password, or else those of the netrc file for exactly
    /// this host, over encrypted or local connections only, and unless only a project names the address. The client
    /// removes them on a redirection to another host.
    fn get(&self, url: &Url) -> RequestBuilder {
        let request = self.http.get(url.clone());
        let entry = match (&self.netrc, url.host_str()) {
            (Some(netrc), Some(host))
                if url.username().is_empty()
                    && url.password().is_none()
                    && is_private(url)
                    && !self.no_credentials.iter().any(|address| address.origin() == url.origin()) =>
            {
                // The default entry is not meant for any particular host.
                netrc.hosts.get(host).filter(|_| host != "default")
            }
            _ => None,
        };
        match entry {
            Some(entry) => request.basic_auth(&entry.login, Some(&entry.password)),
            None => request,
        }
    }

    /// An index's page, or `None` if there is no such page.
    pub(crate) fn page(&self, url: &Url, progress: &dyn Progress) -> Result<Option<Page>, InstallError> {
        self.patiently(progress, || self.attempt_page(url))
    }

    /// Retries an operation after a pause if its error is temporary; `None` if the address does not exist.
    fn patiently<T>(
        &self,
        progress: &dyn Progress,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<Option<T>, InstallError> {
        let mut attempts = 1;
        loop {
            let broken = match attempt() {
                Ok(done) => return Ok(Some(done)),
                Err(Failure::Absent) => return Ok(None),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error)) => error,
            };
            if attempts >= self.limits.attempts {
                return Err(broken);
            }
            progress.retrying(&broken.to_string());
            thread::sleep(self.limits.pause_after(attempts));
            attempts += 1;
        }
    }

    fn attempt_page(&self, url: &Url) -> Result<Page, Failure> {
        let request = self.get(url).header(ACCEPT, index::ACCEPT);
        let response = request.send().map_err(|error| unanswered(url, &error))?;
        if !response.status().is_success() {
            return Err(status_failure(url, response.status()));
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        let mut own_url = response.url().clone();
        if own_url.origin() == url.origin() {
            // The client moves user name and password from the address to a header.
            let _ = own_url.set_username(url.username());
            let _ = own_url.set_password(url.password());
        }
        let mut body = Vec::new();
        response.take(PAGE_LIMIT).read_to_end(&mut body).map_err(|error| {
            let (address, cause) = (shown(url), root_cause(&error));
            Failure::Passing(InstallError::Unreachable { address, cause })
        })?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Page { url: own_url, content_type, body })
    }

    /// Downloads the wheel to `file`, which is at `path`, or returns `None` if the address does not exist. Resumes a
    /// partial download of an earlier process, and starts over if the result does not match. At most one buffer is
    /// received beyond the wheel's size.
    pub(crate) fn download(
        &self,
        url: &Url,
        release: &Release<'_>,
        file: &mut File,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<Option<Received>, InstallError> {
        let mut transfer = Transfer::continued(file, path, release)?;
        let mut is_older = transfer.bytes > 0;
        progress.begin(Stage::Download, &shown(url), release.size);
        progress.advance(transfer.bytes);
        let received = self.patiently(progress, || {
            self.attempt(url, &mut transfer, progress)?;
            let received = transfer.received();
            if !is_older || received.sha256 == release.sha256 {
                return Ok(received);
            }
            is_older = false;
            transfer.restart()?;
            progress.begin(Stage::Download, &shown(url), release.size);
            self.attempt(url, &mut transfer, progress)?;
            Ok(transfer.received())
        })?;
        if received.is_some() {
            progress.finished(Stage::Download);
        }
        Ok(received)
    }

    /// Downloads the missing rest.
    fn attempt(
        &self,
        url: &Url,
        transfer: &mut Transfer<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
        let started = transfer.bytes;
        if started == transfer.release.size {
            return Ok(());
        }
        let mut request = self.get(url);
        if started > 0 {
            request = request.header(RANGE, format!("bytes={started}-"));
        }
        let mut response = request.send().map_err(|error| {
            if transfer.is_answered {
                Failure::Passing(transfer.truncated(url, root_cause(&error)))
            } else {
                unanswered(url, &error)
            }
        })?;
        transfer.is_answered = true;
        let status = response.status();
        if status == StatusCode::PARTIAL_CONTENT && continues_at(&response, started) {
            // Resumes.
        } else if status == StatusCode::OK {
            if started > 0 {
                transfer.restart()?;
                progress.begin(Stage::Download, &shown(url), transfer.release.size);
            }
        } else if status == StatusCode::RANGE_NOT_SATISFIABLE && started > 0 {
            transfer.restart()?;
            return Err(Failure::Passing(status_error(url, status)));
        } else {
            return Err(status_failure(url, status));
        }

        // Without an announced length the end of the connection looks like the end of the file.
        let announced = response.content_length().is_some();
        let mut buffer = vec![0; 1 << 16];
        while transfer.bytes <= transfer.release.size {
            let count = response
                .read(&mut buffer)
                .map_err(|error| Failure::Passing(transfer.truncated(url, root_cause(&error))))?;
            if count == 0 {
                if !announced && transfer.bytes < transfer.release.size {
                    return Err(Failure::Passing(transfer.truncated(url, "the connection ended".to_owned())));
                }
                break;
            }
            transfer.write(&buffer[..count])?;
            progress.advance(count as u64);
        }
        Ok(())
    }
}

/// Kind of a failed attempt.
enum Failure {
    /// The address does not exist.
    Absent,
    /// Temporary: a retry may help.
    Passing(InstallError),
    /// A retry will not help.
    Final(InstallError),
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Self::Final(error)
    }
}

/// A file being written, hashed as it passes.
pub(crate) struct Transfer<'a> {
    file: &'a mut File,
    path: &'a Path,
    release: &'a Release<'a>,
    hasher: Sha256,
    bytes: u64,
    /// A server has answered in this process.
    is_answered: bool,
}

impl<'a> Transfer<'a> {
    /// Writes to `file`, which is empty and at `path`.
    pub(crate) fn new(file: &'a mut File, path: &'a Path, release: &'a Release<'a>) -> Self {
        Self { file, path, release, hasher: Sha256::new(), bytes: 0, is_answered: false }
    }

    /// Appends to `file`, which is at `path` and may have a beginning of the wheel.
    fn continued(file: &'a mut File, path: &'a Path, release: &'a Release<'a>) -> Result<Self, InstallError> {
        let mut transfer = Self::new(file, path, release);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = transfer.file.read(&mut buffer);
            let count = read.map_err(|error| file_error("read", path, release.space(), error))?;
            if count == 0 {
                break;
            }
            transfer.hasher.update(&buffer[..count]);
            transfer.bytes += count as u64;
        }
        if transfer.bytes > release.size {
            transfer.restart()?;
        }
        Ok(transfer)
    }

    /// Appends to the file.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), InstallError> {
        self.file
            .write_all(bytes)
            .map_err(|error| file_error("write", self.path, self.release.space(), error))?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Empties the file.
    fn restart(&mut self) -> Result<(), InstallError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| file_error("empty", self.path, self.release.space(), error))?;
        self.hasher = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    /// Size and digest so far.
    pub(crate) fn received(&self) -> Received {
        Received { bytes: self.bytes, sha256: hex::encode(self.hasher.clone().finalize()) }
    }

    fn truncated(&self, url: &Url, cause: String) -> InstallError {
        InstallError::Truncated {
            address: shown(url),
            received: self.bytes,
            expected: self.release.size,
            cause,
        }
    }
}

/// The user's netrc file; `None` if it does not exist. Warns if it cannot be read.
fn netrc(progress: &dyn Progress) -> Option<Netrc> {
    let file = Netrc::get_file()?;
    let cause = match Netrc::from_file(&file) {
        Ok(netrc) => return Some(netrc),
        // The parser's message may quote a password.
        Err(netrc::Error::Parsing { .. }) => "it is not in the form of a netrc file".to_owned(),
        Err(netrc::Error::Io(error)) => error.to_string(),
    };
    progress.warning(&format!(
        "{} cannot be read, so no password is taken from it: {cause}; correct it, or set NETRC to another file",
        file.display()
    ));
    None
}

/// The failure for a request without an answer. Connection failures are final, not retried.
fn unanswered(url: &Url, error: &reqwest::Error) -> Failure {
    let unreachable = InstallError::Unreachable { address: shown(url), cause: root_cause(error) };
    if error.is_connect() || error.is_timeout() {
        Failure::Final(unreachable)
    } else {
        Failure::Passing(unreachable)
    }
}

/// True if a partial answer starts at this byte.
fn continues_at(response: &Response, start: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// The failure for an unexpected status.
fn status_failure(url: &Url, status: StatusCode) -> Failure {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Failure::Absent,
        StatusCode::TOO_MANY_REQUESTS => Failure::Passing(status_error(url, status)),
        _ if status.is_server_error() => Failure::Passing(status_error(url, status)),
        _ => Failure::Final(status_error(url, status)),
    }
}

fn status_error(url: &Url, status: StatusCode) -> InstallError {
    InstallError::Status { address: shown(url), code: status.as_u16(), status: status.to_string() }
}

/// The innermost cause, the one that a user can act on.
fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
