//! Downloads a release's wheel from the first source that has it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use reqwest::Url;

use sheaf_foundation::shown;

use crate::error::{InstallError, file_error};
use crate::http::{Client, Received, Transfer};
use crate::progress::{Progress, Stage};
use crate::source::{Candidate, Settings, WheelSource, below, mirrors, page_of, sources, wheel_paths};
use sheaf_target::Release;

/// Source of a wheel, with its size and digest.
type Found = Option<(String, Received)>;

/// Download of one wheel.
pub(crate) struct Fetch<'a> {
    release: &'a Release<'a>,
    settings: &'a Settings,
    /// Destination path.
    wheel: &'a Path,
    progress: &'a dyn Progress,
    /// Created on first use.
    client: Option<Client>,
    /// The addresses and files that do not exist.
    tried: Vec<String>,
    /// A wrong file found earlier, not yet reported.
    untold: Option<String>,
    /// The error of the first source that failed.
    first_error: Option<InstallError>,
}

impl<'a> Fetch<'a> {
    /// A download to the path `wheel`, which may hold a partial download.
    pub(crate) fn new(
        release: &'a Release<'a>,
        settings: &'a Settings,
        wheel: &'a Path,
        progress: &'a dyn Progress,
    ) -> Self {
        let (client, tried, untold, first_error) = (None, Vec::new(), None, None);
        Self { release, settings, wheel, progress, client, tried, untold, first_error }
    }

    /// Downloads and verifies the wheel. Returns its source.
    pub(crate) fn fetch(mut self) -> Result<String, InstallError> {
        for candidate in mirrors(self.settings)? {
            if let Some(origin) = self.try_source(&candidate)? {
                return Ok(origin);
            }
        }
        // Pip's configuration is read only if no mirror has the wheel, since starting pip takes time.
        let sources = match sources(self.settings, self.release) {
            // Mirrors may be the only configured sources.
            Err(InstallError::NoSource { .. }) if !self.settings.mirrors.is_empty() => Vec::new(),
            sources => sources?,
        };
        let sources: Vec<_> = sources.into_iter().flat_map(|candidate| self.with_listed(candidate)).collect();
        for candidate in sources {
            if let Some(origin) = self.try_source(&candidate)? {
                return Ok(origin);
            }
        }
        let (wheel, tried) = (self.release.wheel.to_owned(), self.tried);
        Err(match self.first_error {
            Some(error) => error,
            None if self.settings.offline => InstallError::Offline { wheel, tried },
            None => InstallError::NotFound { wheel, tried },
        })
    }

    /// The wheel's last known address on an index, if any, followed by the index, which may have moved it.
    fn with_listed(&self, candidate: Candidate) -> impl Iterator<Item = Candidate> + use<> {
        let listed = match (&self.settings.listing, &candidate.source) {
            (Some(listing), WheelSource::Address(index)) => listing.find(index, self.release),
            _ => None,
        };
        let listed = listed
            .map(|url| Candidate { source: WheelSource::File(url), instead: candidate.instead.clone() });
        listed.into_iter().chain([candidate])
    }

    /// Tries one source; returns its address if it has the wheel. A failing source does not prevent trying the others.
    fn try_source(&mut self, candidate: &Candidate) -> Result<Option<String>, InstallError> {
        if self.settings.offline && !matches!(candidate.source, WheelSource::Folder(_)) {
            return Ok(None);
        }
        if let Some(untold) = self.untold.take() {
            self.progress.warning(&format!("{untold}; asking the next place"));
        }
        let error = match self.ask(candidate) {
            Ok(None) => return Ok(None),
            Ok(Some((origin, received))) => {
                if received.sha256 == self.release.sha256 && received.bytes == self.release.size {
                    return Ok(Some(origin));
                }
                self.unlike(origin, candidate, received.bytes, Some(received.sha256))
            }
            Err(error) => error,
        };
        if error.is_of_the_file() {
            // The received bytes are useless for the next source; nothing was received of an unread file.
            if matches!(error, InstallError::Checksum { computed: Some(_), .. }) {
                discard(self.wheel, self.release)?;
            }
            self.untold = Some(error.to_string());
        } else if !error.is_network() {
            return Err(error);
        }
        self.first_error.get_or_insert(error);
        Ok(None)
    }

