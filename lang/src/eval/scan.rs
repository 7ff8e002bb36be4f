//! `scan`: a loop with a state and one output per step.

use std::rc::Rc;

use super::interp::Interp;
use super::signal::{Eval, fail};
use super::staged_loop::{Rows, STACKED, has_weak};
use super::tree::map_trees;
use crate::program::{Dict, Value};
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// `[state outputs]`: `f` maps the state and each item of `xs` to `[state output]`; the outputs are stacked.
    pub(crate) fn scan(&mut self, f: &Value, init: &Value, xs: &Value) -> Eval<Value> {
        let count = item_count(xs)?;
        if self.may_stage(count as u64) {
            let mut differing = None;
            if let Some(rows) = Rows::of(xs, count) {
                match self.staged_scan(init, &rows, |i, state, x| i.scan_step(f, state.clone(), x))? {
                    Ok((state, outputs)) => return Ok(Value::list(vec![state, outputs])),
                    Err(refusal) => differing = refusal.at(None),
                }
            }
            self.check_unrolled(count as u64).map_err(|signal| signal.differing(differing))?;
        }
        let items = self.items_of(xs)?;
        let mut state = init.clone();
        if (has_weak(init) || count == 0)
            && let Some((settled, none)) = self.empty_scan(f, init, xs, items.first())
        {
            state = settled;
            if count == 0 {
                return Ok(Value::list(vec![state, none]));
            }
        }
        let mut outputs = Vec::with_capacity(count);
        let mut ticks = self.ticks(std::slice::from_ref(xs), count);
        self.in_loop(count as u64, |interp| {
            for x in items {
                let (next, output) = interp.scan_step(f, std::mem::replace(&mut state, Value::Nil), x)?;
                state = next;
                outputs.push(output);
                ticks.advance();
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
        Ok(Value::list(vec![state, outputs.map_err(|signal| signal.note(STACKED))?]))
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

    /// The items of a sequence: of a tensor along axis 0, of a list, of the zipped entries of a dictionary.
    fn items_of(&mut self, xs: &Value) -> Eval<Vec<Value>> {
        let Value::Dict(dict) = xs else { return self.sequence(xs) };
        let mut items = vec![Dict::default(); item_count(xs)?];
        for (key, value) in dict.iter() {
            for (item, value) in items.iter_mut().zip(self.items_of(value)?) {
                item.insert(key, value);
            }
        }
        Ok(items.into_iter().map(|item| Value::Dict(Rc::new(item))).collect())
    }

    /// The initial state with weak numbers in the dtypes that the body gives them, and the outputs of zero steps;
    /// `None` if the types reach no fixpoint, or are not known without values.
    fn empty_scan(
        &mut self,
        f: &Value,
        init: &Value,
        xs: &Value,
        first: Option<&Value>,
    ) -> Option<(Value, Value)> {
        let staged = if let Some(first) = first {
            let item = self.state(first).ok()?;
            self.stage_loop(init, &item.types(), |i, state, x| i.scan_step(f, state.clone(), item.with(x)?))
        } else {
            let rows = Rows::of(xs, 0)?;
            self.stage_loop(init, rows.types(), |i, state, x| i.scan_step(f, state.clone(), rows.item(x)?))
        };
        let staged = staged.ok()?.ok()?;
        Some((staged.first().ok()?, staged.no_outputs().ok()?))
    }
}

/// Number of items: the extent of axis 0, the length of a list, the common length of a dictionary's entries.
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
