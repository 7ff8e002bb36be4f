//! Where an index has the files of a release, so that who has asked once need not ask for its page again.

use std::collections::BTreeMap;

use reqwest::Url;

use crate::error::InstallError;
use crate::http::Client;
use crate::index::{lend_credentials, names};
use crate::progress::Progress;
use crate::releases::Release;
use crate::source::{Place, Settings, page_of, places, shown};

/// What the page of an index says of one release. It is a hint: whatever comes from these addresses is believed for its
/// digest alone, and where nothing comes the page is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The address of the index, without user name and password.
    pub index: String,
    /// The address of the file of each platform, by the platform's [name](crate::Platform::name); without user name and
    /// password.
    pub files: BTreeMap<String, String>,
}

impl Listing {
    /// Asks the index for the files of `releases`, which are those of one version. None where none is to be asked: without
    /// the network, where mirrors come first, where the place is a folder; or where no page lists any of them.
    pub fn ask(
        releases: &[Release<'_>],
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, InstallError> {
        let Some(first) = releases.first() else { return Ok(None) };
        if settings.offline || !settings.mirrors.is_empty() {
            return Ok(None);
        }
        let places = match places(settings, first) {
            Err(InstallError::NoSource { .. }) => return Ok(None),
            places => places?,
        };
        let client = Client::new(settings, progress)?;
        let mut first_error = None;
        for source in places {
            let Place::Address(index) = source.place else { continue };
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
            // What a query says is for one user or for a time.
            if let Some(file) = file.filter(|file| file.query().is_none()) {
                files.insert(release.platform.name().to_owned(), shown(&file));
            }
        }
        Ok((!files.is_empty()).then(|| Self { index: shown(index), files }))
    }

    /// Where `index` had the file of a release, with the user name and password of the index if it is on the same host.
    /// None if this is the listing of another index or another release.
    pub(crate) fn find(&self, index: &Url, release: &Release<'_>) -> Option<Url> {
        if self.index.trim_end_matches('/') != shown(index).trim_end_matches('/') {
            return None;
        }
        let mut address = Url::parse(self.files.get(release.platform.name())?).ok()?;
        if !matches!(address.scheme(), "http" | "https") || !names(&address, release.wheel) {
            return None;
        }
        lend_credentials(index, &mut address);
        Some(address)
    }
}
