//! What became of the functions of a program: which ran compiled, for which arguments, and why others did not.

use std::fmt;

use super::fallback::Cause;
use super::{Entry, Family, Outcome, Specialiser};
use crate::host::Placement;
use crate::syntax::{Sources, Span};
use crate::tensor::{DType, TensorType};

/// What became of a function that was called with tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The function's name.
    pub function: String,
    /// The transformation that was called, as files name it; empty for the function itself.
    pub transform: &'static str,
    /// Where the function is defined.
    pub place: Option<Location>,
    /// Whether it comes with the language.
    pub library: bool,
    /// Why the function is interpreted whatever its arguments, or for all that fit no specialisation, if it is.
    pub interpreted: Option<Interpreted>,
    /// Calls that fitted none of the specialisations, and were interpreted for that.
    pub other_calls: u64,
    /// Calls that ended in an error while they were traced for new arguments.
    pub failed_calls: u64,
    /// In the order of their first calls.
    pub specialisations: Vec<Specialisation>,
}

/// A function for certain structures and types of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specialisation {
    /// The leaves of the arguments, then of what the function captured.
    pub arguments: Vec<Argument>,
    /// What became of it.
    pub status: Status,
    /// Calls that ran as a compiled program.
    pub compiled_calls: u64,
    /// Calls that were interpreted.
    pub interpreted_calls: u64,
    /// How it differs from the most similar earlier one, and which that is; `None` for the first.
    pub new: Option<(usize, Vec<Difference>)>,
}

/// What became of a specialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is a program.
    Compiled(Placement),
    /// It is interpreted until its calls are worth a compilation.
    TooLittleWork,
    /// It is interpreted.
    Interpreted(Interpreted),
}

/// Why something is interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreted {
    /// The kind of reason.
    pub cause: Cause,
    /// The reason, a clause.
    pub reason: String,
    /// The expression to blame.
    pub expression: Option<String>,
    /// Where that is.
    pub place: Option<Location>,
}

/// A leaf of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The key path, such as `params.l1.W`.
    pub path: String,
    /// What fits.
    pub kind: LeafKind,
    /// What a fixed number was asked for, and where.
    pub asked: Option<(String, Option<Location>)>,
}

/// What fits at a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// Any tensor or number of this type.
    Any(TensorType),
    /// This number, which the body asked for.
    Number(String),
    /// This value, which is no number.
    Constant(String),
}

/// A leaf that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key path.
    pub path: String,
    /// What it is now, if it is still there.
    pub now: Option<LeafKind>,
    /// What it was, if it was there.
    pub before: Option<LeafKind>,
}

/// A place in a text: columns count characters, both count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name of the text.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Location {
    /// Where a span begins; for the code of a macro, where that is used.
    pub(super) fn of(sources: &Sources, span: Span) -> Option<Location> {
        let span = sources.used(span);
        let (file, _) = sources.get(span.source)?;
        let (line, column) = sources.position(span);
        Some(Location { file: file.to_owned(), line, column })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for LeafKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeafKind::Any(ty) if ty.weak && ty.shape.is_empty() && ty.dtype == DType::I64 => {
                f.write_str("any integer")
            }
            LeafKind::Any(ty) if ty.weak && ty.shape.is_empty() && ty.dtype.is_float() => {
                f.write_str("any float")
            }
            // Types that differ read differently.
            LeafKind::Any(ty) => write!(f, "{ty:?}"),
            LeafKind::Number(value) | LeafKind::Constant(value) => f.write_str(value),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { path, now, before } = self;
        match (now, before) {
            (Some(now), Some(before)) => write!(f, "{path}: {now} instead of {before}"),
            (Some(now), None) => write!(f, "{path}: {now}, which was not there"),
            (None, _) => write!(f, "{path} is not there"),
        }
    }
}

