//! Reports: the functions that ran compiled, for which arguments, and the reasons of the others.

use std::fmt;

use super::fallback::Cause;
use super::{Entry, Family, Outcome, Specialiser};
use crate::host::Placement;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_syntax::{Sources, Span};

/// Report on a function that was called with tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The function's name.
    pub function: String,
    /// The called transformation, as in file names; empty for the function itself.
    pub transform: &'static str,
    /// The location of its definition.
    pub place: Option<Location>,
    /// True for library functions.
    pub library: bool,
    /// The reason that the function is interpreted, for all arguments or for those that fit no specialisation; `None`
    /// if it is not.
    pub interpreted: Option<Interpreted>,
    /// Calls interpreted because they fit no specialisation.
    pub other_calls: u64,
    /// Calls that failed while they were traced for new arguments.
    pub failed_calls: u64,
    /// In the order of their first calls.
    pub specialisations: Vec<Specialisation>,
}

/// A function specialised for the structure and types of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specialisation {
    /// The leaves of the arguments, then of the captured values.
    pub arguments: Vec<Argument>,
    /// Its status.
    pub status: Status,
    /// Calls that ran as a compiled program.
    pub compiled_calls: u64,
    /// Calls that were interpreted.
    pub interpreted_calls: u64,
    /// The most similar earlier specialisation, and the differences from it; `None` for the first.
    pub new: Option<(usize, Vec<Difference>)>,
}

/// Status of a specialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Compiled.
    Compiled(Placement),
    /// Interpreted until its calls are worth a compilation.
    TooLittleWork,
    /// Interpreted.
    Interpreted(Interpreted),
}

/// The reason something is interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreted {
    /// The kind of reason.
    pub cause: Cause,
    /// The reason, a clause.
    pub reason: String,
    /// The expression to blame.
    pub expression: Option<String>,
    /// Its location.
    pub place: Option<Location>,
}

/// A leaf of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The key path, such as `params.l1.W`.
    pub path: String,
    /// Its kind.
    pub kind: LeafKind,
    /// The use of a static number, and its location.
    pub asked: Option<(String, Option<Location>)>,
}

/// Kind of a leaf: the values that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// Any tensor or number of this type.
    Any(TensorType),
    /// This number, whose value the body needed.
    Number(String),
    /// This value, other than a number.
    Constant(String),
}

/// A leaf that differs from an earlier specialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key path.
    pub path: String,
    /// The new kind; `None` if the leaf is gone.
    pub now: Option<LeafKind>,
    /// The earlier kind; `None` if the leaf is new.
    pub before: Option<LeafKind>,
}

/// A location in a text: columns count characters, both count from 1.
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
    /// The start of a span; in the code of a macro, that of the macro use.
    pub fn of(sources: &Sources, span: Span) -> Option<Location> {
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
            // Different types have different texts.
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

    /// The reason that the last specialisation is interpreted; `None` if it is not.
    pub fn latest_reason(&self) -> Option<&Interpreted> {
        match self.specialisations.last().map(|s| &s.status) {
            Some(Status::Interpreted(why)) => Some(why),
            _ => None,
        }
    }
}

impl Interpreted {
    /// True if it should have been compiled: `--strict` forbids it.
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
        // Most leaves keep their position.
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
    /// Reports on all functions, in the order of the first calls.
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
            // The last of those with the fewest differences.
            let new = earlier.rev().min_by_key(|(_, differences)| differences.len());
            specialisations.push(Specialisation {
                status: match (&*entry.outcome.borrow(), entry.twin.borrow().placement()) {
                    (Outcome::Waiting { .. }, Some(placement)) => Status::Compiled(placement),
                    (Outcome::Compiled(compiled), _) => Status::Compiled(compiled.placement()),
                    (Outcome::Waiting { .. }, None) => Status::TooLittleWork,
                    (Outcome::Interpreted(why), _) => Status::Interpreted(why.report(sources)),
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
