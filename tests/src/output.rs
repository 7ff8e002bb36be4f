//! Result of a run.

use std::fmt;

use crate::neutral::Neutral;

/// Maximum number of lines of a program shown.
const SHOWN_LINES: usize = 12;

/// Output and exit code of a run. Its display is a complete record for a snapshot: the program, the command, the exit
/// code, and both outputs, normalised across machines and runs.
#[must_use]
#[derive(Debug)]
pub struct Output {
    pub(crate) programs: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The files of a mounted file system at the end.
    pub mounted: Vec<String>,
    pub(crate) neutral: Neutral,
}

impl Output {
    /// Standard output, after checking that the run succeeded without output on standard error.
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
