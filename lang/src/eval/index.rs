//! Indexing tensors and taking sequences apart.

use smallvec::SmallVec;

use super::interp::Interp;
use super::signal::{Eval, fail};
use super::tensor::{Tensor, bind};
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::primitives as p;
use crate::tensor::Shape;

impl Interp {
    /// `(x i j)` and `(x a:b)`: each index takes one axis, from the first.
    pub(super) fn index_tensor(&mut self, head: &Value, indices: &[Value]) -> Eval<Value> {
        let mut value = head.clone();
        let mut axis = 0;
        for index in indices {
            let (Value::Tensor(t), Value::Tensor(whole)) = (&value, head) else {
                return fail(format!("{} cannot be indexed", value.describe()));
            };
            if axis >= t.ty().rank() {
                let (given, ty) = (indices.len(), whole.ty());
                return Err(Diagnostic::error(format!("{given} indices for a tensor {ty}"))
                    .help("each index takes one axis")
                    .into());
            }
            match index {
                Value::Range(start, end) => {
                    value = Value::from(self.slice_axis(t, axis, *start, *end)?);
                    axis += 1;
                }
                index if axis == 0 => {
                    value = self.row(t, index)?;
                    // Indices of some rank leave that many axes in place of the one they take.
                    axis += if let Value::Tensor(i) = index { i.ty().rank() } else { 0 };
                }
                index => {
                    let i = crate::builtins::as_index(index, "an index")?;
                    let i = checked(i, t, axis)?;
                    let row = self.slice_axis(t, axis, i as i64, i as i64 + 1)?;
                    let shape: Shape =
                        (0..row.ty().rank()).filter(|a| *a != axis).map(|a| row.shape()[a]).collect();
                    value = Value::from(bind(p::Reshape { shape }, &[&row], self.span)?);
                }
            }
        }
        Ok(value)
    }

    /// Entry `index` along axis 0: a number, traced or not, or a tensor of indices.
    pub(crate) fn row(&mut self, t: &Tensor, index: &Value) -> Eval<Value> {
        if t.ty().rank() == 0 {
            return fail(format!("{} has no axis to index", t.ty()));
        }
        let shape: Shape = t.shape()[1..].into();
        if let Value::Tensor(i) = index
            && (i.concrete().is_none() || i.ty().rank() > 0)
        {
            return self.rows(t, index);
        }
        let i = crate::builtins::as_index(index, "an index")?;
        let i = checked(i, t, 0)? as i64;
        let row = self.slice_axis(t, 0, i, i + 1)?;
        Ok(Value::from(bind(p::Reshape { shape }, &[&row], self.span)?))
    }

    /// The entries along axis 0 at a tensor of indices, negative ones from the end.
    pub(crate) fn rows(&mut self, t: &Tensor, indices: &Value) -> Eval<Value> {
        if t.ty().rank() == 0 {
            return fail(format!("{} has no axis to index", t.ty()));
        }
        let indices = crate::builtins::as_positions(self, indices, t.shape()[0])?;
        Ok(Value::from(bind(p::GatherRows, &[t, &indices], self.span)?))
    }

    /// `start..end` along `axis`, negative positions from the end, beyond the end cut off.
    pub(crate) fn slice_axis(&mut self, t: &Tensor, axis: usize, start: i64, end: i64) -> Eval<Tensor> {
        let extent = t.shape()[axis] as i64;
        let clip = |i: i64| if i < 0 { (i + extent).max(0) } else { i.min(extent) };
        let (start, end) = (clip(start), clip(end).max(clip(start)));
        let mut starts: Shape = SmallVec::from_elem(0, t.ty().rank());
        let mut limits: Shape = t.shape().into();
        starts[axis] = start as usize;
        limits[axis] = end as usize;
        bind(p::Slice { start: starts, limit: limits }, &[t], self.span)
    }

    /// The items of a list, or the entries of a tensor along axis 0.
    pub(crate) fn sequence(&mut self, value: &Value) -> Eval<Vec<Value>> {
        match value {
            Value::List(list) => Ok(list.items.clone()),
            Value::Tensor(t) if t.ty().rank() > 0 => {
                (0..t.shape()[0] as i64).map(|i| self.row(t, &Value::Int(i))).collect()
            }
            other => fail(format!("expected a list or a tensor, got {}", other.describe())),
        }
    }
}

/// A position of an axis of `t`, negative from the end.
fn checked(i: i64, t: &Tensor, axis: usize) -> Eval<usize> {
    let extent = t.shape()[axis];
    let position = if i < 0 { i + extent as i64 } else { i };
    match usize::try_from(position) {
        Ok(p) if p < extent => Ok(p),
        _ if extent == 0 => {
            fail(format!("index {i} is outside of axis {axis} of {}, which is empty", t.ty()))
        }
        _ => Err(Diagnostic::error(format!("index {i} is outside of axis {axis} of {}", t.ty()))
            .help(format!("its indices are 0 to {}; negative ones count from the end", extent - 1))
            .into()),
    }
}
