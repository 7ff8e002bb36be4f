//! Special forms rewritten during expansion: `->`, `->>`, `as->` and `cond`.

use super::code::{list, symbol};
use super::signal::{Eval, Signal};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span, SpecialForm};

/// The rewritten list with head `head`; `None` if it is none of these.
pub(super) fn rewrite(head: &str, items: &[Form], span: Span) -> Option<Eval<Form>> {
    Some(match SpecialForm::named(head)? {
        SpecialForm::ThreadFirst => thread(items, span, 1),
        SpecialForm::ThreadLast => thread(items, span, usize::MAX),
        SpecialForm::ThreadAs => thread_as(items, span),
        SpecialForm::Cond => cond(items, span),
        _ => return None,
    })
}

/// `(-> x (f a) g)` to `(g (f x a))`; `at` is the position of the threaded value, the end if beyond it.
fn thread(items: &[Form], span: Span, at: usize) -> Eval<Form> {
    let Some(first) = items.get(1) else {
        let arrow = if at == 1 { "->" } else { "->>" };
        return Err(usage(&format!("({arrow} x forms...) wants a value to thread"), span));
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
    if name.symbol().is_none() {
        let d = Diagnostic::error("as-> wants a name after the first value").at(name.span, "expected a name");
        return Err(d.help("write (as-> init name forms...)").into());
    }
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
