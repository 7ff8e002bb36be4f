//! Credentials of registries and git servers, which `sheaf login` keeps for the user.
//!
//! A host gets its own credentials and no others; what a project names gets none unless the user has logged in to its
//! host. The file is readable for the user alone:
//!
//! ```toml
//! ["git.example"]
//! user = "ada"
//! token = "..."
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sheaf_foundation::atomic;

/// Credentials of one host. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The name of the user; git servers that take tokens alone accept any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The token or password.
    pub token: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The credentials of all hosts, by name, and port if it is not the usual one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logins(BTreeMap<String, Login>);

/// A credentials file that cannot be used. The message has no line of it.
#[derive(Debug, thiserror::Error)]
#[error("the credentials in {path} cannot be {action}: {cause}; {remedy}")]
pub struct LoginError {
    path: String,
    action: &'static str,
    cause: String,
    remedy: &'static str,
}

impl Logins {
    /// Reads the file at `path`; none if it does not exist.
    pub fn read(path: &Path) -> Result<Self, LoginError> {
        let error = |cause: String, remedy| LoginError {
            path: path.display().to_string(),
            action: "read",
            cause,
            remedy,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(cause) => {
                return Err(error(cause.to_string(), "make it a file that you may read, or remove it"));
            }
        };
        // The parser's message would show the line, and a token with it.
        let parsed = toml::from_str(&text).map_err(|cause: toml::de::Error| {
            let line =
                cause.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            error(
                format!("line {line} is not one of [\"host\"], user or token"),
                "remove it, and run `sheaf login` again",
            )
        })?;
        Ok(Self(parsed))
    }

    /// The credentials of a host.
    pub fn of(&self, host: &str) -> Option<&Login> {
        self.0.get(&host.to_ascii_lowercase())
    }

    /// The hosts, sorted.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Sets the credentials of a host, or removes them. Returns true if there were others.
    pub fn set(&mut self, host: &str, login: Option<Login>) -> bool {
        let host = host.to_ascii_lowercase();
        match login {
            Some(login) => self.0.insert(host, login).is_some(),
            None => self.0.remove(&host).is_some(),
        }
    }

    /// Writes the file at `path`, readable for the user alone.
    pub fn write(&self, path: &Path) -> Result<(), LoginError> {
        let write = || -> io::Result<()> {
            let text = toml::to_string(&self.0).map_err(io::Error::other)?;
            atomic::write_private(path, text.as_bytes()).map_err(|error| error.source)
        };
        write().map_err(|cause| LoginError {
            path: path.display().to_string(),
            action: "written",
            cause: cause.to_string(),
            remedy: "make its folder writable for you, with room on the disk",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/credentials.toml");
        let mut logins = Logins::read(&path).unwrap();
        let login = |token: &str| Login { user: Some("ada".into()), token: token.into() };
        assert!(!logins.set("Git.example", Some(login("s3cret"))));
        assert!(!logins.set("127.0.0.1:8080", Some(Login { user: None, token: "t".into() })));
        logins.write(&path).unwrap();
        let read = Logins::read(&path).unwrap();
        assert_eq!(read, logins);
        assert_eq!(read.of("git.EXAMPLE").map(|login| login.token.as_str()), Some("s3cret"));
        assert_eq!(read.of("evil.example"), None);
        assert!(!format!("{read:?}").contains("s3cret"));
        assert!(logins.set("git.example", None) && !logins.set("git.example", None));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_broken_file_is_said_without_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        for text in ["[\"git.example\"]\ntoken = s3cret\n", "[\"git.example\"]\ntokens = \"s3cret\"\n"] {
            fs::write(&path, text).unwrap();
            let message = Logins::read(&path).unwrap_err().to_string();
            assert!(!message.contains("s3cret") && message.contains("run `sheaf login` again"), "{message}");
        }
    }
}
