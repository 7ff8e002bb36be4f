//! Definitions: `def`, `defn`, `defmacro`, `defparams`.

use std::rc::Rc;

use ustr::Ustr;

use super::code::form_to_value;
use super::interp::Interp;
use super::load::{Loaded, Loading};
use super::names::Modules;
use super::signal::{Eval, fail};
use crate::program::{Closure, Dict, Function, Global, List, Meaning, Module, ParamType, Value, is_private};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span, SpecialForm};

impl Global {
    /// A definition without a value.
    pub(super) fn new(name: Ustr, span: Span, home: &Rc<Module>) -> Rc<Global> {
        Rc::new(Global {
            name,
            span: span.into(),
            home: Rc::downgrade(home),
            is_macro: false.into(),
            value: None.into(),
            pending: None.into(),
        })
    }
}

/// The definition of `name`, created if it is new.
pub(super) fn global(module: &Rc<Module>, name: Ustr, span: Span) -> Rc<Global> {
    let mut definitions = module.definitions.borrow_mut();
    Rc::clone(definitions.entry(name).or_insert_with(|| Global::new(name, span, module)))
}

/// Declares the name of a definition before any form is resolved, so that functions may refer to later ones; `None` if
/// it is not new.
pub(super) fn declare(module: &Rc<Module>, form: &Form) -> Option<Ustr> {
    let [head, args @ ..] = form.items(Bracket::Round)? else { return None };
    if !matches!(head.special(), Some(SpecialForm::Def | SpecialForm::Defn)) {
        return None;
    }
    let name = defined_name(args)?;
    let new = !module.definitions.borrow().contains_key(&name);
    global(module, name, heading(form.span, args));
    new.then_some(name)
}

/// A definition without options before its name, as in `(defn :jit f [x] x)`.
pub(crate) fn without_options(args: &[Form]) -> &[Form] {
    let options = args.iter().take_while(|f| matches!(f.kind, FormKind::Keyword(_))).count();
    if options < args.len() { &args[options..] } else { args }
}

/// The name in `(def name ...)` or `(defn (name params) ...)`.
fn defined_name(args: &[Form]) -> Option<Ustr> {
    let head = without_options(args).first()?;
    match head.items(Bracket::Round) {
        Some(items) => items.first()?.symbol(),
        None => head.symbol(),
    }
}

/// The start of a definition, up to its name.
pub(super) fn heading(span: Span, args: &[Form]) -> Span {
    match without_options(args).first() {
        Some(name)
            if name.span.source == span.source && (span.start..span.end).contains(&name.span.start) =>
        {
            Span { end: name.span.end, ..span }
        }
        _ => span,
    }
}

/// The usage of a defining form, as an error.
pub(super) fn usage<T>(form: SpecialForm, span: Span) -> Eval<T> {
    let how = match form {
        SpecialForm::Defparams => "(defparams Name {:W [2 8] :b [8]})",
        form => form.description().signature,
    };
    Err(Diagnostic::error(format!("{} is written {how}", form.name())).at(span, "").into())
}

impl Interp {
    /// The name that a form defines, after the check that it may: not twice in a text, and not a special form. Warns
    /// once if it redefines a builtin.
    pub(super) fn define(
        &mut self,
        loading: &mut Loading,
        form: SpecialForm,
        args: &[Form],
        span: Span,
    ) -> Eval<Rc<Global>> {
        let Some(name) = defined_name(args) else { return usage(form, span) };
        let name = loading.module.plain(name);
        let span = heading(span, args);
        if SpecialForm::named(&name).is_some_and(|form| !form.is_redefinable()) {
            return Err(Diagnostic::error(format!("{name} is a special form and cannot be redefined"))
                .at(span, "defined here")
                .help("choose another name")
                .into());
        }
        if let Some(first) = loading.defined.get(&name) {
            return Err(Diagnostic::error(format!("{name} is defined twice"))
                .at(span, "defined again here")
                .at(*first, "first defined here")
                .help("give one of them another name, or remove it")
                .into());
        }
        loading.defined.insert(name, span);
        // Private names of the language are invisible here, so they cannot be redefined.
        let yields = ["error", "assert"].contains(&name.as_str());
        let builtin = !yields
            && !is_private(&name)
            && (crate::builtins::find(&name).is_some()
                || self.modules.core.as_ref().is_some_and(|core| core.find(name).is_some()));
        if builtin && !loading.module.standard && self.modules.redefined.insert(name) {
            let warning =
                Diagnostic::warning(format!("{name} is a builtin; this definition takes its place"))
                    .at(span, "redefined here")
                    .help("under another name, both can be used");
            self.host.warn(&self.sources, &warning);
        }
        let global = global(&loading.module, name, span);
        global.span.set(span);
        global.is_macro.set(false);
        Ok(global)
    }

