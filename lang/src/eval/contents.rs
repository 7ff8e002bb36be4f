//! Tensors in values: every call of a function asks whether its arguments hold any.

use std::cell::Cell;

use super::tensor::Tensor;
use super::value::Value;

/// Data nested deeper than this is not taken for the parameters of a compiled function.
const MAX_NESTING: usize = 200;

/// True if there is a tensor among the values, and none that is traced; none where there is, or where they are nested
/// too deep.
pub(super) fn has_tensors(values: &[Value]) -> Option<bool> {
    Contents::of(values.iter(), MAX_NESTING).map(|contents| contents.tensor)
}

/// Contents of a value, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contents {
    tensor: bool,
    /// Levels of lists, dictionaries and functions within each other.
    depth: usize,
}

impl Contents {
    /// Of all the values; none where one is a traced tensor, or they go on for more levels.
    fn of<'v>(values: impl Iterator<Item = &'v Value>, levels: usize) -> Option<Contents> {
        let levels = levels.checked_sub(1)?;
        let mut all = Contents::default();
        for value in values {
            let one = Contents::of_one(value, levels)?;
            all.tensor |= one.tensor;
            all.depth = all.depth.max(one.depth);
        }
        Some(all)
    }

    fn of_one(value: &Value, levels: usize) -> Option<Contents> {
        let inner = match value {
            Value::Tensor(Tensor::Traced(_)) => return None,
            Value::Tensor(Tensor::Concrete(_)) => return Some(Contents { tensor: true, depth: 0 }),
            Value::List(list) => match list.items.tally() {
                Some(tally) => tally.contents(list.items.iter(), levels)?,
                None => Contents::of(list.items.iter(), levels)?,
            },
            Value::Dict(dict) => match dict.tally() {
                Some(tally) => tally.contents(dict.values(), levels)?,
                None => Contents::of(dict.values(), levels)?,
            },
            Value::Function(f) => Contents::of(f.captured().iter(), levels)?,
            _ => return Some(Contents::default()),
        };
        Some(Contents { depth: inner.depth + 1, ..inner })
    }
}

/// Contents of the many values of one list or dictionary: counted when it is first asked for, and from then on
/// kept up, so that a list that grows is not walked through in every call.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Cell<Option<Counts>>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Values in which there is a tensor.
    tensors: usize,
    /// Values with a traced tensor, or nested too deep.
    refused: usize,
    /// The deepest that was ever among them.
    depth: usize,
}

impl Counts {
    fn count(&mut self, value: &Value, change: impl Fn(usize) -> usize) {
        match Contents::of_one(value, MAX_NESTING) {
            None => self.refused = change(self.refused),
            Some(contents) => {
                self.depth = self.depth.max(contents.depth);
                if contents.tensor {
                    self.tensors = change(self.tensors);
                }
            }
        }
    }
}

impl Tally {
    /// A value comes in.
    pub(super) fn add(&mut self, value: &Value) {
        if let Some(counts) = self.0.get_mut() {
            counts.count(value, |n| n + 1);
        }
    }

    /// A value goes.
    pub(super) fn remove(&mut self, value: &Value) {
        if let Some(counts) = self.0.get_mut() {
            counts.count(value, |n| n - 1);
        }
    }

    /// Contents of the values, which are those that came in and did not go.
    fn contents<'v>(&self, values: impl Iterator<Item = &'v Value>, levels: usize) -> Option<Contents> {
        let counts = self.0.get().unwrap_or_else(|| {
            let mut counts = Counts::default();
            values.for_each(|value| counts.count(value, |n| n + 1));
            counts
        });
        self.0.set(Some(counts));
        let fits = counts.refused == 0 && counts.depth < levels;
        fits.then_some(Contents { tensor: counts.tensors > 0, depth: counts.depth })
    }
}
