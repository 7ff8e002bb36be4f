//! Errors of git repositories.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use super::{Address, CommitId};

/// Maximum length of a quoted cause in characters: servers may send more.
const QUOTED: usize = 400;

/// A fetch or a read that failed. Each message has the address, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A text that is no address, or one that is not supported.
    #[error(
        "`{address}` is not the address of a git repository here: {reason}; use an https, http, ssh, git or file \
         address, or an absolute path"
    )]
    Address {
        /// The text, without a password.
        address: String,
        /// The defect.
        reason: &'static str,
    },
    /// No connection to the server.
    #[error("{address} cannot be reached: {cause}; check the address and the network, or use `--offline`")]
    Unreachable {
        /// The repository.
        address: Address,
        /// The lowest cause.
        cause: String,
    },
    /// The server wants credentials, and none are known.
    #[error("{address} wants a user name and a password or token; run `sheaf login {host}`")]
    NoCredentials {
        /// The repository.
        address: Address,
        /// The server.
        host: String,
    },
    /// The server refuses the credentials.
    #[error("{address} refuses access: {cause}; {remedy}")]
    Refused {
        /// The repository.
        address: Address,
        /// The server's answer.
        cause: String,
        /// The fix.
        remedy: String,
    },
    /// No such repository.
    #[error("there is no git repository at {address}: {cause}; check the address, and that you may read it")]
    NotFound {
        /// The address.
        address: Address,
        /// The server's answer.
        cause: String,
    },
    /// No such branch or tag.
    #[error("{address} has no {wanted}; {}", near(near_names))]
    NoReference {
        /// The repository.
        address: Address,
        /// The branch or tag, with its kind.
        wanted: String,
        /// Similar names, the nearest first.
        near_names: Vec<String>,
    },
    /// A commit that the server does not give.
    #[error(
        "{address} does not give commit {commit}: {cause}; its history may have been rewritten: ask its author, or run \
         `sheaf update` to take another commit"
    )]
    NoCommit {
        /// The repository.
        address: Address,
        /// The commit.
        commit: CommitId,
        /// The server's answer.
        cause: String,
    },
    /// A text that is no full commit id.
    #[error("`{text}` is not a commit of {address}: write all 40 hexadecimal digits")]
    ShortCommit {
        /// The repository.
        address: Address,
        /// The text.
        text: String,
    },
    /// A tag that another commit was expected under.
    #[error(
        "tag `{tag}` of {address} moved from commit {from} to {to}; ask its author why, and run `sheaf update` only if \
         you want the new commit"
    )]
    TagMoved {
        /// The repository.
        address: Address,
        /// The tag.
        tag: String,
        /// The expected commit.
        from: CommitId,
        /// The commit that the server has under the tag.
        to: CommitId,
    },
    /// The user stopped the fetch.
    #[error("the fetch of {address} was interrupted; nothing is lost: run the command again")]
    Interrupted {
        /// The repository.
        address: Address,
    },
    /// The server sent nothing for too long.
    #[error("{address} has sent nothing for {seconds} seconds; run the command again, or use `--offline`")]
    Stalled {
        /// The repository.
        address: Address,
        /// The wait.
        seconds: u64,
    },
    /// The server sent more than the limit.
    #[error("{address} has sent more than {limit} bytes for one commit; it is no repository of packages")]
    TooLarge {
        /// The repository.
        address: Address,
        /// The maximum size.
        limit: u64,
    },
    /// Another process keeps the lock.
    #[error("another process has been fetching {address} for {seconds} seconds; wait for it, or end it")]
    Locked {
        /// The repository.
        address: Address,
        /// The wait.
        seconds: u64,
    },
    /// Any other error of the protocol.
    #[error(
        "{address} cannot be fetched: {cause}; run the command again, and check that it is a git repository"
    )]
    Protocol {
        /// The repository.
        address: Address,
        /// The causes.
        cause: String,
    },
    /// Objects of a repository that are missing or damaged.
    #[error("the repository in {} is damaged: {cause}; remove this folder and run the command again", folder.display())]
    Damaged {
        /// The repository.
        folder: PathBuf,
        /// The causes.
        cause: String,
    },
    /// A file larger than the limit for its kind.
    #[error("`{path}` of {address} has {size} bytes, but at most {limit} are read; it is damaged or hostile")]
    LargeFile {
        /// The repository.
        address: Address,
        /// The path inside it.
        path: String,
        /// The file's size in bytes.
        size: u64,
        /// The maximum.
        limit: u64,
    },
    /// A cache folder that cannot be used.
    #[error("{}: {source}; make the folder readable and writable, with room on the disk", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// The near names of a branch or tag that does not exist.
