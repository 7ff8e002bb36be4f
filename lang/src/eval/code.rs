//! Conversion between code and data.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ustr::Ustr;

use super::names::Modules;
use crate::program::{Dict, Key, List, Module, Value};
use sheaf_syntax::{Bracket, Expansion, Form, FormKind, NESTING_LIMIT, Sources, Span, SpecialForm};

/// Code as data.
pub(super) fn form_to_value(form: &Form) -> Value {
    match &form.kind {
        FormKind::Nil => Value::Nil,
        FormKind::Bool(b) => Value::Bool(*b),
        FormKind::Int(n) => Value::Int(*n),
        FormKind::Float(x) => Value::Float(*x),
        FormKind::Str(s) => Value::Str(s.clone()),
        FormKind::Keyword(k) => Value::Keyword(*k),
        FormKind::Symbol(s) => Value::Symbol(*s),
        FormKind::Range(start, end) => Value::Range(Rc::new(*start..*end)),
        FormKind::List(bracket, items) => Value::List(Rc::new(List {
            bracket: *bracket,
            items: items.iter().map(form_to_value).collect(),
            origin: Some(form.span),
        })),
        FormKind::Dict(entries) => {
            let key = |k: &Form| form_to_value(k).as_key().unwrap_or(Key::from(Ustr::default()));
            Value::Dict(Rc::new(entries.iter().map(|(k, v)| (key(k), form_to_value(v))).collect::<Dict>()))
        }
    }
}

/// A macro use, for converting the macro's result to code.
///
/// Code from the arguments keeps its span. Code from the macro's text gets its span there, marked as expanded at this
/// use; and a name in it that means something else to the user than to the macro's own module refers to the latter's
/// (SPEC section 8: code in a module sees the module's own names).
pub(super) struct Use<'a> {
    pub sources: &'a mut Sources,
    pub modules: &'a Modules,
    /// The macro's name and the start of its definition.
    pub name: Ustr,
    pub defined: Span,
    /// The module of the macro.
    pub home: Rc<Module>,
    /// The module that uses it.
    pub user: &'a Rc<Module>,
    /// The use.
    pub span: Span,
    names: HashMap<Ustr, Span>,
    lists: HashSet<Span>,
}

impl<'a> Use<'a> {
    pub fn new(
        sources: &'a mut Sources,
        modules: &'a Modules,
        (name, defined, home): (Ustr, Span, Rc<Module>),
        user: &'a Rc<Module>,
        form: &Form,
    ) -> Use<'a> {
        let span = form.span;
        let (names, lists) = (HashMap::new(), HashSet::new());
        let mut it = Use { sources, modules, name, defined, home, user, span, names, lists };
        it.places(form);
        it
    }

    /// Records the first span of each name in the use, and the spans of its lists.
    fn places(&mut self, form: &Form) {
        match &form.kind {
            FormKind::Symbol(name) => drop(self.names.entry(*name).or_insert(form.span)),
            FormKind::List(_, items) => {
                self.lists.insert(form.span);
                for item in items {
                    self.places(item);
                }
            }
            FormKind::Dict(entries) => {
                for (_, value) in entries {
                    self.places(value);
                }
            }
            _ => {}
        }
    }

    /// A span in the macro's text, as expanded here.
    fn expanded(&mut self, place: Span) -> Span {
        let expansion = Expansion { name: self.name, template: place.source, used: self.span };
        Span { source: self.sources.expand(expansion), ..place }
    }

    /// Converts `value` to code; the error describes the value found instead.
    pub fn code(&mut self, value: &Value) -> Result<Form, String> {
        let span = self.expanded(self.defined);
        self.form(value, span, 0, false)
    }

    fn form(&mut self, value: &Value, span: Span, nesting: usize, quoted: bool) -> Result<Form, String> {
        if nesting > NESTING_LIMIT {
            return Err(format!("code nested more than {NESTING_LIMIT} deep"));
        }
        let kind = match value {
            Value::Nil => FormKind::Nil,
            Value::Bool(b) => FormKind::Bool(*b),
            Value::Int(n) => FormKind::Int(*n),
            Value::Float(x) => FormKind::Float(*x),
            Value::Str(s) => FormKind::Str(s.clone()),
            Value::Keyword(k) => FormKind::Keyword(*k),
            Value::Symbol(name) => {
                if let Some(span) = self.names.get(name) {
                    return Ok(Form { kind: FormKind::Symbol(*name), span: *span });
                }
                let name = if quoted { *name } else { self.modules.name_from(&self.home, self.user, *name) };
                FormKind::Symbol(name)
            }
            Value::Range(r) => FormKind::Range(r.start, r.end),
            Value::List(list) => {
                let span = match list.origin {
                    Some(place) if self.lists.contains(&place) => place,
                    Some(place) => self.expanded(place),
                    None => span,
                };
                let quoted = quoted
                    || matches!(list.items.first(), Some(Value::Symbol(s)) if s == SpecialForm::Quote.name());
                let items = list.items.iter().map(|v| self.form(v, span, nesting + 1, quoted));
                let items = items.collect::<Result<_, _>>()?;
                return Ok(Form { kind: FormKind::List(list.bracket, items), span });
            }
            Value::Dict(dict) => {
                let entry = |(k, v): (Key, &Value)| {
                    let key = Form { kind: k.form(), span };
                    Ok((key, self.form(v, span, nesting + 1, quoted)?))
                };
                FormKind::Dict(dict.iter().map(entry).collect::<Result<_, String>>()?)
            }
            other => return Err(format!("{}, which is not code", other.describe())),
        };
        Ok(Form { kind, span })
    }
}

/// A list in round brackets.
pub(super) fn list(items: Vec<Form>, span: Span) -> Form {
    Form { kind: FormKind::List(Bracket::Round, items), span }
}

/// A name.
pub(super) fn symbol(name: &str, span: Span) -> Form {
    Form { kind: FormKind::Symbol(Ustr::from(name)), span }
}
