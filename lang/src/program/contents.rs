//! Tensors in values, cached: every call of a function asks if its arguments hold any.

use std::cell::Cell;

use super::tensor::Tensor;
use super::value::Value;

/// Maximum nesting of data as parameters of a compiled function.
const MAX_NESTING: usize = 200;

/// True if there is a tensor among the values; `None` if one is traced, or nested too deep.
pub(crate) fn has_tensors(values: &[Value]) -> Option<bool> {
    Contents::of(values.iter(), MAX_NESTING).map(|contents| contents.tensor)
}

/// Contents of a value, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Contents {
    tensor: bool,
    /// Nesting depth of lists, dictionaries and functions.
    depth: usize,
}

impl Contents {
    /// Contents of all values; `None` if one is a traced tensor, or nested deeper than `levels`.
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

/// Cached contents of the values of one large list or dictionary: counted at the first request, then updated, so that a
/// growing list is not walked in every call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Cell<Option<Counts>>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Values that hold a tensor.
    tensors: usize,
    /// Values that hold a traced tensor, or are nested too deep.
    refused: usize,
    /// Maximum depth of any value, including removed ones.
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
    /// Adds a value.
    pub(crate) fn add(&mut self, value: &Value) {
        if let Some(counts) = self.0.get_mut() {
            counts.count(value, |n| n + 1);
        }
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, value: &Value) {
        if let Some(counts) = self.0.get_mut() {
            counts.count(value, |n| n - 1);
        }
    }

    /// Contents of the values, which must be those added and not removed.
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