fn near(names: &[String]) -> String {
    if names.is_empty() {
        return "check the name".into();
    }
    format!("did you mean {}?", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

impl GitError {
    /// The kind of an error of the transfer. Servers and `ssh` say in prose that they refuse or have nothing.
    pub(super) fn of_transfer(address: &Address, error: &gix::Error, has_credentials: bool) -> Self {
        let causes: Vec<String> = error.iter_errors().map(ToString::to_string).collect();
        let address = address.clone();
        let all = causes.join("\n").to_lowercase();
        let said = |parts: &[&str]| parts.iter().any(|part| all.contains(part));
        let cause = quoted(causes.last().map_or("no cause was given", String::as_str));
        let host = address.remote().and_then(gix::Url::host).unwrap_or_default().to_owned();
        let port =
            address.remote().and_then(|url| url.port).map(|port| format!(":{port}")).unwrap_or_default();
        let is_ssh = address.remote().is_some_and(|url| url.scheme == gix::url::Scheme::Ssh);
        if said(&["in clear text over http"]) {
            let remedy = "use an https address".into();
            return Self::Refused {
                address,
                cause: "passwords are not sent without encryption".into(),
                remedy,
            };
        }
        if error.is_unauthenticated() || said(&["permission denied (", "http status 401", "http status 403"])
        {
            if is_ssh {
                let cause = "the ssh server accepts none of the keys that `ssh` offers".into();
                let remedy = format!("check that `ssh {host}` lets you in: the same keys are used here");
                return Self::Refused { address, cause, remedy };
            }
            if !has_credentials && !said(&["http status 403"]) {
                return Self::NoCredentials { address, host: host + &port };
            }
            let remedy = format!("run `sheaf login {host}{port}` with a user and a token that may read it");
            return Self::Refused {
                address,
                cause: "the server does not accept the user or the token".into(),
                remedy,
            };
        }
        let absent = [
            "not exported",
            "repository not found",
            "does not appear to be a git repository",
            "http status 404",
            "http status 410",
            "no such repository",
            "not a git repository",
        ];
        if said(&absent) {
            let is_web = said(&["http status 404", "http status 410"]);
            let cause = if is_web { "the server answers that nothing is there".into() } else { cause };
            return Self::NotFound { address, cause };
        }
        let silent = [
            "could not resolve",
            "could not connect",
            "connection refused",
            "timed out",
            "network is unreachable",
            "no route to host",
            "error trying to connect",
            "dns error",
            "connection reset",
            "name or service not known",
            "tcp connect error",
        ];
        if said(&silent) {
            return Self::Unreachable { address, cause };
        }
        Self::Protocol { address, cause: joined(&causes) }
    }

    /// An error of reading objects.
    pub(super) fn damaged(folder: &std::path::Path, error: &gix::Error) -> Self {
        let causes: Vec<String> = error.iter_errors().map(ToString::to_string).collect();
        Self::Damaged { folder: folder.into(), cause: joined(&causes) }
    }
}

/// The chain of causes of another error.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    joined(&chain.map(ToString::to_string).collect::<Vec<_>>())
}

fn joined(causes: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for cause in causes.iter().map(|cause| cause.trim()) {
        if !cause.is_empty() && !distinct.iter().any(|earlier| earlier.contains(cause)) {
            distinct.push(cause);
        }
    }
    quoted(&distinct.join(": "))
}

/// A text of others, on one line and bounded.
fn quoted(text: &str) -> String {
    let line: String =
        text.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { c }).take(QUOTED).collect();
    line.chars()
        .flat_map(|c| if c == '\'' || c == '"' { vec![c] } else { c.escape_debug().collect() })
        .collect()
}
