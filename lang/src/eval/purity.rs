//! Effect analysis of functions.

use std::rc::Rc;

use ustr::Ustr;

use crate::program::{Code, Expr, ExprKind, Function, Template, Value};
use sheaf_syntax::Span;

/// The first possible effect of the body of `code`, or of a function it mentions: the builtin and the span.
///
/// A mention counts as a call. Functions passed as values are not analysed; tracing stops at their effects.
pub(super) fn effect(code: &Rc<Code>) -> Option<(Ustr, Span)> {
    Search { seen: Vec::new() }.code(code)
}

/// The first possible effect of an expression: the builtin and the span.
pub(super) fn effect_in(expr: &Expr) -> Option<(Ustr, Span)> {
    Search { seen: Vec::new() }.expr(expr)
}

struct Search {
    seen: Vec<*const Code>,
}

impl Search {
    fn code(&mut self, code: &Rc<Code>) -> Option<(Ustr, Span)> {
        if let Some(known) = code.effect.get() {
            return *known;
        }
        if self.seen.contains(&Rc::as_ptr(code)) {
            return None;
        }
        self.seen.push(Rc::as_ptr(code));
        self.expr(code.body.get()?)
    }

    fn value(&mut self, value: &Value, span: Span) -> Option<(Ustr, Span)> {
        if let Value::Function(f) = value { self.function(f, span) } else { None }
    }

    fn function(&mut self, f: &Function, span: Span) -> Option<(Ustr, Span)> {
        match f {
            Function::Builtin(b) => b.effect.then(|| (Ustr::from(b.name), span)),
            Function::Closure(c) => self.code(&c.code),
            Function::Transformed(_, f) => self.function(f, span),
        }
    }

    fn all<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) -> Option<(Ustr, Span)> {
        exprs.into_iter().find_map(|e| self.expr(e))
    }

    fn expr(&mut self, expr: &Expr) -> Option<(Ustr, Span)> {
        match &expr.kind {
            ExprKind::Const(value) => self.value(value, expr.span),
            ExprKind::Local(..) | ExprKind::Def(_) => None,
            ExprKind::Global(global) => {
                let value = global.value.borrow().clone();
                value.and_then(|v| self.value(&v, expr.span))
            }
            ExprKind::Param { otherwise, .. } => otherwise.as_ref().and_then(|e| self.expr(e)),
            ExprKind::If(parts) => self.all(&**parts),
            ExprKind::And(exprs) | ExprKind::Or(exprs) | ExprKind::Do(exprs) => self.all(exprs),
            ExprKind::Vector { items, .. } => self.all(items),
            ExprKind::Let { bindings, body } => {
                self.all(bindings.iter().map(|(_, e)| e)).or_else(|| self.expr(body))
            }
            ExprKind::Case { subject, arms, default } => self.all(
                std::iter::once(&**subject).chain(arms.iter().map(|(_, e)| e)).chain(default.as_deref()),
            ),
            ExprKind::Dict(entries) => self.all(entries.iter().map(|(_, e)| e)),
            ExprKind::Call { head, args, .. } => self.expr(head).or_else(|| self.all(args)),
            ExprKind::Fn(code) => self.code(code),
            ExprKind::Repeat { count, init, body, .. } => self.all([&**count, &**init, &**body]),
            ExprKind::While { condition, init, body, .. } => self.all([&**condition, &**init, &**body]),
            ExprKind::Loop { once, .. } => self.expr(once),
            ExprKind::Quasi(template) => self.template(template),
            ExprKind::Static(e) | ExprKind::Cast(e, _) => self.expr(e),
        }
    }

    fn template(&mut self, template: &Template) -> Option<(Ustr, Span)> {
        match template {
            Template::Const(_) => None,
            Template::Unquote(e) | Template::Splice(e) => self.expr(e),
            Template::List(_, items, _) => items.iter().find_map(|t| self.template(t)),
            Template::Dict(entries, _) => {
                entries.iter().find_map(|(k, v)| self.template(k).or_else(|| self.template(v)))
            }
        }
    }
}
