//! Resolved programs: the expressions after name resolution.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use arcstr::ArcStr;
use ustr::Ustr;

use super::dict::Key;
use super::module::Module;
use super::scalar::OnNumbers;
use super::typed::ParamType;
use super::value::{Function, Value};
use crate::stack::with_large_stack;
use sheaf_graph::tensor::DType;
use sheaf_syntax::{Bracket, Span};

/// An expression with its span.
#[derive(Debug)]
pub struct Expr {
    /// The expression.
    pub kind: ExprKind,
    /// The source span.
    pub span: Span,
}

impl Expr {
    /// A call.
    pub(crate) fn call(head: Expr, args: Vec<Expr>, span: Span) -> Expr {
        let on_numbers = match &head.kind {
            ExprKind::Const(Value::Function(f)) if args.len() == 2 => match &**f {
                Function::Builtin(builtin) => builtin.on_numbers,
                _ => None,
            },
            _ => None,
        };
        Expr { kind: ExprKind::Call { head: Box::new(head), args, on_numbers }, span }
    }

    /// Calls `f` with every direct subexpression, including bodies of functions.
    pub(crate) fn for_each_part(&self, f: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ExprKind::Const(_) | ExprKind::Local(..) | ExprKind::Global(_) | ExprKind::Def(_) => {}
            ExprKind::Param { otherwise, .. } => otherwise.iter().for_each(|e| f(e)),
            ExprKind::If(parts) => parts.iter().for_each(f),
            ExprKind::And(exprs) | ExprKind::Or(exprs) | ExprKind::Do(exprs) => exprs.iter().for_each(f),
            ExprKind::Vector { items, .. } => items.iter().for_each(f),
            ExprKind::Let { bindings, body } => {
                bindings.iter().for_each(|(_, e)| f(e));
                f(body);
            }
            ExprKind::Case { subject, arms, default } => {
                f(subject);
                arms.iter().for_each(|(_, e)| f(e));
                default.iter().for_each(|e| f(e));
            }
            ExprKind::Dict(entries) => entries.iter().for_each(|(_, e)| f(e)),
            ExprKind::Call { head, args, .. } => {
                f(head);
                args.iter().for_each(f);
            }
            ExprKind::Fn(code) => code.body.get().into_iter().for_each(f),
            ExprKind::Repeat { count, init, body, .. } => [count, init, body].into_iter().for_each(|e| f(e)),
            ExprKind::While { condition, init, body, .. } => {
                [condition, init, body].into_iter().for_each(|e| f(e));
            }
            ExprKind::Loop { once, traced } => [once, traced].into_iter().for_each(|e| f(e)),
            ExprKind::Quasi(template) => template.for_each_part(f),
            ExprKind::Static(e) | ExprKind::Cast(e, _) => f(e),
        }
    }
}

impl Template {
    fn for_each_part(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            Template::Const(_) => {}
            Template::Unquote(e) | Template::Splice(e) => f(e),
            Template::List(_, items, _) => items.iter().for_each(|t| t.for_each_part(f)),
            Template::Dict(entries, _) => entries.iter().for_each(|(k, v)| {
                k.for_each_part(f);
                v.for_each_part(f);
            }),
        }
    }
}

/// The kinds of expression.
#[derive(Debug)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// A local or captured variable, and true if this is its last read ([`super::last_use`]).
    Local(VarLocation, Cell<bool>),
    /// A definition.
    Global(Rc<Global>),
    /// A name inside `with-params`: a key of one of the dictionaries, innermost first, or else its meaning outside. At
    /// the head of a call (`head`) a function has precedence.
    Param { name: Ustr, dicts: Vec<VarLocation>, otherwise: Option<Box<Expr>>, head: bool },
    /// `(if c a b)`
    If(Box<[Expr; 3]>),
    /// `(and ...)`
    And(Vec<Expr>),
    /// `(or ...)`
    Or(Vec<Expr>),
    /// `(do ...)`
    Do(Vec<Expr>),
    /// `(let [...] ...)`
    Let { bindings: Vec<(Pattern, Expr)>, body: Box<Expr> },
    /// `(case x k v ... default)`; each arm has its keys.
    Case { subject: Box<Expr>, arms: Vec<(Vec<Value>, Expr)>, default: Option<Box<Expr>> },
    /// A vector literal, a tensor or a list; always a list if it is destructured at once. Its numbers are read as `dtype`, by
    /// default as `f32`.
    Vector { items: Vec<Expr>, list: bool, dtype: Option<DType> },
    /// A dictionary literal.
    Dict(Vec<(Key, Expr)>),
    /// A call; `on_numbers` if it calls a builtin that has a fast path for two scalars, with two arguments.
    Call { head: Box<Expr>, args: Vec<Expr>, on_numbers: Option<OnNumbers> },
    /// `(fn ...)`
    Fn(Rc<Code>),
    /// `(repeat [i n] [acc init] body)`
    Repeat { index: Slot, count: Box<Expr>, state: Pattern, init: Box<Expr>, body: Box<Expr> },
    /// `(while condition [acc init] body)`
    While { condition: Box<Expr>, state: Pattern, init: Box<Expr>, body: Box<Expr> },
    /// A `loop` whose steps, when interpreted, are evaluated as `once`; a program is traced from `traced`.
    Loop { once: Box<Expr>, traced: Box<Expr> },
    /// `(quasiquote x)`
    Quasi(Box<Template>),
    /// `(static x)`
    Static(Box<Expr>),
    /// `[1 2] :i32`
    Cast(Box<Expr>, DType),
    /// `(def name value)`; the value is stored with the definition.
    Def(Rc<Global>),
}

