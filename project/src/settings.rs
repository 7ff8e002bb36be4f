//! Settings merged from all sources.
//!
//! From lowest to highest precedence: the user's `config.toml`, the project's `Sheaf.toml`, the environment, an option
//! of the command line. The highest source that has a setting determines all of it: lists are not joined, except for
//! the mirrors of the compiler and for revoked keys.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

use crate::lock::Addresses;
use crate::manifest::SheafToml;
use crate::project::MANIFEST_NAME;
use crate::tables::{CacheTable, Mode, SIZE_EXPECTED, ToolchainTable, size};
use crate::trust::Request;
use crate::user_config::UserConfig;

/// The effective settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The package index, mirror or folder of the compiler; `None` for the default.
    pub index: Option<Setting<String>>,
    /// The release of the compiler; `None` for Sheaf's default.
    pub iree: Option<Setting<String>>,
    /// Mirrors of the compiler, in the order in which they are tried before the index. These lists are joined: the
    /// environment's, then the project's, then the user's.
    pub mirrors: Vec<Setting<String>>,
    /// Addresses of the compiler on an index when the project was locked.
    pub addresses: Option<Addresses>,
    /// The addresses of remote caches, in look-up order.
    pub remote: Setting<Vec<String>>,
    /// Read-only or read-write use of remote caches.
    pub mode: Setting<Mode>,
    /// The public keys whose signatures are trusted.
    pub trusted_keys: Setting<Vec<String>>,
    /// The public keys that are never trusted: those of all files together.
    pub revoked_keys: Vec<String>,
    /// The credential helper of remote caches.
    pub credential_helper: Setting<Option<String>>,
    /// Maximum size of the local store, in bytes.
    pub max_size: Setting<Option<u64>>,
    /// The address of a cluster that compiles on cache misses.
    pub executor: Setting<Option<String>>,
    /// Time limit of a look-up in a remote cache, and of a run's unsuccessful look-ups together, in seconds.
    pub cache_timeout: Setting<Option<u64>>,
    /// True to disable network access.
    pub offline: Setting<bool>,
    /// Settings of the project's file that only the user may make: not in effect.
    pub refused: Vec<Refused>,
    /// Settings of the project's file that need the user's consent: not in effect.
    pub passed_over: Option<PassedOver>,
    /// The remote caches that the user has named, in effect or not.
    pub named_remotes: Vec<String>,
    /// Remote caches that the authors of the project's packages name.
    pub package_programs: Vec<PackagePrograms>,
}

/// A remote cache with the compiled programs of a package. It is asked if the user trusts the signer there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackagePrograms {
    /// The address of the remote cache.
    pub remote: String,
    /// The public key of the package's author.
    pub signer: String,
}

/// A project's requests without the user's consent; see [`Request`](crate::Request).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} in {} {} passed over: look at {}, and then run `sheaf trust {}`",
    quoted(names),
    path.display(),
    if names.len() == 1 { "is" } else { "are" },
    if names.len() == 1 { "it" } else { "them" },
    path.parent().unwrap_or(path).display()
)]
pub struct PassedOver {
    /// The project's file.
    pub path: PathBuf,
    /// The names of the settings.
    pub names: Vec<&'static str>,
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [all @ .., one, last] => [all, &[format!("{one} and {last}")]].concat().join(", "),
        all => all.concat(),
    }
}

/// An ineffective setting of a project's file: a project is not trusted to start programs, nor to choose the executor
/// for all projects of a user, or the size of their store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`cache.{name}` in {} is not used: only the user may choose that", path.display())]
pub struct Refused {
    /// The project's file.
    pub path: PathBuf,
    /// The name of the setting.
    pub name: &'static str,
    /// The environment variable by which the user can set it.
    pub variable: &'static str,
}

impl Refused {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> String {
        format!("set it in the user's config.toml, or set {}", self.variable)
    }
}

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Origin of the value, for messages.
    pub origin: Origin,
}

