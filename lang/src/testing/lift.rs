//! Literals of an expression, lifted to arguments: otherwise tracing folds them away.

use ustr::Ustr;

use crate::eval::dtype_keyword;
use sheaf_syntax::{Bracket, Form, FormKind, SpecialForm};

/// The literals to lift.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Literals {
    /// Vectors of numbers, with the dtype that may follow them.
    Tensors,
    /// Numbers outside of vectors.
    Numbers,
}

/// The evaluated literals of an expanded form, in order; patterns, quotes and destructured vectors are excluded.
pub(super) fn literals(form: &Form, which: Literals) -> Vec<Form> {
    let mut found = Vec::new();
    let mut collect = |literal: &Form| {
        found.push(literal.clone());
        None
    };
    Walk { which, visit: &mut collect }.form(form);
    found
}

/// The form as a function of some of its literals, given by their positions in [`literals`].
pub(super) fn lift(form: &Form, which: Literals, chosen: &[usize]) -> Form {
    let mut position = 0;
    let span = form.span;
    let symbol = |i: usize| Form { kind: FormKind::Symbol(Ustr::from(&format!("literal {i}"))), span };
    let mut replace = |literal: &Form| {
        position += 1;
        let chosen = chosen.contains(&(position - 1));
        chosen.then(|| Form { kind: symbol(position - 1).kind, span: literal.span })
    };
    let body = Walk { which, visit: &mut replace }.form(form);
    let params = chosen.iter().map(|i| symbol(*i)).collect();
    let head = Form { kind: FormKind::Symbol(Ustr::from("fn")), span };
    let items = vec![head, Form { kind: FormKind::List(Bracket::Square, params), span }, body];
    Form { kind: FormKind::List(Bracket::Round, items), span }
}

/// A walk over the evaluated parts of a form; `visit` may replace a literal.
struct Walk<'a> {
    which: Literals,
    visit: &'a mut dyn FnMut(&Form) -> Option<Form>,
}

