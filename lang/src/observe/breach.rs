//! A broken guard, and its text.

use sheaf_graph::tensor::TensorType;
use sheaf_graph::watch::{Condition, Statistics};
use sheaf_syntax::diagnostic::{Diagnostic, Kind};
use sheaf_syntax::render::render;
use sheaf_syntax::{Sources, Span};

use super::describe::shown_type;

/// A broken guard.
#[derive(Clone, Debug)]
pub struct Breach {
    /// The condition.
    pub condition: Condition,
    /// The function whose value broke it.
    pub function: String,
    /// The value: `the result of sqrt`.
    pub value: String,
    /// The function of the program around it.
    pub within: Option<String>,
    /// The type of the value.
    pub ty: TensorType,
    /// The statistics of the value, unless they are not known.
    pub statistics: Option<Statistics>,
    /// The iteration of the loop in a compiled function, counted from 0, if it is one of a loop.
    pub iteration: Option<u64>,
    /// The expression.
    pub span: Option<Span>,
    /// The last calls, one line for the begin and one for the end of each.
    pub trail: Vec<String>,
    /// Number of calls in them.
    pub calls: usize,
    /// A remark on how it was found.
    pub note: Option<String>,
    /// The call in which it broke, to be run again; `None` if it cannot be kept.
    pub capsule: Option<Vec<u8>>,
}

impl Breach {
    /// The value with its type and statistics, in the words of the condition.
    fn sentence(&self) -> String {
        let shown = shown_type(&self.ty, self.statistics.as_ref(), false);
        match self.condition {
            Condition::Finite => format!("Tensor contains NaN or Inf values: {shown}"),
            Condition::NotNan => format!("Tensor contains NaN values: {shown}"),
            Condition::Within(low, high) => format!("Tensor leaves the range {low} to {high}: {shown}"),
        }
    }

    /// The mark behind the line of the value.
    pub(crate) fn mark(condition: Condition, statistics: Option<&Statistics>) -> &'static str {
        match (condition, statistics) {
            (Condition::Within(..), _) => " [OUT OF RANGE]",
            (Condition::Finite, Some(found)) if !found.nan => " [Inf DETECTED]",
            _ => " [NaN DETECTED]",
        }
    }

    /// The block for people: what broke where, and the last calls.
    pub fn text(&self, sources: &Sources, color: bool) -> String {
        let mut text = format!(
            "/!\\ Guard Breached: {}\nFunction: {}\n{}\n",
            self.condition,
            self.function,
            self.sentence()
        );
        let within = self.within.as_ref().map_or_else(String::new, |name| format!(", in {name}"));
        let iteration = self.iteration.map_or_else(String::new, |i| format!(", in iteration {i}"));
        text += &format!("Value: {}{within}{iteration}\n", self.value);
        text += &self.note.as_ref().map_or_else(String::new, |note| format!("Note: {note}\n"));
        if let Some(span) = self.span {
            let place = render(sources, &Diagnostic::error("").at(span, ""), color);
            // The excerpt alone: the message is above.
            text += place.split_once('\n').map_or("", |(_, excerpt)| excerpt).trim_end();
            text.push('\n');
        }
        text += &format!("Backtrace (last {} operations):\n", self.calls);
        for line in &self.trail {
            text += line;
            text.push('\n');
        }
        text
    }

    /// The error that stops the run.
    pub(crate) fn error(&self) -> Diagnostic {
        let mut error = Diagnostic::error(format!("guard {}: {} breaks it", self.condition, self.value));
        error = error.note(self.sentence()).of_kind(Kind::Guard);
        if let Some(span) = self.span { error.at(span, "") } else { error }
    }
}
