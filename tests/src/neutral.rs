//! Text without what differs from run to run and from machine to machine.

use std::path::Path;

use regex::Regex;

/// What is replaced by what.
#[derive(Debug, Default)]
pub struct Neutral {
    paths: Vec<(String, String)>,
}

impl Neutral {
    /// Shows a path as a word in brackets.
    pub fn path(&mut self, path: &Path, word: &str) {
        let word = format!("[{word}]");
        // A system may know the temporary folder under two names.
        for path in [path.canonicalize().unwrap_or_default(), path.to_owned()] {
            self.paths.push((path.display().to_string(), word.clone()));
        }
    }

    /// The text with all that replaced.
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, word) in self.paths.iter().filter(|(path, _)| !path.is_empty()) {
            text = text.replace(path, word);
        }
        for (pattern, word) in [
            (r"\b[0-9a-f]{64}\b", "[sha-256]"),
            (r"-v1/[0-9a-f]{2}/", "-v1/xx/"),
            (r"\.staging-\w+", ".staging-X"),
            (r"\.partial-\w+", ".partial-X"),
            (r"127\.0\.0\.1:\d+", "[address]"),
            (r"iree_base_compiler-[\w.-]+\.whl", "[wheel]"),
            (r"iree-compiler-[\w.-]+", "[compiler]"),
            // Programs for another processor are of another size.
            (r"\d+ bytes instead of \d+", "[n] bytes instead of [n]"),
            (r"\d+ bytes\)", "[n] bytes)"),
            (r"\d+ MiB", "[n] MiB"),
        ] {
            text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
        }
        text
    }
}