/// Position of a local variable in its function's frame.
pub type Slot = u32;

/// Location of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarLocation {
    /// In the frame of the running function.
    Frame(Slot),
    /// Among the captured values of the running closure.
    Captured(u32),
}

/// A binding pattern.
#[derive(Debug)]
pub enum Pattern {
    /// A name; empty for a slot that the resolver adds.
    Name(Slot, Ustr),
    /// `[a b & rest]`
    Vector(Vec<Pattern>, Option<Box<Pattern>>, Span),
    /// `{:keys [a b] :as whole}`, with the slot of `:as`; defaults are separate bindings after it.
    Keys(Vec<(Ustr, Slot)>, Option<Slot>, Span),
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Param {
    /// The pattern bound.
    pub pattern: Pattern,
    /// Its name in messages and manifests.
    pub name: Ustr,
    /// The required type: `(x f32 [4 2])`, `(p :as Name)`.
    pub ty: Option<ParamType>,
    /// The source span.
    pub span: Span,
}

/// The code of a function, shared by all closures made from it.
#[derive(Debug)]
pub struct Code {
    /// Its name; `None` for `fn`.
    pub name: Option<Ustr>,
    /// Parameters.
    pub params: Vec<Param>,
    /// `& rest`
    pub rest: Option<Pattern>,
    /// True if the parameters are names without types or `& rest`: the arguments of a call are its first slots.
    pub plain: bool,
    /// The documentation string.
    pub doc: Option<ArcStr>,
    /// The body; set after resolution, since a body may refer to its own function.
    pub body: OnceCell<Expr>,
    /// Number of slots in the frame of a call.
    pub frame_size: OnceCell<usize>,
    /// Locations of the captured values in the defining function, with their names.
    pub captures: RefCell<Vec<(VarLocation, Ustr)>>,
    /// The whole definition.
    pub span: Span,
    /// The definition up to the end of its parameters, for messages.
    pub head: Span,
    /// The first possible effect of the body: its name and span.
    pub effect: OnceCell<Option<(Ustr, Span)>>,
    /// Index of its specialisations.
    pub family: Cell<Option<usize>>,
    /// The gradient defined by `defgrad`: a function of its result, the cotangent of that, and its arguments.
    pub gradient: RefCell<Option<Rc<Code>>>,
}

impl Drop for Code {
    fn drop(&mut self) {
        let body = self.body.take();
        with_large_stack(|| drop(body));
    }
}

impl Code {
    /// The name in messages.
    pub fn display_name(&self) -> String {
        self.name.map_or_else(|| "<lambda>".into(), |n| n.to_string())
    }
}

/// A definition of a module: a name and, once its form has run, a value.
#[derive(Debug)]
pub struct Global {
    /// Its name.
    pub name: Ustr,
    /// Span of the definition: the start of the form, up to the name.
    pub span: Cell<Span>,
    /// Its module.
    pub home: Weak<Module>,
    /// True for a macro.
    pub is_macro: Cell<bool>,
    /// Its value.
    pub value: RefCell<Option<Value>>,
    /// A `def` that has not run yet.
    pub pending: RefCell<Option<Rc<Pending>>>,
}

impl Global {
    /// Its value, if it is a function.
    #[inline]
    pub(crate) fn function(&self) -> Option<Rc<Function>> {
        match &*self.value.borrow() {
            Some(Value::Function(function)) => Some(Rc::clone(function)),
            _ => None,
        }
    }
}

/// A resolved top-level expression that has not run yet.
#[derive(Debug)]
pub struct Pending {
    /// The expression.
    pub expr: Expr,
    /// Number of slots.
    pub frame_size: usize,
}

/// A quasiquoted form.
#[derive(Debug)]
pub enum Template {
    /// Data without holes.
    Const(Value),
    /// `~x`
    Unquote(Expr),
    /// `~@x`, inside a list.
    Splice(Expr),
    /// A list with holes, and its span.
    List(Bracket, Vec<Template>, Span),
    /// A dictionary with holes, also among its keys.
    Dict(Vec<(Template, Template)>, Span),
}
