//! Guards: conditions on the values of calls and bindings.

use std::fmt;
use std::str::FromStr;

use ustr::Ustr;

use crate::program::Value;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_graph::watch::{Condition, Role, Site, Stage, Statistics};

/// A condition on the values of all calls, or of those of one function or binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The function or the binding; `None` for all functions.
    pub target: Option<Ustr>,
    /// The condition.
    pub condition: Condition,
}

/// The forms of a guard.
const FORMS: &str = "a guard is no-nan, no-nan:allow-inf or range=LOW:HIGH, for one function or binding with its name \
                     before it: attention:no-nan, loss:range:0:20";

/// `no-nan`, `no-nan:allow-inf`, `range=0:20`, `attention:no-nan`, `loss:range:0:20`.
impl FromStr for Guard {
    type Err = String;

    fn from_str(text: &str) -> Result<Guard, String> {
        if let Ok(condition) = condition(text) {
            return Ok(Guard { target: None, condition });
        }
        let is_condition = |word: &str| ["no-nan", "range"].contains(&word);
        let (target, rest) = match text.split_once(':') {
            Some((target, rest))
                if !target.is_empty() && !is_condition(target) && !target.starts_with("range=") =>
            {
                (Some(Ustr::from(target)), rest)
            }
            _ => (None, text),
        };
        Ok(Guard { target, condition: condition(rest)? })
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    match text {
        "no-nan" => return Ok(Condition::Finite),
        "no-nan:allow-inf" => return Ok(Condition::NotNan),
        _ => {}
    }
    let Some(range) = text.strip_prefix("range=").or_else(|| text.strip_prefix("range:")) else {
        return Err(FORMS.into());
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|x| !x.is_nan());
    match range.split_once(':').map(|(low, high)| (number(low), number(high))) {
        Some((Some(low), Some(high))) if low <= high => Ok(Condition::Within(low, high)),
        Some((Some(low), Some(high))) => Err(format!("the range from {low} to {high} is empty")),
        _ => Err(format!("{range} is no range: write two numbers, as in range=0:20")),
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(target) = self.target {
            write!(f, "{target}:")?;
        }
        match self.condition {
            Condition::Finite => f.write_str("no-nan"),
            Condition::NotNan => f.write_str("no-nan:allow-inf"),
            Condition::Within(low, high) => write!(f, "range:{low}:{high}"),
        }
    }
}

impl Guard {
    /// True if it is about NaN, which every value may become, rather than about the results of something.
    pub(crate) fn is_about_nan(&self) -> bool {
        !matches!(self.condition, Condition::Within(..))
    }
}

/// The conditions on a watched value. Without a target, arguments are the results of other calls.
pub(crate) fn conditions(guards: &[Guard], site: &Site, stage: Stage) -> Vec<Condition> {
    let name = site.call.name.as_str();
    let concerns = |guard: &&Guard| match (&site.role, guard.target) {
        (_, None) if stage == Stage::Backward => guard.is_about_nan(),
        (Role::Argument(_), None) => false,
        (Role::Result(_) | Role::Binding(_), None) => true,
        (Role::Binding(bound), Some(target)) => {
            *bound == target && (stage == Stage::Forward || guard.is_about_nan())
        }
        (Role::Result(_), Some(target)) => {
            name == target && (stage == Stage::Forward || guard.is_about_nan())
        }
        (Role::Argument(_), Some(target)) => name == target && guard.is_about_nan(),
    };
    let mut found: Vec<Condition> = guards.iter().filter(concerns).map(|guard| guard.condition).collect();
    found.dedup();
    found
}

/// A leaf of a value that breaks a condition.
pub(crate) struct Broken {
    pub condition: Condition,
    pub statistics: Statistics,
    pub ty: TensorType,
    /// The keys and positions that lead to it, innermost first.
    path: Vec<String>,
}

impl Broken {
    /// The path to the leaf, in words; empty if it is the value itself.
    pub fn at(&self) -> String {
        if self.path.is_empty() {
            return String::new();
        }
        let keys: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        format!(", at {},", keys.join(" "))
    }

    fn below(mut self, key: String) -> Broken {
        self.path.push(key);
        self
    }
}

/// The first leaf of a value that breaks one of the conditions. Traced tensors without elements break none. With `mark`,
/// tensors that passed are not looked at again: the conditions are those of all values.
pub(crate) fn first_broken(value: &Value, conditions: &[Condition], mark: bool) -> Option<Broken> {
    let number = |dtype, x| {
        let condition =
            conditions.iter().find(|c| c.concerns(dtype) && !c.holds(&Statistics::of_number(x)))?;
        Some(Broken {
            condition: *condition,
            statistics: Statistics::of_number(x),
            ty: TensorType::weak(dtype),
            path: Vec::new(),
        })
    };
    match value {
        Value::List(list) => {
            let mut items = list.items.iter().enumerate();
            items.find_map(|(i, item)| Some(first_broken(item, conditions, mark)?.below(i.to_string())))
        }
        Value::Dict(dict) => {
            let mut entries = dict.iter();
            entries.find_map(|(key, item)| {
                Some(first_broken(item, conditions, mark)?.below(format!(":{}", &*key.name)))
            })
        }
        Value::Float(x) => number(DType::F32, *x),
        Value::Int(n) => number(DType::I64, *n as f64),
        Value::Tensor(t) => {
            let concrete = t.concrete()?;
            let dtype = t.ty().dtype;
            if mark && concrete.passed.get() || !conditions.iter().any(|c| c.concerns(dtype)) {
                return None;
            }
            let statistics = Statistics::of(&concrete.peek()?);
            match conditions.iter().find(|c| c.concerns(dtype) && !c.holds(&statistics)) {
                Some(condition) => {
                    Some(Broken { condition: *condition, statistics, ty: t.ty().clone(), path: Vec::new() })
                }
                None => {
                    concrete.passed.set(mark || concrete.passed.get());
                    None
                }
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_read_as_they_are_shown() {
        for text in [
            "no-nan",
            "no-nan:allow-inf",
            "range:0:20",
            "attention:no-nan",
            "loss:range:-1.5:20",
            "f:no-nan:allow-inf",
        ] {
            let guard: Guard = text.parse().expect(text);
            assert_eq!(guard.to_string(), text);
        }
        let equal = |a: &str, b: &str| assert_eq!(a.parse::<Guard>(), b.parse::<Guard>());
        equal("range=0:20", "range:0:20");
        equal("loss:range=-inf:20", "loss:range:-inf:20");
        for (text, message) in [
            ("nan", "a guard is"),
            ("", "a guard is"),
            ("loss:", "a guard is"),
            (":no-nan", "a guard is"),
            ("range=1", "two numbers"),
            ("range=a:b", "two numbers"),
            ("loss:range:NaN:1", "two numbers"),
            ("loss:range:2:1", "empty"),
        ] {
            let error = text.parse::<Guard>().expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
