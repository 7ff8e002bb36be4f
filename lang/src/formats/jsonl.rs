//! `.jsonl`: a JSON value on each line. A line is decoded when it is asked for.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{Source, json, write};
use crate::eval::{Eval, Interp};
use crate::program::{Handle, Lazy, Lines, Value};
use sheaf_syntax::diagnostic::Diagnostic;

/// A handle on the values of the lines; blank ones are none.
pub(super) fn read(source: &Source<'_>) -> Value {
    let lines =
        Lines { name: source.path.to_owned(), file: Arc::clone(&source.bytes), places: OnceCell::new() };
    Value::from(Handle::new(Lazy::Lines(lines)))
}

/// Writes each item of a list, a tensor or a handle on a line.
pub(super) fn save(interp: &mut Interp, path: &str, value: &Value) -> Eval<()> {
    if !matches!(value, Value::List(_) | Value::Tensor(_) | Value::Handle(_)) {
        return Err(Diagnostic::error(format!(
            "a .jsonl holds the items of a list, not {}",
            value.describe()
        ))
        .help("a .json file holds one value of any kind")
        .into());
    }
    let mut items = interp.items_in(value)?;
    let mut lines = Vec::with_capacity(items.len());
    while let Some(item) = items.next(interp)? {
        lines.push(json::write(&item)?);
    }
    write(interp, path, |to| Ok(lines.iter().try_for_each(|line| to.write_all(line.as_bytes()))?))
}
