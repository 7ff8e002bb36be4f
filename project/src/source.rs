//! Origin of a package, as manifests and `Sheaf.lock` name it.
//!
//! ```text
//! registry+https://registry.example/index     a version of a registry
//! git+https://git.example/vision?tag=v1.2     a commit of a git repository
//! path+../vision                              a folder of the same machine
//! ```

use std::fmt;
use std::str::FromStr;

/// Origin of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A registry, by the address of its index.
    Registry {
        /// Address of the index: a git repository, a static http(s) copy or a folder.
        index: String,
    },
    /// A git repository.
    Git {
        /// Its address.
        url: String,
        /// The requested commit.
        reference: GitReference,
    },
    /// A folder, relative to the manifest that names it, with `/` between its parts.
    Path {
        /// The folder.
        folder: String,
    },
}

/// The requested commit of a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitReference {
    /// The head of the default branch.
    #[default]
    Head,
    /// A tag.
    Tag(String),
    /// A branch.
    Branch(String),
    /// A commit, in full.
    Commit(String),
}

/// A text that names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no source: one starts with `registry+`, `git+` or `path+`")]
pub struct NoSource(pub String);

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { index } => write!(f, "registry+{index}"),
            Self::Path { folder } => write!(f, "path+{folder}"),
            Self::Git { url, reference } => match reference {
                GitReference::Head => write!(f, "git+{url}"),
                GitReference::Tag(name) => write!(f, "git+{url}?tag={name}"),
                GitReference::Branch(name) => write!(f, "git+{url}?branch={name}"),
                GitReference::Commit(id) => write!(f, "git+{url}?rev={id}"),
            },
        }
    }
}

impl FromStr for Source {
    type Err = NoSource;

    fn from_str(text: &str) -> Result<Self, NoSource> {
        match text.split_once('+') {
            Some(("registry", index)) => Ok(Self::Registry { index: index.into() }),
            Some(("path", folder)) => Ok(Self::Path { folder: folder.into() }),
            Some(("git", address)) => {
                // The last `?`: addresses may have others.
                let asked = address.rsplit_once('?').and_then(|(url, asked)| {
                    let (key, name) = asked.split_once('=')?;
                    let name = name.to_owned();
                    let reference = match key {
                        "tag" => GitReference::Tag(name),
                        "branch" => GitReference::Branch(name),
                        "rev" => GitReference::Commit(name),
                        _ => return None,
                    };
                    Some((url, reference))
                });
                let (url, reference) = asked.unwrap_or((address, GitReference::Head));
                Ok(Self::Git { url: url.into(), reference })
            }
            _ => Err(NoSource(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "registry+https://registry.example/index",
            "git+https://git.example/vision",
            "git+https://git.example/vision?tag=v1.2",
            "git+ssh://git@git.example/vision.git?branch=next",
            "git+https://git.example/?p=vision?rev=0123456789012345678901234567890123456789",
            "path+../vision",
        ] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
        assert!("https://git.example".parse::<Source>().is_err());
    }
}