/// Origin of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Not set.
    Default,
    /// Set in this file.
    File(PathBuf),
    /// Set in this environment variable.
    Environment(&'static str),
    /// Set with this option.
    Option(&'static str),
}

impl Origin {
    /// True for a project's file, which is untrusted.
    fn is_project(&self) -> bool {
        matches!(self, Self::File(path) if path.ends_with(MANIFEST_NAME))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the built-in default"),
            Self::File(path) => path.display().fmt(f),
            Self::Environment(name) | Self::Option(name) => f.write_str(name),
        }
    }
}

/// Settings of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `--toolchain-index`.
    pub index: Option<String>,
    /// `--cache-remote`, once per occurrence.
    pub remote: Vec<String>,
    /// `--read-only`.
    pub read_only: bool,
    /// `--offline`.
    pub offline: bool,
    /// `--remote-executor`.
    pub executor: Option<String>,
}

/// An environment variable with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} is `{value}`, but it must be {expected}; correct or unset it")]
pub struct SettingsError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values.
    pub expected: &'static str,
}

/// True if the environment forbids the use of the network.
pub fn offline(environment: impl Fn(&str) -> Option<String>) -> Result<bool, SettingsError> {
    Ok(flag(&environment, OFFLINE_VARIABLE)?.unwrap_or(false))
}

const OFFLINE_VARIABLE: &str = "SHEAF_OFFLINE";

/// The limits of one compilation, with their valid values.
const COMPILE_LIMITS: [(&str, &str); 2] = [
    ("SHEAF_COMPILE_SECONDS", "a whole number of seconds, where 0 is no limit"),
    ("SHEAF_COMPILE_MIB", "a whole number of MiB, where 0 is no limit"),
];

impl Settings {
    /// Merges all sources. `environment` looks up a variable, and an empty one counts as unset. Requests of the project
    /// take effect if `allowed` returns true.
    pub fn merge(
        user: Option<&UserConfig>,
        project: Option<&SheafToml>,
        allowed: impl Fn(&Request) -> bool,
        environment: impl Fn(&str) -> Option<String>,
        options: &Options,
    ) -> Result<Self, SettingsError> {
        let allowed = flag(&environment, TRUST_VARIABLE)?.unwrap_or(false)
            || project.and_then(Request::of).is_none_or(|request| allowed(&request));
        let user = user.map(|user| (user.path.as_path(), &user.toolchain, &user.cache));
        let project = project.map(|project| (project.path.as_path(), &project.toolchain, &project.cache));
        let mut settings = Self::default();
        if let Some((path, toolchain, cache)) = user {
            settings.set_from_file(path, toolchain, cache);
            settings
                .credential_helper
                .set(cache.credential_helper.clone().map(Some), Origin::File(path.into()));
            settings.executor.set(cache.executor.clone().map(Some), Origin::File(path.into()));
            settings.max_size.set(cache.max_size.map(Some), Origin::File(path.into()));
            settings.set_requests(path, toolchain, cache);
        }
        settings.named_remotes.clone_from(&settings.remote.value);
        if let Some((path, toolchain, cache)) = project {
            settings.set_from_file(path, toolchain, cache);
            settings.refuse(path, cache);
            if allowed {
                settings.set_requests(path, toolchain, cache);
            }
        }
        settings.set_from_environment(environment)?;
        settings.set_from_options(options);
        if let Some((path, toolchain, cache)) = project.filter(|_| !allowed) {
            settings.pass_over(path, toolchain, cache);
        }
        Ok(settings)
    }

    /// True if the user has named this remote cache: one with the same scheme, host (or bucket) and port. Only those
    /// get credentials, whatever a project requests.
    pub fn names_remote(&self, address: &str) -> bool {
        is_among(&self.named_remotes, address)
    }

    /// The compiler's sources that a project requests and the user has not named: they get no credentials.
    pub fn sources_without_credentials(&self) -> Vec<&str> {
        let all = || self.mirrors.iter().chain(&self.index);
        let named: Vec<_> = all().filter(|source| !source.origin.is_project()).map(|p| &p.value).collect();
        let asked = all().filter(|source| source.origin.is_project()).map(|source| source.value.as_str());
        asked.filter(|source| !is_among(&named, source)).collect()
    }