impl Walk<'_> {
    fn form(&mut self, form: &Form) -> Form {
        let kind = match &form.kind {
            FormKind::Int(_) | FormKind::Float(_) if self.which == Literals::Numbers => {
                return (self.visit)(form).unwrap_or_else(|| form.clone());
            }
            FormKind::List(Bracket::Square, items) => {
                if is_tensor(form) {
                    let lifted = if self.which == Literals::Tensors { (self.visit)(form) } else { None };
                    return lifted.unwrap_or_else(|| form.clone());
                }
                FormKind::List(Bracket::Square, self.sequence(items, true))
            }
            FormKind::List(Bracket::Round, items) => FormKind::List(Bracket::Round, self.list(items)),
            FormKind::Dict(entries) => {
                FormKind::Dict(entries.iter().map(|(k, v)| (k.clone(), self.form(v))).collect())
            }
            other => other.clone(),
        };
        Form { kind, span: form.span }
    }

    /// A sequence of forms; a literal and the dtype after it are one.
    fn sequence(&mut self, items: &[Form], casts: bool) -> Vec<Form> {
        let mut out = Vec::with_capacity(items.len());
        let mut i = 0;
        while i < items.len() {
            let cast = items
                .get(i + 1)
                .filter(|next| casts && is_tensor(&items[i]) && dtype_keyword(next).is_some());
            match cast {
                Some(dtype) => {
                    let whole = cast_form(&items[i], dtype);
                    let lifted = if self.which == Literals::Tensors { (self.visit)(&whole) } else { None };
                    match lifted {
                        Some(lifted) => out.push(lifted),
                        None => out.extend([items[i].clone(), dtype.clone()]),
                    }
                    i += 2;
                }
                None => {
                    out.push(self.form(&items[i]));
                    i += 1;
                }
            }
        }
        out
    }

    fn list(&mut self, items: &[Form]) -> Vec<Form> {
        let Some(head) = items.first() else { return Vec::new() };
        match (head.special(), items) {
            (Some(SpecialForm::Quote | SpecialForm::Quasiquote), _) => items.to_vec(),
            (Some(SpecialForm::Fn | SpecialForm::Lambda), [_, params, body @ ..]) => {
                let mut out = vec![head.clone(), params.clone()];
                out.extend(self.body(body));
                out
            }
            (Some(SpecialForm::Let), [_, bindings, body @ ..]) => {
                let mut out = vec![head.clone(), self.bindings(bindings)];
                out.extend(self.sequence(body, true));
                out
            }
            (Some(SpecialForm::Repeat), [_, counter, state, body @ ..]) => {
                let mut out = vec![head.clone(), self.bindings(counter), self.bindings(state)];
                out.extend(self.body(body));
                out
            }
            (Some(SpecialForm::While), [_, condition, state, body @ ..]) => {
                let mut out = vec![head.clone(), self.form(condition), self.bindings(state)];
                out.extend(self.body(body));
                out
            }
            (Some(SpecialForm::WithParams), [_, params, body @ ..]) => {
                let mut out = vec![head.clone(), params.clone()];
                out.extend(self.sequence(body, true));
                out
            }
            (Some(SpecialForm::Case), [_, subject, arms @ ..]) => {
                let mut out = vec![head.clone(), self.form(subject)];
                for arm in arms.chunks(2) {
                    match arm {
                        [key, value] => out.extend([key.clone(), self.form(value)]),
                        last => out.extend(last.iter().map(|f| self.form(f))),
                    }
                }
                out
            }
            // Its numbers are read as that dtype.
            (_, [tensor, literal, .., dtype])
                if tensor.is_symbol("tensor") && is_tensor(literal) && dtype_keyword(dtype).is_some() =>
            {
                items.to_vec()
            }
            _ => {
                let casts = !crate::eval::takes_dtype_option(head.symbol());
                let mut out = vec![if head.symbol().is_some() { head.clone() } else { self.form(head) }];
                out.extend(self.sequence(&items[1..], casts));
                out
            }
        }
    }

    /// A body whose last vector the caller may destructure: only its items are lifted.
    fn body(&mut self, forms: &[Form]) -> Vec<Form> {
        match forms.split_last() {
            Some((last, others)) if is_tensor(last) => {
                let mut out = self.sequence(others, true);
                out.push(last.clone());
                out
            }
            _ => self.sequence(forms, true),
        }
    }

    /// `[pattern value ...]`
    fn bindings(&mut self, form: &Form) -> Form {
        let Some(items) = form.items(Bracket::Square) else { return form.clone() };
        let mut out = Vec::with_capacity(items.len());
        let mut i = 0;
        while i < items.len() {
            let pattern = &items[i];
            out.push(pattern.clone());
            let cast = items.get(i + 2).is_some_and(|f| dtype_keyword(f).is_some());
            let end = items.len().min(i + if cast { 3 } else { 2 });
            let value = &items[i + 1..end];
            if pattern.items(Bracket::Square).is_some() && value.iter().any(is_tensor) {
                out.extend(value.iter().cloned());
            } else {
                out.extend(self.sequence(value, true));
            }
            i = end.max(i + 1);
        }
        Form { kind: FormKind::List(Bracket::Square, out), span: form.span }
    }
}

/// True for a non-empty vector literal of numbers or booleans, nested or not.
fn is_tensor(form: &Form) -> bool {
    let number = |f: &Form| matches!(f.kind, FormKind::Int(_) | FormKind::Float(_) | FormKind::Bool(_));
    form.items(Bracket::Square)
        .is_some_and(|items| !items.is_empty() && items.iter().all(|f| number(f) || is_tensor(f)))
}

/// A literal and its dtype as one expression.
fn cast_form(literal: &Form, dtype: &Form) -> Form {
    let span = literal.span.to(dtype.span);
    let head = Form { kind: FormKind::Symbol(Ustr::from("let")), span };
    let none = Form { kind: FormKind::List(Bracket::Square, Vec::new()), span };
    let items = vec![head, none, literal.clone(), dtype.clone()];
    Form { kind: FormKind::List(Bracket::Round, items), span }
}
