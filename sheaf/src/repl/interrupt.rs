//! Ctrl-C while something is evaluated.

use std::sync::{Arc, Mutex};

use sheaf_lang::eval::Interrupt;

use crate::messages;

/// The interrupt of the running evaluation, and the number of times that it was told to stop.
type Running = Option<(Interrupt, u32)>;

/// Takes the place of the system's way with Ctrl-C, which is to end the program.
pub struct Interrupts(Arc<Mutex<Running>>);

impl Interrupts {
    /// Catches Ctrl-C from now on. If that fails, Ctrl-C ends the program, with a warning now.
    pub fn catch() -> Interrupts {
        let running: Arc<Mutex<Running>> = Arc::default();
        let seen = Arc::clone(&running);
        let caught = ctrlc::set_handler(move || {
            if let Ok(mut running) = seen.lock()
                && let Some((interrupt, presses)) = running.as_mut()
            {
                *presses += 1;
                match presses {
                    1 => interrupt.interrupt(),
                    2 => eprintln!("one operation has to end first; Ctrl-C once more ends sheaf"),
                    _ => std::process::exit(130),
                }
            }
        });
        if let Err(e) = caught {
            messages::warning(format!("Ctrl-C will end the session: {e}"), None);
        }
        Interrupts(running)
    }

    /// Something begins that Ctrl-C is to stop.
    pub fn begin(&self, interrupt: Interrupt) {
        self.set(Some((interrupt, 0)));
    }

    /// Nothing runs any more.
    pub fn end(&self) {
        self.set(None);
    }

    fn set(&self, value: Running) {
        if let Ok(mut running) = self.0.lock() {
            *running = value;
        }
    }
}
