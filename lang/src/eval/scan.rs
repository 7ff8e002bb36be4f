//! `scan`: a loop with a state and an output a step.

use std::rc::Rc;

use super::dict::Dict;
use super::interp::Interp;
use super::rolled::{Rows, has_weak};
use super::signal::{Eval, fail};
use super::tensor::{Tensor, Trace};
use super::transforms::MAX_EQUATIONS;
use super::tree::map_trees;
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::primitives as p;
use crate::tensor::{HostTensor, Shape, TensorType};

/// So often are types traced before they are taken for never settling.
const MAX_ROUNDS: usize = 4;

impl Interp {
    /// `[state outputs]`: `f` of the state and each item of `xs` gives `[state output]`; the outputs are stacked.
    pub(crate) fn scan(&mut self, f: &Value, init: &Value, xs: &Value) -> Eval<Value> {
        let count = item_count(xs)?;
        if self.is_long(count as u64) {
            if let Some(rows) = Rows::of(xs, count)
                && let Some((state, outputs)) =
                    self.rolled_scan(init, &rows, |i, state, x| i.scan_step(f, state.clone(), x))?
            {
                return Ok(Value::list(vec![state, outputs]));
            }
            self.check_unrolled(count as u64)?;
        }
        let mut state = init.clone();
        if (has_weak(init) || count == 0)
            && let Some((settled, output)) = self.settle(f, init, xs, count)
        {
            state = settled;
            if count == 0 {
                let none = map_trees(&[output], &mut |_, leaf| Ok(no_rows(&leaf[0])))?;
                return Ok(Value::list(vec![state, none]));
            }
        }
        let mut outputs = Vec::with_capacity(count);
        self.in_loop(count as u64, |interp| {
            for k in 0..count {
                let x = interp.item_of(xs, k)?;
                let (next, output) = interp.scan_step(f, std::mem::replace(&mut state, Value::Nil), x)?;
                state = next;
                outputs.push(output);
            }
            Ok(())
        })?;
        if outputs.is_empty() {
            return Ok(Value::list(vec![state, Value::list(Vec::new())]));
        }
        let outputs = map_trees(&outputs, &mut |_, rows| match &rows[0] {
            Value::Nil => Ok(Value::Nil),
            _ => crate::builtins::stack(self, rows, 0),
        });
        let outputs = outputs.map_err(|signal| {
            signal.note("the outputs of the steps are stacked: all are of one structure and shape")
        })?;
        Ok(Value::list(vec![state, outputs]))
    }

    /// One call of `f`.
    fn scan_step(&mut self, f: &Value, state: Value, x: Value) -> Eval<(Value, Value)> {
        let result = self.call(f, [state, x])?;
        match self.sequence(&result).as_deref() {
            Ok([state, output]) => Ok((state.clone(), output.clone())),
            _ => Err(Diagnostic::error(format!(
                "scan wants [state output] of its function, got {}",
                result.describe()
            ))
            .help("a step without an output gives [state nil]")
            .into()),
        }
    }

    /// Item `k` of a sequence: of a tensor along axis 0, of a list, of every entry of a dictionary.
    fn item_of(&mut self, xs: &Value, k: usize) -> Eval<Value> {
        match xs {
            Value::Tensor(t) => self.row(t, &Value::Int(k as i64)),
            Value::List(list) => Ok(list.items[k].clone()),
            Value::Dict(dict) => {
                let entries = dict.iter().map(|(key, v)| Ok((*key, self.item_of(v, k)?)));
                Ok(Value::Dict(Rc::new(entries.collect::<Eval<Dict>>()?)))
            }
            other => Ok(other.clone()),
        }
    }

