//! Text normalised across runs and machines.

use std::path::Path;

use regex::Regex;

/// Replacements of texts.
#[derive(Debug, Default)]
pub struct Neutral {
    paths: Vec<(String, String)>,
}

impl Neutral {
    /// Replaces a path by a word in brackets.
    pub fn path(&mut self, path: &Path, word: &str) {
        let word = format!("[{word}]");
        // A system may have two names for the temporary folder.
        for path in [path.canonicalize().unwrap_or_default(), path.to_owned()] {
            self.paths.push((path.display().to_string(), word.clone()));
        }
    }

    /// The text with all replacements.
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, word) in self.paths.iter().filter(|(path, _)| !path.is_empty()) {
            text = text.replace(path, word);
        }
        for (pattern, word) in [
            (r"\b[0-9a-f]{64}\b", "[sha-256]"),
            // A blob's folder is named after its digest, and a VMFB depends on the processor.
            (r"(-v\d)/[0-9a-f]{2}/", "$1/xx/"),
            (r"\.staging-\w+", ".staging-X"),
            (r"\.partial-\w+", ".partial-X"),
            (r"127\.0\.0\.1:\d+", "[address]"),
            (r"iree_base_compiler-[\w.-]+\.whl", "[wheel]"),
            (r"iree-compiler-[\w.-]+", "[compiler]"),
            (r"\b\d+\.\d+(μs|ms|s)\b", "[time]"),
            (r"-[0-9a-f]{8}\.capsule", "-[hash].capsule"),
            // Programs for another processor have another size.
            (r"\d+ bytes instead of \d+", "[n] bytes instead of [n]"),
            (r"\d+ bytes\)", "[n] bytes)"),
            (r"\d+ MiB", "[n] MiB"),
            // Said of what takes ten seconds, as a compilation may on a busy machine.
            (r"(?m)^.*: (\d+ s so far|took \d+(\.\d+)? s)\n", ""),
        ] {
            text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
        }
        text
    }
}
