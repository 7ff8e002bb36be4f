//! Macro expansion: forms to forms, before name resolution.

use std::rc::Rc;

use ustr::Ustr;

use super::code::{Use, form_to_value};
use super::interp::Interp;
use super::resolve::bindings;
use super::rewrite::rewrite;
use super::signal::{Eval, Signal, Stop};
use crate::program::{Module, Value};
use sheaf_syntax::diagnostic::{Diagnostic, Label};
use sheaf_syntax::{Bracket, Form, FormKind, NESTING_LIMIT, Span, SpecialForm};

/// Maximum nesting of expansions, beyond which macros recurse endlessly.
const MAX_EXPANSIONS: usize = 500;

/// Maximum nesting of expanded code: a long `->` nests more than a text can.
const MAX_NESTING: usize = 10 * NESTING_LIMIT;

/// Depth of an expansion.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// Expansions around this form.
    expansions: usize,
    /// Forms around this form.
    nesting: usize,
    /// Quasiquotes around this form, minus unquotes: if positive, forms are data.
    quasi: usize,
}

impl Interp {
    /// Expands every macro use in `form`, until none is left.
    pub(super) fn expand(&mut self, module: &Rc<Module>, form: Form) -> Eval<Form> {
        Expander { interp: self, module, locals: Vec::new() }.form(form, Depth::default())
    }
}

struct Expander<'a> {
    interp: &'a mut Interp,
    module: &'a Rc<Module>,
    /// Names bound around the form, which shadow macros.
    locals: Vec<Ustr>,
}

