//! Paths of Sheaf's own files on the user's machine. They are joined nowhere else.
//!
//! ```text
//!                  with SHEAF_HOME           without, on Linux (elsewhere: its conventions)
//! configuration    $SHEAF_HOME/config.toml   ~/.config/sheaf/config.toml
//! data             $SHEAF_HOME/data/         ~/.local/share/sheaf/
//!   toolchains     …/toolchains/
//!   signing key    …/cache-key
//!   REPL           …/repl-history
//!   trust          …/trust/
//!   logins         …/credentials.toml
//! cache            $SHEAF_HOME/cache/        ~/.cache/sheaf/
//!   REPL           …/repl/
//!   packages       …/registries/, …/sources/
//! ```
//!
//! Files there start programs, so a `SHEAF_HOME` of another user is refused, and so is one inside a project, whose
//! files are not the user's; except if `SHEAF_SAFE_DIRECTORIES` names a folder above.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::project::Project;
use sheaf_foundation::{Foreign, Owners, SAFE_VARIABLE};

const HOME_VARIABLE: &str = "SHEAF_HOME";

/// The user's folders of Sheaf. They are not created here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
    /// The folder of all three, if `SHEAF_HOME` is set.
    named: Option<PathBuf>,
}

/// Cause of a missing or refused home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The system reports no home folder.
    #[error("the user has no home folder; set {HOME_VARIABLE} to a folder for Sheaf's files")]
    NoHome,
    /// `SHEAF_HOME` is relative, and the current folder is unknown.
    #[error(
        "{HOME_VARIABLE} is `{value}`, but the current folder cannot be told: {source}; set {HOME_VARIABLE} to a path from the root"
    )]
    NoCurrentFolder {
        /// The value of `SHEAF_HOME`.
        value: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another user owns `SHEAF_HOME`, or files of Sheaf in it.
    #[error(
        "{HOME_VARIABLE} is not used: {} {}; set it to a folder of yours, or, if you trust that one, set {SAFE_VARIABLE} \
         to it",
        foreign.path.display(),
        foreign.owner()
    )]
    Foreign {
        /// The file or folder, and its owner.
        foreign: Foreign,
    },
    /// `SHEAF_HOME` is in a project, which could provide settings that start programs.
    #[error(
        "{HOME_VARIABLE} is not used: {} is inside the project {}, whose files would be taken for your own settings, keys \
         and compilers; set it to a folder elsewhere, or, if all of that project is yours, set {SAFE_VARIABLE} to it",
        home.display(),
        project.display()
    )]
    InProject {
        /// `SHEAF_HOME`.
        home: PathBuf,
        /// The folder of the project.
        project: PathBuf,
    },
}

impl Home {
    /// The user's folders, with `environment` to look up a variable.
    pub fn locate(environment: impl Fn(&str) -> Option<String>) -> Result<Self, HomeError> {
        if let Some(value) = environment(HOME_VARIABLE).filter(|value| !value.is_empty()) {
            return match std::path::absolute(&value) {
                Ok(folder) => Self::owned(&folder, &Owners::of_process(environment, &[])),
                Err(source) => Err(HomeError::NoCurrentFolder { value, source }),
            };
        }
        let folders = ProjectDirs::from("", "", "sheaf").ok_or(HomeError::NoHome)?;
        Ok(Self {
            config: folders.config_dir().into(),
            data: folders.data_local_dir().into(),
            cache: folders.cache_dir().into(),
            named: None,
        })
    }

    /// All folders under `folder`, if one of the `owners` owns it and its contents.
    fn owned(folder: &Path, owners: &Owners) -> Result<Self, HomeError> {
        let home = Self::under(folder);
        let all = [folder, &home.config_file(), &home.data, &home.cache];
        let foreign = all.into_iter().find_map(|path| owners.foreign_at(path));
        foreign.map_or(Ok(home), |foreign| Err(HomeError::Foreign { foreign }))
    }

