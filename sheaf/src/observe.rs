//! Observation of a run: `--trace`, `--guard`.

use std::path::{Path, PathBuf};

use clap::Args;
use sheaf_lang::eval::Interp;
use sheaf_lang::observe::{Breach, Guard};
use sheaf_observe::{Observers, Tracer, clock};
use sheaf_syntax::visible::visible;

use crate::messages;

/// Options of observation.
#[derive(Args, Clone, Debug, Default)]
pub struct ObserveOptions {
    /// Show the calls as a tree with arguments, results and times: of all functions, or of those named
    #[arg(long, value_name = "F,G", num_args = 0..=1, default_missing_value = "", help_heading = "Observation")]
    pub trace: Option<String>,
    /// Stop where a value breaks a condition, and say where: `no-nan` (NaN or infinite), `no-nan:allow-inf` or `range=LOW:HIGH`;
    /// for one function or binding `attention:no-nan`, `loss:range:0:20`. May be repeated
    #[arg(long, value_name = "GUARD", help_heading = "Observation")]
    pub guard: Vec<Guard>,
}

impl ObserveOptions {
    /// True if something is observed.
    pub fn any(&self) -> bool {
        self.trace.is_some() || !self.guard.is_empty()
    }

    /// The program, if it was given as the value of an option whose value is optional: an existing `.shf` file.
    pub fn take_file(&mut self) -> Option<PathBuf> {
        let is_program = |text: &&mut String| {
            let path = Path::new(text.as_str());
            path.extension().is_some_and(|extension| extension == "shf") && path.is_file()
        };
        self.trace.as_mut().filter(is_program).map(|text| PathBuf::from(std::mem::take(text)))
    }

    /// Observes the run of an evaluator.
    pub fn start(&self, interp: &mut Interp) {
        if !self.any() {
            return;
        }
        let mut observers = Observers::new(clock());
        if let Some(names) = &self.trace {
            let names: Vec<String> =
                names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            let names = Some(names).filter(|names| !names.is_empty());
            observers =
                observers.with_tracer(Tracer::new(names, Box::new(|line| eprint!("{}", visible(line)))));
        }
        interp.observe(Box::new(observers), self.guard.clone());
    }
}

/// Exit code of a run that a guard stopped.
pub const GUARDED: u8 = 3;

/// Shows the guard that stopped a run; `None` if none did.
pub fn show_breach(interp: &mut Interp) -> Option<Breach> {
    let breach = interp.breach()?;
    eprint!("{}", breach.text(&interp.sources, messages::colored()));
    Some(breach)
}
