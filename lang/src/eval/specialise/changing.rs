//! Functions whose arguments change in every call.

use std::collections::HashSet;
use std::rc::Rc;

use super::fallback::{Cause, Why};
use super::report::differences;
use super::{Entry, Family, Outcome};
use crate::eval::interp::Interp;
use crate::eval::signal::Eval;

/// Maximum specialisations of one function that differ only in a static number: beyond that the function is
/// interpreted.
const MAX_STATIC_VARIANTS: usize = 16;

/// The static numbers of a function's specialisations, with their paths.
#[derive(Default)]
pub(super) struct Variants(HashSet<Vec<(String, String)>>);

impl Family {
    /// The reason to interpret the function from now on, if `entry` is one specialisation too many for a changing
    /// number.
    pub(super) fn too_many(&mut self, entry: &Entry) -> Option<Why> {
        let owned = |(path, value): (&str, &str)| (path.to_owned(), value.to_owned());
        let now: Vec<(String, String)> = entry.numbers().into_iter().map(owned).collect();
        if now.is_empty() || self.variants.0.contains(&now) {
            return None;
        }
        if self.variants.0.len() < MAX_STATIC_VARIANTS {
            self.variants.0.insert(now);
            return None;
        }
        // It is not compiled, only retraced for each value.
        if let Outcome::Interpreted(why) = &*entry.outcome.borrow()
            && why.cause.is_by_design()
        {
            return Some(why.clone());
        }
        let changed = now.iter().filter(|(path, value)| {
            self.variants.0.iter().any(|numbers| numbers.iter().any(|(p, v)| p == path && v != value))
        });
        Some(self.asked_for(changed.map(|(path, _)| path.as_str()).collect()))
    }

    /// The reason that the static numbers at `paths` keep changing.
    fn asked_for(&self, mut paths: Vec<&str>) -> Why {
        paths.sort_unstable();
        let asked = paths.first().and_then(|path| self.statics.get(*path));
        let wanted = asked.map_or(String::new(), |asked| format!(" as {}", asked.wanted));
        let paths = paths.join(", ");
        Why {
            cause: self.cause(),
            reason: format!("it needs the value of {paths}{wanted}, which keeps changing"),
            subject: None,
            place: asked.and_then(|asked| asked.place),
            labels: Vec::new(),
            remedy: Some(format!(
                "each value of {paths} makes a program of its own; pass it so that its value is not asked for, or the \
                 same one each time"
            )),
        }
    }

    /// By design if nothing was worth compiling so far.
    fn cause(&self) -> Cause {
        let is_compiled = |e: &Rc<Entry>| matches!(*e.outcome.borrow(), Outcome::Compiled(_));
        if self.entries.iter().any(is_compiled) { Cause::Changing } else { Cause::Design }
    }

    /// The reason that new arguments are not specialised for now.
    fn keeps_changing(&self) -> Why {
        let [.., before, latest] = self.entries.as_slice() else {
            return Why::design("its arguments keep changing", None);
        };
        let numbers = before.numbers();
        let changed: Vec<&str> = latest
            .numbers()
            .into_iter()
            .filter(|(path, value)| numbers.iter().any(|(p, v)| p == path && v != value))
            .map(|(path, _)| path)
            .collect();
        if !changed.is_empty() {
            return self.asked_for(changed);
        }
        let differs = differences(&latest.leaves, &before.leaves).into_iter().next();
        let differs = differs.map_or(String::new(), |difference| format!(" ({difference})"));
        Why {
            cause: self.cause(),
            reason: format!("its arguments keep changing{differs}, and those seen before do not come again"),
            subject: None,
            place: None,
            labels: Vec::new(),
            remedy: Some(
                "arguments of one structure and of the same shapes make one program: instead of appending, fill a \
                 tensor made before with (index-update xs i x), or pad to one length"
                    .into(),
            ),
        }
    }
}

impl Interp {
    /// Reports that calls with new arguments are interpreted, since tracing and compiling for new ones has not paid so
    /// far.
    pub(super) fn note_changing(&mut self, position: usize) -> Eval<()> {
        let family = &mut self.specialiser.families[position];
        family.other_calls += 1;
        if family.changing.is_some() && !self.options.strict {
            return Ok(());
        }
        let why = family.keeps_changing();
        family.changing = Some(why.clone());
        let code = Rc::clone(&family.code);
        self.fall_back(&code, &why)
    }
}
