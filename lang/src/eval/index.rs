//! Indexing of tensors and sequences.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::interp::Interp;
use super::signal::{Eval, fail};
use super::tensor::{bind, bind_all};
use crate::program::{Tensor, Value};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// `(x i j)` and `(x a:b)`: each index takes one axis, from the first. An integer removes its axis, a range keeps
    /// it, and a tensor of indices replaces it by its own axes.
    pub(super) fn index_tensor(&mut self, head: &Value, indices: &[Value]) -> Eval<Value> {
        let Value::Tensor(whole) = head else {
            return fail(format!("{} cannot be indexed", head.describe()));
        };
        let rank = whole.ty().rank();
        if indices.len() > rank {
            return Err(Diagnostic::error(format!("{} indices for a tensor {}", indices.len(), whole.ty()))
                .help(format!(
                    "each of its axes ({rank}) takes at most one index or range; those without one stay whole"
                ))
                .into());
        }
        let many =
            |i: &&Value| matches!(i, Value::List(_)) || matches!(i, Value::Tensor(t) if t.ty().rank() > 0);
        if indices.iter().filter(many).count() > 1 {
            return Err(Diagnostic::error("only one of the indices may be a tensor or a list of indices")
                .help("index one axis after the other: ((x rows) 0:2 columns)")
                .into());
        }
        let mut t = whole.clone();
        let mut axis = 0;
        for index in indices {
            let until = range_from_the_start(index);
            if let Value::Range(range) = until.as_ref().unwrap_or(index) {
                t = self.slice_axis(&t, axis, range.start, range.end)?;
                axis += 1;
            } else {
                let before = t.ty().rank();
                t = self.take(&t, axis, index)?;
                axis += t.ty().rank() + 1 - before;
            }
        }
        Ok(Value::from(t))
    }

    /// `(get x i ... j)`: each index takes one axis, and `...` all remaining ones. Several index tensors are applied in
    /// sequence.
    pub(crate) fn along_axes(&mut self, whole: &Tensor, indices: &[Value]) -> Eval<Value> {
        let rank = whole.ty().rank();
        let dots = |index: &&Value| matches!(index, Value::Symbol(name) if *name == "...");
        let skips = indices.iter().filter(dots).count();
        if skips > 1 {
            return fail("... stands for the axes that are left, once among the indices");
        }
        let taken = indices.len() - skips;
        if taken > rank {
            return Err(Diagnostic::error(format!("{taken} indices for a tensor {}", whole.ty()))
                .help(format!("each of its axes ({rank}) takes at most one; a tensor has no default"))
                .into());
        }
        let mut t = whole.clone();
        let mut axis = 0;
        for index in indices {
            if dots(&index) {
                axis += rank - taken;
            } else {
                let before = t.ty().rank();
                t = self.take(&t, axis, index)?;
                axis += t.ty().rank() + 1 - before;
            }
        }
        Ok(Value::from(t))
    }

    /// Entry `index` along axis 0: an integer, traced or not, or a tensor of indices.
    pub(crate) fn row(&mut self, t: &Tensor, index: &Value) -> Eval<Value> {
        if t.ty().rank() == 0 {
            return fail(format!("{} is a scalar, which has no axis to index", t.ty()));
        }
        self.take(t, 0, index).map(Value::from)
    }

    /// The entries at `index` along `axis`: an integer removes the axis, a tensor of indices replaces it by its own
    /// axes.
    pub(crate) fn take(&mut self, t: &Tensor, axis: usize, index: &Value) -> Eval<Tensor> {
        let many = match index {
            Value::Tensor(i) => i.concrete().is_none() || i.ty().rank() > 0,
            Value::List(_) | Value::Handle(_) => true,
            _ => false,
        };
        if !many {
            let i = crate::builtins::as_index(index, "an index")?;
            let i = position(i, axis, t.ty())? as i64;
            let row = self.slice_axis(t, axis, i, i + 1)?;
            let shape: Shape = (0..row.ty().rank()).filter(|a| *a != axis).map(|a| row.shape()[a]).collect();
            return bind(p::Reshape { shape }, &[&row], self.span);
        }
        let indices = crate::builtins::as_positions(self, index, axis, t.ty())?;
        if axis == 0 {
            return bind(p::GatherRows, &[t, &indices], self.span);
        }
        let rank = t.ty().rank();
        let front: Shape = std::iter::once(axis).chain((0..rank).filter(|a| *a != axis)).collect();
        let rows = bind(p::Transpose { permutation: front }, &[t], self.span)?;
        let rows = bind(p::GatherRows, &[&rows, &indices], self.span)?;
        let k = indices.ty().rank();
        let permutation: Shape = (k..k + axis).chain(0..k).chain(k + axis..k + rank - 1).collect();
        bind(p::Transpose { permutation }, &[&rows], self.span)
    }

    /// `start..end` along `axis`; negative positions count from the end, those beyond it are clipped.
    pub(crate) fn slice_axis(&mut self, t: &Tensor, axis: usize, start: i64, end: i64) -> Eval<Tensor> {
        let (start, end) = clip(start, end, t.shape()[axis]);
        let mut starts: Shape = SmallVec::from_elem(0, t.ty().rank());
        let mut limits: Shape = t.shape().into();
        starts[axis] = start;
        limits[axis] = end;
        bind(p::Slice { start: starts, limit: limits }, &[t], self.span)
    }

    /// The entries along axis 0, without that axis.
    pub(super) fn rows(&self, t: &Tensor) -> Eval<Vec<Value>> {
        let shape: Shape = t.shape()[1..].into();
        let op: Op = Arc::new(p::Split { axis: 0, sizes: SmallVec::from_elem(1, t.shape()[0]) });
        let rows = bind_all(&op, &[t], self.span)?;
        rows.iter()
            .map(|row| bind(p::Reshape { shape: shape.clone() }, &[row], self.span).map(Value::from))
            .collect()
    }

    /// The items of a list, the entries of a tensor along axis 0, or the characters of a string.
    pub(crate) fn sequence(&mut self, value: &Value) -> Eval<Vec<Value>> {
        match value {
            Value::List(list) => Ok(list.items.to_vec()),
            Value::Tensor(t) if t.ty().rank() > 0 => self.rows(t),
            Value::Handle(handle) => self.handle_items(handle),
            Value::Str(text) => Ok(text.chars().map(|c| Value::text(c.to_string())).collect()),
            Value::Nil => Err(crate::builtins::nil("a list, a tensor or a string")),
            other => {
                let found = other.describe();
                let error = Diagnostic::error(format!("expected a list, a tensor or a string, got {found}"));
                Err(match other {
                    Value::Dict(_) => error.help("(keys d) and (vals d) are lists, in insertion order"),
                    Value::Function(_) => error.help("the function comes before its data, as in (map f xs)"),
                    _ => error,
                }
                .into())
            }
        }
    }
}

