//! `map` and `mapv` over tensor rows as a `scan` without state, in a trace for compilation.

use super::interp::Interp;
use super::signal::Eval;
use super::staged_loop::Rows;
use super::tree::{Tree, flatten, unflatten};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::TensorType;

/// A leaf of the function's result.
enum Leaf {
    /// Computed from the rows, of this type.
    Computed(TensorType),
    /// The same for all rows.
    Same(Value),
}

impl Interp {
    /// `(map f xs ...)` as one loop; `None` if some of `xs` is no tensor, there are few rows, `f` asks for an element,
    /// or it returns a function, which could capture a row.
    pub(crate) fn staged_map(&mut self, f: &Value, xs: &[Value]) -> Eval<Option<Vec<Value>>> {
        let mut made = None;
        let stacked = self.map_rows(xs, |interp, row| {
            let value = interp.call(f, row)?;
            let (mut leaves, mut computed) = (Vec::new(), Vec::new());
            for leaf in flatten(&value) {
                match leaf {
                    Value::Function(_) => return Ok(None),
                    Value::Tensor(t) if t.is_traced_at(interp.tracing.level) => {
                        // Among other numbers a weak integer keeps its width; a tensor of its default dtype does not.
                        computed.push(interp.convert(&t, t.ty().dtype)?);
                        leaves.push(Leaf::Computed(t.ty().clone()));
                    }
                    same => leaves.push(Leaf::Same(same)),
                }
            }
            made = Some((Tree::of(&value), leaves));
            Ok(Some(computed))
        })?;
        let Some(((tree, leaves), (count, stacked))) = made.zip(stacked) else { return Ok(None) };
        let mut columns = Vec::with_capacity(stacked.len());
        for t in &stacked {
            columns.push(self.rows(t)?.into_iter());
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let mut row = columns.iter_mut().filter_map(Iterator::next);
            let mut item = Vec::with_capacity(leaves.len());
            for leaf in &leaves {
                item.push(match leaf {
                    Leaf::Same(value) => value.clone(),
                    Leaf::Computed(ty) => {
                        let row = self.tensor(&row.next().expect("one for each"))?;
                        let op = p::Convert { dtype: ty.dtype, weak: ty.weak };
                        Value::from(if row.ty() == ty { row } else { self.op(op, &[&row])? })
                    }
                });
            }
            items.push(unflatten(&tree, &mut item.into_iter())?);
        }
        Ok(Some(items))
    }

    /// `(mapv f xs ...)` as one loop; `None` if that is impossible, or `f` does not return a tensor.
    pub(crate) fn staged_mapv(&mut self, f: &Value, xs: &[Value]) -> Eval<Option<Value>> {
        let stacked = self.map_rows(xs, |interp, row| {
            let value = interp.call(f, row)?;
            Ok(interp.dynamic_leaf(&value)?.map(|tensor| vec![tensor]))
        })?;
        Ok(stacked.map(|(_, mut stacked)| Value::Tensor(stacked.swap_remove(0))))
    }

    /// The results of `f` on the zipped rows of `xs`, up to the shortest: the number of rows and the stacked tensors.
    /// `None` if it cannot be a loop, or `f` refuses.
    fn map_rows(
        &mut self,
        xs: &[Value],
        mut f: impl FnMut(&mut Interp, Vec<Value>) -> Eval<Option<Vec<Tensor>>>,
    ) -> Eval<Option<(usize, Vec<Tensor>)>> {
        let mut count = usize::MAX;
        for x in xs {
            match x {
                Value::Tensor(t) if t.ty().rank() > 0 => count = count.min(t.shape()[0]),
                _ => return Ok(None),
            }
        }
        if !self.is_long(count as u64) {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(xs.len());
        for x in xs {
            let x = self.tensor(x)?;
            let longer = x.shape()[0] > count;
            columns.push(Value::Tensor(if longer { self.slice_axis(&x, 0, 0, count as i64)? } else { x }));
        }
        let Some(rows) = Rows::beside(&Value::list(columns), count) else { return Ok(None) };
        let mut refused = false;
        let staged = self.staged_scan(&Value::Nil, &rows, |interp, _, row| {
            let row = interp.sequence(&row)?;
            let given = f(interp, row)?;
            refused |= given.is_none();
            let given = given.unwrap_or_default().into_iter().map(Value::Tensor).collect();
            Ok((Value::Nil, Value::list(given)))
        })?;
        let Some((_, outputs)) = staged.ok().filter(|_| !refused) else { return Ok(None) };
        let stacked = flatten(&outputs).iter().map(|t| self.tensor(t)).collect::<Eval<_>>()?;
        Ok(Some((count, stacked)))
    }
}
