//! Cached file addresses of a release on an index, which save the request for its page.

use std::collections::BTreeMap;

use reqwest::Url;

use sheaf_foundation::shown;

use crate::error::InstallError;
use crate::http::Client;
use crate::index::{copy_credentials, names};
use crate::progress::Progress;
use crate::source::{Settings, WheelSource, page_of, sources};
use sheaf_target::Release;

/// The entries of an index page for one release. Only a hint: downloads from these addresses are verified by digest,
/// and if nothing is found the page is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The address of the index, without user name and password.
    pub index: String,
    /// The address of the file of each platform, by the platform's [name](sheaf_target::Platform::name); without user name and
    /// password.
    pub files: BTreeMap<String, String>,
}

impl Listing {
    /// Asks the index for the files of `releases`, which are those of one version. `None` without asking if the network
    /// is disabled, mirrors come first or the source is a folder; also if no page lists any of them.
    pub fn ask(
        releases: &[Release<'_>],
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, InstallError> {
        let Some(first) = releases.first() else { return Ok(None) };
        if settings.offline || !settings.mirrors.is_empty() {
            return Ok(None);
        }
        let sources = match sources(settings, first) {
            Err(InstallError::NoSource { .. }) => return Ok(None),
            sources => sources?,
        };
        let client = Client::new(settings, progress)?;
        let mut first_error = None;
        for candidate in sources {
            let WheelSource::Address(index) = candidate.source else { continue };
            match Self::of(&index, &client, releases, progress) {
                Ok(None) => {}
                Ok(listing) => return Ok(listing),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    fn of(
        index: &Url,
        client: &Client,
        releases: &[Release<'_>],
        progress: &dyn Progress,
    ) -> Result<Option<Self>, InstallError> {
        let address = page_of(index);
        let Some(page) = client.page(&address, progress)? else { return Ok(None) };
        let mut files = BTreeMap::new();
        for release in releases {
            let file = page.find(release.wheel);
            let file = file.map_err(|cause| InstallError::BadIndex { address: shown(&address), cause })?;
            // A query may be specific to a user or temporary.
            if let Some(file) = file.filter(|file| file.query().is_none()) {
                files.insert(release.platform.name().to_owned(), shown(&file));
            }
        }
        Ok((!files.is_empty()).then(|| Self { index: shown(index), files }))
    }

    /// The last known address of a release's file on `index`, with the user name and password of the index if it is on
    /// the same host. `None` if this is the listing of another index or another release.
    pub(crate) fn find(&self, index: &Url, release: &Release<'_>) -> Option<Url> {
        if self.index.trim_end_matches('/') != shown(index).trim_end_matches('/') {
            return None;
        }
        let mut address = Url::parse(self.files.get(release.platform.name())?).ok()?;
        if !matches!(address.scheme(), "http" | "https") || !names(&address, release.wheel) {
            return None;
        }
        copy_credentials(index, &mut address);
        Some(address)
    }
}
