//! Requests of projects, and the consent of the user.
//!
//! A project's file may name trusted signers of compiled programs, and the sources of compilers and programs. That is a
//! request: it takes effect once the user has consented to it, with `sheaf trust`, for this project and this exact
//! content. Each project has a file in the folder `trust` of the user's data:
//!
//! ```json
//! { "project": "/home/ada/vision",
//!   "trusted": [ { "digest": "5d41…", "settings": { "remote": ["https://cache.example"] } } ] }
//! ```

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sheaf_foundation::atomic;

use crate::manifest::SheafToml;

/// The settings of a project's file that take effect only with the user's consent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Request {
    /// `[cache] trusted-keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_keys: Option<Vec<String>>,
    /// `[cache] remote`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Vec<String>>,
    /// `[toolchain] mirrors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<Vec<String>>,
    /// `[toolchain] index`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// A line of the difference between two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The setting, such as `cache.remote`.
    pub name: &'static str,
    /// An item of it.
    pub value: String,
    /// True if only in the new request, false if only in the old one; `None` if in both.
    pub is_new: Option<bool>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.is_new {
            Some(true) => '+',
            Some(false) => '-',
            None => ' ',
        };
        write!(f, "{sign} {} {}", self.name, self.value)
    }
}

impl Request {
    /// The request of this file; `None` if it is empty.
    pub fn of(manifest: &SheafToml) -> Option<Self> {
        let request = Self {
            trusted_keys: manifest.cache.trusted_keys.clone(),
            remote: manifest.cache.remote.clone(),
            mirrors: manifest.toolchain.mirrors.clone(),
            index: manifest.toolchain.index.clone(),
        };
        (request != Self::default()).then_some(request)
    }

    /// The SHA-256 of the whole request, in hexadecimal.
    pub fn digest(&self) -> String {
        // Texts and lists of texts have a single serialisation.
        hex::encode(Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }

    /// Its items, compared with those of the request `before`.
    pub fn differences(&self, before: Option<&Self>) -> Vec<Difference> {
        let none = Self::default();
        let (now, then) = (self.items(), before.unwrap_or(&none).items());
        let gone = then.iter().filter(|item| !now.contains(item)).map(|item| (item, Some(false)));
        let here = now.iter().map(|item| (item, (!then.contains(item)).then_some(true)));
        let all = gone.chain(here);
        all.map(|((name, value), is_new)| Difference { name, value: value.clone(), is_new }).collect()
    }

    fn items(&self) -> Vec<(&'static str, String)> {
        let listed = [
            ("cache.trusted-keys", &self.trusted_keys),
            ("cache.remote", &self.remote),
            ("toolchain.mirrors", &self.mirrors),
        ];
        let mut items = Vec::new();
        for (name, list) in listed {
            match list.as_deref() {
                Some([]) => items.push((name, "(none, whatever other settings say)".into())),
                Some(list) => items.extend(list.iter().map(|value| (name, value.clone()))),
                None => {}
            }
        }
        items.extend(self.index.iter().map(|index| ("toolchain.index", index.clone())));
        items
    }
}

/// The user's consent for one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// The project's folder, for display: the file's name is the key.
    pub project: String,
    /// The allowed requests, oldest first.
    pub trusted: Vec<Consent>,
}

/// An allowed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// Its digest.
    pub digest: String,
    /// The request itself, to show later changes.
    pub settings: Request,
}

/// The record of the user's consent. An unreadable file allows nothing.
#[derive(Debug, Clone)]
pub struct Trusted {
    folder: PathBuf,
}

/// A failed change of the record.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}; make the folder writable for you, with room on the disk", path.display())]
pub struct TrustError {
    /// The file.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl Trusted {
    /// The record in `folder`; see [`Home::trust`](crate::Home::trust).
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// True if the user has allowed this request of the project in the folder `root`.
    pub fn allows(&self, root: &Path, request: &Request) -> bool {
        let digest = request.digest();
        self.of(root).is_some_and(|allowed| allowed.trusted.iter().any(|consent| consent.digest == digest))
    }

    /// The last allowed request.
    pub fn last(&self, root: &Path) -> Option<Request> {
        Some(self.of(root)?.trusted.pop()?.settings)
    }

