//! `sheaf repl`: reads, evaluates, prints, and asks again.
//!
//! On a terminal a line editor asks for input (`editor`); elsewhere all of standard input is read first. Both hand
//! their text to a `Session`.

mod command;
mod editor;
mod interrupt;
mod session;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use rustyline::error::ReadlineError;
use sheaf_syntax::{is_incomplete, source_text};

use crate::cli::EngineOptions;
use crate::evaluator::{Failed, failed, home, on_large_stack, project_here};
use crate::messages;
use editor::LineEditor;
use interrupt::Interrupts;
use session::{Flow, Session};

/// Runs the REPL.
pub fn repl(options: &EngineOptions) -> ExitCode {
    on_large_stack(|| {
        let project = project_here()?;
        let session = Session::new(options, project)?;
        if std::io::stdin().is_terminal() { converse(session) } else { read_all(session) }
    })
}

/// Asks for one entry after the other.
fn converse(mut session: Session) -> Result<(), Failed> {
    println!("Sheaf {}. :help lists the commands, Ctrl-D ends.", env!("CARGO_PKG_VERSION"));
    let interrupts = Interrupts::catch();
    let mut editor = LineEditor::new(&home()?.repl_history()).map_err(failed)?;
    loop {
        editor.know(session.names());
        match editor.read() {
            Ok(entry) => {
                editor.remember(&entry);
                interrupts.begin(session.interrupt_handle());
                let flow = session.enter(&entry);
                interrupts.end();
                match flow {
                    Flow::Quit => break,
                    // Asked for one by one, failures need no exit code.
                    Flow::Continue | Flow::Failed => {}
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(failed(format!("cannot read from the terminal: {e}"))),
        }
    }
    editor.save();
    Ok(())
}

/// Reads standard input to its end, and enters the commands in it and the forms between them. Definitions may mention
/// later ones.
fn read_all(mut session: Session) -> Result<(), Failed> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|e| failed(format!("cannot read standard input: {e}")))?;
    let text = source_text("standard input", bytes).map_err(|error| {
        messages::error(&error.message, error.help.as_deref());
        Failed
    })?;
    let mut all_well = true;
    let mut entry = String::new();
    for line in text.split_inclusive('\n') {
        if command::is_command(line) && !is_incomplete(&entry) {
            all_well &= session.enter(&std::mem::take(&mut entry)) != Flow::Failed;
            match session.enter(line) {
                Flow::Quit => return if all_well { Ok(()) } else { Err(Failed) },
                Flow::Failed => all_well = false,
                Flow::Continue => {}
            }
        } else {
            entry.push_str(line);
        }
    }
    all_well &= session.enter(&entry) != Flow::Failed;
    if all_well { Ok(()) } else { Err(Failed) }
}