    /// The initial state with weak numbers in the dtypes that the body gives them, and an output of the body with
    /// unknown values; `None` where the types do not settle, or are not known without values.
    fn settle(&mut self, f: &Value, init: &Value, xs: &Value, count: usize) -> Option<(Value, Value)> {
        let mut state = init.clone();
        for _ in 0..MAX_ROUNDS {
            let (next, output) = self.trace_step(f, &state, xs, count)?;
            let mut changed = false;
            let settled = map_trees(&[state.clone(), next], &mut |_, leaves| {
                let (Some(from), Some(to)) = (type_of(&leaves[0]), type_of(&leaves[1])) else {
                    return Ok(leaves[0].clone());
                };
                let adapts = from.weak && to.shape.is_empty() && to.dtype.kind() >= from.dtype.kind();
                if from == to || !adapts {
                    return Ok(leaves[0].clone());
                }
                changed = true;
                let tensor = self.tensor(&leaves[0])?;
                Ok(Value::from(self.op(p::Convert { dtype: to.dtype, weak: to.weak }, &[&tensor])?))
            });
            // A state that changes its structure cannot settle; the steps say whether that is wrong.
            let settled = settled.ok()?;
            if !changed {
                return Some((settled, output));
            }
            state = settled;
        }
        None
    }

    /// One step with values unknown.
    fn trace_step(&mut self, f: &Value, state: &Value, xs: &Value, count: usize) -> Option<(Value, Value)> {
        self.level += 1;
        self.recording += 1;
        let trace = Trace::new(self.level, MAX_EQUATIONS);
        let unknown = |value: &Value| {
            map_trees(std::slice::from_ref(value), &mut |_, leaf| {
                Ok(type_of(&leaf[0]).map_or(leaf[0].clone(), |ty| Value::Tensor(trace.input(ty, None, None))))
            })
        };
        let x =
            if count > 0 { self.item_of(xs, 0).and_then(|x| unknown(&x)) } else { unknown_item(&trace, xs) };
        let result = x.and_then(|x| {
            let state = unknown(state)?;
            self.scan_step(f, state, x)
        });
        self.recording -= 1;
        self.level -= 1;
        result.ok()
    }
}

/// The type of a number or tensor.
fn type_of(leaf: &Value) -> Option<TensorType> {
    match leaf {
        Value::Int(_) => Some(TensorType::weak(crate::tensor::DType::I64)),
        Value::Float(_) => Some(TensorType::weak(crate::tensor::DType::F32)),
        Value::Tensor(t) => Some(t.ty().clone()),
        _ => None,
    }
}

/// An item of a sequence without items.
fn unknown_item(trace: &Rc<Trace>, xs: &Value) -> Eval<Value> {
    match xs {
        Value::Tensor(t) => Ok(Value::Tensor(trace.input(
            t.ty().with_shape(Shape::from_slice(&t.shape()[1..])),
            None,
            t.origin(),
        ))),
        Value::Dict(dict) => {
            let entries = dict.iter().map(|(key, v)| Ok((*key, unknown_item(trace, v)?)));
            Ok(Value::Dict(Rc::new(entries.collect::<Eval<Dict>>()?)))
        }
        _ => fail("an empty list has no items to tell their type"),
    }
}

/// The stacked outputs of no steps, given one output.
fn no_rows(leaf: &Value) -> Value {
    type_of(leaf).map_or(Value::Nil, |ty| {
        let shape: Shape = std::iter::once(0).chain(ty.shape.iter().copied()).collect();
        Value::Tensor(Tensor::host(HostTensor::filled(ty.strong_dtype(), shape, 0.0)))
    })
}

/// How many items there are: the extent of axis 0, the length of a list, what the entries of a dictionary share.
fn item_count(xs: &Value) -> Eval<usize> {
    match xs {
        Value::Tensor(t) if t.ty().rank() > 0 => Ok(t.shape()[0]),
        Value::List(list) => Ok(list.items.len()),
        Value::Dict(dict) => {
            let mut known = None;
            for (key, value) in dict.iter() {
                let count = item_count(value)?;
                match known {
                    Some((_, n)) if n == count => {}
                    Some((first, n)) => {
                        return fail(format!(
                            "scan takes items side by side: :{first} has {n}, :{key} has {count}"
                        ));
                    }
                    None => known = Some((key, count)),
                }
            }
            known.map_or_else(|| fail("scan over an empty dictionary has no items"), |(_, n)| Ok(n))
        }
        other => Err(Diagnostic::error(format!(
            "scan goes over a tensor along axis 0, a list, or a dictionary of those, not {}",
            other.describe()
        ))
        .help("(scan f init xs)")
        .into()),
    }
}
