//! `[resolver]`: rules of the choice of versions; and the registries and rules that are in force.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Span, Timestamp, Zoned};

use crate::error::FileError;
use crate::manifest::SheafToml;
use crate::settings::SettingsError;
use crate::spanned_toml::Table;
use crate::user_config::UserConfig;

/// The variable that names the default registry.
const REGISTRY_VARIABLE: &str = "SHEAF_REGISTRY";
/// The variable with the age that new versions must have.
const NEWER_VARIABLE: &str = "SHEAF_EXCLUDE_NEWER";
const NEWER_EXPECTED: &str = "an age such as \"7 days\", or a time such as \"2026-11-01T00:00:00Z\"";

/// Name of the registry of dependencies that name none.
pub const DEFAULT_REGISTRY: &str = "default";

/// The keys of `[resolver]`.
pub(crate) const RESOLVER: &[&str] = &["exclude-newer"];

/// `[resolver]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolverTable {
    /// Versions that were published later are passed over.
    pub exclude_newer: Option<Newer>,
}

/// A limit on the time of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newer {
    /// A point in time.
    Than(Timestamp),
    /// An age at the time of the resolution.
    Age(SignedDuration),
}

impl Newer {
    /// Reads a limit: an age such as `7 days`, or a point in time.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Some(Self::Than(time));
        }
        let span: Span = text.parse().ok()?;
        // Days and weeks have their usual length: the limit is about releases of others.
        let age = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
        (!age.is_negative()).then_some(Self::Age(age))
    }

    /// The point in time, for a resolution now.
    pub fn time(self) -> Option<Timestamp> {
        match self {
            Self::Than(time) => Some(time),
            Self::Age(age) => Zoned::now().timestamp().checked_sub(age).ok(),
        }
    }
}

impl ResolverTable {
    pub(crate) fn read(root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("resolver", RESOLVER)?;
        let exclude_newer = table.string("exclude-newer")?;
        let exclude_newer =
            exclude_newer.map(|text| Newer::parse(&text.value).ok_or_else(|| text.wrong(NEWER_EXPECTED)));
        Ok(Self { exclude_newer: exclude_newer.transpose()? })
    }
}

/// The limit on the time of publication in force: that of the environment, of the project, or of the user.
pub fn exclude_newer(
    project: Option<&SheafToml>,
    user: &UserConfig,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Timestamp>, SettingsError> {
    let newer = match environment(NEWER_VARIABLE).filter(|value| !value.trim().is_empty()) {
        Some(value) => Some(Newer::parse(value.trim()).ok_or(SettingsError {
            variable: NEWER_VARIABLE,
            value,
            expected: NEWER_EXPECTED,
        })?),
        None => project.and_then(|project| project.resolver.exclude_newer).or(user.resolver.exclude_newer),
    };
    Ok(newer.and_then(Newer::time))
}

/// Addresses of registries by name. The project's own names come first: an index is a part of what a dependency is, and
/// does not change with the machine. `SHEAF_REGISTRY`, and then the user's configuration, name the default for projects
/// that name none.
pub fn registries(
    project: Option<&SheafToml>,
    user: &UserConfig,
    environment: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut all = user.registries.clone();
    if let Some(address) = environment(REGISTRY_VARIABLE).filter(|value| !value.trim().is_empty()) {
        all.insert(DEFAULT_REGISTRY.into(), address.trim().into());
    }
    all.extend(project.into_iter().flat_map(|project| project.registries.clone()));
    all
}
