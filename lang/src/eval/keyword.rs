//! Keyword arguments of functions with `& {:keys [lr]}`, from `(f x :lr 0.2)`.

use std::rc::Rc;

use ustr::Ustr;

use crate::builtins::nearest;
use crate::program::{Code, Dict, Pattern, Value};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

impl Code {
    /// The names of the keyword arguments; `None` if the function takes none.
    pub(super) fn keywords(&self) -> Option<Vec<Ustr>> {
        match &self.rest {
            Some(Pattern::Keys(keys, ..)) => Some(keys.iter().map(|(key, _)| *key).collect()),
            _ => None,
        }
    }

    /// The keyword arguments of the call at `span` as a dictionary.
    pub(super) fn keyword_arguments(&self, given: &[Value], span: Span) -> Result<Value, Diagnostic> {
        let known = self.keywords().unwrap_or_default();
        let mut dict = Dict::default();
        for pair in given.chunks(2) {
            let Value::Keyword(key) = &pair[0] else {
                let (name, count) = (self.display_name(), self.params.len());
                let message = format!(
                    "{name} takes {count} arguments and then keywords with values, got {}",
                    pair[0].describe()
                );
                return Err(self.in_call(Diagnostic::error(message), span, &known));
            };
            self.check_keyword(*key, &known, span)?;
            let Some(value) = pair.get(1) else {
                let d = Diagnostic::error(format!(":{key} wants a value after it"));
                return Err(self.in_call(d, span, &known));
            };
            if dict.insert(*key, value.clone()).is_some() {
                return Err(self.in_call(Diagnostic::error(format!(":{key} is given twice")), span, &known));
            }
        }
        Ok(Value::Dict(Rc::new(dict)))
    }

    /// Fails unless `key` is one of the keyword arguments.
    pub(super) fn check_keyword(&self, key: Ustr, known: &[Ustr], span: Span) -> Result<(), Diagnostic> {
        if known.contains(&key) {
            return Ok(());
        }
        let d = Diagnostic::error(format!("{} has no keyword argument :{key}", self.display_name()));
        let d = self.in_call(d, span, known);
        Err(match nearest(&key, known.iter().map(Ustr::as_str)) {
            Some(near) => d.help(format!("did you mean :{near}?")),
            None => d,
        })
    }

    fn in_call(&self, d: Diagnostic, span: Span, known: &[Ustr]) -> Diagnostic {
        let known: Vec<String> = known.iter().map(|key| format!(":{key}")).collect();
        let d = d.at(span, "called here");
        let text = format!("it takes {}", known.join(" "));
        if self.span.source.is_library() { d.note(text) } else { d.at(self.head, text) }
    }
}
