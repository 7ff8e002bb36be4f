//! Context added to an error as it propagates: the call, the origins of its operands, the origin of a nil.

use super::checks::called;
use super::interp::Interp;
use super::signal::{Signal, Stop};
use crate::builtins;
use crate::program::{
    Code, Expr, ExprKind, Function, Key, Origin, Pattern, Slot, Tensor, Value, VarLocation, is_private,
};
use either::Either;
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::{Diagnostic, Label, Suspect};
use ustr::Ustr;

/// Maximum operands whose origin one message shows.
const SHOWN_OPERANDS: usize = 4;

/// Failed look-ups that are remembered: enough to reach from a look-up to the use of its result.
const REMEMBERED: usize = 64;

/// A look-up of a missing key.
#[derive(Clone, Debug)]
pub(crate) struct FailedLookup {
    key: Ustr,
    /// The call that looked it up.
    span: Span,
    /// The keys that exist.
    keys: Vec<Ustr>,
}

/// The last failed look-ups, by their call.
#[derive(Debug, Default)]
pub(crate) struct FailedLookups {
    recent: Vec<FailedLookup>,
    next: usize,
}

impl FailedLookups {
    /// Records that the call at `span` found no `key` among `keys`.
    pub(crate) fn remember(&mut self, key: Ustr, span: Span, keys: impl Iterator<Item = Key>) {
        /// One more than a message lists, to show that there are more.
        const KEYS: usize = 7;
        if let Some(known) = self.recent.iter_mut().find(|m| m.span == span) {
            known.key = key;
            known.keys.clear();
            known.keys.extend(keys.take(KEYS).map(|key| key.name));
            return;
        }
        let lookup = FailedLookup { key, span, keys: keys.take(KEYS).map(|key| key.name).collect() };
        if self.recent.len() < REMEMBERED {
            self.recent.push(lookup);
        } else {
            self.recent[self.next] = lookup;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn at(&self, span: Span) -> Option<&FailedLookup> {
        self.recent.iter().find(|m| m.span == span)
    }
}

/// Adds context to an error in a call, at `span`, of a Rust function with these arguments.
pub(super) fn in_builtin(mut signal: Signal, span: Span, args: &[Value]) -> Signal {
    let Stop::Error(d) = &mut *signal else { return signal.at(span) };
    d.suspect = None;
    // A label is there already if the error comes from a callback.
    if d.labels.is_empty() {
        d.labels.push(Label { span, text: String::new() });
        operands(d, args);
        d.suspect = args.iter().position(|v| matches!(v, Value::Nil)).map(Suspect::Argument);
    }
    signal
}

/// Adds context to an error in the call at `span` of a value that is no function.
pub(super) fn in_value_call(signal: Signal, span: Span, head: &Value, args: &[Value]) -> Signal {
    let mut signal = in_builtin(signal, span, args);
    let Stop::Error(d) = &mut *signal else { return signal };
    operands(d, std::slice::from_ref(head));
    if matches!(head, Value::Nil) {
        d.suspect = Some(Suspect::Head);
    }
    signal
}

/// Adds context to an error about the value of `expr`, which is no call: a condition or a destructured value.
pub(super) fn in_value(interp: &Interp, signal: Signal, expr: &Expr, value: &Value) -> Signal {
    let mut signal = signal.at(expr.span);
    let Stop::Error(d) = &mut *signal else { return signal };
    operands(d, std::slice::from_ref(value));
    if matches!(value, Value::Nil) {
        interp.follow(d, expr);
    }
    signal
}

/// Labels the origins of the tensors whose types the message names.
pub(super) fn operands(d: &mut Diagnostic, values: &[Value]) {
    let mut shown = 0;
    let tensors = values.iter().flat_map(|value| match value {
        Value::List(list) => Either::Left(list.items.iter()),
        other => Either::Right(std::iter::once(other)),
    });
    for value in tensors {
        let Value::Tensor(tensor) = value else { continue };
        let Some(label) = origin_label(d, tensor) else { continue };
        d.labels.push(label);
        shown += 1;
        if shown == SHOWN_OPERANDS {
            return;
        }
    }
}

fn origin_label(d: &Diagnostic, tensor: &Tensor) -> Option<Label> {
    let origin = tensor.origin().filter(|origin| d.labels.iter().all(|l| l.span != origin.span()))?;
    let ty = tensor.ty().to_string();
    let named = d.message.contains(&ty) || d.notes.iter().any(|n| n.contains(&ty));
    named.then(|| match origin {
        Origin::Made(span) => Label { span, text: format!("{ty} was made here") },
        Origin::Declared(span) => Label { span, text: format!("{ty} is declared here") },
    })
}

/// Adds context to an error that leaves the body of a function called at `span`: a nil parameter comes from the caller.
pub(super) fn leaving_closure(mut signal: Signal, code: &Code, span: Span) -> Signal {
    let Stop::Error(d) = &mut *signal else { return signal };
    called(d, code.name, span);
    let Some(Suspect::Local(slot)) = d.suspect.take() else { return signal };
    for (i, param) in code.params.iter().enumerate() {
        match &param.pattern {
            Pattern::Name(name, _) if *name == slot => d.suspect = Some(Suspect::Argument(i)),
            pattern => missing_key(d, pattern, slot),
        }
    }
    signal
}

/// Labels the pattern if it destructures a missing key into `slot`.
fn missing_key(d: &mut Diagnostic, pattern: &Pattern, slot: Slot) {
    match pattern {
        Pattern::Keys(keys, _, span) => {
            if let Some((key, _)) = keys.iter().find(|(_, s)| *s == slot) {
                label(d, *span, format!("the dictionary has no :{key}"));
                d.suspect = None;
            }
        }
        Pattern::Vector(items, ..) => items.iter().for_each(|p| missing_key(d, p, slot)),
        Pattern::Name(..) => {}
    }
}

/// Adds a label, unless its span is labelled or in the library.
fn label(d: &mut Diagnostic, span: Span, text: String) {
    if span.source.is_library() {
        d.notes.push(text);
        return;
    }
    match d.labels.iter_mut().skip(1).find(|l| l.span == span) {
        Some(known) => known.text = text,
        None => d.labels.push(Label { span, text }),
    }
}

impl Interp {
    /// The span shown for code at `span`: in the library, that of the user's call.
    pub(super) fn user_place(&self, span: Span) -> Span {
        if span.source.is_library() { self.span.unwrap_or(span) } else { span }
    }

    /// Adds context to an error that leaves a library function called by the program: help is for that call, not for
    /// the builtin inside it.
    pub(super) fn leaving_library(&self, mut signal: Signal, code: &Code) -> Signal {
        const CALLED: &str = "it is called ";
        if let Stop::Error(d) = &mut *signal
            && code.span.source.is_library()
            && code.name.is_some_and(|name| !is_private(&name))
            && d.help.as_ref().is_none_or(|help| help.starts_with(CALLED))
            && d.labels.first().is_none_or(|label| Some(label.span) == self.span)
        {
            d.help = Some(format!("{CALLED}{}", code.signature(&self.sources)));
        }
        signal
    }

    /// Adds context to an error that leaves the call `expr`.
    pub(super) fn leaving_call(&self, signal: Signal, expr: &Expr, head: &Expr, args: &[Expr]) -> Signal {
        let place = self.user_place(expr.span);
        let mut signal = signal.at(place);
        let Stop::Error(d) = &mut *signal else { return signal };
        let private = |head: &Expr| match &head.kind {
            ExprKind::Const(Value::Function(f)) => is_private(&f.name()),
            _ => false,
        };
        let inside = expr.span.source.is_library() && d.labels[0].span == place && !private(head);
        if inside && !d.labels.iter().any(|l| l.span.source.is_library()) {
            d.labels.push(Label { span: expr.span, text: "inside the library, here".into() });
        }
        match d.suspect.take() {
            Some(Suspect::Argument(i)) => {
                if let Some(arg) = args.get(i) {
                    self.follow(d, arg);
                }
            }
            Some(Suspect::Head) => self.follow(d, head),
            other => d.suspect = other,
        }
        signal
    }

    /// Adds context to an error that leaves the scope of these bindings.
    pub(super) fn leaving_let(&self, mut signal: Signal, bindings: &[(Pattern, Expr)]) -> Signal {
        let Stop::Error(d) = &mut *signal else { return signal };
        self.follow_bindings(d, bindings);
        signal
    }

    fn follow_bindings(&self, d: &mut Diagnostic, bindings: &[(Pattern, Expr)]) {
        for (pattern, value) in bindings.iter().rev() {
            let Some(Suspect::Local(slot)) = d.suspect else { return };
            match pattern {
                Pattern::Name(name, _) if *name == slot => self.follow(d, value),
                pattern => missing_key(d, pattern, slot),
            }
        }
    }

    /// Finds the origin of the nil that `expr` gave.
    fn follow(&self, d: &mut Diagnostic, expr: &Expr) {
        d.suspect = None;
        match &expr.kind {
            ExprKind::Local(VarLocation::Frame(slot), _) => {
                label(d, expr.span, "this is nil".into());
                d.suspect = Some(Suspect::Local(*slot));
            }
            ExprKind::Do(body) if !body.is_empty() => self.follow(d, &body[body.len() - 1]),
            ExprKind::Let { bindings, body } => {
                self.follow(d, body);
                self.follow_bindings(d, bindings);
            }
            ExprKind::Global(global) => {
                label(d, expr.span, "this is nil".into());
                label(d, global.span.get(), "defined here".into());
            }
            ExprKind::If(parts) if matches!(parts[2].kind, ExprKind::Const(Value::Nil)) => {
                label(d, expr.span, "this is nil where the condition does not hold".into());
            }
            ExprKind::Call { head, args, .. } if looks_up(head) => {
                match self.failed_lookups.at(self.user_place(expr.span)) {
                    Some(lookup) => found_no(d, expr.span, lookup),
                    None => match args.first() {
                        // (get nil k) is nil, so the nil is older.
                        Some(dict) if matches!(dict.kind, ExprKind::Call { .. } | ExprKind::Local(..)) => {
                            self.follow(d, dict);
                        }
                        _ => label(d, expr.span, "this gives nil".into()),
                    },
                }
            }
            ExprKind::Const(Value::Nil) => {}
            // A library function returns the result of its failed look-up.
            ExprKind::Call { .. }
                if expr.span.source.is_library()
                    && self.failed_lookups.at(self.user_place(expr.span)).is_some() =>
            {
                if let Some(lookup) = self.failed_lookups.at(self.user_place(expr.span)) {
                    found_no(d, expr.span, lookup);
                }
            }
            ExprKind::Call { .. } => label(d, expr.span, "this gives nil".into()),
            _ => label(d, expr.span, "this is nil".into()),
        }
    }
}

/// True if a call of `head` looks up a key, and gives nil if it is missing.
fn looks_up(head: &Expr) -> bool {
    match &head.kind {
        ExprKind::Const(Value::Keyword(_)) => true,
        ExprKind::Const(Value::Function(f)) => {
            matches!(&**f, Function::Builtin(b) if ["get", "get-in"].contains(&b.name))
        }
        _ => false,
    }
}

fn found_no(d: &mut Diagnostic, span: Span, lookup: &FailedLookup) {
    const LISTED: usize = 6;
    let shown: Vec<String> = lookup.keys.iter().take(LISTED).map(|k| format!(":{k}")).collect();
    let more = if lookup.keys.len() > LISTED { " ..." } else { "" };
    let there = if shown.is_empty() {
        "the dictionary is empty".to_string()
    } else {
        format!("there is {}{more}", shown.join(" "))
    };
    label(d, span, format!("found no :{} here; {there}", lookup.key));
    let near = lookup.keys.iter().find(|k| k.eq_ignore_ascii_case(&lookup.key)).map(ToString::to_string);
    // Short keys, as of weights, are all similar: none is a misspelling of another.
    let long = lookup.key.chars().count() > 3;
    let known = lookup.keys.iter().map(Ustr::as_str);
    let near = near.or_else(|| long.then(|| builtins::nearest(&lookup.key, known)).flatten());
    d.help = Some(match near {
        Some(near) => format!("did you mean :{near}?"),
        None => "check the key, or give a default as the last argument".into(),
    });
}
