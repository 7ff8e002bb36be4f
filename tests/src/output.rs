//! What came of a run.

use std::fmt;

use crate::neutral::Neutral;

/// Programs of more lines are not shown.
const SHOWN_LINES: usize = 12;

/// What a run printed, and how it ended. Shown, it is a whole story for a snapshot: the program, the command, the exit
/// code, and both outputs, without what differs between machines and runs.
#[must_use]
#[derive(Debug)]
pub struct Output {
    pub(crate) programs: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The files that a mounted file system had in the end.
    pub mounted: Vec<String>,
    pub(crate) neutral: Neutral,
}

impl Output {
    /// The output, after checking that the run succeeded without a word on standard error.
    #[track_caller]
    pub fn silent(self) -> String {
        assert!(self.code == Some(0) && self.stderr.is_empty(), "not silent:\n{self}");
        self.stdout
    }

    /// The output, after checking that the run succeeded and compiled nothing.
    #[track_caller]
    pub fn compiled_nothing(self) -> String {
        assert!(self.code == Some(0) && !self.stderr.contains("compiling "), "it compiled:\n{self}");
        self.stdout
    }

    /// The output, after checking that the run succeeded and compiled something.
    #[track_caller]
    pub fn compiled(self) -> String {
        assert!(self.code == Some(0) && self.stderr.contains("compiling "), "it did not compile:\n{self}");
        self.stdout
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in &self.programs {
            if text.lines().count() <= SHOWN_LINES {
                writeln!(out, "{name}:")?;
                text.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
            }
        }
        writeln!(out, "{}", self.neutral.apply(&format!("$ sheaf {}", self.command.join(" "))).trim_end())?;
        match self.code {
            Some(code) => writeln!(out, "exit code {code}")?,
            None => writeln!(out, "ended by a signal")?,
        }
        for (name, text) in [("standard output", &self.stdout), ("standard error", &self.stderr)] {
            if !text.is_empty() {
                writeln!(out, "{name}:")?;
                let text = self.neutral.apply(text);
                text.lines().try_for_each(|line| writeln!(out, "{}", format!("  {line}").trim_end()))?;
            }
        }
        Ok(())
    }
}