    /// Allows this request of the project in the folder `root`.
    pub fn allow(&self, root: &Path, request: &Request) -> Result<(), TrustError> {
        let digest = request.digest();
        let project = root.display().to_string();
        let mut allowed = self.of(root).unwrap_or(Allowed { project, trusted: Vec::new() });
        allowed.trusted.retain(|consent| consent.digest != digest);
        allowed.trusted.push(Consent { digest, settings: request.clone() });
        let path = self.file(root);
        let unwritten = |source: io::Error| TrustError { path: path.clone(), source };
        let mut text = serde_json::to_vec_pretty(&allowed).map_err(|error| unwritten(error.into()))?;
        text.push(b'\n');
        atomic::replace(&path, &text).map_err(|error| unwritten(error.source))
    }

    /// Revokes all consent for the project in the folder `root`. Returns true if there was any.
    pub fn revoke(&self, root: &Path) -> Result<bool, TrustError> {
        let path = self.file(root);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError { path, source }),
        }
    }

    /// All projects with consent, sorted by name.
    pub fn list(&self) -> Vec<Allowed> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut all: Vec<Allowed> = files.filter_map(|file| read(&file.path())).collect();
        all.sort_by(|a, b| a.project.cmp(&b.project));
        all
    }

    fn of(&self, root: &Path) -> Option<Allowed> {
        read(&self.file(root))
    }

    fn file(&self, root: &Path) -> PathBuf {
        let name = hex::encode(Sha256::digest(root.as_os_str().as_encoded_bytes()));
        self.folder.join(format!("{name}.json"))
    }
}

fn read(path: &Path) -> Option<Allowed> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Option<Request> {
        Request::of(&SheafToml::parse(Path::new("/p/Sheaf.toml"), text).unwrap())
    }

    const BOTH: &str = "[cache]\nremote = [\"https://a.example\"]\ntrusted-keys = [\"k\"]\n";

    #[test]
    fn only_what_needs_consent_is_a_request() {
        assert_eq!(request("[package]\nname = \"x\"\n[cache]\nmode = \"read-only\"\n"), None);
        assert_eq!(request("[toolchain]\niree = \"3.13.0\"\n"), None);
        for text in
            [BOTH, "cache.remote = []", "toolchain.mirrors = [\"m\"]", "toolchain.index = \"https://i\""]
        {
            assert!(request(text).is_some(), "{text}");
        }
    }

    #[test]
    fn consent_is_for_one_project_and_one_content() {
        let folder = tempfile::tempdir().unwrap();
        let trusted = Trusted::new(folder.path().join("data/trust"));
        let (first, second) =
            (request(BOTH).unwrap(), request("cache.remote = [\"https://b.example\"]").unwrap());
        let (p, q) = (Path::new("/p"), Path::new("/q"));
        assert!(!trusted.allows(p, &first));
        trusted.allow(p, &first).unwrap();
        assert!(trusted.allows(p, &first) && !trusted.allows(p, &second) && !trusted.allows(q, &first));
        trusted.allow(p, &second).unwrap();
        assert!(trusted.allows(p, &first), "another branch, which was looked at before");
        assert_eq!(trusted.last(p), Some(second));
        trusted.allow(p, &first).unwrap();
        assert_eq!(trusted.last(p).as_ref(), Some(&first));
        trusted.allow(q, &first).unwrap();
        let listed: Vec<_> = trusted.list().into_iter().map(|a| (a.project, a.trusted.len())).collect();
        assert_eq!(listed, [("/p".to_owned(), 2), ("/q".to_owned(), 1)]);
        assert!(trusted.revoke(p).unwrap() && !trusted.revoke(p).unwrap());
        assert!(!trusted.allows(p, &first) && trusted.allows(q, &first));
    }

    #[test]
    fn what_cannot_be_read_allows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let trusted = Trusted::new(folder.path().into());
        let first = request(BOTH).unwrap();
        trusted.allow(Path::new("/p"), &first).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        fs::write(&file, "{").unwrap();
        assert!(!trusted.allows(Path::new("/p"), &first));
        trusted.allow(Path::new("/p"), &first).unwrap();
        assert!(trusted.allows(Path::new("/p"), &first));
    }

    #[test]
    fn what_changed_is_shown() {
        let (first, second) =
            (request(BOTH), request("cache.remote = [\"https://b.example\"]\ntoolchain.mirrors = []"));
        let shown = |now: &Option<Request>, before: Option<&Request>| {
            let lines = now.as_ref().unwrap().differences(before);
            lines.iter().map(Difference::to_string).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(&first, None), @r"
        + cache.trusted-keys k
        + cache.remote https://a.example
        ");
        insta::assert_snapshot!(shown(&second, first.as_ref()), @r"
        - cache.trusted-keys k
        - cache.remote https://a.example
        + cache.remote https://b.example
        + toolchain.mirrors (none, whatever other settings say)
        ");
    }
}