/// The range of a keyword such as `:3` as an index, up to that position.
pub(super) fn range_from_the_start(index: &Value) -> Option<Value> {
    let Value::Keyword(name) = index else { return None };
    name.parse().ok().map(|end: i64| Value::Range(Rc::new(0..end)))
}

/// The positions of a slice from `start` to `end` within `extent`: negative ones count from the end, those beyond an
/// end are clipped.
pub(crate) fn clip(start: i64, end: i64, extent: usize) -> (usize, usize) {
    let n = extent as i64;
    let clip = |i: i64| if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) } as usize;
    (clip(start), clip(end).max(clip(start)))
}

/// The position of `index` along `axis` of a tensor: negative ones count from the end.
pub(crate) fn position(index: i64, axis: usize, of: &TensorType) -> Eval<usize> {
    let extent = of.shape[axis] as i64;
    if (-extent..extent).contains(&index) {
        return Ok(if index < 0 { index + extent } else { index } as usize);
    }
    Err(outside(index, axis, of).into())
}

/// Fails unless all indices are within `axis`; true if one is negative. Of several invalid ones the error names the
/// negative one nearest to zero, or else the largest: as a compiled program does.
pub(crate) fn positions_within(
    indices: impl Iterator<Item = i64>,
    axis: usize,
    of: &TensorType,
) -> Eval<bool> {
    let extent = of.shape[axis] as i64;
    let mut negative = false;
    let mut wrong: Option<i64> = None;
    for i in indices {
        negative |= i < 0;
        if !(-extent..extent).contains(&i) {
            let order = |i: i64| (i < 0, i);
            wrong = Some(wrong.map_or(i, |w| if order(i) > order(w) { i } else { w }));
        }
    }
    wrong.map_or(Ok(negative), |index| Err(outside(index, axis, of).into()))
}

/// The error for an index along `axis` out of range.
pub(super) fn outside(index: i64, axis: usize, of: &TensorType) -> Diagnostic {
    let extent = of.shape[axis];
    let d = Diagnostic::error(format!("index {index} is outside of axis {axis} of {of}"));
    match extent {
        0 => d.help("the axis has no entries"),
        1 => d.help("its only entry is 0, or -1 counted from the end"),
        n => d.help(format!("its {n} entries are 0 to {}, or -{n} to -1 counted from the end", n - 1)),
    }
}
