//! Settings from all places where they can be made.
//!
//! From lowest to highest: the user's `config.toml`, the project's `Sheaf.toml`, the environment, an option of the
//! command line. The highest place that sets something sets all of it: lists are not joined, but for the mirrors of the
//! compiler and for revoked keys.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::lock::Addresses;
use crate::manifest::SheafToml;
use crate::tables::{CacheTable, Mode, SIZE_EXPECTED, ToolchainTable, size};
use crate::user_config::UserConfig;

/// What is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The package index, mirror or folder that the compiler comes from; none for the usual one.
    pub index: Option<Setting<String>>,
    /// The release of the compiler; none for the one that Sheaf was made for.
    pub iree: Option<Setting<String>>,
    /// Mirrors of the compiler, in the order in which they are asked before the index. Here lists are joined: those of the
    /// environment come first, then the project's, then the user's.
    pub mirrors: Vec<Setting<String>>,
    /// Where an index had the compiler when the project was locked.
    pub addresses: Option<Addresses>,
    /// The addresses of remote caches, in the order in which they are asked.
    pub remote: Setting<Vec<String>>,
    /// Whether remote caches are written too.
    pub mode: Setting<Mode>,
    /// The public keys whose signatures are trusted.
    pub trusted_keys: Setting<Vec<String>>,
    /// The public keys that nothing makes trusted: those of all files together.
    pub revoked_keys: Vec<String>,
    /// The program that knows the credentials of remote caches.
    pub credential_helper: Setting<Option<String>>,
    /// The largest size of the local store, in bytes.
    pub max_size: Setting<Option<u64>>,
    /// The address of a cluster that compiles what no cache has.
    pub executor: Setting<Option<String>>,
    /// How long a look-up in a remote cache may take, in seconds.
    pub cache_timeout: Setting<Option<u64>>,
    /// Whether the network is left alone.
    pub offline: Setting<bool>,
    /// What the project's file sets and only the user may set: none of it is in force.
    pub refused: Vec<Refused>,
}

/// A setting of a project's file that is not in force: a project is not trusted to start programs, nor to name who compiles
/// for all projects of a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`cache.{name}` in {} is not used: only the user may choose that", path.display())]
pub struct Refused {
    /// The project's file.
    pub path: PathBuf,
    /// The name of the setting.
    pub name: &'static str,
    /// The environment variable by which the user sets it.
    pub variable: &'static str,
}

impl Refused {
    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        format!("set it in the user's config.toml, or set {}", self.variable)
    }
}

/// A value and where it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it was set, for messages about it.
    pub origin: Origin,
}

/// Where a setting was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere.
    Default,
    /// In this file.
    File(PathBuf),
    /// In this environment variable.
    Environment(&'static str),
    /// With this option.
    Option(&'static str),
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

/// What was set on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `--toolchain-index`.
    pub index: Option<String>,
    /// `--cache-remote`, as often as it was given; empty when it was not.
    pub remote: Vec<String>,
    /// `--read-only`.
    pub read_only: bool,
    /// `--offline`.
    pub offline: bool,
    /// `--remote-executor`.
    pub executor: Option<String>,
}

/// An environment variable with a value that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} is `{value}`, but it must be {expected}; correct or unset it")]
pub struct SettingsError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What it must be.
    pub expected: &'static str,
}

/// The limits of one compilation, with what their values must be.
const COMPILE_LIMITS: [(&str, &str); 2] = [
    ("SHEAF_COMPILE_SECONDS", "a whole number of seconds, where 0 is no limit"),
    ("SHEAF_COMPILE_MIB", "a whole number of MiB, where 0 is no limit"),
];

impl Settings {
    /// Merges all places; `environment` looks up a variable, and an empty one counts as unset.
    pub fn merge(
        user: Option<&UserConfig>,
        project: Option<&SheafToml>,
        environment: impl Fn(&str) -> Option<String>,
        options: &Options,
    ) -> Result<Self, SettingsError> {
        let user = user.map(|user| (user.path.as_path(), &user.toolchain, &user.cache));
        let project = project.map(|project| (project.path.as_path(), &project.toolchain, &project.cache));
        let mut settings = Self::default();
        if let Some((path, toolchain, cache)) = user {
            settings.set_from_file(path, toolchain, cache);
            settings
                .credential_helper
                .set(cache.credential_helper.clone().map(Some), Origin::File(path.into()));
            settings.executor.set(cache.executor.clone().map(Some), Origin::File(path.into()));
        }
        if let Some((path, toolchain, cache)) = project {
            settings.set_from_file(path, toolchain, cache);
            settings.refuse(path, cache);
        }
        settings.set_from_environment(environment)?;
        settings.set_from_options(options);
        Ok(settings)
    }

