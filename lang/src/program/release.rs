//! Non-recursive drop of deeply nested values.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::value::{Closure, Function, Value};

thread_local! {
    /// Values to drop after the current one, and true while one is being dropped.
    static WAITING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static RELEASING: Cell<bool> = const { Cell::new(false) };
}

/// Capacity of that queue that is kept.
const QUEUE_CAPACITY: usize = 1024;

/// True if dropping the value may drop others.
pub(crate) fn holds_values(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Function(_))
}

/// Drops values and their contents iteratively.
pub(crate) fn release(values: impl IntoIterator<Item = Value>) {
    // At thread exit the queue is gone, and values drop their contents recursively.
    releasing(|| {
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().extend(values));
    });
}

/// Runs `f`, which drops values, and then drops their contents.
pub(crate) fn releasing(f: impl FnOnce()) {
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
    let _ = WAITING.try_with(|waiting| waiting.borrow_mut().shrink_to(QUEUE_CAPACITY));
    RELEASING.set(false);
}

/// A value in a persistent tree shared by many lists or dictionaries.
#[derive(Clone, Debug)]
pub struct Item(Value);

impl Item {
    /// The value as an item.
    pub(crate) fn new(value: Value) -> Item {
        Item(value)
    }

    /// The value.
    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// Replaces the value; returns the old one.
    pub(crate) fn replace(&mut self, value: Value) -> Value {
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
