//! Calls into a program from outside.

use std::rc::Rc;

use ustr::Ustr;

use super::call::Args;
use super::interp::Interp;
use super::load::Loaded;
use crate::builtins;
use crate::program::{Module, Value};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// The value of the definition `name` in a module.
    ///
    /// # Errors
    ///
    /// The module does not define it.
    pub fn definition(module: &Rc<Module>, name: &str) -> Result<Value, Diagnostic> {
        let definitions = module.definitions.borrow();
        let value = definitions.get(&Ustr::from(name)).and_then(|global| global.value.borrow().clone());
        value.ok_or_else(|| {
            let error = Diagnostic::error(format!("{} does not define {name}", module.name));
            match builtins::nearest(name, definitions.keys().map(Ustr::as_str)) {
                Some(near) => error.help(format!("did you mean {near}?")),
                None => error,
            }
        })
    }

    /// A call site for calls of `name` from outside: messages show it as `(name ...)`.
    pub fn call_site(&mut self, name: &str) -> Span {
        let text = format!("({name} ...)");
        let (start, end) = (0, text.len() as u32);
        Span { source: self.sources.add("<call>", &text), start, end }
    }

    /// Applies a function, keyword, dictionary or tensor to these arguments, like a call at the top level of a program.
    /// Results of compiled functions stay on the device.
    ///
    /// # Errors
    ///
    /// Those of the call. The evaluator remains usable after them.
    pub fn apply(&mut self, function: &Value, arguments: Args, site: Span) -> Loaded<Value> {
        self.begin();
        self.step()?;
        let (base, outer) = (self.stack.len(), self.span.replace(site));
        let result = match function {
            Value::Function(function) => self.call_function(function, arguments, site),
            other => self.call_value(other, &arguments, site),
        };
        self.stack.truncate(base);
        self.span = outer;
        Ok(result.map_err(|signal| signal.at(site))?)
    }
}
