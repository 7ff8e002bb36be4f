//! `reduce` over equal layers as one loop over their stacked tensors: the compiler sees one layer, however many there are.

use super::interp::Interp;
use super::signal::{Differing, Eval};
use super::staged_loop::Rows;
use super::tree::map_trees;
use crate::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// The state after `f` of it and each item in turn, in one operation; `None` outside of a trace for compilation, or if the state changes its
    /// type or asks for a value: then each item is a step of its own, after a warning. The items are of one structure, and each leaf of one shape and
    /// dtype: an error otherwise, in a trace or not.
    pub(crate) fn rolled_reduce(&mut self, f: &Value, init: &Value, items: &[Value]) -> Eval<Option<Value>> {
        map_trees(items, &mut |path, leaves| {
            let mut types = Vec::with_capacity(leaves.len());
            for leaf in leaves {
                types.push(self.tensor(leaf)?.ty().clone());
            }
            match types.iter().position(|ty| *ty != types[0]) {
                None => Ok(Value::Nil),
                Some(i) => {
                    let place = if path.is_root() { String::new() } else { format!(" at {path}") };
                    Err(Diagnostic::error(format!(
                        "reduce :rolled wants items of one type{place}: the first has {}, item {} has {}",
                        types[0],
                        i + 1,
                        types[i]
                    ))
                    .help("without :rolled each item may have a shape of its own")
                    .into())
                }
            }
        })?;
        if !self.may_stage(items.len() as u64) {
            return Ok(None);
        }
        let stacked = map_trees(items, &mut |_, leaves| crate::builtins::stack(self, leaves, 0))?;
        let Some(rows) = Rows::beside(&stacked, items.len()) else { return Ok(None) };
        let staged = self.stage_rows(init, &rows, |interp, state, item| {
            Ok((interp.call(f, [state.clone(), item])?, Value::Nil))
        })?;
        match staged {
            Ok(staged) => self.run_rows(staged, &rows).map(|(state, _)| Some(state)),
            Err(refusal) => {
                self.warn_of_steps(refusal.at(None).as_deref());
                Ok(None)
            }
        }
    }

    /// Warns that items are not rolled, though that was asked for.
    fn warn_of_steps(&mut self, why: Option<&Differing>) {
        let clause = why.map_or("a step asks for a value that only a run gives", |why| &why.clause);
        let mut warning =
            Diagnostic::warning(format!("reduce :rolled compiles each item as a step of its own: {clause}"));
        warning.help = why.map(|why| why.remedy.to_owned());
        self.host.warn(&self.sources, &warning);
    }
}
