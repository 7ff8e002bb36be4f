//! Values nested as deep as the user likes are dropped without recursion.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::value::{Closure, Function, Value};

thread_local! {
    /// Values that are dropped once what is being dropped is gone, and whether something is.
    static WAITING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static RELEASING: Cell<bool> = const { Cell::new(false) };
}

/// Room for so many values that wait is kept.
const ROOM: usize = 1024;

/// Whether dropping the value may drop others.
pub(super) fn holds_values(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Function(_))
}

/// Drops values, and what only they hold, one after the other.
pub(super) fn release(values: impl IntoIterator<Item = Value>) {
    // At the end of a thread, when its memory is gone, values drop what they hold themselves.
    releasing(|| {
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().extend(values));
    });
}

/// Runs `f`, which drops values that hold others, and then drops these.
pub(super) fn releasing(f: impl FnOnce()) {
    if RELEASING.replace(true) {
        return f();
    }
    f();
    while let Ok(Some(value)) = WAITING.try_with(|waiting| waiting.borrow_mut().pop()) {
        match value {
            Value::Function(function) => {
                if let Some(Function::Transformed(_, f)) = Rc::into_inner(function) {
                    release([Value::Function(f)]);
                }
            }
            other => drop(other),
        }
    }
    let _ = WAITING.try_with(|waiting| waiting.borrow_mut().shrink_to(ROOM));
    RELEASING.set(false);
}

/// A value in a tree that many lists or dictionaries share.
#[derive(Clone, Debug)]
pub struct Item(Value);

impl Item {
    /// The value as an item.
    pub(super) fn new(value: Value) -> Item {
        Item(value)
    }

    /// The value.
    pub(super) fn value(&self) -> &Value {
        &self.0
    }

    /// Puts another in its place.
    pub(super) fn replace(&mut self, value: Value) -> Value {
        std::mem::replace(&mut self.0, value)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        if holds_values(&self.0) {
            release([std::mem::replace(&mut self.0, Value::Nil)]);
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
