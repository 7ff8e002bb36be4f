//! The line editor: history, completion, and when an entry ends.
//!
//! It is `rustyline`: an editor that asks nothing of the terminal, so that it works in pseudo-terminals, in Emacs and
//! over slow lines, where `reedline` first waits for the terminal to say where the cursor is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter, MatchingBracketHighlighter};
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use sheaf_lang::eval::STANDARD;
use sheaf_syntax::is_incomplete;

use super::command::{self, COMMANDS};
use crate::messages;

const PROMPT: &str = "sheaf> ";

/// Entries that the history keeps.
const HISTORY_SIZE: usize = 10_000;

/// Asks for entries.
pub struct LineEditor {
    editor: Editor<Assistant, DefaultHistory>,
    history: PathBuf,
}

impl LineEditor {
    /// An editor whose history is kept in the file `history`.
    pub fn new(history: &Path) -> Result<LineEditor, ReadlineError> {
        let color = if messages::colored() { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder()
            .max_history_size(HISTORY_SIZE)?
            .history_ignore_dups(true)?
            .completion_type(CompletionType::List)
            .color_mode(color)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant::default()));
        if history.exists()
            && let Err(e) = editor.load_history(history)
        {
            messages::warning(format!("the history in {} cannot be read: {e}", history.display()), None);
        }
        Ok(LineEditor { editor, history: history.to_owned() })
    }

    /// Tells the editor which names there are now.
    pub fn know(&mut self, names: Vec<String>) {
        if let Some(assistant) = self.editor.helper_mut() {
            assistant.names = names;
        }
    }

    /// Asks for an entry.
    pub fn read(&mut self) -> Result<String, ReadlineError> {
        self.editor.readline(PROMPT)
    }

    /// Adds an entry to the history.
    pub fn remember(&mut self, entry: &str) {
        let _ = self.editor.add_history_entry(entry.trim_end());
    }

    /// Adds the entries of this session to the file of the history; other sessions may have added theirs.
    pub fn save(&mut self) {
        if self.editor.history().is_empty() {
            return;
        }
        let folder =
            self.history.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(ReadlineError::from);
        if let Err(e) = folder.and_then(|()| self.editor.append_history(&self.history)) {
            let path = self.history.display();
            messages::warning(format!("the history cannot be written to {path}: {e}"), None);
        }
    }
}

/// The editor's helper while an entry is typed.
#[derive(Default)]
struct Assistant {
    names: Vec<String>,
    files: FilenameCompleter,
    brackets: MatchingBracketHighlighter,
}

impl Helper for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let goes_on = !command::is_command(text) && is_incomplete(text);
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, pos: usize) -> Cow<'l, str> {
        self.brackets.highlight(line, pos)
    }

    fn highlight_char(&self, line: &str, pos: usize, kind: CmdKind) -> bool {
        self.brackets.highlight_char(line, pos, kind)
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        if before.trim_start().starts_with(":load ") {
            return self.files.complete_path(line, pos);
        }
        let (start, words) = completions(before, &self.names);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

/// The position at which the word before the cursor begins, and its completions.
fn completions(before: &str, names: &[String]) -> (usize, Vec<String>) {
    let ends_word = |c: char| c.is_whitespace() || "()[]{}\"'`~,".contains(c);
    let start =
        before.rfind(ends_word).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
    let (rest, word) = before.split_at(start);
    let fitting = |known: &mut dyn Iterator<Item = &str>| {
        known.filter(|name| name.starts_with(word)).map(str::to_string).collect()
    };
    let found = if rest.trim().is_empty() && word.starts_with(':') {
        fitting(&mut COMMANDS.iter().map(|(_, name, ..)| *name))
    } else if rest.trim_end().ends_with("(use") {
        fitting(&mut STANDARD.iter().map(|(name, _)| *name))
    } else if word.is_empty() {
        Vec::new()
    } else {
        fitting(&mut names.iter().map(String::as_str))
    };
    (start, found)
}

#[cfg(test)]
mod tests {
    use super::completions;

    #[test]
    fn the_word_at_the_cursor_is_completed() {
        let names: Vec<String> = ["sum", "softmax", "softplus", "my-f", "n/step"].map(String::from).into();
        let cases: [(&str, usize, &[&str]); 9] = [
            ("(soft", 1, &["softmax", "softplus"]),
            ("(map 'su", 6, &["sum"]),
            ("(n/", 1, &["n/step"]),
            ("é(my", 3, &["my-f"]),
            (":ti", 0, &[":time"]),
            ("(f :ti", 3, &[]),
            ("(use n", 5, &["nn"]),
            ("(use ", 5, &super::STANDARD.map(|(name, _)| name)),
            ("(f ", 3, &[]),
        ];
        for (before, start, wanted) in cases {
            let (found_start, found) = completions(before, &names);
            assert_eq!(found_start, start, "{before}");
            assert_eq!(found, wanted, "{before}");
        }
    }
}
