//! Taking values apart by patterns.

use super::expr::Pattern;
use super::interp::Interp;
use super::signal::Eval;
use super::value::Value;
use crate::diagnostic::Diagnostic;

impl Interp {
    /// Binds `value` to `pattern` in the frame that starts at `base`.
    pub(super) fn bind_pattern(&mut self, pattern: &Pattern, value: Value, base: usize) -> Eval<()> {
        match pattern {
            Pattern::Name(slot) => {
                self.stack[base + *slot as usize] = value;
                Ok(())
            }
            Pattern::Vector(items, rest, span) => {
                let found = value.describe();
                let mut values = match self.sequence(&value) {
                    Ok(values) => values.into_iter(),
                    Err(_) => {
                        return Err(Diagnostic::error(format!("cannot take {found} apart"))
                            .at(
                                *span,
                                format!("this pattern wants a list or a tensor of {} items", items.len()),
                            )
                            .into());
                    }
                };
                let n = values.len();
                if n < items.len() || (rest.is_none() && n > items.len()) {
                    let wanted = if rest.is_some() { "at least " } else { "" };
                    return Err(Diagnostic::error(format!(
                        "a pattern of {wanted}{} names meets {n} values",
                        items.len()
                    ))
                    .at(*span, format!("the value is {found}"))
                    .into());
                }
                for item in items {
                    let v = values.next().expect("counted above");
                    self.bind_pattern(item, v, base)?;
                }
                match rest {
                    Some(rest) => self.bind_pattern(rest, Value::list(values.collect()), base),
                    None => Ok(()),
                }
            }
            Pattern::Keys(keys, span) => {
                let Value::Dict(dict) = &value else {
                    return Err(Diagnostic::error(format!(
                        "{{:keys ...}} wants a dictionary, not {}",
                        value.describe()
                    ))
                    .at(*span, "")
                    .into());
                };
                for (key, slot) in keys {
                    self.stack[base + *slot as usize] = dict.get(key).cloned().unwrap_or(Value::Nil);
                }
                Ok(())
            }
        }
    }
}
