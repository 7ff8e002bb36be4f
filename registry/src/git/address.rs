//! Addresses of git repositories.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::ByteSlice;
use gix::url::Scheme;
use sha2::{Digest, Sha256};

use super::GitError;

/// The address of a git repository: `https`, `http`, `ssh` (`git@host:path` too), `git`, `file`, or an absolute path.
///
/// It names no program to run (`ext::`), has no part that `ssh` could take for an option, and holds no password: it is
/// written into lock files and messages.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Parts {
    text: String,
    place: Place,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A folder of this machine, read directly.
    Local(PathBuf),
    Remote(gix::Url),
}

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, GitError> {
        let wrong = |reason| Err(GitError::Address { address: redacted(text), reason });
        if text.contains("::") && !text.contains("://[") && !text.starts_with('[') {
            return wrong("git's remote helpers are programs, which are not run");
        }
        if text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
            return wrong("it is empty, begins with `-`, or has a space or a control character");
        }
        if Path::new(text).is_absolute() {
            return Ok(Self::new(text, Place::Local(text.into())));
        }
        let Ok(url) = gix::url::parse(text) else { return wrong("it cannot be read as one") };
        if url.password().is_some() {
            return wrong("it has a password; remove it and run `sheaf login HOST`");
        }
        let place = match &url.scheme {
            Scheme::File if text.starts_with("file://") => {
                let path = gix::path::from_bstr(url.path.as_bstr());
                match path {
                    Ok(path) if path.is_absolute() && url.host().is_none() => Place::Local(path.into_owned()),
                    _ => return wrong("a `file` address has an absolute path and no host"),
                }
            }
            Scheme::File => return wrong("a path must be absolute"),
            Scheme::Https | Scheme::Http | Scheme::Ssh | Scheme::Git => {
                if url.host().is_none_or(str::is_empty)
                    || url.host_argument_safe().is_none()
                    || url.path.trim_ascii_start().trim_start_with(|c| c == '/').starts_with(b"-")
                    || (url.user().is_some() && url.user_argument_safe().is_none())
                {
                    return wrong("it has no host, or its user, host or path begins with `-`");
                }
                Place::Remote(url)
            }
            _ => return wrong("its protocol is not supported"),
        };
        Ok(Self::new(text, place))
    }

    fn new(text: &str, place: Place) -> Self {
        Self(Arc::new(Parts { text: text.into(), place }))
    }

    /// The folder, if the repository is on this machine.
    pub(super) fn local(&self) -> Option<&Path> {
        match &self.0.place {
            Place::Local(path) => Some(path),
            Place::Remote(_) => None,
        }
    }

    /// The address for gix, if the repository is elsewhere.
    pub(super) fn remote(&self) -> Option<&gix::Url> {
        match &self.0.place {
            Place::Local(_) => None,
            Place::Remote(url) => Some(url),
        }
    }

    /// The name of a folder for this repository in a cache: readable, and distinct for distinct addresses.
    pub fn cache_name(&self) -> String {
        let last = self.0.text.trim_end_matches('/').rsplit(['/', ':', '\\']).next().unwrap_or_default();
        let last = last.strip_suffix(".git").unwrap_or(last);
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
        let name: String = last.chars().filter(plain).take(40).collect();
        let digest = hex::encode(&Sha256::digest(self.0.text.as_bytes())[..8]);
        if name.is_empty() { digest } else { format!("{name}-{digest}") }
    }

    /// The address as written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.text, f)
    }
}

/// An address without its password, and with control characters escaped.
fn redacted(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_debug).collect();
    let Some((scheme, rest)) = escaped.split_once("://") else { return escaped };
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@').and_then(|at| Some((at, rest[..at].find(':')?))) {
        Some((at, colon)) => format!("{scheme}://{}:***{}", &rest[..colon], &rest[at..]),
        None => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_repositories_are_taken() {
        for text in [
            "https://git.example/a/vision",
            "https://me@git.example:8443/vision.git",
            "http://[::1]:8080/vision",
            "ssh://git@git.example:22/vision",
            "git@git.example:a/vision.git",
            "git://git.example/vision",
            "file:///srv/git/vision",
            "/srv/git/vision",
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            assert!(address.cache_name().contains("vision-"), "{}", address.cache_name());
        }
        let names = ["https://git.example/a", "https://git.example/A"]
            .map(|text| Address::parse(text).unwrap().cache_name());
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn other_addresses_are_refused() {
        let refused = [
            "",
            "-oProxyCommand=x",
            "--upload-pack=x",
            "ext::sh -c x",
            "ext::x",
            "fd::3",
            "https::https://git.example/a",
            "ssh://-oProxyCommand=x/a",
            "ssh://git.example/-x",
            "-x@git.example:a",
            "../vision",
            "vision",
            "file://git.example/a",
            "file://vision",
            "ftp://git.example/a",
            "https:///a",
            "https://git.example/a\nb",
            "rsync://git.example/a",
        ];
        for text in refused {
            let error =
                Address::parse(text).map(|address| format!("{address:?}")).expect_err(text).to_string();
            assert!(!error.contains('\n'), "{error}");
        }
        let error = Address::parse("https://me:secret@git.example/a").unwrap_err().to_string();
        insta::assert_snapshot!(error, @"`https://me:***@git.example/a` is not the address of a git repository here: it has a password; remove it and run `sheaf login HOST`; use an https, http, ssh, git or file address, or an absolute path");
        let error = Address::parse("ext::sh -c x").unwrap_err().to_string();
        insta::assert_snapshot!(error, @"`ext::sh -c x` is not the address of a git repository here: git's remote helpers are programs, which are not run; use an https, http, ssh, git or file address, or an absolute path");
    }
}
