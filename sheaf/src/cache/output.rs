//! What `sheaf cache` prints.

use std::fmt;
use std::io::{self, Write as _};

use crate::messages;

/// Like that of the standard library, but a reader that has seen enough is no reason to panic.
macro_rules! println {
    ($($arguments:tt)*) => {
        $crate::cache::output::line(format_args!($($arguments)*))
    };
}

/// Prints a line. Whoever reads it may have gone; where it cannot be written for another reason, the command ends.
pub fn line(text: fmt::Arguments<'_>) {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            messages::error(
                format!("cannot write to standard output: {error}"),
                Some("check the disk or the program that it goes to"),
            );
            std::process::exit(1);
        }
        _ => {}
    }
}
