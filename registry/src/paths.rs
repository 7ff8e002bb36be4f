//! Where Sheaf's own files lie on the user's machine. Nothing else joins these paths.
//!
//! ```text
//!                  with SHEAF_HOME           without, on Linux (elsewhere as is usual there)
//! configuration    $SHEAF_HOME/config.toml   ~/.config/sheaf/config.toml
//! data             $SHEAF_HOME/data/         ~/.local/share/sheaf/
//!   toolchains     …/toolchains/
//!   signing key    …/cache-key
//!   REPL           …/repl-history
//! cache            $SHEAF_HOME/cache/        ~/.cache/sheaf/
//!   REPL           …/repl/
//! ```

use std::io;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

const HOME_VARIABLE: &str = "SHEAF_HOME";

/// The user's folders of Sheaf. None of them is made here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
}

/// Why there is no place for Sheaf's files.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The system knows of no home folder.
    #[error("the user has no home folder; set {HOME_VARIABLE} to a folder for Sheaf's files")]
    NoHome,
    /// `SHEAF_HOME` is relative, and so is everything.
    #[error(
        "{HOME_VARIABLE} is `{value}`, but the current folder cannot be told: {source}; set {HOME_VARIABLE} to a path from the root"
    )]
    NoCurrentFolder {
        /// The value of `SHEAF_HOME`.
        value: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Home {
    /// The user's folders, where `environment` looks up a variable.
    pub fn locate(environment: impl Fn(&str) -> Option<String>) -> Result<Self, HomeError> {
        if let Some(value) = environment(HOME_VARIABLE).filter(|value| !value.is_empty()) {
            return match std::path::absolute(&value) {
                Ok(folder) => Ok(Self::under(&folder)),
                Err(source) => Err(HomeError::NoCurrentFolder { value, source }),
            };
        }
        let folders = ProjectDirs::from("", "", "sheaf").ok_or(HomeError::NoHome)?;
        Ok(Self {
            config: folders.config_dir().into(),
            data: folders.data_local_dir().into(),
            cache: folders.cache_dir().into(),
        })
    }

    /// All folders under `folder`.
    pub fn under(folder: &Path) -> Self {
        Self { config: folder.into(), data: folder.join("data"), cache: folder.join("cache") }
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// What Sheaf installs.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The installed compilers.
    pub fn toolchains(&self) -> PathBuf {
        self.data.join("toolchains")
    }

    /// The key that signs what is compiled here for remote caches; readable for the user alone.
    pub fn cache_key(&self) -> PathBuf {
        self.data.join("cache-key")
    }

    /// What was typed in the REPL.
    pub fn repl_history(&self) -> PathBuf {
        self.data.join("repl-history")
    }

    /// What was compiled in the REPL, which belongs to no program.
    pub fn repl_artifacts(&self) -> PathBuf {
        self.cache.join("repl")
    }

    /// What can be deleted at any time: it is compiled or fetched again.
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
    fn messages_say_what_to_set() {
        insta::assert_snapshot!(HomeError::NoHome, @"the user has no home folder; set SHEAF_HOME to a folder for Sheaf's files");
        let source = io::ErrorKind::NotFound.into();
        insta::assert_snapshot!(HomeError::NoCurrentFolder { value: "here".into(), source }, @"SHEAF_HOME is `here`, but the current folder cannot be told: entity not found; set SHEAF_HOME to a path from the root");
    }
}