    /// Errors if a named home is inside a project; `environment` looks up a variable.
    pub fn outside(
        &self,
        project: &Project,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(), HomeError> {
        let Some(named) = &self.named else { return Ok(()) };
        // A missing folder is resolved through its nearest existing parent.
        let there = named.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
        let is_inside = there.is_some_and(|there| there.starts_with(&project.root));
        // Not those of the user's configuration, which is in the home itself.
        let is_safe = || Owners::of_process(environment, &[]).is_safe(named);
        if is_inside && project.manifest.is_some() && !is_safe() {
            return Err(HomeError::InProject { home: named.clone(), project: project.root.clone() });
        }
        Ok(())
    }

    /// All folders under `folder`.
    pub fn under(folder: &Path) -> Self {
        Self {
            config: folder.into(),
            data: folder.join("data"),
            cache: folder.join("cache"),
            named: Some(folder.into()),
        }
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Installed files.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The installed compilers.
    pub fn toolchains(&self) -> PathBuf {
        self.data.join("toolchains")
    }

    /// The key that signs locally compiled programs for remote caches; readable only for the user.
    pub fn cache_key(&self) -> PathBuf {
        self.data.join("cache-key")
    }

    /// The user's consent to requests of projects; see [`Trusted`](crate::Trusted).
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust")
    }

    /// Credentials of registries and git servers, readable for the user alone.
    pub fn credentials(&self) -> PathBuf {
        self.data.join("credentials.toml")
    }

    /// Files of registries and git repositories, fetched before.
    pub fn registries(&self) -> PathBuf {
        self.cache.join("registries")
    }

    /// Sources of packages, by the hash of their tree.
    pub fn sources(&self) -> PathBuf {
        self.cache.join("sources")
    }

    /// The history of the REPL.
    pub fn repl_history(&self) -> PathBuf {
        self.data.join("repl-history")
    }

    /// Programs compiled in the REPL, which belong to no project.
    pub fn repl_artifacts(&self) -> PathBuf {
        self.cache.join("repl")
    }

    /// Files that can be deleted at any time: they are recompiled or downloaded again.
    pub fn cache(&self) -> &Path {
        &self.cache
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_variable_puts_everything_under_one_folder() {
        let home = Home::locate(|name| (name == "SHEAF_HOME").then(|| "/srv/sheaf".into())).unwrap();
        assert_eq!(home, Home::under(Path::new("/srv/sheaf")));
        assert_eq!(home.config_file(), Path::new("/srv/sheaf/config.toml"));
        assert_eq!(home.toolchains(), Path::new("/srv/sheaf/data/toolchains"));
        assert_eq!(home.cache(), Path::new("/srv/sheaf/cache"));
    }

    #[test]
    fn a_relative_folder_is_one_of_the_current_folder() {
        let home = Home::locate(|_| Some("here".into())).unwrap();
        assert_eq!(home.data(), std::env::current_dir().unwrap().join("here/data"));
    }

    #[test]
    fn without_it_the_folders_are_the_usual_ones() {
        for environment in [None, Some(String::new())] {
            let Ok(home) = Home::locate(|_| environment.clone()) else { continue };
            for path in [home.config_file(), home.toolchains(), home.cache().into()] {
                assert!(path.is_absolute());
                assert!(path.iter().any(|part| part == "sheaf"), "{}", path.display());
            }
        }
    }

    #[test]
    fn a_home_inside_a_project_is_refused_unless_declared_safe() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("p")).unwrap();
        fs::write(root.join("p/Sheaf.toml"), "").unwrap();
        let project =
            |path: &str| Project::locate_from(&root.join(path), Owners::of_process(|_| None, &[])).unwrap();
        let outside = |home: &str, project: &Project, safe: &str| {
            let safe = safe.to_owned();
            let environment = move |name: &str| (name == SAFE_VARIABLE).then(|| safe.clone());
            Home::under(&root.join(home)).outside(project, environment)
        };
        assert!(outside("home", &project("p"), "").is_ok());
        assert!(outside("home", &project(""), "").is_ok(), "a folder with programs is no project");
        for home in ["p/.home", "p/a/b", "p"] {
            assert!(outside(home, &project("p"), "").is_err(), "{home}");
        }
        assert!(outside("p/.home", &project("p"), &root.join("p").display().to_string()).is_ok());
        let error = outside("p/.home", &project("p"), "").unwrap_err().to_string();
        insta::assert_snapshot!(error.replace(&*root.to_string_lossy(), "~"), @"SHEAF_HOME is not used: ~/p/.home is inside the project ~/p, whose files would be taken for your own settings, keys and compilers; set it to a folder elsewhere, or, if all of that project is yours, set SHEAF_SAFE_DIRECTORIES to it");
    }

    /// Only root can change a file's owner.
    #[cfg(unix)]
    #[test]
    fn a_home_of_somebody_else_is_refused() {
        for part in ["", "config.toml", "data", "cache"] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("config.toml"), "").unwrap();
            fs::create_dir(folder.path().join("data")).unwrap();
            fs::create_dir(folder.path().join("cache")).unwrap();
            let named = folder.path().display().to_string();
            let locate = |safe: Option<String>| {
                Home::locate(|name| match name {
                    "SHEAF_HOME" => Some(named.clone()),
                    SAFE_VARIABLE => safe.clone(),
                    _ => None,
                })
            };
            assert!(locate(None).is_ok());
            let path = if part.is_empty() { folder.path().to_owned() } else { folder.path().join(part) };
            if let Err(error) = std::os::unix::fs::chown(path, Some(3_999_999_999), None) {
                eprintln!("SKIPPED a_home_of_somebody_else_is_refused: no chown here ({error})");
                return;
            }
            let error = locate(None).unwrap_err().to_string();
            assert!(error.contains("belongs to user 3999999999; set it to a folder of yours"), "{error}");
            assert!(locate(Some(named.clone())).is_ok());
        }
    }

    #[test]
    fn messages_say_what_to_set() {
        insta::assert_snapshot!(HomeError::NoHome, @"the user has no home folder; set SHEAF_HOME to a folder for Sheaf's files");
        let source = io::ErrorKind::NotFound.into();
        insta::assert_snapshot!(HomeError::NoCurrentFolder { value: "here".into(), source }, @"SHEAF_HOME is `here`, but the current folder cannot be told: entity not found; set SHEAF_HOME to a path from the root");
    }
}
