//! Sources of the compiler's wheel.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use crate::error::InstallError;
use crate::listing::Listing;
use crate::pip::{self, PipConfig};
use sheaf_target::Release;

/// The name of the package on every index.
const PACKAGE: &str = "iree-base-compiler";

/// The default index of pip on the build machine.
const BUILD_INDEX: Option<&str> = option_env!("SHEAF_BUILTIN_INDEX");

/// Options of the compiler's download.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Sources of wheels by file name, tried first and in this order. Only the wheel is requested from a mirror, so
    /// that an installation from it makes one request.
    pub mirrors: Vec<Setting>,
    /// The only index to use after the mirrors; without it pip's configuration decides.
    pub index: Option<Setting>,
    /// Cached file addresses of an index; from that index only the file is requested.
    pub listing: Option<Listing>,
    /// Addresses that get no credentials of the user, even if the netrc file names their hosts.
    pub no_credentials: Vec<String>,
    /// No network: only folders are searched.
    pub offline: bool,
    /// Network time limits and retries.
    pub limits: Limits,
}

/// A source of wheels, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// A folder; or a `file:`, `http:` or `https:` address of a folder, a simple index, or a plain mirror.
    pub value: String,
    /// Origin of the setting, for messages: `SHEAF_TOOLCHAIN_INDEX`, or a file and its key.
    pub origin: String,
}

/// Network time limits and retries.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time limit for connecting.
    pub connect: Duration,
    /// Time limit without a byte received.
    pub stall: Duration,
    /// Maximum number of attempts at a transfer, at least one; resumed if the server supports it.
    pub attempts: u32,
    /// Pause before the second attempt, doubled for each further one up to [`Limits::LONGEST_PAUSE`].
    pub pause: Duration,
}

impl Limits {
    /// Maximum pause.
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

    /// The pause after this many attempts.
    pub(crate) fn pause_after(&self, attempts: u32) -> Duration {
        let doubled = self.pause.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled.min(Self::LONGEST_PAUSE)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(30),
            attempts: 5,
            pause: Duration::from_secs(1),
        }
    }
}

/// Location of a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WheelSource {
    /// A folder of this machine, or the wheel itself.
    Folder(PathBuf),
    /// A simple index, or a plain mirror with the wheel in it.
    Address(Url),
    /// A plain mirror, which has no page.
    Mirror(Url),
    /// The wheel itself.
    File(Url),
}

/// A source with advice for the case that its file is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The source.
    pub(crate) source: WheelSource,
    /// Advice on naming another in the setting that it came from.
    pub(crate) instead: String,
}

impl WheelSource {
    /// Parses a setting.
    fn parse(setting: &Setting) -> Result<Self, InstallError> {
        let bad = |cause: &str| InstallError::BadSetting {
            origin: setting.origin.clone(),
            value: without_credentials(&setting.value),
            cause: cause.to_owned(),
        };
        let value = setting.value.trim();
        if value.is_empty() {
            return Err(bad("it is empty"));
        }
        if !value.contains("://") {
            return std::path::absolute(value).map(Self::Folder).map_err(|error| bad(&error.to_string()));
        }
        let url = Url::parse(value).map_err(|error| bad(&error.to_string()))?;
        match url.scheme() {
            "file" => {
                url.to_file_path().map(Self::Folder).map_err(|()| bad("it names no path of this machine"))
            }
            "http" | "https" => Ok(Self::Address(url)),
            other => Err(bad(&format!("`{other}` is not a scheme Sheaf can fetch from"))),
        }
    }
}

/// The mirrors, in order.
pub(crate) fn mirrors(settings: &Settings) -> Result<Vec<Candidate>, InstallError> {
    let parsed = settings.mirrors.iter().map(|setting| {
        let source = match WheelSource::parse(setting)? {
            WheelSource::Address(url) => WheelSource::Mirror(url),
            folder => folder,
        };
        Ok(Candidate { source, instead: format!("set {} to another mirror or folder", setting.origin) })
    });
    parsed.collect()
}

/// The sources to use if no mirror has the wheel, in order.
pub(crate) fn sources(settings: &Settings, release: &Release<'_>) -> Result<Vec<Candidate>, InstallError> {
    let sources = match &settings.index {
        Some(setting) => {
            let instead = format!("set {} to another index or folder", setting.origin);
            vec![Candidate { source: WheelSource::parse(setting)?, instead }]
        }
        None => pip_sources(&pip::configured(), || {
            pip::builtin_index().or_else(|| BUILD_INDEX.map(str::to_owned))
        })?,
    };
    if sources.is_empty() {
        Err(InstallError::NoSource { wheel: release.wheel.to_owned() })
    } else {
        Ok(sources)
    }
}

/// The sources of pip's configuration: its folders first, since they need no network.
fn pip_sources(
    config: &PipConfig,
    builtin: impl FnOnce() -> Option<String>,
) -> Result<Vec<Candidate>, InstallError> {
    let parse = |value: &str, key: &str| {
        let origin = format!("pip's configuration, {key}");
        let instead = format!(
            "set SHEAF_TOOLCHAIN_INDEX to another index or folder, since this one comes from {origin}"
        );
        Ok(Candidate { source: WheelSource::parse(&Setting { value: value.to_owned(), origin })?, instead })
    };
    let mut sources = Vec::new();
    for link in &config.find_links {
        sources.push(parse(link, "find-links")?);
    }
    if config.no_index {
        return Ok(sources);
    }
    if let Some(index) = config.index.clone().or_else(builtin) {
        sources.push(parse(&index, "index-url")?);
    }
    for index in &config.extra_indexes {
        sources.push(parse(index, "extra-index-url")?);
    }
    Ok(sources)
}

