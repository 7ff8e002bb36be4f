//! Values nested as deep as the user likes are dropped without recursion.

use std::rc::Rc;

use super::dict::Dict;
use super::value::{Closure, Function, List, Value};

/// Whether dropping the value may drop others.
fn holds_values(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Function(_))
}

/// Drops values, and what only they hold, one after the other.
fn release(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    values.append(&mut list.items);
                }
            }
            Value::Dict(dict) => {
                if let Some(mut dict) = Rc::into_inner(dict) {
                    values.extend(dict.drain(..).map(|(_, v)| v));
                }
            }
            Value::Function(function) => match Rc::into_inner(function) {
                Some(Function::Closure(mut closure)) => values.append(&mut closure.captured),
                Some(Function::Transformed(_, f)) => values.push(Value::Function(f)),
                Some(Function::Builtin(_)) | None => {}
            },
            _ => {}
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.items.iter().any(holds_values) {
            release(std::mem::take(&mut self.items));
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        if self.values().any(holds_values) {
            release(self.drain(..).map(|(_, v)| v).collect());
        }
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        if self.captured.iter().any(holds_values) {
            release(std::mem::take(&mut self.captured));
        }
    }
}