    /// The function defined by `name "doc"? [params] :option* body+`, or `(name params) body+`.
    pub(super) fn function(&mut self, loading: &Loading, args: &[Form], span: Span) -> Loaded<Rc<Function>> {
        let Some(name) = defined_name(args) else { return Ok(usage(SpecialForm::Defn, span)?) };
        let name = loading.module.plain(name);
        let args = without_options(args);
        let (doc, args) = match args {
            [_, doc, rest @ ..] if !rest.is_empty() => match &doc.kind {
                FormKind::Str(text) => (Some(text.clone()), [&args[..1], rest].concat()),
                _ => (None, args.to_vec()),
            },
            _ => (None, args.to_vec()),
        };
        let (params, body) = match args.as_slice() {
            [head, body @ ..] if head.symbol().is_none() => {
                let params = head.items(Bracket::Round).unwrap_or(&[])[1..].to_vec();
                (Form { kind: FormKind::List(Bracket::Square, params), span: head.span }, body)
            }
            [_, params, body @ ..] => (params.clone(), body),
            _ => return Ok(usage(SpecialForm::Defn, span)?),
        };
        // Options such as :jit are accepted; a keyword is an option only if another form follows it.
        let options = body.iter().take_while(|f| matches!(f.kind, FormKind::Keyword(_))).count();
        let body = &body[options.min(body.len().saturating_sub(1))..];
        if body.is_empty() {
            let d = Diagnostic::error(format!("{name} has no body")).at(span, "");
            return Err(vec![d.help("write (defn name [params] body...)")]);
        }
        let mut resolver = self.resolver(loading);
        let code = resolver.function(Some(name), doc, &params, body, span);
        let code = resolver.finish(code)?;
        Ok(Rc::new(Function::Closure(Closure { code, captured: Vec::new() })))
    }

    /// `(defparams Name {:l1 {:W [2 8] :b [8]}})`: Name is the tree as data, with the names of other trees in it
    /// replaced by those trees.
    pub(super) fn params_form(&mut self, loading: &mut Loading, args: &[Form], span: Span) -> Eval<()> {
        let [_, tree] = args else { return usage(SpecialForm::Defparams, span) };
        let global = self.define(loading, SpecialForm::Defparams, args, span)?;
        let value = self.modules.with_named_trees(&loading.module, &form_to_value(tree), tree.span)?;
        if !matches!(value, Value::Dict(_) | Value::List(_)) {
            return usage(SpecialForm::Defparams, span);
        }
        ParamType::of(&value, &global.name)
            .map_err(|what| Diagnostic::error(what).at(tree.span, "declared here"))?;
        *global.value.borrow_mut() = Some(value);
        Ok(())
    }
}

impl Modules {
    /// A tree of shapes, with the trees that names in it stand for.
    fn with_named_trees(&self, module: &Module, tree: &Value, span: Span) -> Eval<Value> {
        Ok(match tree {
            Value::Symbol(name) => match self.meaning(module, *name) {
                Some(Meaning::Global(global)) if global.value.borrow().is_some() => {
                    global.value.borrow().clone().unwrap_or(Value::Nil)
                }
                _ => {
                    return fail(format!("{name} is not the name of a parameter tree defined above"))
                        .map_err(|s: super::Signal| s.at(span));
                }
            },
            Value::List(list) => {
                let items = list.items.iter().map(|v| self.with_named_trees(module, v, span));
                let items = items.collect::<Eval<_>>()?;
                Value::List(Rc::new(List { bracket: list.bracket, items, origin: list.origin }))
            }
            Value::Dict(dict) => {
                let entries = dict.iter().map(|(k, v)| Ok((*k, self.with_named_trees(module, v, span)?)));
                Value::Dict(Rc::new(entries.collect::<Eval<Dict>>()?))
            }
            other => other.clone(),
        })
    }
}