impl Report {
    /// The function with its transformation.
    pub fn name(&self) -> String {
        if self.transform.is_empty() {
            self.function.clone()
        } else {
            format!("{} ({})", self.function, self.transform)
        }
    }

    /// Why the latest of its calls that was specialised is interpreted, if it is.
    pub fn latest_reason(&self) -> Option<&Interpreted> {
        match self.specialisations.last().map(|s| &s.status) {
            Some(Status::Interpreted(why)) => Some(why),
            _ => None,
        }
    }
}

impl Interpreted {
    /// Whether it should have been compiled: what `--strict` forbids.
    pub fn is_fallback(&self) -> bool {
        !self.cause.is_by_design()
    }
}

/// Differences of the leaves of a specialisation from those of an earlier one.
pub(super) fn differences(now: &[(String, LeafKind)], before: &[(String, LeafKind)]) -> Vec<Difference> {
    let find =
        |all: &[(String, LeafKind)], path: &str| all.iter().find(|(p, _)| p == path).map(|(_, w)| w.clone());
    let mut found = Vec::new();
    for (i, (path, kind)) in now.iter().enumerate() {
        // Most leaves are where they were.
        let known = match before.get(i) {
            Some((same, kind)) if same == path => Some(kind.clone()),
            _ => find(before, path),
        };
        if known.as_ref() != Some(kind) {
            found.push(Difference { path: path.clone(), now: Some(kind.clone()), before: known });
        }
    }
    if now.len() != before.len() || !found.is_empty() {
        let gone = before.iter().filter(|(path, _)| find(now, path).is_none());
        found.extend(gone.map(|(path, kind)| Difference {
            path: path.clone(),
            now: None,
            before: Some(kind.clone()),
        }));
    }
    found
}

impl Specialiser {
    /// What became of every function, in the order of the first calls.
    pub(super) fn reports(&self, sources: &Sources) -> Vec<Report> {
        let known = self
            .families
            .iter()
            .filter(|f| f.interpreted.is_some() || !f.entries.is_empty() || f.failed_calls > 0);
        known.map(|family| family.report(sources)).collect()
    }
}

impl Family {
    fn report(&self, sources: &Sources) -> Report {
        let mut specialisations: Vec<Specialisation> = Vec::new();
        for (i, entry) in self.entries.iter().enumerate() {
            let earlier = self.entries[..i].iter().map(|e| differences(&entry.leaves, &e.leaves)).enumerate();
            // The latest of those that differ least.
            let new = earlier.rev().min_by_key(|(_, differences)| differences.len());
            specialisations.push(Specialisation {
                status: match &*entry.outcome.borrow() {
                    Outcome::Compiled(compiled) => Status::Compiled(compiled.placement()),
                    Outcome::Waiting { .. } => Status::TooLittleWork,
                    Outcome::Interpreted(why) => Status::Interpreted(why.report(sources)),
                },
                compiled_calls: entry.calls.get(),
                interpreted_calls: entry.interpreted_calls.get(),
                arguments: self.arguments(entry, sources),
                new,
            });
        }
        Report {
            function: self.code.display_name(),
            transform: self.transform,
            place: Location::of(sources, self.code.span),
            library: self.code.span.source.is_library(),
            interpreted: self.interpreted.as_ref().or(self.changing.as_ref()).map(|why| why.report(sources)),
            other_calls: self.other_calls,
            failed_calls: self.failed_calls,
            specialisations,
        }
    }

    fn arguments(&self, entry: &Entry, sources: &Sources) -> Vec<Argument> {
        let argument = |(path, kind): &(String, LeafKind)| Argument {
            path: path.clone(),
            kind: kind.clone(),
            asked: self.statics.get(path).filter(|_| matches!(kind, LeafKind::Number(_))).map(|asked| {
                (asked.wanted.clone(), asked.place.and_then(|place| Location::of(sources, place)))
            }),
        };
        entry.leaves.iter().map(argument).collect()
    }
}
