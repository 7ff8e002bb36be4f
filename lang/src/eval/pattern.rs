//! Destructuring.

use super::blame;
use super::interp::Interp;
use super::signal::Eval;
use crate::program::{Expr, Items, Pattern, Value};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// Binds the value of `expr` to `pattern`.
    pub(super) fn bind_value(
        &mut self,
        pattern: &Pattern,
        value: Value,
        expr: &Expr,
        base: usize,
    ) -> Eval<()> {
        if let Pattern::Name(slot, _) = pattern {
            self.stack[base + *slot as usize] = value;
            return Ok(());
        }
        let bound = self.bind_pattern(pattern, value.clone(), base);
        bound.map_err(|signal| blame::in_value(self, signal, expr, &value))
    }

    /// Binds `value` to `pattern` in the frame that starts at `base`.
    pub(super) fn bind_pattern(&mut self, pattern: &Pattern, value: Value, base: usize) -> Eval<()> {
        match pattern {
            Pattern::Name(slot, _) => {
                self.stack[base + *slot as usize] = value;
                Ok(())
            }
            Pattern::Vector(items, rest, span) => match value {
                Value::List(list) => self.bind_items(items, rest.as_deref(), *span, &list.items, base),
                value => {
                    let Ok(values) = self.sequence(&value) else {
                        return Err(Diagnostic::error(format!("cannot take {} apart", value.describe()))
                            .at(
                                *span,
                                format!("this pattern wants a list or a tensor of {} items", items.len()),
                            )
                            .into());
                    };
                    self.bind_items(items, rest.as_deref(), *span, &Items::from(values), base)
                }
            },
            Pattern::Keys(keys, whole, span) => {
                let Value::Dict(dict) = &value else {
                    return Err(Diagnostic::error(format!(
                        "{{:keys ...}} wants a dictionary, not {}",
                        value.describe()
                    ))
                    .at(*span, "")
                    .into());
                };
                for (key, slot) in keys {
                    let found = dict.get(key).cloned();
                    if found.is_none() {
                        self.failed_lookups.remember(*key, *span, dict.keys());
                    }
                    self.stack[base + *slot as usize] = found.unwrap_or(Value::Nil);
                }
                if let Some(slot) = whole {
                    self.stack[base + *slot as usize] = value;
                }
                Ok(())
            }
        }
    }

    fn bind_items(
        &mut self,
        items: &[Pattern],
        rest: Option<&Pattern>,
        span: Span,
        values: &Items,
        base: usize,
    ) -> Eval<()> {
        if values.len() < items.len() || (rest.is_none() && values.len() > items.len()) {
            let wanted = if rest.is_some() { "at least " } else { "" };
            let message = format!("a pattern of {wanted}{} names meets {} values", items.len(), values.len());
            return Err(Diagnostic::error(message)
                .at(span, "these names")
                .help("as many names as values, or [a b & rest] for the others in a list")
                .into());
        }
        for (item, value) in items.iter().zip(values) {
            self.bind_pattern(item, value.clone(), base)?;
        }
        match rest {
            Some(rest) => self.bind_pattern(rest, Value::from(values.part(items.len()..values.len())), base),
            None => Ok(()),
        }
    }
}
