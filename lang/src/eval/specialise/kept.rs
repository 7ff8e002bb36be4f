//! Programs compiled by an earlier run or a build: always used, whatever their profit.

use std::cell::Cell;
use std::collections::HashMap;

use super::LAMBDA;
use super::arguments::parameter_path;
use crate::builtins::show;
use crate::host::{Kept, Unit};
use crate::program::{Function, Value};
use sheaf_graph::tensor::{DType, TensorType};

/// The unused programs of one function.
pub(super) struct KeptPrograms(Vec<(Kept, Cell<bool>)>);

/// The leaves of a call by path: types of tensors and numbers, text of other values.
type Leaves = HashMap<String, (Option<TensorType>, Option<String>)>;

impl KeptPrograms {
    pub fn new(kept: Vec<Kept>) -> KeptPrograms {
        KeptPrograms(kept.into_iter().map(|kept| (kept, Cell::new(false))).collect())
    }

    /// True if one of them may be the program of a unit.
    pub fn serve(&self, unit: &Unit) -> bool {
        self.0.iter().any(|(kept, _)| kept.serves(unit))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Kept> {
        self.0.iter().map(|(kept, _)| kept)
    }

    /// True if there are any, and their name is that of a function: all functions without one are called [`LAMBDA`].
    pub fn are_of_one_function(&self, unit: &Unit) -> bool {
        !self.0.is_empty() && unit.function != LAMBDA
    }

    /// True if a call that fits no specialisation may fit one of these programs. Each program is awaited once: if the
    /// source has changed, it does not exist.
    pub fn wait_for(&self, function: &Function, args: &[Value]) -> bool {
        if self.0.iter().all(|(_, met)| met.get()) {
            return false;
        }
        let found = leaves(function, args);
        let has_type =
            |path: &str, ty: &TensorType| found.get(path).is_some_and(|(t, _)| t.as_ref() == Some(ty));
        let has_text =
            |path: &str, text: &String| found.get(path).is_some_and(|(_, t)| t.as_ref() == Some(text));
        let fits = |kept: &Kept| {
            kept.inputs.iter().all(|leaf| has_type(&leaf.path, &leaf.ty))
                && kept.statics.iter().all(|(path, text)| has_text(path, text))
        };
        let Some((_, met)) = self.0.iter().find(|(kept, met)| !met.get() && fits(kept)) else { return false };
        met.set(true);
        true
    }
}

fn leaves(function: &Function, args: &[Value]) -> Leaves {
    let mut found = Leaves::new();
    let Some(code) = function.code() else { return found };
    for (i, arg) in args.iter().enumerate() {
        add(arg, parameter_path(code, i), &mut found);
    }
    for (value, (_, name)) in function.captured().iter().zip(code.captures.borrow().iter()) {
        add(value, name.to_string(), &mut found);
    }
    found
}

fn add(value: &Value, path: String, found: &mut Leaves) {
    let ty = match value {
        Value::List(list) => {
            return list.items.iter().enumerate().for_each(|(i, v)| add(v, format!("{path}.{i}"), found));
        }
        Value::Dict(dict) => return dict.iter().for_each(|(key, v)| add(v, format!("{path}.{key}"), found)),
        Value::Tensor(t) => Some(t.ty().clone()),
        Value::Int(_) => Some(TensorType::weak(DType::I64)),
        Value::Float(_) => Some(TensorType::weak(DType::F32)),
        _ => None,
    };
    let text = (!matches!(value, Value::Tensor(_))).then(|| show(value));
    found.insert(path, (ty, text));
}
