//! `loop` and `recur`, rewritten to `while` after macro expansion.
//!
//! The body of a loop is split along its tail positions into three expressions of the loop's names: if another
//! iteration follows, the next values, and the final result. In `(loop [i 0] (if (< i n) (recur (inc i)) i))` these are
//! the condition, `(inc i)` and `i`, and nothing is evaluated twice. Otherwise an interpreted iteration evaluates the
//! body once and encodes its outcome as values ([`Rewritten::Twofold`]); a program is traced from the three
//! expressions, since it has no effects and both branches of a condition must have one type.

use ustr::Ustr;

use super::load::cast_vectors;
use super::resolve::bindings;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span, SpecialForm};

/// The rewritten loop.
pub(super) enum Rewritten {
    /// One form, which evaluates nothing twice.
    Plain(Form),
    /// One to interpret, and one to trace.
    Twofold(Form, Form),
}

/// A body by its tail positions.
enum Tail {
    /// No `recur` in it.
    Value(Form),
    /// The next values.
    Recur(Vec<Form>, Span),
    If(Form, Box<Tail>, Box<Tail>),
    /// A form whose last item is in tail position, and the items before it.
    Scope(Vec<Form>, Box<Tail>, Span),
}

/// Rewrites `(loop [pattern init ...] body...)`, given the arguments.
pub(super) fn rewrite_loop(args: &[Form], span: Span) -> Result<Rewritten, Box<Diagnostic>> {
    let usage = |at: Span| {
        let d = Diagnostic::error("loop is written (loop [name value ...] body...)");
        Box::new(d.at(at, "").help("(recur value ...) at the end of the body goes round again"))
    };
    let [brackets, body @ ..] = args else { return Err(usage(span)) };
    let FormKind::List(_, pairs) = &brackets.kind else { return Err(usage(brackets.span)) };
    let found = bindings(pairs);
    if body.is_empty() || found.iter().any(|b| b.value.is_none()) {
        return Err(usage(span));
    }
    // The initial values, each in the scope of the names before it; patterns are destructured in each iteration.
    let (mut names, mut first, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for (i, binding) in found.iter().enumerate() {
        let pattern = &pairs[binding.pattern];
        let name = if pattern.symbol().is_some() { pattern.clone() } else { hidden(i, pattern.span) };
        first.push(name.clone());
        first.extend(binding.value.into_iter().chain(binding.dtype).map(|value| pairs[value].clone()));
        if pattern.symbol().is_none() {
            first.extend([pattern.clone(), name.clone()]);
            apart.extend([pattern.clone(), name.clone()]);
        }
        names.push(name);
    }
    let mut tail = Tail::of_body(body, span);
    tail.check(names.len())?;
    if !apart.is_empty() && tail.recurs() {
        tail = Tail::Scope(vec![symbol("let", span), vector(apart, span)], Box::new(tail), span);
    }
    let around = |inner: Form| list(vec![symbol("let", span), vector(first.clone(), span), inner], span);
    if !tail.recurs() {
        return Ok(Rewritten::Plain(around(tail.result())));
    }
    let parts = Loop { names, span };
    let traced = around(parts.in_parts(&tail));
    Ok(if tail.once() {
        Rewritten::Plain(traced)
    } else {
        Rewritten::Twofold(around(parts.at_once(&tail)), traced)
    })
}

/// Rewrites a function body with `recur` to a loop over its parameters; also the parameters, with a name for each.
/// `None` without `recur`.
pub(super) fn rewrite_function(params: &[Form], body: &[Form], span: Span) -> Option<(Vec<Form>, Form)> {
    if !body.last().is_some_and(ends_in_recur) {
        return None;
    }
    let (mut renamed, mut pairs) = (Vec::new(), Vec::new());
    let mut rest = false;
    for (i, param) in params.iter().enumerate() {
        let name = match &param.kind {
            FormKind::Symbol(name) if *name == "&" => {
                rest = true;
                renamed.push(param.clone());
                continue;
            }
            FormKind::Symbol(_) => param.clone(),
            FormKind::List(Bracket::Round, items) if !items.is_empty() => items[0].clone(),
            // Keyword arguments stay the same in all iterations.
            FormKind::Dict(_) if rest => {
                renamed.push(param.clone());
                continue;
            }
            _ => hidden(params.len() + i, param.span),
        };
        let typed = matches!(param.kind, FormKind::List(Bracket::Round, _));
        pairs.extend([if typed { name.clone() } else { param.clone() }, name.clone()]);
        renamed.push(if typed { param.clone() } else { name });
    }
    let mut form = vec![symbol("loop", span), vector(pairs, span)];
    form.extend(body.iter().cloned());
    Some((renamed, list(form, span)))
}

/// True if a form may have `recur` in tail position.
fn ends_in_recur(form: &Form) -> bool {
    let Some([head, args @ ..]) = form.items(Bracket::Round) else { return false };
    match head.special() {
        Some(SpecialForm::Recur) => true,
        Some(SpecialForm::If | SpecialForm::Case) => args.iter().skip(1).any(ends_in_recur),
        Some(
            SpecialForm::Do | SpecialForm::Let | SpecialForm::WithParams | SpecialForm::And | SpecialForm::Or,
        ) => args.last().is_some_and(ends_in_recur),
        _ => false,
    }
}

impl Tail {
    /// A body, whose last form is in tail position.
    fn of_body(body: &[Form], span: Span) -> Tail {
        let body = cast_vectors(body.to_vec());
        match body.as_slice() {
            [one] => Tail::of(one),
            body => {
                let mut items = vec![symbol("do", span)];
                items.extend(body.iter().cloned());
                Tail::of(&list(items, span))
            }
        }
    }

    fn of(form: &Form) -> Tail {
        let value = || Tail::Value(form.clone());
        let Some([head, args @ ..]) = form.items(Bracket::Round) else { return value() };
        let Some(head) = head.special() else { return value() };
        let span = form.span;
        let tail = match head {
            SpecialForm::Recur => return Tail::Recur(cast_vectors(args.to_vec()), span),
            SpecialForm::If => match cast_vectors(args.to_vec()).as_slice() {
                [test, yes] => {
                    let nil = Form { kind: FormKind::Nil, span };
                    Tail::If(test.clone(), Box::new(Tail::of(yes)), Box::new(Tail::Value(nil)))
                }
                [test, yes, no] => Tail::If(test.clone(), Box::new(Tail::of(yes)), Box::new(Tail::of(no))),
                _ => return value(),
            },
            SpecialForm::Do | SpecialForm::Let | SpecialForm::WithParams => {
                let kept = usize::from(head != SpecialForm::Do);
                if args.len() <= kept {
                    return value();
                }
                let mut items = vec![form.items(Bracket::Round).unwrap_or(&[])[0].clone()];
                items.extend_from_slice(&args[..kept]);
                items.extend(cast_vectors(args[kept..].to_vec()));
                let Some(last) = items.pop() else { return value() };
                Tail::Scope(items, Box::new(Tail::of(&last)), span)
            }
            SpecialForm::And | SpecialForm::Or => match args {
                [] => return value(),
                [one] => return Tail::of(one),
                [one, rest @ ..] => {
                    let mut others = vec![symbol(head.name(), span)];
                    others.extend(rest.iter().cloned());
                    let others = Tail::of(&list(others, span));
                    let name = hidden(usize::MAX, span);
                    let (held, others) = (Box::new(Tail::Value(name.clone())), Box::new(others));
                    let choice = if head == SpecialForm::And {
                        Tail::If(name.clone(), others, held)
                    } else {
                        Tail::If(name.clone(), held, others)
                    };
                    let binding = vector(vec![name, one.clone()], span);
                    Tail::Scope(vec![symbol("let", span), binding], Box::new(choice), span)
                }
            },
            SpecialForm::Case => match args {
                [subject, arms @ ..] if !arms.is_empty() => Tail::of_case(subject, arms, span),
                _ => return value(),
            },
            _ => return value(),
        };
        if tail.recurs() { tail } else { value() }
    }

    /// The arms of a `case` as conditions.
    fn of_case(subject: &Form, arms: &[Form], span: Span) -> Tail {
        let name = hidden(usize::MAX - 1, span);
        let (pairs, default) = arms.split_at(arms.len() - arms.len() % 2);
        let default = default.first().map_or(Tail::Value(Form { kind: FormKind::Nil, span }), Tail::of);
        let chosen = pairs.chunks(2).rev().fold(default, |rest, arm| {
            let holds = |holds| Form { kind: FormKind::Bool(holds), span };
            let test = vec![symbol("case", span), name.clone(), arm[0].clone(), holds(true), holds(false)];
            Tail::If(list(test, span), Box::new(Tail::of(&arm[1])), Box::new(rest))
        });
        let binding = vector(vec![name, subject.clone()], span);
        Tail::Scope(vec![symbol("let", span), binding], Box::new(chosen), span)
    }

    /// True if a tail is `recur`.
    fn recurs(&self) -> bool {
        match self {
            Tail::Value(_) => false,
            Tail::Recur(..) => true,
            Tail::If(_, yes, no) => yes.recurs() || no.recurs(),
            Tail::Scope(_, last, _) => last.recurs(),
        }
    }

    /// True if a tail is a value.
    fn ends(&self) -> bool {
        match self {
            Tail::Value(_) => true,
            Tail::Recur(..) => false,
            Tail::If(_, yes, no) => yes.ends() || no.ends(),
            Tail::Scope(_, last, _) => last.ends(),
        }
    }

    /// True if the three expressions evaluate nothing twice.
    fn once(&self) -> bool {
        match self {
            _ if !(self.recurs() && self.ends()) => true,
            Tail::If(_, yes, no) => (yes.recurs() != no.recurs()) && (yes.ends() != no.ends()),
            _ => false,
        }
    }

    /// Fails if a `recur` has the wrong number of values.
    fn check(&self, names: usize) -> Result<(), Box<Diagnostic>> {
        match self {
            Tail::Recur(values, span) if values.len() != names => {
                let d = Diagnostic::error(format!("recur gives {} values to {names} names", values.len()));
                Err(Box::new(
                    d.at(*span, "found this").help("a value for each name of the loop, in their order"),
                ))
            }
            Tail::Value(_) | Tail::Recur(..) => Ok(()),
            Tail::If(_, yes, no) => yes.check(names).and_then(|()| no.check(names)),
            Tail::Scope(_, last, _) => last.check(names),
        }
    }

    /// The form with `f` applied to its tails; a condition stays only if both of its branches are `wanted`.
    fn map(&self, wanted: &dyn Fn(&Tail) -> bool, f: &dyn Fn(&Tail) -> Form) -> Form {
        match self {
            Tail::Value(_) | Tail::Recur(..) => f(self),
            Tail::If(_, yes, no) if !wanted(no) => yes.map(wanted, f),
            Tail::If(_, yes, no) if !wanted(yes) => no.map(wanted, f),
            Tail::If(test, yes, no) => list(
                vec![symbol("if", test.span), test.clone(), yes.map(wanted, f), no.map(wanted, f)],
                test.span,
            ),
            Tail::Scope(items, last, span) => {
                let mut items = items.clone();
                items.push(last.map(wanted, f));
                list(items, *span)
            }
        }
    }

    /// The condition: true if another iteration follows.
    fn goes_on(&self) -> Form {
        let constant = |holds, span| Form { kind: FormKind::Bool(holds), span };
        match self {
            _ if !self.ends() => constant(true, self.span()),
            _ if !self.recurs() => constant(false, self.span()),
            Tail::If(test, yes, no) if !yes.ends() && !no.recurs() => test.clone(),
            Tail::If(test, yes, no) => {
                list(vec![symbol("if", test.span), test.clone(), yes.goes_on(), no.goes_on()], test.span)
            }
            Tail::Scope(items, last, span) => {
                let mut items = items.clone();
                items.push(last.goes_on());
                list(items, *span)
            }
            Tail::Value(form) => constant(false, form.span),
            Tail::Recur(_, span) => constant(true, *span),
        }
    }

    /// The final result.
    fn result(&self) -> Form {
        self.map(&Tail::ends, &|end| match end {
            Tail::Value(form) => form.clone(),
            other => Form { kind: FormKind::Nil, span: other.span() },
        })
    }

    fn span(&self) -> Span {
        match self {
            Tail::Value(form) | Tail::If(form, ..) => form.span,
            Tail::Recur(_, span) | Tail::Scope(_, _, span) => *span,
        }
    }
}

/// The names of a loop.
struct Loop {
    names: Vec<Form>,
    span: Span,
}

impl Loop {
    /// A single value, or a list of several, as loop state.
    fn state(items: &[Form], span: Span) -> Form {
        match items {
            [one] => one.clone(),
            [] => Form { kind: FormKind::Bool(true), span },
            items => vector(items.to_vec(), span),
        }
    }

    /// `(let [state (while goes-on [state state] next)] result)`
    fn in_parts(&self, tail: &Tail) -> Form {
        let span = self.span;
        let next = tail.map(&Tail::recurs, &|end| match end {
            Tail::Recur(values, at) => Loop::state(values, *at),
            other => Form { kind: FormKind::Nil, span: other.span() },
        });
        let (first, pattern) = (Loop::state(&self.names, span), self.pattern());
        let round =
            vec![symbol("while", span), tail.goes_on(), vector(vec![pattern.clone(), first], span), next];
        let binding = vector(vec![pattern, list(round, span)], span);
        list(vec![symbol("let", span), binding, tail.result()], span)
    }

    fn pattern(&self) -> Form {
        if self.names.is_empty() { hidden(0, self.span) } else { Loop::state(&self.names, self.span) }
    }

    /// `(let [[goes-on result names...] (while goes-on [...] body)] result)`, where each tail of the body encodes the
    /// outcome of the iteration.
    fn at_once(&self, tail: &Tail) -> Form {
        let span = self.span;
        let (goes_on, result) = (hidden(usize::MAX - 2, span), hidden(usize::MAX - 3, span));
        let state = |holds: Form, value: Form, items: &[Form]| {
            let mut state = vec![holds, value];
            state.extend(items.iter().cloned());
            vector(state, span)
        };
        let constant = |kind| Form { kind, span };
        let (yes, no) = (constant(FormKind::Bool(true)), constant(FormKind::Bool(false)));
        let nil = constant(FormKind::Nil);
        let body = tail.map(&|_| true, &|end| match end {
            Tail::Recur(values, _) => state(yes.clone(), nil.clone(), values),
            Tail::Value(form) => state(no.clone(), form.clone(), &self.names),
            _ => nil.clone(),
        });
        let pattern = state(goes_on.clone(), result.clone(), &self.names);
        let first = state(yes.clone(), nil.clone(), &self.names);
        let round = vec![symbol("while", span), goes_on, vector(vec![pattern.clone(), first], span), body];
        list(vec![symbol("let", span), vector(vec![pattern, list(round, span)], span), result], span)
    }
}

/// A name that no program can write.
fn hidden(number: usize, span: Span) -> Form {
    Form { kind: FormKind::Symbol(Ustr::from(&format!("loop {number}"))), span }
}

fn symbol(name: &str, span: Span) -> Form {
    super::code::symbol(name, span)
}

fn list(items: Vec<Form>, span: Span) -> Form {
    super::code::list(items, span)
}

fn vector(items: Vec<Form>, span: Span) -> Form {
    Form { kind: FormKind::List(Bracket::Square, items), span }
}
