//! Macro expansion: forms to forms, before names are resolved.

use std::rc::Rc;

use ustr::Ustr;

use super::interp::Interp;
use super::module::Module;
use super::signal::{Eval, Signal};
use super::value::{Dict, List, Value};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Bracket, Form, FormKind, Span};

/// Expansions nested deeper than this are an endless recursion of macros.
const MAX_EXPANSIONS: usize = 500;

impl Interp {
    /// `form` with every macro use in it replaced, until none is left.
    pub(super) fn expand(&mut self, module: &Rc<Module>, form: Form) -> Eval<Form> {
        self.expand_nested(module, form, 0)
    }

    fn expand_nested(&mut self, module: &Rc<Module>, mut form: Form, mut depth: usize) -> Eval<Form> {
        let span = form.span;
        let is_use = |form: &Form| match &form.kind {
            FormKind::List(Bracket::Round, items) => items.first().and_then(Form::symbol),
            _ => None,
        };
        while let Some(head) = is_use(&form) {
            if head == "quote" || head == "quasiquote" {
                return Ok(form);
            }
            let FormKind::List(_, items) = &form.kind else { break };
            let Some(next) = self.expand_once(module, head, items, span)? else { break };
            form = next;
            depth += 1;
            if depth > MAX_EXPANSIONS {
                return Err(Diagnostic::error(format!("the macro {head} expands without end"))
                    .at(span, "used here")
                    .into());
            }
        }
        form.kind = match form.kind {
            FormKind::List(bracket, items) => {
                let items = items.into_iter().map(|f| self.expand_nested(module, f, depth));
                FormKind::List(bracket, items.collect::<Eval<_>>()?)
            }
            FormKind::Dict(entries) => {
                let entries =
                    entries.into_iter().map(|(k, v)| Ok((k, self.expand_nested(module, v, depth)?)));
                FormKind::Dict(entries.collect::<Eval<_>>()?)
            }
            other => other,
        };
        Ok(form)
    }

    fn expand_once(
        &mut self,
        module: &Rc<Module>,
        head: Ustr,
        items: &[Form],
        span: Span,
    ) -> Eval<Option<Form>> {
        match head.as_str() {
            "->" => return thread(items, span, 1).map(Some),
            "->>" => return thread(items, span, usize::MAX).map(Some),
            "as->" => return thread_as(items, span).map(Some),
            "cond" => return cond(items, span).map(Some),
            _ => {}
        }
        let found = module.find_macro(head).or_else(|| self.core.as_ref().and_then(|c| c.find_macro(head)));
        let Some(function) = found else { return Ok(None) };
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
            other => other,
        })?;
        value_to_form(&result, span).map(Some).map_err(|what| {
            Diagnostic::error(format!("the macro {head} gave {what}, which is not code"))
                .at(span, "used here")
                .into()
        })
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

/// Data as code; what has no place of its own gets that of the macro use. The error says what is not code.
fn value_to_form(value: &Value, span: Span) -> Result<Form, String> {
    let kind = match value {
        Value::Nil => FormKind::Nil,
        Value::Bool(b) => FormKind::Bool(*b),
        Value::Int(n) => FormKind::Int(*n),
        Value::Float(x) => FormKind::Float(*x),
        Value::Str(s) => FormKind::Str(Rc::clone(s)),
        Value::Keyword(k) => FormKind::Keyword(*k),
        Value::Symbol(s) => FormKind::Symbol(*s),
        Value::Range(a, b) => FormKind::Range(*a, *b),
        Value::List(list) => {
            let span = list.origin.unwrap_or(span);
            let items = list.items.iter().map(|v| value_to_form(v, span)).collect::<Result<_, _>>()?;
            return Ok(Form { kind: FormKind::List(list.bracket, items), span });
        }
        Value::Dict(dict) => {
            let entry = |(k, v): (&Ustr, &Value)| {
                Ok((Form { kind: FormKind::Keyword(*k), span }, value_to_form(v, span)?))
            };
            FormKind::Dict(dict.iter().map(entry).collect::<Result<_, String>>()?)
        }
        Value::Tensor(_) | Value::Function(_) => return Err(value.describe()),
    };
    Ok(Form { kind, span })
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
