//! Reasons to interpret calls, and their warnings: once, in one line; with `--strict` an error.

use std::collections::HashMap;

use crate::eval::handle::HANDLE_INDEX;
use crate::eval::interp::Interp;
use crate::eval::signal::{Eval, Reason, TraceStop};
use crate::program::Code;
use sheaf_graph::graph::Graph;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Sources, Span};

use super::report::{Interpreted, Location};

/// Kind of reason to interpret a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Interpreted by design: an effect, a function as the result.
    Design,
    /// The result depends on no tensor: there is nothing to compute.
    Known,
    /// A value needed at compile time depends on data.
    Data,
    /// The branches of a conditional on data, or the states of a loop, have different types.
    Types,
    /// The arguments, or a static number, change in every call.
    Changing,
    /// The program would be too large for the compiler.
    Size,
    /// There is no compiler, or it failed.
    Compiler,
}

impl Cause {
    /// True if the call is interpreted by design.
    pub fn is_by_design(self) -> bool {
        matches!(self, Cause::Design | Cause::Known)
    }
}

/// The reason to interpret a call.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub cause: Cause,
    /// A clause, such as `a shape depends on the data`.
    pub reason: String,
    /// Subject of the clause, if it does not depend on the data: reasons with one subject at one span are reported
    /// once.
    pub subject: Option<String>,
    /// The expression to blame.
    pub place: Option<Span>,
    /// Other labelled spans.
    pub labels: Vec<(Span, String)>,
    /// The fix.
    pub remedy: Option<String>,
}

impl Why {
    /// A reason by design.
    pub fn design(reason: impl Into<String>, place: Option<Span>) -> Why {
        Why {
            cause: Cause::Design,
            reason: reason.into(),
            subject: None,
            place,
            labels: Vec::new(),
            remedy: None,
        }
    }

    /// The result is known without a program.
    pub fn independent() -> Why {
        let why = Why::design("its result does not depend on a tensor", None);
        Why { cause: Cause::Known, ..why }
    }

    /// The reason a trace stopped.
    pub fn stopped(stop: &TraceStop) -> Why {
        if let Some(differing) = &stop.differing {
            return Why {
                cause: Cause::Types,
                reason: differing.clause.clone(),
                subject: None,
                place: stop.span,
                labels: differing.places.clone(),
                remedy: Some(differing.remedy.into()),
            };
        }
        let (cause, reason, remedy) = match &stop.reason {
            Reason::Effect(name) => (Cause::Design, format!("{name} has an effect"), None),
            Reason::Unevaluated(name) => {
                (Cause::Design, format!("{name} has no value before the program runs"), None)
            }
            Reason::Loop => (Cause::Design, "it has a loop; what the loop calls is compiled".into(), None),
            Reason::Reads => {
                (Cause::Design, "it reads a handle; what it calls with the items is compiled".into(), None)
            }
            Reason::NoVjp(reason) => (
                Cause::Data,
                format!("its gradient is wanted, but {reason}"),
                Some("a loop with a count, as repeat or scan, has a gradient".into()),
            ),
            Reason::Value { wanted, .. } => {
                (Cause::Data, format!("{wanted} depends on the data"), Some(remedy(wanted)))
            }
            Reason::Elements { wanted, ty, .. } => (
                Cause::Data,
                format!("{wanted} depends on the elements of a tensor {ty}"),
                Some(remedy(wanted)),
            ),
        };
        let subject = match &stop.reason {
            Reason::Value { wanted, .. } | Reason::Elements { wanted, .. } => Some(wanted.clone()),
            _ => None,
        };
        Why { cause, reason, subject, place: stop.span, labels: Vec::new(), remedy }
    }

    /// A reason of the compiler.
    pub fn compiler(reason: impl Into<String>) -> Why {
        let remedy = "without --strict the function is interpreted".to_owned();
        Why {
            cause: Cause::Compiler,
            reason: reason.into(),
            subject: None,
            place: None,
            labels: Vec::new(),
            remedy: Some(remedy),
        }
    }

