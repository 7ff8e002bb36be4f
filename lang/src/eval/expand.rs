//! Macro expansion: forms to forms, before names are resolved.

use std::collections::HashMap;
use std::rc::Rc;

use ustr::Ustr;

use super::interp::Interp;
use super::module::Module;
use super::signal::{Eval, Signal};
use super::value::{Dict, Function, List, Value};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Bracket, Form, FormKind, NESTING_LIMIT, Span};

/// Expansions nested deeper than this are an endless recursion of macros.
const MAX_EXPANSIONS: usize = 500;

/// Expanded code may be nested this deeply: a long `->` nests more than a text can.
const MAX_NESTING: usize = 10 * NESTING_LIMIT;

/// Where in the code an expansion is.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// Expansions around this form.
    expansions: usize,
    /// Forms around this form.
    nesting: usize,
    /// Quasiquotes around this form, less the unquotes: where there are any, forms are data.
    quasi: usize,
}

impl Interp {
    /// `form` with every macro use in it replaced, until none is left.
    pub(super) fn expand(&mut self, module: &Rc<Module>, form: Form) -> Eval<Form> {
        self.expand_nested(module, form, Depth::default())
    }

    fn expand_nested(&mut self, module: &Rc<Module>, mut form: Form, mut depth: Depth) -> Eval<Form> {
        let span = form.span;
        let head = |form: &Form| form.items(Bracket::Round)?.first()?.symbol();
        while let Some(name) = head(&form) {
            match name.as_str() {
                "quote" if depth.quasi == 0 => return Ok(form),
                "quasiquote" => depth.quasi += 1,
                "unquote" | "unquote-splicing" => depth.quasi = depth.quasi.saturating_sub(1),
                _ if depth.quasi == 0 => {
                    let Some(next) = self.expand_once(module, name, &form)? else { break };
                    form = next;
                    depth.expansions += 1;
                    if depth.expansions > MAX_EXPANSIONS {
                        return Err(Diagnostic::error(format!("the macro {name} expands without end"))
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
        let mut inner = |f| self.expand_nested(module, f, depth);
        form.kind = match form.kind {
            FormKind::List(bracket, items) => {
                FormKind::List(bracket, items.into_iter().map(inner).collect::<Eval<_>>()?)
            }
            FormKind::Dict(entries) => {
                let entry = |(k, v)| Ok((if depth.quasi > 0 { inner(k)? } else { k }, inner(v)?));
                FormKind::Dict(entries.into_iter().map(entry).collect::<Eval<_>>()?)
            }
            other => other,
        };
        Ok(form)
    }

    /// The expansion of `form`, a list with this head; `None` if it is not the use of a macro.
    fn expand_once(&mut self, module: &Rc<Module>, head: Ustr, form: &Form) -> Eval<Option<Form>> {
        let (items, span) = (form.items(Bracket::Round).unwrap_or(&[]), form.span);
        match head.as_str() {
            "->" => return thread(items, span, 1).map(Some),
            "->>" => return thread(items, span, usize::MAX).map(Some),
            "as->" => return thread_as(items, span).map(Some),
            "cond" => return cond(items, span).map(Some),
            _ => {}
        }
        let Some(function) = self.find_macro(module, head) else { return Ok(None) };
        let args = items[1..].iter().map(form_to_value).collect();
        let result = self.call_function(&function, args, span).map_err(|signal| match signal {
            Signal::Error(d) => {
                let mut d = *d;
                d.labels.push(crate::diagnostic::Label {
                    span,
                    text: format!("in this use of the macro {head}"),
                });
                d.into()
            }
            stop @ Signal::Trace(_) => stop,
        })?;
        let mut places = HashMap::new();
        symbol_places(form, &mut places);
        let code = Code { places, used: span }.form(&result, span, 0);
        code.map(Some).map_err(|what| {
            Diagnostic::error(format!("the macro {head} gave {what}")).at(span, "used here").into()
        })
    }

    /// The macro that `name` means: a function defined in the same file comes before a macro from elsewhere.
    pub(super) fn find_macro(&self, module: &Module, name: Ustr) -> Option<Rc<Function>> {
        let own = module.macros.borrow().get(&name).cloned();
        if own.is_some() || module.definitions.borrow().contains_key(&name) {
            return own;
        }
        module.find_macro(name).or_else(|| self.core.as_ref()?.find_macro(name))
    }
}

/// Code as data.
pub(super) fn form_to_value(form: &Form) -> Value {
    match &form.kind {
        FormKind::Nil => Value::Nil,
        FormKind::Bool(b) => Value::Bool(*b),
        FormKind::Int(n) => Value::Int(*n),
        FormKind::Float(x) => Value::Float(*x),
        FormKind::Str(s) => Value::Str(Rc::clone(s)),
        FormKind::Keyword(k) => Value::Keyword(*k),
        FormKind::Symbol(s) => Value::Symbol(*s),
        FormKind::Range(a, b) => Value::Range(*a, *b),
        FormKind::List(bracket, items) => Value::List(Rc::new(List {
            bracket: *bracket,
            items: items.iter().map(form_to_value).collect(),
            origin: Some(form.span),
        })),
        FormKind::Dict(entries) => {
            let key = |k: &Form| form_to_value(k).as_key().unwrap_or_default();
            Value::Dict(Rc::new(entries.iter().map(|(k, v)| (key(k), form_to_value(v))).collect::<Dict>()))
        }
    }
}

/// Where the names of a form are written first.
fn symbol_places(form: &Form, places: &mut HashMap<Ustr, Span>) {
    match &form.kind {
        FormKind::Symbol(name) => drop(places.entry(*name).or_insert(form.span)),
        FormKind::List(_, items) => items.iter().for_each(|f| symbol_places(f, places)),
        FormKind::Dict(entries) => entries.iter().for_each(|(_, v)| symbol_places(v, places)),
        _ => {}
    }
}

/// Makes code of the data that a macro gave. A list that comes from the arguments keeps its place, a name gets that
/// where the use has it, and all else that of the use.
struct Code {
    places: HashMap<Ustr, Span>,
    used: Span,
}

impl Code {
    /// The error says what was found instead of code.
    fn form(&self, value: &Value, span: Span, nesting: usize) -> Result<Form, String> {
        if nesting > NESTING_LIMIT {
            return Err(format!("code nested more than {NESTING_LIMIT} deep"));
        }
        let inner = |v: &Value, span| self.form(v, span, nesting + 1);
        let kind = match value {
            Value::Nil => FormKind::Nil,
            Value::Bool(b) => FormKind::Bool(*b),
            Value::Int(n) => FormKind::Int(*n),
            Value::Float(x) => FormKind::Float(*x),
            Value::Str(s) => FormKind::Str(Rc::clone(s)),
            Value::Keyword(k) => FormKind::Keyword(*k),
            Value::Symbol(s) => {
                let span = self.places.get(s).copied().unwrap_or(span);
                return Ok(Form { kind: FormKind::Symbol(*s), span });
            }
            Value::Range(a, b) => FormKind::Range(*a, *b),
            Value::List(list) => {
                let span = list.origin.unwrap_or(self.used);
                let items = list.items.iter().map(|v| inner(v, span)).collect::<Result<_, _>>()?;
                return Ok(Form { kind: FormKind::List(list.bracket, items), span });
            }
            Value::Dict(dict) => {
                let entry = |(k, v): (&Ustr, &Value)| {
                    Ok((Form { kind: FormKind::Keyword(*k), span }, inner(v, span)?))
                };
                FormKind::Dict(dict.iter().map(entry).collect::<Result<_, String>>()?)
            }
            Value::Tensor(_) | Value::Function(_) => {
                return Err(format!("{}, which is not code", value.describe()));
            }
        };
        Ok(Form { kind, span })
    }
}

fn list(items: Vec<Form>, span: Span) -> Form {
    Form { kind: FormKind::List(Bracket::Round, items), span }
}

fn symbol(name: &str, span: Span) -> Form {
    Form { kind: FormKind::Symbol(Ustr::from(name)), span }
}

/// `(-> x (f a) g)` to `(g (f x a))`; `at` is the position of the threaded value, the end if beyond it.
fn thread(items: &[Form], span: Span, at: usize) -> Eval<Form> {
    let Some(first) = items.get(1) else {
        return Err(usage("(-> x forms...) wants a value to thread", span));
    };
    let step = |value: Form, step: &Form| match &step.kind {
        FormKind::List(Bracket::Round, call) if !call.is_empty() => {
            let mut call = call.clone();
            call.insert(at.min(call.len()), value);
            list(call, step.span)
        }
        _ => list(vec![step.clone(), value], step.span),
    };
    Ok(items[2..].iter().fold(first.clone(), step))
}

/// `(as-> x name e1 e2)` to `(let [name x name e1] e2)`.
fn thread_as(items: &[Form], span: Span) -> Eval<Form> {
    let [_, init, name, steps @ ..] = items else {
        return Err(usage("(as-> init name forms...) wants a value and a name", span));
    };
    let Some((last, steps)) = steps.split_last() else { return Ok(init.clone()) };
    let mut bindings = vec![name.clone(), init.clone()];
    for step in steps {
        bindings.extend([name.clone(), step.clone()]);
    }
    let bindings = Form { kind: FormKind::List(Bracket::Square, bindings), span };
    Ok(list(vec![symbol("let", span), bindings, last.clone()], span))
}

/// `(cond c1 v1 :else v2)` to nested `if`.
fn cond(items: &[Form], span: Span) -> Eval<Form> {
    let clauses = &items[1..];
    if !clauses.len().is_multiple_of(2) {
        return Err(usage("(cond c1 v1 c2 v2 ... :else v) wants pairs of condition and value", span));
    }
    let nil = Form { kind: FormKind::Nil, span };
    Ok(clauses.chunks(2).rev().fold(nil, |rest, clause| {
        if matches!(clause[0].kind, FormKind::Keyword(k) if k == "else") {
            return clause[1].clone();
        }
        list(
            vec![symbol("if", span), clause[0].clone(), clause[1].clone(), rest],
            clause[0].span.to(clause[1].span),
        )
    }))
}

fn usage(message: &str, span: Span) -> Signal {
    Diagnostic::error(message).at(span, "").into()
}