    fn set_from_file(&mut self, path: &Path, toolchain: &ToolchainTable, cache: &CacheTable) {
        let origin = || Origin::File(path.to_path_buf());
        if let Some(index) = &toolchain.index {
            self.index = Some(Setting { value: index.clone(), origin: origin() });
        }
        if let Some(iree) = &toolchain.iree {
            self.iree = Some(Setting { value: iree.clone(), origin: origin() });
        }
        self.add_mirrors(toolchain.mirrors.clone().unwrap_or_default(), &origin());
        self.remote.set(cache.remote.clone(), origin());
        self.mode.set(cache.mode, origin());
        self.trusted_keys.set(cache.trusted_keys.clone(), origin());
        self.revoked_keys.extend(cache.revoked_keys.clone().unwrap_or_default());
        self.max_size.set(cache.max_size.map(Some), origin());
    }

    /// Notes what a project's file may not set.
    fn refuse(&mut self, path: &Path, cache: &CacheTable) {
        let all = [
            (&cache.credential_helper, "credential-helper", "SHEAF_CACHE_CREDENTIAL_HELPER"),
            (&cache.executor, "executor", "SHEAF_REMOTE_EXECUTOR"),
        ];
        let set = all.into_iter().filter(|(value, ..)| value.is_some());
        self.refused.extend(set.map(|(_, name, variable)| Refused { path: path.into(), name, variable }));
    }

    /// Puts mirrors before those of lower places.
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
        // Read where compilers run; here so that a value without a meaning is refused like the others.
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
        if let Some((value, name)) = variable("SHEAF_OFFLINE") {
            let offline = match value.as_str() {
                "1" | "true" => true,
                "0" | "false" => false,
                _ => return Err(SettingsError { variable: name, value, expected: "1, true, 0 or false" }),
            };
            self.offline.set(Some(offline), Origin::Environment(name));
        }
        Ok(())
    }

    fn set_from_options(&mut self, options: &Options) {
        if let Some(index) = &options.index {
            self.index = Some(Setting { value: index.clone(), origin: Origin::Option("--toolchain-index") });
        }
        let remote = (!options.remote.is_empty()).then(|| options.remote.clone());
        self.remote.set(remote, Origin::Option("--cache-remote"));
        self.mode.set(options.read_only.then_some(Mode::ReadOnly), Origin::Option("--read-only"));
        self.offline.set(options.offline.then_some(true), Origin::Option("--offline"));
        self.executor.set(options.executor.clone().map(Some), Origin::Option("--remote-executor"));
    }
}

