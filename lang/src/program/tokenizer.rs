//! Tokenizers of text.

use std::fmt;

/// A tokenizer, and the file that it comes from.
pub struct Tokenizer {
    /// The file, for messages.
    pub name: String,
    pub(crate) tokens: Box<dyn Tokens>,
}

/// Operations of a tokenizer.
pub(crate) trait Tokens {
    /// The numbers of the tokens of a text, with those that mark its ends if `special`.
    fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, String>;

    /// The text of tokens, with special ones if `special`.
    fn decode(&self, ids: &[u32], special: bool) -> Result<String, String>;

    /// One more than the greatest number of a token.
    fn size(&self) -> usize;

    /// The number of a token.
    fn id(&self, token: &str) -> Option<u32>;

    /// The token of a number.
    fn token(&self, id: u32) -> Option<String>;

    /// The special tokens and their numbers, by number.
    fn special(&self) -> Vec<(String, u32)>;
}

impl Tokenizer {
    /// Shown by `print`.
    pub fn text(&self) -> String {
        format!("<tokenizer of {} tokens {}>", self.tokens.size(), self.name)
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
