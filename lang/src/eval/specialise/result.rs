//! Results of a specialisation, assembled from the results of its program.

use std::rc::Rc;

use crate::host::{Buffer, Leaf};
use crate::program::{Concrete, Dict, Flags, List, Tensor, Value};
use sheaf_graph::tensor::TensorType;
use sheaf_syntax::{Bracket, Span};

/// Maximum elements of a known tensor that results share; larger ones are copied per result.
const MAX_SHARED_ELEMENTS: usize = 1 << 10;

/// Structure of the result, in terms of the program's results.
pub(super) enum OutTree {
    Leaf(usize, TensorType),
    Const(Value),
    List(Bracket, Vec<OutTree>),
    /// The keys, and the values in their order.
    Dict(Dict, Vec<OutTree>),
}

/// The structure of a traced result; appends its traced leaves. The error says why it cannot be compiled.
pub(super) fn out_tree(
    value: &Value,
    level: u32,
    outputs: &mut Vec<(Leaf, Tensor)>,
    path: &str,
) -> Result<OutTree, String> {
    let join = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    Ok(match value {
        Value::Tensor(t) if t.is_traced_at(level) => {
            outputs.push((Leaf { path: path.to_string(), ty: t.ty().clone() }, t.clone()));
            OutTree::Leaf(outputs.len() - 1, t.ty().clone())
        }
        Value::List(list) => {
            let items = list
                .items
                .iter()
                .enumerate()
                .map(|(i, v)| out_tree(v, level, outputs, &join(&i.to_string())));
            OutTree::List(list.bracket, items.collect::<Result<_, _>>()?)
        }
        Value::Dict(dict) => {
            let mut trees: Vec<OutTree> = dict.keys().map(|_| OutTree::Const(Value::Nil)).collect();
            for (i, key, value) in dict.sorted() {
                trees[i] = out_tree(value, level, outputs, &join(&key))?;
            }
            OutTree::Dict(dict.keys().map(|key| (key, Value::Nil)).collect(), trees)
        }
        Value::Function(_) => return Err("it gives a function".into()),
        other => OutTree::Const(other.clone()),
    })
}

impl OutTree {
    /// Builds the result from the buffers of the traced leaves, valid if no flag is set; `made_at` is the call.
    pub(super) fn build(&self, buffers: &[Buffer], flags: Option<&Flags>, made_at: Option<Span>) -> Value {
        match self {
            OutTree::Leaf(i, ty) => {
                let result = Concrete::from_device(ty.clone(), Rc::clone(&buffers[*i]), flags.cloned());
                result.made_at(made_at);
                Value::Tensor(Tensor::Concrete(result))
            }
            // A device copy made for one call would live as long as the program.
            OutTree::Const(Value::Tensor(Tensor::Concrete(known)))
                if known.ty().count() > MAX_SHARED_ELEMENTS =>
            {
                Value::Tensor(Tensor::Concrete(known.anew()))
            }
            OutTree::Const(value) => value.clone(),
            OutTree::List(bracket, items) => {
                let items = items.iter().map(|t| t.build(buffers, flags, made_at)).collect();
                Value::List(Rc::new(List { bracket: *bracket, items, origin: None }))
            }
            OutTree::Dict(keys, trees) => {
                let values = trees.iter().map(|t| t.build(buffers, flags, made_at));
                Value::Dict(Rc::new(keys.with_values(values)))
            }
        }
    }
}