/// The items of a list that commas divide.
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
        UserConfig { path: "/u/config.toml".into(), toolchain, cache, warnings: vec![] }
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
        let settings = Settings::merge(None, None, |_| None, &Options::default()).unwrap();
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

        let settings = Settings::merge(Some(&user), None, unset, &none).unwrap();
        let origin = Origin::File("/u/config.toml".into());
        assert_eq!(settings.index.unwrap().value, "https://user.example");
        assert_eq!(settings.mode, Setting { value: Mode::ReadOnly, origin });

        let settings = Settings::merge(Some(&user), Some(&project), unset, &none).unwrap();
        let origin = Origin::File("/p/Sheaf.toml".into());
        assert_eq!(settings.index.unwrap().value, "https://project.example");
        assert_eq!(settings.remote.value, ["https://project.example"]);
        assert_eq!(settings.trusted_keys.value, ["project"]);
        assert_eq!(settings.mode, Setting { value: Mode::ReadWrite, origin });

        let settings = Settings::merge(Some(&user), Some(&project), &environment, &none).unwrap();
        assert_eq!(settings.index.unwrap().value, "https://environment.example");
        assert_eq!(settings.remote.value, ["https://a.example", "https://b.example"]);
        assert_eq!(settings.trusted_keys.value, ["project"]);
        assert_eq!(settings.mode.origin.to_string(), "SHEAF_CACHE_MODE");
        assert!(settings.offline.value);

        let settings = Settings::merge(Some(&user), Some(&project), &environment, &options).unwrap();
        let origin = Origin::Option("--toolchain-index");
        assert_eq!(settings.index, Some(Setting { value: "option".into(), origin }));
        assert_eq!(settings.remote.value, ["https://option.example"]);
        assert_eq!(settings.mode.origin.to_string(), "--read-only");
        assert_eq!(settings.offline.origin.to_string(), "--offline");
    }

    #[test]
    fn a_project_starts_no_programs_and_names_no_cluster() {
        let text = "cache.credential-helper = \"./helper\"\ncache.executor = \"grpc://there.example\"\n";
        let none = Options::default();
        let theirs = Settings::merge(None, Some(&project(text)), |_| None, &none).unwrap();
        assert_eq!((&theirs.credential_helper.value, &theirs.executor.value), (&None, &None));
        let told: Vec<_> = theirs.refused.iter().map(|r| format!("{r}; {}", r.remedy())).collect();
        assert_eq!(
            told,
            [
                "`cache.credential-helper` in /p/Sheaf.toml is not used: only the user may choose that; \
             set it in the user's config.toml, or set SHEAF_CACHE_CREDENTIAL_HELPER",
                "`cache.executor` in /p/Sheaf.toml is not used: only the user may choose that; \
             set it in the user's config.toml, or set SHEAF_REMOTE_EXECUTOR",
            ]
        );
        let ours = Settings::merge(Some(&user(text)), None, |_| None, &none).unwrap();
        assert_eq!(ours.credential_helper.value.as_deref(), Some("./helper"));
        assert_eq!((ours.executor.value.as_deref(), ours.refused.len()), (Some("grpc://there.example"), 0));
    }

    #[test]
    fn what_anybody_revokes_is_revoked() {
        let (user, project) = (user("cache.revoked-keys = [\"a\"]"), project("cache.revoked-keys = [\"b\"]"));
        let settings = Settings::merge(Some(&user), Some(&project), |_| None, &Options::default()).unwrap();
        assert_eq!(settings.revoked_keys, ["a", "b"]);
    }

    #[test]
    fn mirrors_are_joined_with_the_highest_place_first() {
        let (user, project) = (user(&ALL.replace("FILE", "user")), project(&ALL.replace("FILE", "project")));
        let environment = environment([("SHEAF_TOOLCHAIN_MIRROR", "https://a.example, /srv/b")]);
        let settings =
            Settings::merge(Some(&user), Some(&project), environment, &Options::default()).unwrap();
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
        let settings = Settings::merge(Some(&user), Some(&project("")), empty, &Options::default()).unwrap();
        assert_eq!(settings.remote.value, ["https://user.example"]);
        assert_eq!(settings.mode.value, Mode::ReadOnly);
        assert!(!settings.offline.value);
    }

    #[test]
    fn an_empty_list_is_a_setting() {
        let user = user(&ALL.replace("FILE", "user"));
        let project = project("cache.remote = []");
        let settings = Settings::merge(Some(&user), Some(&project), |_| None, &Options::default()).unwrap();
        assert!(settings.remote.value.is_empty());
    }

    #[test]
    fn variables_that_mean_nothing_are_errors() {
        let message = |name, value| {
            let merged = Settings::merge(None, None, environment([(name, value)]), &Options::default());
            merged.unwrap_err().to_string()
        };
        insta::assert_snapshot!(message("SHEAF_CACHE_MODE", "rw"), @r#"the environment variable SHEAF_CACHE_MODE is `rw`, but it must be "read-write" or "read-only"; correct or unset it"#);
        insta::assert_snapshot!(message("SHEAF_OFFLINE", "yes"), @"the environment variable SHEAF_OFFLINE is `yes`, but it must be 1, true, 0 or false; correct or unset it");
        insta::assert_snapshot!(message("SHEAF_COMPILE_SECONDS", "abc"), @"the environment variable SHEAF_COMPILE_SECONDS is `abc`, but it must be a whole number of seconds, where 0 is no limit; correct or unset it");
        insta::assert_snapshot!(message("SHEAF_COMPILE_MIB", "2GB"), @"the environment variable SHEAF_COMPILE_MIB is `2GB`, but it must be a whole number of MiB, where 0 is no limit; correct or unset it");
    }
}