/// The address of a file or folder in a folder, whose address may lack the final slash.
pub(crate) fn below(address: &Url, name: &str) -> Url {
    let mut address = address.clone();
    let folder = address.path().trim_end_matches('/').to_owned();
    address.set_path(&format!("{folder}/{name}"));
    address
}

/// The page of the package on an index.
pub(crate) fn page_of(index: &Url) -> Url {
    below(index, &format!("{PACKAGE}/"))
}

/// The paths in a folder at which the wheel may be: the folder itself, in it, or in an index layout.
pub(crate) fn wheel_paths(folder: &Path, wheel: &str) -> Vec<PathBuf> {
    if folder.file_name().is_some_and(|name| name == wheel) {
        return vec![folder.to_path_buf()];
    }
    vec![folder.join(wheel), folder.join(PACKAGE).join(wheel)]
}

/// A text that may not be an address, without user name and password.
fn without_credentials(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(value: &str) -> Setting {
        Setting { value: value.to_owned(), origin: "SHEAF_TOOLCHAIN_INDEX".to_owned() }
    }

    fn address(text: &str) -> WheelSource {
        WheelSource::Address(Url::parse(text).expect("an address"))
    }

    #[test]
    fn a_setting_is_a_folder_or_an_address() {
        let parse = |value: &str| WheelSource::parse(&setting(value)).expect("usable");
        assert_eq!(parse("https://index.test/simple"), address("https://index.test/simple"));
        assert_eq!(parse(" http://127.0.0.1:8000/ "), address("http://127.0.0.1:8000/"));
        if cfg!(unix) {
            assert_eq!(parse("/srv/wheels"), WheelSource::Folder("/srv/wheels".into()));
            assert_eq!(parse("file:///srv/my%20wheels"), WheelSource::Folder("/srv/my wheels".into()));
        }
        let here = std::env::current_dir().expect("a current folder");
        assert_eq!(parse("wheels"), WheelSource::Folder(here.join("wheels")));
    }

    #[test]
    fn unusable_settings_say_why() {
        let message = |value: &str| WheelSource::parse(&setting(value)).expect_err("unusable").to_string();
        insta::assert_snapshot!(message(" "), @"SHEAF_TOOLCHAIN_INDEX: ` ` is not a usable place for the compiler: it is empty");
        insta::assert_snapshot!(message("ftp://index.test/simple"), @"SHEAF_TOOLCHAIN_INDEX: `ftp://index.test/simple` is not a usable place for the compiler: `ftp` is not a scheme Sheaf can fetch from");
        insta::assert_snapshot!(message("https://user:secret@:99/x"), @"SHEAF_TOOLCHAIN_INDEX: `https://:99/x` is not a usable place for the compiler: empty host");
    }

    #[test]
    fn pips_folders_come_first_and_its_index_before_the_extra_ones() {
        let config = PipConfig {
            index: Some("http://a.test/simple".into()),
            extra_indexes: vec!["http://b.test/simple".into()],
            find_links: vec!["http://c.test/links".into()],
            no_index: false,
        };
        let builtin = || Some("http://builtin.test/simple".to_owned());
        let pip_sources = |config: &PipConfig, builtin: fn() -> Option<String>| {
            let sources = pip_sources(config, builtin).expect("usable");
            sources.into_iter().map(|candidate| candidate.source).collect::<Vec<_>>()
        };
        assert_eq!(
            pip_sources(&config, builtin),
            ["http://c.test/links", "http://a.test/simple", "http://b.test/simple"].map(address)
        );
        let offline = PipConfig { no_index: true, ..config };
        assert_eq!(pip_sources(&offline, builtin), [address("http://c.test/links")]);
        assert_eq!(pip_sources(&PipConfig::default(), builtin), [address("http://builtin.test/simple")]);
        assert_eq!(pip_sources(&PipConfig::default(), || None), []);
    }

    #[test]
    fn mirrors_have_no_page() {
        let settings = Settings {
            mirrors: vec![setting("https://mirror.test/wheels"), setting("file:///srv/wheels")],
            ..Settings::default()
        };
        let mirrors = mirrors(&settings).expect("usable");
        assert_eq!(
            mirrors[0].source,
            WheelSource::Mirror(Url::parse("https://mirror.test/wheels").expect("an address"))
        );
        assert!(matches!(mirrors[1].source, WheelSource::Folder(_)));
    }

    #[test]
    fn pauses_double_and_have_an_end() {
        let limits = Limits::default();
        let pauses: Vec<_> = (1..8).map(|attempts| limits.pause_after(attempts).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(limits.pause_after(u32::MAX), Limits::LONGEST_PAUSE);
    }

    #[test]
    fn passwords_are_not_shown() {
        let url = Url::parse("https://user:secret@index.test:8443/simple?token=secret#sha256=0")
            .expect("an address");
        assert_eq!(sheaf_foundation::shown(&url), "https://index.test:8443/simple");
    }
}
