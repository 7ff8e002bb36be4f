//! What can be wrong with `Sheaf.toml` and `config.toml`.

use std::io;
use std::path::PathBuf;

use crate::place::Place;

/// A file that cannot be used. Each message has the place, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is there but cannot be read.
    #[error("{path} cannot be read: {source}; make it a file that you may read, or move it away")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: this is not TOML: {cause}; correct this line\n{}", place.marked_line())]
    NotToml {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        cause: String,
    },
    /// A key has a value of the wrong type.
    #[error("{place}: `{key}` is {found}, but it must be {expected}, such as {example}\n{}", place.marked_line())]
    WrongType {
        /// Where the value is.
        place: Box<Place>,
        /// The key with its tables, such as `cache.remote`.
        key: String,
        /// The type of the value, with an article.
        found: &'static str,
        /// The type that it must have, with an article.
        expected: &'static str,
        /// A value that would be right.
        example: String,
    },
    /// A key has a value that means nothing.
    #[error("{place}: `{key}` is \"{value}\", but it must be {expected}\n{}", place.marked_line())]
    WrongValue {
        /// Where the value is.
        place: Box<Place>,
        /// The key with its tables, such as `cache.mode`.
        key: String,
        /// The value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A key is not there, without which the others mean nothing.
    #[error("{place}: `{key}` is missing; {remedy}\n{}", place.marked_line())]
    Missing {
        /// Where the others are.
        place: Box<Place>,
        /// The key with its tables, such as `toolchain.iree`.
        key: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// Something in a file that is of no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place}: `{key}` is not known {} and does nothing; {}\n{}",
    if table.is_empty() { "here".into() } else { format!("in [{table}]") },
    known_keys(known),
    place.marked_line()
)]
pub struct Warning {
    /// Where the key is.
    pub place: Place,
    /// The key.
    pub key: String,
    /// The table it is in; empty for the file's top level.
    pub table: String,
    /// What is known there.
    pub known: &'static [&'static str],
}

fn known_keys(known: &[&str]) -> String {
    let quoted: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
    match &quoted[..] {
        [only] => format!("only {only} is known"),
        _ => format!("known are {}", quoted.join(", ")),
    }
}
