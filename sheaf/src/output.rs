//! Output of `sheaf`: the one place that writes to standard output and standard error.
//!
//! A reader that closes the output, as `head` does, is no error: the command goes on and ends as it would have. If
//! standard output cannot be written for another reason, such as a full disk, the command fails and says so.
//! Text that cannot be written to standard error is lost.

use std::fmt;
use std::io::{self, Write as _};

use crate::bars;
use crate::evaluator::Failed;
use crate::messages;

/// Like that of the standard library, without its panic.
macro_rules! println {
    ($($arguments:tt)*) => {
        $crate::output::line(format_args!($($arguments)*))
    };
}

/// Like that of the standard library, without its panic.
macro_rules! eprint {
    ($($arguments:tt)*) => {
        $crate::output::note(format_args!($($arguments)*))
    };
}

/// Like that of the standard library, without its panic.
macro_rules! eprintln {
    ($($arguments:tt)*) => {
        $crate::output::note(format_args!("{}\n", format_args!($($arguments)*)))
    };
}

/// Prints a text as it is.
pub fn print(text: &str) -> Result<(), Failed> {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match bars::hidden(write) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            messages::error(
                format!("cannot write to standard output: {error}"),
                Some("check the disk or the program that it goes to"),
            );
            Err(Failed)
        }
        _ => Ok(()),
    }
}

/// Prints a line.
pub fn print_line(text: &str) -> Result<(), Failed> {
    print(&format!("{text}\n"))
}

/// Prints a line; if it cannot be written, the command ends.
pub fn line(text: fmt::Arguments<'_>) {
    if print(&format!("{text}\n")).is_err() {
        std::process::exit(1);
    }
}

/// Prints to standard error.
pub fn note(text: fmt::Arguments<'_>) {
    // In one piece, so that the texts of several threads do not mix.
    let text = text.to_string();
    let _ = bars::hidden(|| io::stderr().lock().write_all(text.as_bytes()));
}
