//! The program's world: files, output and warnings.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;

use sheaf_lang::diagnostic::Diagnostic;
use sheaf_lang::host::{Host, HostError};
use sheaf_lang::syntax::Sources;

use crate::evaluator::Failed;
use crate::messages;

/// The real world.
#[derive(Debug, Default)]
pub struct World {
    broken_pipe: Cell<bool>,
}

impl Host for World {
    fn print(&mut self, text: &str) -> Result<(), HostError> {
        if self.broken_pipe.get() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
            // Whoever reads the output has seen enough; the program may still have work to do.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.broken_pipe.set(true),
            Err(e) => {
                return Err(HostError {
                    message: format!("cannot write to standard output: {e}"),
                    help: None,
                });
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        messages::show(sources, warning);
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        std::fs::read(path).map_err(|e| unreadable(Path::new(path), &e))
    }
}

/// The text of a program.
pub fn read_source(path: &Path) -> Result<String, Failed> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let help = "a program is plain text: save the file in that encoding";
            messages::error(format!("{} is not UTF-8 text from byte {at} on", path.display()), Some(help));
            Failed
        }),
        Err(e) => {
            let e = unreadable(path, &e);
            messages::error(&e.message, e.help.as_deref());
            Err(Failed)
        }
    }
}

/// Why a file cannot be read, and what to do.
pub fn unreadable(path: &Path, error: &io::Error) -> HostError {
    let shown = path.display();
    let here = std::env::current_dir().map_or_else(|_| ".".into(), |d| d.display().to_string());
    let (message, help) = match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => (
            format!("{shown} does not exist"),
            Some(format!("the path starts at the current directory, which is {here}")),
        ),
        io::ErrorKind::NotFound => {
            (format!("{shown} does not exist"), Some("check the spelling of the path".into()))
        }
        io::ErrorKind::PermissionDenied => {
            (format!("{shown} may not be read"), Some("change its permissions, or run as its owner".into()))
        }
        io::ErrorKind::IsADirectory => (
            format!("{shown} is a folder, not a file"),
            Some("name a file, perhaps one in that folder".into()),
        ),
        _ => (format!("{shown} cannot be read: {error}"), None),
    };
    HostError { message, help }
}