    /// Applies the project's requests.
    fn set_requests(&mut self, path: &Path, toolchain: &ToolchainTable, cache: &CacheTable) {
        let origin = || Origin::File(path.to_path_buf());
        if let Some(index) = &toolchain.index {
            self.index = Some(Setting { value: index.clone(), origin: origin() });
        }
        self.add_mirrors(toolchain.mirrors.clone().unwrap_or_default(), &origin());
        self.remote.set(cache.remote.clone(), origin());
        self.trusted_keys.set(cache.trusted_keys.clone(), origin());
    }

    /// Records the project's requests that are not in effect, unless a source of higher precedence sets them.
    fn pass_over(&mut self, path: &Path, toolchain: &ToolchainTable, cache: &CacheTable) {
        let is_open = |origin: &Origin| matches!(origin, Origin::Default | Origin::File(_));
        let index = self.index.as_ref().is_none_or(|index| is_open(&index.origin));
        let all = [
            ("trusted-keys", cache.trusted_keys.is_some() && is_open(&self.trusted_keys.origin)),
            ("remote", cache.remote.is_some() && is_open(&self.remote.origin)),
            ("mirrors", toolchain.mirrors.is_some()),
            ("index", toolchain.index.is_some() && index),
        ];
        let names: Vec<_> = all.into_iter().filter_map(|(name, is_asked)| is_asked.then_some(name)).collect();
        self.passed_over = (!names.is_empty()).then(|| PassedOver { path: path.into(), names });
    }

    fn set_from_file(&mut self, path: &Path, toolchain: &ToolchainTable, cache: &CacheTable) {
        let origin = || Origin::File(path.to_path_buf());
        if let Some(iree) = &toolchain.iree {
            self.iree = Some(Setting { value: iree.clone(), origin: origin() });
        }
        self.mode.set(cache.mode, origin());
        self.revoked_keys.extend(cache.revoked_keys.clone().unwrap_or_default());
    }

    /// Records settings that a project's file may not make.
    fn refuse(&mut self, path: &Path, cache: &CacheTable) {
        let all = [
            (cache.credential_helper.is_some(), "credential-helper", "SHEAF_CACHE_CREDENTIAL_HELPER"),
            (cache.executor.is_some(), "executor", "SHEAF_REMOTE_EXECUTOR"),
            (cache.max_size.is_some(), "max-size", "SHEAF_CACHE_MAX_SIZE"),
        ];
        let set = all.into_iter().filter(|(is_set, ..)| *is_set);
        self.refused.extend(set.map(|(_, name, variable)| Refused { path: path.into(), name, variable }));
    }

    /// Puts mirrors before those of lower precedence.
    fn add_mirrors(&mut self, mirrors: Vec<String>, origin: &Origin) {
        let mirrors = mirrors.into_iter().map(|value| Setting { value, origin: origin.clone() });
        self.mirrors.splice(..0, mirrors);
    }