    fn ask(&mut self, candidate: &Candidate) -> Result<Found, InstallError> {
        match &candidate.source {
            WheelSource::Folder(folder) => self.copy(folder, candidate),
            WheelSource::Address(address) => self.ask_index(address),
            WheelSource::Mirror(address) => self.download(&below(address, self.release.wheel)),
            WheelSource::File(address) => self.download(address),
        }
    }

    /// Copies the file from a folder.
    fn copy(&mut self, folder: &Path, candidate: &Candidate) -> Result<Found, InstallError> {
        let release = self.release;
        for path in wheel_paths(folder, release.wheel) {
            let origin = path.display().to_string();
            let failed = |error| file_error("read", &path, release.space(), error);
            // Before opening: opening a pipe may block forever.
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    self.tried.push(origin);
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            if !metadata.is_file() {
                return Err(failed(io::Error::other("it is no file")));
            }
            let source = File::open(&path).map_err(failed)?;
            if metadata.len() != release.size {
                return Err(self.unlike(origin, candidate, metadata.len(), None));
            }
            let file = File::create(self.wheel);
            let mut file = file.map_err(|error| file_error("make", self.wheel, release.space(), error))?;
            let mut transfer = Transfer::new(&mut file, self.wheel, release);
            let mut buffer = vec![0; 1 << 20];
            self.progress.begin(Stage::Download, &origin, release.size);
            // The file may grow meanwhile.
            let mut source = source.take(release.size + 1);
            loop {
                let count = source.read(&mut buffer).map_err(failed)?;
                if count == 0 {
                    break;
                }
                transfer.write(&buffer[..count])?;
                self.progress.advance(count as u64);
            }
            self.progress.finished(Stage::Download);
            return Ok(Some((origin, transfer.received())));
        }
        Ok(None)
    }

    /// Requests the package's page as from an index, then the file itself as from a plain mirror.
    fn ask_index(&mut self, address: &Url) -> Result<Found, InstallError> {
        let page_address = page_of(address);
        let mut page_error = None;
        let progress = self.progress;
        let listed = match self.client()?.page(&page_address, progress) {
            Ok(Some(page)) => page
                .find(self.release.wheel)
                .map_err(|cause| InstallError::BadIndex { address: shown(&page_address), cause })?,
            Ok(None) => None,
            // File stores may answer 403 for missing files.
            Err(error @ InstallError::Status { .. }) => {
                page_error = Some(error);
                None
            }
            Err(error) => return Err(error),
        };
        if listed.is_none() {
            self.tried.push(shown(&page_address));
        }
        for url in listed.into_iter().chain([below(address, self.release.wheel)]) {
            let found = self.download(&url)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        page_error.map_or(Ok(None), Err)
    }

    /// Requests only the file: one request, unless it is missing or the connection breaks.
    fn download(&mut self, url: &Url) -> Result<Found, InstallError> {
        let (release, wheel, progress) = (self.release, self.wheel, self.progress);
        let client = self.client()?;
        // The file may hold a partial download.
        let file = File::options().read(true).write(true).create(true).truncate(false).open(wheel);
        let mut file = file.map_err(|error| file_error("make", wheel, release.space(), error))?;
        let received = client.download(url, release, &mut file, wheel, progress)?;
        if received.is_none() {
            self.tried.push(shown(url));
        }
        Ok(received.map(|received| (shown(url), received)))
    }

    fn client(&mut self) -> Result<&Client, InstallError> {
        match &mut self.client {
            Some(client) => Ok(client),
            none => Ok(none.insert(Client::new(self.settings, self.progress)?)),
        }
    }

    /// The error for a file that is not the wheel.
    fn unlike(
        &self,
        origin: String,
        candidate: &Candidate,
        size: u64,
        sha256: Option<String>,
    ) -> InstallError {
        InstallError::Checksum {
            origin,
            instead: candidate.instead.clone(),
            expected: self.release.sha256.to_owned(),
            computed: sha256,
            expected_size: self.release.size,
            computed_size: size,
        }
    }
}

/// Removes a partial download of a wheel.
pub(crate) fn discard(wheel: &Path, release: &Release<'_>) -> Result<(), InstallError> {
    match fs::remove_file(wheel) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file_error("remove", wheel, release.space(), error))
        }
        _ => Ok(()),
    }
}
