//! Output of a build: progress, and the report at its end.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use sheaf_artifacts::Leaf;
use sheaf_lang::eval::{FunctionName, Interp};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;

use sheaf_artifacts::{Tuning, TuningFlag};
use sheaf_engine::{Made, Plan, ProgramSource, Trial, TrialOutcome, Tuned};
use sheaf_syntax::visible::visible;

use crate::evaluator::Failed;
use crate::output::print;

/// A program that was built, or found.
pub struct Built {
    /// The plan of the build.
    pub plan: Plan,
    /// The function.
    pub name: FunctionName,
    /// Other functions that it is the program of.
    pub same: Vec<String>,
    /// The outcome of its tuning, if that was wanted.
    pub tuned: Option<Tuned>,
    /// The program.
    pub made: Made,
}

/// Progress: on a terminal a bar, elsewhere a line for each function.
pub struct Progress {
    bar: Option<ProgressBar>,
    left: Vec<String>,
}

/// Maximum names of functions in a bar.
const SHOWN: usize = 4;

impl Progress {
    /// The progress with all of `left` to do.
    pub fn new(left: Vec<String>) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(left.len() as u64);
            if let Ok(style) =
                ProgressStyle::with_template("compiling {pos}/{len} {wide_bar} {elapsed} {msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        let progress = Progress { bar, left };
        progress.show();
        progress
    }

    /// A worker has begun with a function.
    pub fn begun(&self, name: &str) {
        if self.bar.is_none() {
            let others = self.left.len().saturating_sub(1);
            let others = if others == 0 { String::new() } else { format!(" ({others} more)") };
            eprintln!("compiling {}{others}", visible(name));
        }
    }

    /// A function is compiled, or cannot be.
    pub fn done(&mut self, name: &str) {
        if let Some(position) = self.left.iter().position(|left| left == name) {
            self.left.remove(position);
        }
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        self.show();
    }