    fn set_from_environment(
        &mut self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(), SettingsError> {
        let variable = |name: &'static str| {
            let value = environment(name).filter(|value| !value.trim().is_empty());
            value.map(|value| (value.trim().to_owned(), name))
        };
        if let Some((value, name)) = variable("SHEAF_TOOLCHAIN_INDEX") {
            self.index = Some(Setting { value, origin: Origin::Environment(name) });
        }
        if let Some((value, name)) = variable("SHEAF_TOOLCHAIN_MIRROR") {
            self.add_mirrors(listed(&value), &Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_REMOTE") {
            self.named_remotes.extend(listed(&value));
            self.remote.set(Some(listed(&value)), Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_TRUSTED_KEYS") {
            self.trusted_keys.set(Some(listed(&value)), Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_CREDENTIAL_HELPER") {
            self.credential_helper.set(Some(Some(value)), Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_MAX_SIZE") {
            let Some(size) = size(&value) else {
                return Err(SettingsError { variable: name, value, expected: SIZE_EXPECTED });
            };
            self.max_size.set(Some(Some(size)), Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_TIMEOUT") {
            let Some(seconds) = value.parse().ok().filter(|seconds| (1..=3600).contains(seconds)) else {
                let expected = "a number of seconds from 1 to 3600";
                return Err(SettingsError { variable: name, value, expected });
            };
            self.cache_timeout.set(Some(Some(seconds)), Origin::Environment(name));
        }
        // Used by the compile workers; checked here so that an invalid value is rejected like the others.
        for (name, expected) in COMPILE_LIMITS {
            if let Some((value, variable)) = variable(name)
                && value.parse::<u64>().is_err()
            {
                return Err(SettingsError { variable, value, expected });
            }
        }
        if let Some((value, name)) = variable("SHEAF_REMOTE_EXECUTOR") {
            self.executor.set(Some(Some(value)), Origin::Environment(name));
        }
        if let Some((value, name)) = variable("SHEAF_CACHE_MODE") {
            let Some(mode) = Mode::parse(&value) else {
                return Err(SettingsError { variable: name, value, expected: Mode::EXPECTED });
            };
            self.mode.set(Some(mode), Origin::Environment(name));
        }
        self.offline.set(flag(&environment, OFFLINE_VARIABLE)?, Origin::Environment(OFFLINE_VARIABLE));
        Ok(())
    }

    fn set_from_options(&mut self, options: &Options) {
        if let Some(index) = &options.index {
            self.index = Some(Setting { value: index.clone(), origin: Origin::Option("--toolchain-index") });
        }
        self.named_remotes.extend(options.remote.iter().cloned());
        let remote = (!options.remote.is_empty()).then(|| options.remote.clone());
        self.remote.set(remote, Origin::Option("--cache-remote"));
        self.mode.set(options.read_only.then_some(Mode::ReadOnly), Origin::Option("--read-only"));
        self.offline.set(options.offline.then_some(true), Origin::Option("--offline"));
        self.executor.set(options.executor.clone().map(Some), Origin::Option("--remote-executor"));
    }
}

/// The environment variable that allows all requests of projects, for machines that run only reviewed code.
const TRUST_VARIABLE: &str = "SHEAF_TRUST_PROJECT";

/// A boolean variable; `None` if unset.
fn flag(
    environment: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<bool>, SettingsError> {
    let value = environment(variable).unwrap_or_default();
    match value.trim() {
        "" => Ok(None),
        "1" | "true" => Ok(Some(true)),
        "0" | "false" => Ok(Some(false)),
        value => Err(SettingsError { variable, value: value.into(), expected: "1, true, 0 or false" }),
    }
}

/// True if an address has the scheme, host and port of one of the others.
fn is_among(others: &[impl AsRef<str>], address: &str) -> bool {
    let authority = |address: &str| {
        let url = Url::parse(address.trim()).ok()?;
        Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
    };
    let Some(asked) = authority(address) else { return false };
    others.iter().any(|other| authority(other.as_ref()).as_ref() == Some(&asked))
}

/// The items of a comma-separated list.
fn listed(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

impl<T: Default> Default for Setting<T> {
    fn default() -> Self {
        Self { value: T::default(), origin: Origin::Default }
    }
}

impl<T> Setting<T> {
    fn set(&mut self, value: Option<T>, origin: Origin) {
        if let Some(value) = value {
            *self = Self { value, origin };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn user(text: &str) -> UserConfig {
        let SheafToml { toolchain, cache, .. } = SheafToml::parse(Path::new("/u/config.toml"), text).unwrap();
        UserConfig {
            path: "/u/config.toml".into(),
            safe_directories: vec![],
            toolchain,
            cache,
            registries: std::collections::BTreeMap::new(),
            mirrors: std::collections::BTreeMap::new(),
            resolver: crate::ResolverTable::default(),
            warnings: vec![],
        }
    }

    fn project(text: &str) -> SheafToml {
        SheafToml::parse(Path::new("/p/Sheaf.toml"), text).unwrap()
    }

    fn environment<const N: usize>(variables: [(&str, &str); N]) -> impl Fn(&str) -> Option<String> {
        let variables: HashMap<_, _> =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        move |name| variables.get(name).cloned()
    }

    const ALL: &str = r#"
        toolchain.index = "https://FILE.example"
        toolchain.mirrors = ["https://FILE-mirror.example", "/srv/FILE"]
        cache.remote = ["https://FILE.example"]
        cache.mode = "read-only"
        cache.trusted-keys = ["FILE"]
    "#;

    #[test]
    fn without_settings_the_defaults_are_in_force() {
        let settings = Settings::merge(None, None, |_| true, |_| None, &Options::default()).unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.mode.value, Mode::ReadWrite);
        assert_eq!(settings.mode.origin.to_string(), "the built-in default");
    }

    #[test]
    fn each_place_overrides_the_lower_ones() {
        let user = user(&ALL.replace("FILE", "user"));
        let project = project(&ALL.replace("FILE", "project").replace("read-only", "read-write"));
        let environment = environment([
            ("SHEAF_TOOLCHAIN_INDEX", "https://environment.example"),
            ("SHEAF_CACHE_REMOTE", "https://a.example, https://b.example,"),
            ("SHEAF_CACHE_MODE", "read-only"),
            ("SHEAF_OFFLINE", "1"),
        ]);
        let options = Options {
            index: Some("option".into()),
            remote: vec!["https://option.example".into()],
            read_only: true,
            offline: true,
            executor: Some("grpc://option.example".into()),
        };
        let unset = |_: &str| None;
        let none = Options::default();

        let settings = Settings::merge(Some(&user), None, |_| true, unset, &none).unwrap();
        let origin = Origin::File("/u/config.toml".into());
        assert_eq!(settings.index.unwrap().value, "https://user.example");
        assert_eq!(settings.mode, Setting { value: Mode::ReadOnly, origin });

        let settings = Settings::merge(Some(&user), Some(&project), |_| true, unset, &none).unwrap();
        let origin = Origin::File("/p/Sheaf.toml".into());
        assert_eq!(settings.index.unwrap().value, "https://project.example");
        assert_eq!(settings.remote.value, ["https://project.example"]);
        assert_eq!(settings.trusted_keys.value, ["project"]);
        assert_eq!(settings.mode, Setting { value: Mode::ReadWrite, origin });

        let settings = Settings::merge(Some(&user), Some(&project), |_| true, &environment, &none).unwrap();
        assert_eq!(settings.index.unwrap().value, "https://environment.example");
        assert_eq!(settings.remote.value, ["https://a.example", "https://b.example"]);
        assert_eq!(settings.trusted_keys.value, ["project"]);
        assert_eq!(settings.mode.origin.to_string(), "SHEAF_CACHE_MODE");
        assert!(settings.offline.value);

        let settings =
            Settings::merge(Some(&user), Some(&project), |_| true, &environment, &options).unwrap();
        let origin = Origin::Option("--toolchain-index");
        assert_eq!(settings.index, Some(Setting { value: "option".into(), origin }));
        assert_eq!(settings.remote.value, ["https://option.example"]);
        assert_eq!(settings.mode.origin.to_string(), "--read-only");
        assert_eq!(settings.offline.origin.to_string(), "--offline");
    }

    #[test]
    fn a_project_starts_no_programs_names_no_cluster_and_empties_no_store() {
        let text = "cache.credential-helper = \"./helper\"\ncache.executor = \"grpc://there.example\"\n\
                    cache.max-size = \"1 B\"\n";
        let none = Options::default();
        let theirs = Settings::merge(None, Some(&project(text)), |_| true, |_| None, &none).unwrap();
        assert_eq!((&theirs.credential_helper.value, &theirs.executor.value), (&None, &None));
        let refused: Vec<_> = theirs.refused.iter().map(|r| format!("{r}; {}", r.remedy())).collect();
        assert_eq!(
            refused,
            [
                "`cache.credential-helper` in /p/Sheaf.toml is not used: only the user may choose that; \
             set it in the user's config.toml, or set SHEAF_CACHE_CREDENTIAL_HELPER",
                "`cache.executor` in /p/Sheaf.toml is not used: only the user may choose that; \
             set it in the user's config.toml, or set SHEAF_REMOTE_EXECUTOR",
                "`cache.max-size` in /p/Sheaf.toml is not used: only the user may choose that; \
             set it in the user's config.toml, or set SHEAF_CACHE_MAX_SIZE",
            ]
        );
        assert_eq!(theirs.max_size.value, None);
        let ours = Settings::merge(Some(&user(text)), None, |_| true, |_| None, &none).unwrap();
        assert_eq!(ours.max_size.value, Some(1));
        assert_eq!(ours.credential_helper.value.as_deref(), Some("./helper"));
        assert_eq!((ours.executor.value.as_deref(), ours.refused.len()), (Some("grpc://there.example"), 0));
    }

    #[test]
    fn what_a_project_asks_for_needs_consent() {
        let (user, project) = (user(&ALL.replace("FILE", "user")), project(&ALL.replace("FILE", "project")));
        let none = Options::default();
        let merge = |trust: &str, allowed: bool, environment: &[(&str, &str)]| {
            let mut variables = environment.to_vec();
            variables.push(("SHEAF_TRUST_PROJECT", trust));
            let looked_up = move |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            Settings::merge(Some(&user), Some(&project), |_| allowed, looked_up, &none)
        };
        let denied = merge("", false, &[]).unwrap();
        assert_eq!(denied.remote.value, ["https://user.example"]);
        assert_eq!(denied.trusted_keys.value, ["user"]);
        assert_eq!(denied.index.as_ref().unwrap().value, "https://user.example");
        assert_eq!(denied.mirrors.len(), 2);
        assert_eq!(denied.mode.origin.to_string(), "/p/Sheaf.toml", "that is no request");
        insta::assert_snapshot!(denied.passed_over.unwrap(), @"`trusted-keys`, `remote`, `mirrors` and `index` in /p/Sheaf.toml are passed over: look at them, and then run `sheaf trust /p`");
        for (trust, allowed) in [("1", false), ("true", false), ("", true), ("0", true)] {
            let settings = merge(trust, allowed, &[]).unwrap();
            assert_eq!(
                (&settings.remote.value[..], settings.passed_over),
                (&["https://project.example".to_owned()][..], None)
            );
        }
        assert!(merge("0", false, &[]).unwrap().passed_over.is_some());
        assert!(merge("yes", false, &[]).is_err());
        // The recipe for pull requests: the effective settings come from a source of higher precedence.
        let set = [
            ("SHEAF_CACHE_REMOTE", "https://a.example"),
            ("SHEAF_CACHE_TRUSTED_KEYS", "a"),
            ("SHEAF_TOOLCHAIN_INDEX", "/w"),
        ];
        assert_eq!(merge("", false, &set).unwrap().passed_over.unwrap().names, ["mirrors"]);
    }

    #[test]
    fn credentials_are_for_remotes_that_the_user_named() {
        let user = user("cache.remote = [\"https://a.example/x\", \"s3://bucket/x\"]");
        let project = project("cache.remote = [\"https://a.example/y\", \"https://b.example\"]");
        let environment = environment([("SHEAF_CACHE_REMOTE", "grpcs://c.example:81")]);
        let options = Options { remote: vec!["http://127.0.0.1:82".into()], ..Options::default() };
        let settings = Settings::merge(Some(&user), Some(&project), |_| true, environment, &options).unwrap();
        for named in [
            "https://a.example/y",
            "https://me@a.example:443",
            "s3://bucket",
            "grpcs://c.example:81/i",
            "http://127.0.0.1:82",
        ] {
            assert!(settings.names_remote(named), "{named}");
        }
        for other in [
            "http://a.example/x",
            "https://a.example:444",
            "https://b.example",
            "s3://other/x",
            "grpcs://c.example",
            "https://127.0.0.1:82",
            "nonsense",
            "https://a.example.b.example",
        ] {
            assert!(!settings.names_remote(other), "{other}");
        }
    }

    #[test]
    fn mirrors_of_a_project_get_no_credentials_unless_the_user_named_them() {
        let user = user("toolchain.mirrors = [\"https://a.example/x\"]");
        let project = project(
            "toolchain.mirrors = [\"https://a.example/y\", \"https://b.example\"]\ntoolchain.index = \"https://c.example\"",
        );
        let settings =
            Settings::merge(Some(&user), Some(&project), |_| true, |_| None, &Options::default()).unwrap();
        assert_eq!(settings.sources_without_credentials(), ["https://b.example", "https://c.example"]);
    }

    #[test]
    fn what_anybody_revokes_is_revoked() {
        let (user, project) = (user("cache.revoked-keys = [\"a\"]"), project("cache.revoked-keys = [\"b\"]"));
        let settings =
            Settings::merge(Some(&user), Some(&project), |_| true, |_| None, &Options::default()).unwrap();
        assert_eq!(settings.revoked_keys, ["a", "b"]);
    }

    #[test]
    fn mirrors_are_joined_with_the_highest_place_first() {
        let (user, project) = (user(&ALL.replace("FILE", "user")), project(&ALL.replace("FILE", "project")));
        let environment = environment([("SHEAF_TOOLCHAIN_MIRROR", "https://a.example, /srv/b")]);
        let settings =
            Settings::merge(Some(&user), Some(&project), |_| true, environment, &Options::default()).unwrap();
        let mirrors: Vec<_> = settings.mirrors.iter().map(|mirror| mirror.value.as_str()).collect();
        let expected = [
            "https://a.example",
            "/srv/b",
            "https://project-mirror.example",
            "/srv/project",
            "https://user-mirror.example",
            "/srv/user",
        ];
        assert_eq!(mirrors, expected);
        assert_eq!(settings.mirrors[0].origin.to_string(), "SHEAF_TOOLCHAIN_MIRROR");
        assert_eq!(settings.mirrors[3].origin.to_string(), "/p/Sheaf.toml");
    }

    #[test]
    fn a_higher_place_that_says_nothing_overrides_nothing() {
        let user = user(&ALL.replace("FILE", "user"));
        let empty = environment([("SHEAF_CACHE_MODE", ""), ("SHEAF_OFFLINE", " ")]);
        let settings =
            Settings::merge(Some(&user), Some(&project("")), |_| true, empty, &Options::default()).unwrap();
        assert_eq!(settings.remote.value, ["https://user.example"]);
        assert_eq!(settings.mode.value, Mode::ReadOnly);
        assert!(!settings.offline.value);
    }

    #[test]
    fn an_empty_list_is_a_setting() {
        let user = user(&ALL.replace("FILE", "user"));
        let project = project("cache.remote = []");
        let settings =
            Settings::merge(Some(&user), Some(&project), |_| true, |_| None, &Options::default()).unwrap();
        assert!(settings.remote.value.is_empty());
    }

    #[test]
    fn variables_that_mean_nothing_are_errors() {
        let message = |name, value| {
            let merged =
                Settings::merge(None, None, |_| true, environment([(name, value)]), &Options::default());
            merged.unwrap_err().to_string()
        };
        insta::assert_snapshot!(message("SHEAF_CACHE_MODE", "rw"), @r#"the environment variable SHEAF_CACHE_MODE is `rw`, but it must be "read-write" or "read-only"; correct or unset it"#);
        insta::assert_snapshot!(message("SHEAF_OFFLINE", "yes"), @"the environment variable SHEAF_OFFLINE is `yes`, but it must be 1, true, 0 or false; correct or unset it");
        insta::assert_snapshot!(message("SHEAF_COMPILE_SECONDS", "abc"), @"the environment variable SHEAF_COMPILE_SECONDS is `abc`, but it must be a whole number of seconds, where 0 is no limit; correct or unset it");
        insta::assert_snapshot!(message("SHEAF_COMPILE_MIB", "2GB"), @"the environment variable SHEAF_COMPILE_MIB is `2GB`, but it must be a whole number of MiB, where 0 is no limit; correct or unset it");
    }
}