    /// The reason that a program would take the compiler minutes; its span is that of most equations.
    pub fn too_large(graph: &Graph) -> Why {
        let mut counts: HashMap<Span, usize> = HashMap::new();
        graph.visit(&mut |_, eqn| {
            if let Some(span) = eqn.span {
                *counts.entry(span).or_default() += 1;
            }
        });
        let size = graph.size();
        let most = counts.into_iter().max_by_key(|(span, count)| (*count, span.start));
        let remedy = "steps that repeat are one operation in repeat, while, reduce or scan, if the state keeps its \
                      structure, shapes and dtypes";
        Why {
            cause: Cause::Size,
            reason: match most {
                Some((_, count)) => {
                    format!("its program would have {size} operations, {count} of them here")
                }
                None => format!("its program would have {size} operations"),
            },
            subject: None,
            place: most.map(|(span, _)| span),
            labels: Vec::new(),
            remedy: Some(remedy.into()),
        }
    }

    /// The error for the function of that name.
    pub fn error(&self, name: &str) -> Diagnostic {
        let error = Diagnostic::error(format!("{name} cannot be compiled: {}", self.reason));
        let error = match self.place {
            Some(place) => error.at(place, "here"),
            None => error,
        };
        self.labels.iter().fold(error, |error, (span, text)| error.at(*span, text.clone()))
    }

    /// The reason in a report.
    pub fn report(&self, sources: &Sources) -> Interpreted {
        Interpreted {
            cause: self.cause,
            reason: self.reason.clone(),
            expression: self.place.and_then(|place| expression(sources, place)),
            place: self.place.and_then(|place| Location::of(sources, place)),
        }
    }
}

/// The fix if `wanted` depends on data.
fn remedy(wanted: &str) -> String {
    match wanted {
        "a condition" => "(where condition a b) selects without knowing the condition before the program runs",
        HANDLE_INDEX => "read the items where the function is called, and pass them to it",
        "a text" => "make texts of results where the function is called: printing is interpreted anyway",
        _ => {
            "a program must know this before it runs: take it from a shape, or pass it as a number, each value of \
             which makes a program of its own"
        }
    }
    .into()
}

/// Maximum characters of an expression in reports.
const SHOWN: usize = 60;

/// The text of a form in one line, unless it is in the library; a name alone adds nothing to its span.
pub(super) fn expression(sources: &Sources, span: Span) -> Option<String> {
    let span = sources.used(span);
    if span.source.is_library() {
        return None;
    }
    let (_, text) = sources.get(span.source)?;
    let words: Vec<&str> = text[span.within(text)].split_whitespace().collect();
    let line = words.join(" ");
    if !line.starts_with('(') {
        return None;
    }
    Some(match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    })
}

impl Interp {
    /// Reports that a function is interpreted because it could not be compiled: once per span and reason, for any
    /// function and arguments. An error with `--strict`.
    pub(super) fn fall_back(&mut self, code: &Code, why: &Why) -> Eval<()> {
        if why.cause.is_by_design() {
            return Ok(());
        }
        let name = code.display_name();
        if self.options.strict {
            let error = why.error(&name).note("--strict forbids interpreting it");
            return Err(match &why.remedy {
                Some(remedy) => error.help(remedy).into(),
                None => error.into(),
            });
        }
        // The backend has warned that there is no compiler.
        if why.cause == Cause::Compiler {
            return Ok(());
        }
        // A span stops all functions that reach it, for tensors of any type.
        let (place, about) = match why.cause {
            Cause::Changing => (code.span, why.reason.as_str()),
            Cause::Size => (code.span, "size"),
            Cause::Types => (why.place.unwrap_or(code.span), "types"),
            _ => (why.place.unwrap_or(code.span), why.subject.as_deref().unwrap_or(&why.reason)),
        };
        if !self.specialiser.said.insert((place, about.to_owned())) {
            return Ok(());
        }
        let shown = why.report(&self.sources);
        let mut message = match why.cause {
            Cause::Changing => format!("{name} is interpreted for new arguments: {}", why.reason),
            _ => format!("{name} is interpreted, not compiled: {}", why.reason),
        };
        if let Some(expression) = shown.expression {
            message += &format!(", in {expression}");
        }
        if let Some(place) = shown.place {
            message += &format!(" at {place}");
        }
        self.host.warn(&self.sources, &Diagnostic::warning(message));
        Ok(())
    }
}