impl Expander<'_> {
    fn form(&mut self, mut form: Form, mut depth: Depth) -> Eval<Form> {
        let span = form.span;
        let head = |form: &Form| form.items(Bracket::Round)?.first()?.symbol();
        let mut name = head(&form);
        while let Some(head_name) = name {
            match SpecialForm::named(&head_name) {
                Some(SpecialForm::Quote | SpecialForm::Defparams) if depth.quasi == 0 => return Ok(form),
                Some(SpecialForm::Quasiquote) => depth.quasi += 1,
                Some(SpecialForm::Unquote | SpecialForm::UnquoteSplicing) => {
                    depth.quasi = depth.quasi.saturating_sub(1);
                }
                _ if depth.quasi == 0 && !self.locals.contains(&head_name) => {
                    let Some(next) = self.once(head_name, &form)? else { break };
                    form = next;
                    name = head(&form);
                    depth.expansions += 1;
                    if depth.expansions > MAX_EXPANSIONS {
                        return Err(Diagnostic::error(format!("the macro {head_name} expands without end"))
                            .at(span, "used here")
                            .into());
                    }
                    continue;
                }
                _ => {}
            }
            break;
        }
        depth.nesting += 1;
        if depth.nesting > MAX_NESTING {
            return Err(Diagnostic::error(format!("code nested more than {MAX_NESTING} deep"))
                .at(span, "macros make it here")
                .into());
        }
        let mark = self.locals.len();
        form.kind = match form.kind {
            FormKind::List(Bracket::Round, items) if depth.quasi == 0 => {
                let items = self.list(name.and_then(|n| SpecialForm::named(&n)), items, depth)?;
                FormKind::List(Bracket::Round, items)
            }
            FormKind::List(bracket, items) => FormKind::List(bracket, self.all(items, depth)?),
            FormKind::Dict(entries) => {
                let entry = |(k, v)| {
                    let k = if depth.quasi > 0 { self.form(k, depth)? } else { k };
                    Ok((k, self.form(v, depth)?))
                };
                FormKind::Dict(entries.into_iter().map(entry).collect::<Eval<_>>()?)
            }
            other => other,
        };
        self.locals.truncate(mark);
        Ok(form)
    }

    fn all(&mut self, items: Vec<Form>, depth: Depth) -> Eval<Vec<Form>> {
        items.into_iter().map(|f| self.form(f, depth)).collect()
    }

    /// Expands the items of a list in round brackets that are code, not names, patterns or keys. The caller must remove
    /// the names that the form binds.
    fn list(&mut self, head: Option<SpecialForm>, mut items: Vec<Form>, depth: Depth) -> Eval<Vec<Form>> {
        // Number of leading items that are not code.
        let form = head.filter(|form| !form.is_redefinable() || !self.means_something(form.name()));
        let kept = match form {
            Some(SpecialForm::Fn | SpecialForm::Lambda) => {
                self.pattern(items.get_mut(1), depth)?;
                2
            }
            Some(form @ (SpecialForm::Defn | SpecialForm::Defmacro | SpecialForm::Defgrad)) => {
                // A name, perhaps a docstring, and one list of names, or three.
                let is_list = |f: &Form| matches!(f.kind, FormKind::List(..));
                let first = items.iter().skip(1).position(is_list).map_or(1, |i| i + 1);
                let end = first + if form == SpecialForm::Defgrad { 3 } else { 1 };
                for names in items.iter_mut().take(end).skip(first) {
                    self.pattern(Some(names), depth)?;
                }
                end
            }
            Some(SpecialForm::Let | SpecialForm::Loop) => {
                if let Some(FormKind::List(_, pairs)) = items.get_mut(1).map(|f| &mut f.kind) {
                    for binding in bindings(pairs) {
                        if let Some(value) = binding.value {
                            self.replace(&mut pairs[value], depth)?;
                        }
                        self.pattern(pairs.get_mut(binding.pattern), depth)?;
                    }
                }
                2
            }
            Some(form @ (SpecialForm::Repeat | SpecialForm::While)) => {
                let first_state = if form == SpecialForm::Repeat { 1 } else { 2 };
                for state in items.iter_mut().take(3).skip(first_state) {
                    if let FormKind::List(_, parts) = &mut state.kind {
                        for init in parts.iter_mut().skip(1) {
                            self.replace(init, depth)?;
                        }
                    }
                }
                for state in items.iter_mut().take(3).skip(first_state) {
                    if let FormKind::List(Bracket::Square, parts) = &mut state.kind {
                        self.pattern(parts.first_mut(), depth)?;
                    }
                }
                if let Some(condition) = items.get_mut(1).filter(|_| form == SpecialForm::While) {
                    self.replace(condition, depth)?;
                }
                3
            }
            Some(SpecialForm::Case) => {
                // The subject, then alternating keys and values; a last one without partner is the default.
                let last = items.len() - 1;
                for (i, item) in items.iter_mut().enumerate().skip(1) {
                    if i % 2 == 1 || i == last {
                        self.replace(item, depth)?;
                    }
                }
                items.len()
            }
            _ => 0,
        };
        for item in items.iter_mut().skip(kept) {
            self.replace(item, depth)?;
        }
        Ok(items)
    }

    fn replace(&mut self, form: &mut Form, depth: Depth) -> Eval<()> {
        let span = form.span;
        let taken = std::mem::replace(form, Form { kind: FormKind::Nil, span });
        *form = self.form(taken, depth)?;
        Ok(())
    }

    /// Adds the names in a parameter list or pattern, and expands its defaults.
    fn pattern(&mut self, pattern: Option<&mut Form>, depth: Depth) -> Eval<()> {
        match pattern.map(|f| &mut f.kind) {
            Some(FormKind::Symbol(name)) => self.locals.push(*name),
            Some(FormKind::List(_, items)) => {
                items.iter_mut().try_for_each(|f| self.pattern(Some(f), depth))?;
            }
            Some(FormKind::Dict(entries)) => {
                for (key, value) in entries {
                    match &mut value.kind {
                        FormKind::Dict(defaults) if matches!(key.kind, FormKind::Keyword(k) if k == "or") => {
                            defaults.iter_mut().try_for_each(|(_, default)| self.replace(default, depth))?;
                        }
                        _ => self.pattern(Some(value), depth)?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// True if the program defines a name here.
    fn means_something(&self, name: &str) -> bool {
        let name = Ustr::from(name);
        self.locals.contains(&name) || self.interp.modules.meaning(self.module, name).is_some()
    }

    /// The expansion of `form`, a list with this head; `None` if it is no macro use.
    fn once(&mut self, head: Ustr, form: &Form) -> Eval<Option<Form>> {
        let (items, span) = (form.items(Bracket::Round).unwrap_or(&[]), form.span);
        if let Some(rewritten) = rewrite(&head, items, span) {
            return rewritten.map(Some);
        }
        let Some(global) = self.interp.modules.find_macro(self.module, head) else { return Ok(None) };
        let function = match &*global.value.borrow() {
            Some(Value::Function(function)) => Rc::clone(function),
            _ => return Ok(None),
        };
        let args = items[1..].iter().map(form_to_value).collect();
        self.interp.expanding += 1;
        let result = self.interp.call_function(&function, args, span);
        self.interp.expanding -= 1;
        let result = result.map_err(|signal| in_use(signal, global.name, span))?;
        let Some(home) = global.home.upgrade() else { return Ok(None) };
        let macro_ = (global.name, global.span.get(), home);
        let Interp { sources, modules, .. } = &mut *self.interp;
        let code = Use::new(sources, modules, macro_, self.module, form).code(&result);
        code.map(Some).map_err(|what| {
            Diagnostic::error(format!("the macro {} gave {what}", global.name))
                .at(span, "used here")
                .at(global.span.get(), "the macro")
                .into()
        })
    }
}

/// Labels an error in a macro's body with the macro use.
fn in_use(mut signal: Signal, name: Ustr, span: Span) -> Signal {
    if let Stop::Error(d) = &mut *signal {
        let text = format!("in this use of the macro {name}");
        match d.labels.iter_mut().find(|l| l.span == span) {
            Some(label) if label.text.is_empty() => label.text = text,
            Some(_) => {}
            None => d.labels.push(Label { span, text }),
        }
    }
    signal
}
