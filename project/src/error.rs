//! Errors in `Sheaf.toml` and `config.toml`.

use std::io;
use std::path::PathBuf;

use crate::location::SourceLocation;

/// A file that cannot be used. Each message has the location, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file exists but cannot be read.
    #[error("{path} cannot be read: {source}; make it a file that you may read, or move it away")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{location}: this is not TOML: {cause}; correct this line\n{}", location.marked_line())]
    NotToml {
        /// Source location.
        location: Box<SourceLocation>,
        /// The syntax error.
        cause: String,
    },
    /// A key has a value of the wrong type.
    #[error("{location}: `{key}` is {found}, but it must be {expected}, such as {example}\n{}", location.marked_line())]
    WrongType {
        /// Location of the value.
        location: Box<SourceLocation>,
        /// The key with its tables, such as `cache.remote`.
        key: String,
        /// The type of the value, with an article.
        found: &'static str,
        /// The required type, with an article.
        expected: &'static str,
        /// A valid value.
        example: String,
    },
    /// A key has an invalid value.
    #[error("{location}: `{key}` is \"{value}\", but it must be {expected}\n{}", location.marked_line())]
    WrongValue {
        /// Location of the value.
        location: Box<SourceLocation>,
        /// The key with its tables, such as `cache.mode`.
        key: String,
        /// The value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// A value that means something else than its writer thinks.
    #[error("{location}: {cause}; {remedy}\n{}", location.marked_line())]
    Refused {
        /// Location of the value or of its key.
        location: Box<SourceLocation>,
        /// The cause.
        cause: String,
        /// The fix.
        remedy: &'static str,
    },
    /// A required key is missing.
    #[error("{location}: `{key}` is missing; {remedy}\n{}", location.marked_line())]
    Missing {
        /// Location of the keys that require it.
        location: Box<SourceLocation>,
        /// The key with its tables, such as `toolchain.iree`.
        key: String,
        /// The fix.
        remedy: &'static str,
    },
}

/// An ineffective key in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{location}: `{key}` is not known {} and does nothing; {}{}\n{}",
    if table.is_empty() { "here".into() } else { format!("in [{table}]") },
    near_key(key, known),
    known_keys(known),
    location.marked_line()
)]
pub struct Warning {
    /// Location of the key.
    pub location: SourceLocation,
    /// The key.
    pub key: String,
    /// The table it is in; empty for the file's top level.
    pub table: String,
    /// The known keys of the table.
    pub known: &'static [&'static str],
}

/// Suggestion of the known key that is nearest to `key`, if one is near.
fn near_key(key: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(key, known), known));
    let near = near.filter(|(distance, known)| *distance <= 2 && *distance < known.len()).min();
    near.map_or(String::new(), |(_, known)| format!("did you mean `{known}`? "))
}

fn known_keys(known: &[&str]) -> String {
    let quoted: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
    match &quoted[..] {
        [only] => format!("only {only} is known"),
        _ => format!("known are {}", quoted.join(", ")),
    }
}