    /// Lets something else be printed.
    pub fn interrupt(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn show(&self) {
        if let Some(bar) = &self.bar {
            let more = if self.left.len() > SHOWN { " ..." } else { "" };
            let names: Vec<&str> = self.left.iter().take(SHOWN).map(String::as_str).collect();
            bar.set_message(format!("{}{more}", names.join(", ")));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The result of a build.
pub struct Report<'a> {
    /// The programs.
    pub built: &'a [Built],
    /// Functions that could not be built, with errors already shown.
    pub failures: &'a [(String, Diagnostic)],
    /// Functions that the language interprets.
    pub interpreted: &'a [(String, Diagnostic)],
    /// The folder from which paths are shown, if it is not the current one.
    pub root: Option<&'a Path>,
}

impl Report<'_> {
    /// Shows it on standard output.
    pub fn show(&self, interp: &Interp, as_json: bool) -> Result<(), Failed> {
        let text = if as_json { self.json(&interp.sources) } else { self.text(&interp.sources) };
        print(&text)
    }

    fn text(&self, sources: &Sources) -> String {
        let mut text = String::new();
        for Built { plan, tuned, .. } in self.built {
            if let Some(tuned) = tuned {
                text += &format!("{}: {}\n", plan.name(), outcome(tuned));
            }
        }
        for Built { plan, same, made, .. } in self.built {
            let how = match made.source {
                ProgramSource::Compiled => "compiled",
                ProgramSource::Fetched => "fetched",
                ProgramSource::Kept => "was there",
            };
            let file = made.kept.as_ref().map_or(String::new(), |(_, path)| self.path(path));
            let in_place =
                if plan.action(made.candidate).donation.is_empty() { "" } else { ", results in place" };
            text += &format!("{}{in_place}: {file} ({how}, {} bytes)\n", plan.name(), made.bytes.len());
            for same in same {
                text += &format!("{same}: the same program as {}\n", plan.name());
            }
        }
        for (_, diagnostic) in self.interpreted {
            let place = diagnostic.labels.first().map(|l| sources.used(l.span));
            let place = place.map(|span| {
                let (line, column) = sources.position(span);
                format!(" ({}:{line}:{column})", sources.name(span.source))
            });
            text += &format!("{}{}\n", diagnostic.message, place.unwrap_or_default());
        }
        let of = |source| self.built.iter().filter(|built| built.made.source == source).count();
        let (compiled, kept) = (of(ProgramSource::Compiled), of(ProgramSource::Kept));
        let fetched = match of(ProgramSource::Fetched) {
            0 => String::new(),
            n => format!("{n} fetched, "),
        };
        let failures = match self.failures.len() {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        text += &format!("{compiled} compiled, {fetched}{kept} there before{failures}\n");
        text
    }

    fn path(&self, path: &Path) -> String {
        let inside = self.root.and_then(|root| path.strip_prefix(root).ok());
        inside.map_or_else(|| short(path), |inside| inside.display().to_string())
    }

    fn json(&self, sources: &Sources) -> String {
        let functions: Vec<Value> = self.built.iter().map(built).collect();
        let said = |(name, diagnostic): &(String, Diagnostic)| {
            let place = diagnostic.labels.first().map(|l| sources.used(l.span));
            let place = place.map(|span| {
                let (line, column) = sources.position(span);
                json!({ "file": sources.name(span.source), "line": line, "column": column })
            });
            json!({ "function": name, "message": diagnostic.message, "place": place })
        };
        let report = json!({
            "functions": functions,
            "failed": self.failures.iter().map(said).collect::<Vec<_>>(),
            "interpreted": self.interpreted.iter().map(said).collect::<Vec<_>>(),
        });
        format!("{report:#}\n")
    }
}

/// A program as JSON.
pub fn built(Built { plan, same, made, tuned, .. }: &Built) -> Value {
    let action = plan.action(made.candidate);
    let (inputs, outputs) = plan.leaves();
    let leaves = |leaves: &[Leaf]| {
        let leaf = |l: &Leaf| json!({ "path": l.path, "dtype": l.dtype, "shape": l.shape });
        leaves.iter().map(leaf).collect::<Vec<_>>()
    };
    json!({
        "function": plan.unit().function,
        "transform": plan.unit().transform,
        "same": same,
        "file": made.kept.as_ref().map(|(_, path)| short(path)),
        "key": action.key().to_string(),
        "device": action.device,
        "cpu": action.cpu.as_ref().map(|cpu| {
            std::iter::once(&cpu.arch).chain(&cpu.features).cloned().collect::<Vec<_>>().join("+")
        }),
        "donation": action.donation.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "bytes": made.bytes.len(),
        "result": if made.source == ProgramSource::Compiled { "compiled" } else { "cached" },
        "inputs": leaves(inputs),
        "outputs": leaves(outputs),
        "constants": plan.constants(made.candidate),
        "tuning": tuned.as_ref().map(tuning),
    })
}

/// The outcome of a tuning as JSON.
fn tuning(tuned: &Tuned) -> Value {
    let record = |record: &Tuning, outcome: &str, trials: &[Trial]| {
        let trial = |trial: &Trial| {
            let (result, ms, before) = match trial.outcome {
                TrialOutcome::NotCompiled => ("not-compiled", None, None),
                TrialOutcome::Same => ("same", None, None),
                TrialOutcome::OtherResults => ("other-results", None, None),
                TrialOutcome::Timed(ms, before) => ("timed", Some(ms), Some(before)),
            };
            json!({ "flags": trial.flags, "result": result, "ms": ms, "before-ms": before })
        };
        json!({
            "outcome": outcome,
            "flags": record.flags,
            "default-ms": record.default_ms,
            "tuned-ms": record.tuned_ms,
            "trials": trials.iter().map(trial).collect::<Vec<_>>(),
        })
    };
    match tuned {
        Tuned::TooLittle => json!({ "outcome": "too-little" }),
        Tuned::OtherMachine => json!({ "outcome": "other-machine" }),
        Tuned::NotCompiled => json!({ "outcome": "not-compiled" }),
        Tuned::Known(tuning) => record(tuning, "known", &[]),
        Tuned::Measured(tuning, trials) => record(tuning, "measured", trials),
    }
}

/// The outcome of a tuning, a clause.
fn outcome(tuned: &Tuned) -> String {
    let times = |Tuning { flags, default_ms, tuned_ms, .. }: &Tuning| {
        if default_ms == tuned_ms {
            return format!("{} with its usual flags, and no others are faster", milliseconds(*tuned_ms));
        }
        let (before, now) = (milliseconds(*default_ms), milliseconds(*tuned_ms));
        format!("{now} with {}, {before} with its usual flags", names(flags))
    };
    match tuned {
        Tuned::TooLittle => "not tuned: its calls are short, or it is one kernel".into(),
        Tuned::OtherMachine => "not tuned: this machine cannot run it".into(),
        Tuned::NotCompiled => "not tuned: the compiler fails on it".into(),
        Tuned::Known(tuning) => format!("{} (tuned before)", times(tuning)),
        Tuned::Measured(tuning, _) => times(tuning),
    }
}

/// A line about a trial of the function `name`.
pub fn trial(name: &str, Trial { flags, outcome }: &Trial) -> String {
    let outcome = match outcome {
        TrialOutcome::NotCompiled => "does not compile".into(),
        TrialOutcome::Same => "the same program".into(),
        TrialOutcome::OtherResults => "not used, since its results differ".into(),
        TrialOutcome::Timed(ms, before) => format!("{}, {} before", milliseconds(*ms), milliseconds(*before)),
    };
    format!("{name} with {}: {outcome}", names(flags))
}

fn names(flags: &BTreeSet<TuningFlag>) -> String {
    if flags.is_empty() {
        return "no further flags".into();
    }
    flags.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn milliseconds(ms: f64) -> String {
    format!("{ms:.3} ms")
}

/// A path from the current folder, where it is in that.
pub fn short(path: &Path) -> String {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
