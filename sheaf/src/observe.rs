//! Observation of a run: `--trace`, `--guard`, `--blame`, `--mem-profile`, `--trace-out`.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use sheaf_lang::eval::Interp;
use sheaf_lang::observe::{Breach, Guard};
use sheaf_observe::{Metrics, Times, Wanted};
use sheaf_syntax::Sources;
use sheaf_syntax::visible::visible;

use crate::evaluator::Failed;
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
    /// Say at the end where the time went, by function and as a tree of calls
    #[arg(long, help_heading = "Observation")]
    pub blame: bool,
    /// Say at the end how much memory compiled functions took, and what held it
    #[arg(long, help_heading = "Observation")]
    pub mem_profile: bool,
    /// Write calls, compilations, cache look-ups and transfers for Perfetto (ui.perfetto.dev), up to 64 MiB
    #[arg(long, value_name = "FILE.json", help_heading = "Observation")]
    pub trace_out: Option<PathBuf>,
    /// Write the numbers of (log-metric name value): a line of JSON for each to a file that ends in `.jsonl`, or an event file
    /// for TensorBoard to a folder. May be repeated
    #[arg(long, value_name = "FILE.jsonl|DIR", help_heading = "Observation")]
    pub log: Vec<PathBuf>,
}

/// An observed run.
pub struct Observation {
    times: Rc<Times>,
    trace_out: Option<PathBuf>,
}

impl Observation {
    /// The reports up to now.
    pub fn reports(&self) -> Vec<String> {
        self.times.reports()
    }

    /// Shows the reports at the end of the run.
    pub fn finish(&self) -> Result<(), Failed> {
        for report in self.reports() {
            eprint!("{}", visible(&report));
        }
        self.times.finish().map_err(|error| {
            let name = self.trace_out.as_deref().unwrap_or(Path::new("")).display();
            messages::error(format!("{name} cannot be written: {error}"), Some("check the disk"));
            Failed
        })
    }
}

impl ObserveOptions {
    /// True if something is observed.
    pub fn any(&self) -> bool {
        self.trace.is_some()
            || !self.guard.is_empty()
            || self.blame
            || self.mem_profile
            || self.trace_out.is_some()
    }

    /// The program, if it was given as the value of an option whose value is optional: an existing `.shf` file.
    pub fn take_file(&mut self) -> Option<PathBuf> {
        let is_program = |text: &&mut String| {
            let path = Path::new(text.as_str());
            path.extension().is_some_and(|extension| extension == "shf") && path.is_file()
        };
        self.trace.as_mut().filter(is_program).map(|text| PathBuf::from(std::mem::take(text)))
    }

    /// The files of metrics.
    pub fn metrics(&self) -> Result<Metrics, Failed> {
        let mut metrics = Metrics::default();
        for path in &self.log {
            metrics.add(path).map_err(|error| {
                let help = "name a file that ends in .jsonl, or a folder, where files may be written";
                messages::error(format!("{} cannot be written: {error}", path.display()), Some(help));
                Failed
            })?;
        }
        Ok(metrics)
    }

    /// Warns of functions and bindings that `--trace` and `--guard` name and no text of the run has.
    pub fn warn_of_unknown(&self, sources: &Sources) {
        let traced = self.trace.iter().flat_map(|names| names.split(',')).map(str::trim);
        let traced = traced.filter(|name| !name.is_empty()).map(|name| ("--trace", name));
        let guarded = self.guard.iter().filter_map(|guard| Some(("--guard", guard.target?.as_str())));
        let named: Vec<_> = traced.chain(guarded).collect();
        if named.is_empty() {
            return;
        }
        let is_end = |c: char| c.is_whitespace() || "()[]{}\"',;`~@".contains(c);
        let words: BTreeSet<&str> = sources.iter().flat_map(|(_, text)| text.split(is_end)).collect();
        // Modules of the library are called `<nn/layers>`.
        let own = sources.iter().filter(|(name, _)| !name.starts_with('<'));
        let own: BTreeSet<&str> = own.flat_map(|(_, text)| text.split(is_end)).collect();
        for (option, name) in named.into_iter().filter(|(_, name)| !words.contains(name)) {
            let near = sheaf_lang::builtins::nearest(name, own.iter().copied());
            let help = near.map_or_else(
                || "name a function or a binding of the program".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            messages::warning(
                format!("{option} watched nothing called {name}: the program has no such name"),
                Some(&help),
            );
        }
    }

    /// Observes the run of an evaluator.
    pub fn start(&self, interp: &mut Interp) -> Result<Option<Observation>, Failed> {
        if !self.any() {
            return Ok(None);
        }
        let events = match &self.trace_out {
            Some(path) => {
                let file = std::fs::File::create(path).map_err(|error| {
                    let help = "name a file in a folder that is there and may be written";
                    messages::error(format!("{} cannot be written: {error}", path.display()), Some(help));
                    Failed
                })?;
                Some(Box::new(BufWriter::new(file)) as Box<dyn Write>)
            }
            None => None,
        };
        let Self { trace, blame, mem_profile, .. } = self;
        let wanted = Wanted { trace: trace.as_deref(), blame: *blame, memory: *mem_profile, events };
        let observers = wanted.observers(Box::new(|line| eprint!("{}", visible(line))));
        let observation = Observation { times: observers.times(), trace_out: self.trace_out.clone() };
        interp.observe(Box::new(observers), self.guard.clone());
        Ok(Some(observation))
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
