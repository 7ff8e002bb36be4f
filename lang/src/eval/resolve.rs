//! Resolution: every name of an expanded form is bound to a local, a definition or a builtin.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use ustr::Ustr;

use super::expand::form_to_value;
use super::expr::{Code, Expr, ExprKind, Param, Pattern, Slot, Template};
use super::interp::Interp;
use super::module::{Meaning, Module};
use super::scope::{Found, Scopes};
use super::value::{Function, Value};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Bracket, Form, FormKind, Span};
use crate::tensor::{DType, Shape};

type Resolved<T> = Result<T, Box<Diagnostic>>;

/// The special forms, which cannot be redefined.
const SPECIAL: [&str; 27] = [
    "quote",
    "quasiquote",
    "unquote",
    "unquote-splicing",
    "if",
    "and",
    "or",
    "do",
    "let",
    "case",
    "cond",
    "fn",
    "lambda",
    "repeat",
    "while",
    "with-params",
    "static",
    "def",
    "defn",
    "defmacro",
    "defparams",
    "defgrad",
    "use",
    "->",
    "->>",
    "as->",
    "&",
];

/// Whether `name` is that of a special form.
pub(super) fn is_special(name: &str) -> bool {
    SPECIAL.contains(&name)
}

/// Heads whose direct arguments may be a vector followed by a dtype that is an option, not a cast.
pub(crate) fn takes_dtype_option(head: Option<Ustr>) -> bool {
    const HEADS: [&str; 9] = ["cast", "tensor", "io", "zeros", "ones", "full", "eye", "linspace", "one-hot"];
    head.is_some_and(|h| HEADS.contains(&h.as_str()) || h.starts_with("random-") || h == "choice")
}

/// The dtype that a form is the keyword of.
pub(crate) fn dtype_keyword(form: &Form) -> Option<DType> {
    if let FormKind::Keyword(k) = form.kind { DType::parse(&k) } else { None }
}

fn error<T>(message: impl Into<String>, span: Span, label: impl Into<String>) -> Resolved<T> {
    Err(Box::new(Diagnostic::error(message).at(span, label)))
}

/// Resolves the forms of one module.
pub(super) struct Resolver<'a> {
    pub interp: &'a Interp,
    pub module: Rc<Module>,
    pub scopes: Scopes,
}

impl Resolver<'_> {
    /// The expression of an expanded form.
    pub fn form(&mut self, form: &Form) -> Resolved<Expr> {
        let span = form.span;
        let constant = |v: Value| Ok(Expr { kind: ExprKind::Const(v), span });
        match &form.kind {
            FormKind::Nil
            | FormKind::Bool(_)
            | FormKind::Int(_)
            | FormKind::Float(_)
            | FormKind::Str(_)
            | FormKind::Keyword(_)
            | FormKind::Range(..) => constant(form_to_value(form)),
            FormKind::Symbol(name) => self.name(*name, span, false),
            FormKind::List(Bracket::Square, items) => {
                let items = self.sequence(items, true)?;
                Ok(Expr { kind: ExprKind::Vector { items, list: false }, span })
            }
            FormKind::List(Bracket::Round, items) => self.list(form, items),
            FormKind::Dict(entries) => {
                let entry = |(k, v): &(Form, Form)| match form_to_value(k).as_key() {
                    Some(key) => Ok((key, self.form(v)?)),
                    None => {
                        error("a dictionary key is a keyword, a string or a symbol", k.span, "found this")
                    }
                };
                Ok(Expr { kind: ExprKind::Dict(entries.iter().map(entry).collect::<Resolved<_>>()?), span })
            }
        }
    }

    /// Consecutive forms; with `casts`, a dtype keyword after a vector literal casts it.
    pub fn sequence(&mut self, forms: &[Form], casts: bool) -> Resolved<Vec<Expr>> {
        let mut out: Vec<Expr> = Vec::with_capacity(forms.len());
        for (i, form) in forms.iter().enumerate() {
            let after_vector = i > 0 && forms[i - 1].items(Bracket::Square).is_some();
            match dtype_keyword(form).filter(|_| casts && after_vector) {
                Some(dtype) => {
                    let vector = out.pop().expect("a vector stands before");
                    let span = vector.span.to(form.span);
                    out.push(Expr { kind: ExprKind::Cast(Box::new(vector), dtype), span });
                }
                None => out.push(self.form(form)?),
            }
        }
        Ok(out)
    }

    /// Several forms of which the last gives the value.
    fn body(&mut self, forms: &[Form], span: Span) -> Resolved<Expr> {
        let mut exprs = self.sequence(forms, true)?;
        if exprs.len() == 1 {
            return Ok(exprs.swap_remove(0));
        }
        Ok(Expr { kind: ExprKind::Do(exprs), span })
    }

    fn name(&mut self, name: Ustr, span: Span, head: bool) -> Resolved<Expr> {
        let Found { dicts, local } = self.scopes.find(name);
        let outer = match local {
            Some(place) => Some(Expr { kind: ExprKind::Local(place), span }),
            None => self.global(name, span)?,
        };
        if dicts.is_empty() {
            return outer.ok_or_else(|| Box::new(self.unknown(name, span)));
        }
        // A definition at the head of a call is a function in scope: no look-up needed.
        if head && let Some(Expr { kind: ExprKind::Const(Value::Function(_)), .. }) = outer {
            return Ok(outer.expect("just seen"));
        }
        let otherwise = outer.map(Box::new);
        Ok(Expr { kind: ExprKind::Param { name, dicts, otherwise, head }, span })
    }

    fn global(&self, name: Ustr, span: Span) -> Resolved<Option<Expr>> {
        let builtin = |b| Expr { kind: ExprKind::Const(Value::function(Function::Builtin(b))), span };
        Ok(match self.interp.meaning(&self.module, name) {
            Some(Meaning::Global(global)) => Some(Expr { kind: ExprKind::Global(global), span }),
            Some(Meaning::Builtin(b)) => Some(builtin(b)),
            Some(Meaning::Ambiguous(modules)) => {
                return Err(Box::new(
                    Diagnostic::error(format!("{name} is ambiguous: {} define it", modules.join(" and ")))
                        .at(span, "used here")
                        .help("use one of them with :as and write its name in full, or with :only"),
                ));
            }
            None => None,
        })
    }

    fn unknown(&self, name: Ustr, span: Span) -> Diagnostic {
        let d = Diagnostic::error(format!("unknown name {name}")).at(span, "not defined here");
        if let Some(help) = crate::builtins::habit(&name) {
            return d.help(help);
        }
        if let Some(module) = super::load::standard_module_with(&name) {
            return d.help(format!("{name} is in the standard library: (use {module})"));
        }
        if self.interp.find_macro(&self.module, name).is_some() {
            return d.help(format!("{name} is a macro; it stands at the head of a call"));
        }
        let mut known = self.scopes.names();
        known.extend(self.module.names());
        known.extend(self.interp.builtin_names());
        match crate::builtins::nearest(&name, known.iter().map(Ustr::as_str)) {
            Some(near) => d.help(format!("did you mean {near}?")),
            None => d.help("define it with (def ...) or (defn ...), or (use ...) the module that does"),
        }
    }

    fn list(&mut self, form: &Form, items: &[Form]) -> Resolved<Expr> {
        let span = form.span;
        let Some(first) = items.first() else {
            return Ok(Expr { kind: ExprKind::Const(form_to_value(form)), span });
        };
        let args = &items[1..];
        if let Some(head) = first.symbol()
            && let Some(kind) = self.special(head, args, span)?
        {
            return Ok(Expr { kind, span });
        }
        let head = match first.symbol() {
            Some(name) => self.name(name, first.span, true)?,
            None => self.form(first)?,
        };
        let mut args = self.sequence(args, !takes_dtype_option(first.symbol()))?;
        // The state of a reduce with a vector pattern is taken apart, so a vector body stays a list.
        if first.is_symbol("reduce")
            && let [function, init, ..] = args.as_mut_slice()
            && let ExprKind::Fn(code) = &mut function.kind
            && let Some(Code { params, body, .. }) = Rc::get_mut(code)
            && let (Some(state), Some(body)) = (params.first(), body.get_mut())
        {
            keep_list(&state.pattern, body);
            keep_list(&state.pattern, init);
        }
        Ok(Expr { kind: ExprKind::Call { head: Box::new(head), args }, span })
    }

    /// The special forms; `None` if `head` is not one.
    fn special(&mut self, head: Ustr, args: &[Form], span: Span) -> Resolved<Option<ExprKind>> {
        let wrong = |usage: &str| error(format!("{head} is written {usage}"), span, "");
        Ok(Some(match head.as_str() {
            "quote" => match args {
                [x] => ExprKind::Const(form_to_value(x)),
                _ => return wrong("(quote x) or 'x"),
            },
            "quasiquote" => match args {
                [x] => ExprKind::Quasi(Box::new(self.template(x, 0)?)),
                _ => return wrong("(quasiquote x) or `x"),
            },
            "unquote" | "unquote-splicing" => {
                return error(format!("{head} outside of a quasiquote"), span, "");
            }
            "if" => match args {
                [_, _] | [_, _, _] => {
                    let nil = Expr { kind: ExprKind::Const(Value::Nil), span };
                    let [c, a] = [self.form(&args[0])?, self.form(&args[1])?];
                    let b = args.get(2).map(|f| self.form(f)).transpose()?.unwrap_or(nil);
                    ExprKind::If(Box::new([c, a, b]))
                }
                _ => return wrong("(if condition then else?)"),
            },
            "and" => ExprKind::And(self.sequence(args, true)?),
            "or" => ExprKind::Or(self.sequence(args, true)?),
            "do" => ExprKind::Do(self.sequence(args, true)?),
            "let" => self.let_form(args, span)?,
            "case" => self.case(args, span)?,
            "fn" | "lambda" => {
                let [params, body @ ..] = args else { return wrong("(fn [params] body...)") };
                ExprKind::Fn(self.function(None, None, params, body, span)?)
            }
            "repeat" => {
                let [counter, state, body @ ..] = args else {
                    return wrong("(repeat [i n] [acc init] body)");
                };
                let Some([index, count]) = counter.items(Bracket::Square) else {
                    return error("repeat wants [i n] first", counter.span, "expected a name and a count");
                };
                let Some(name) = index.symbol() else {
                    return error("repeat counts with a name", index.span, "expected a name");
                };
                let count = Box::new(self.form(count)?);
                let (init, state) = self.state(state)?;
                let mark = self.scopes.open();
                let index = self.scopes.bind(name);
                let state = self.pattern(&state)?;
                let body = self.body(body, span)?;
                self.scopes.close(mark);
                let [init, body] = [init, body].map(|e| Box::new(taken_apart(&state, e)));
                ExprKind::Repeat { index, count, state, init, body }
            }
            "while" => {
                let [condition, state, body @ ..] = args else {
                    return wrong("(while condition [acc init] body)");
                };
                let (init, state) = self.state(state)?;
                let mark = self.scopes.open();
                let state = self.pattern(&state)?;
                let condition = Box::new(self.form(condition)?);
                let body = self.body(body, span)?;
                self.scopes.close(mark);
                let [init, body] = [init, body].map(|e| Box::new(taken_apart(&state, e)));
                ExprKind::While { condition, state, init, body }
            }
            "with-params" => self.with_params(args, span)?,
            "static" => match args {
                [x] => ExprKind::Static(Box::new(self.form(x)?)),
                _ => return wrong("(static x)"),
            },
            "def" | "defn" | "defmacro" | "use" => {
                return error(
                    format!("{head} belongs at the top level of a file"),
                    span,
                    "found inside another form",
                );
            }
            "defparams" | "defgrad" => {
                return error(format!("{head} is not supported by this version of Sheaf"), span, "");
            }
            _ => return Ok(None),
        }))
    }

    /// `[acc init]` of a loop: the initial value, resolved outside of the loop's scope, and the pattern.
    fn state(&mut self, form: &Form) -> Resolved<(Expr, Form)> {
        match form.items(Bracket::Square) {
            Some([pattern, init @ ..]) if !init.is_empty() => {
                Ok((self.body(init, form.span)?, pattern.clone()))
            }
            _ => error(
                "a loop wants [acc init]: a name or pattern and its first value",
                form.span,
                "found this",
            ),
        }
    }

    fn let_form(&mut self, args: &[Form], span: Span) -> Resolved<ExprKind> {
        let Some((bindings, body)) = args.split_first() else {
            return error("let is written (let [name value ...] body...)", span, "");
        };
        let Some(pairs) = bindings.items(Bracket::Square) else {
            return Err(Box::new(
                Diagnostic::error("let wants its bindings in square brackets")
                    .at(bindings.span, "expected [name value ...]")
                    .help("write (let [x 1 y 2] ...)"),
            ));
        };
        let mark = self.scopes.open();
        let mut resolved = Vec::new();
        let mut i = 0;
        while i < pairs.len() {
            let Some(value) = pairs.get(i + 1) else {
                return error("let wants a value for every name", pairs[i].span, "this one has none");
            };
            let mut value_expr = self.form(value)?;
            let mut step = 2;
            if value.items(Bracket::Square).is_some()
                && let Some(dtype) = pairs.get(i + 2).and_then(dtype_keyword)
            {
                let whole = value.span.to(pairs[i + 2].span);
                value_expr = Expr { kind: ExprKind::Cast(Box::new(value_expr), dtype), span: whole };
                step = 3;
            }
            let pattern = self.pattern(&pairs[i])?;
            let value_expr = taken_apart(&pattern, value_expr);
            resolved.push((pattern, value_expr));
            i += step;
        }
        let body = Box::new(self.body(body, span)?);
        self.scopes.close(mark);
        Ok(ExprKind::Let { bindings: resolved, body })
    }

    fn case(&mut self, args: &[Form], span: Span) -> Resolved<ExprKind> {
        let Some((subject, arms)) = args.split_first() else {
            return error("case is written (case x k1 v1 ... default?)", span, "");
        };
        let subject = Box::new(self.form(subject)?);
        let (pairs, default) = arms.split_at(arms.len() - arms.len() % 2);
        let arm = |pair: &[Form]| Ok((alternatives(&pair[0]), self.form(&pair[1])?));
        let arms = pairs.chunks(2).map(arm).collect::<Resolved<_>>()?;
        let default = default.first().map(|f| self.form(f)).transpose()?.map(Box::new);
        Ok(ExprKind::Case { subject, arms, default })
    }

    /// `(with-params [p :k :k2] body)`: binds the dictionary to a slot whose keys are names in the body.
    fn with_params(&mut self, args: &[Form], span: Span) -> Resolved<ExprKind> {
        let Some((target, body)) = args.split_first().filter(|(_, body)| !body.is_empty()) else {
            return error("with-params is written (with-params [p :key ...] body...)", span, "");
        };
        let dict = match target.items(Bracket::Square) {
            Some([dict, path @ ..]) => {
                let mut expr = self.form(dict)?;
                for key in path {
                    let entry = Value::function(Function::Builtin(crate::builtins::ENTRY));
                    let head = Box::new(Expr { kind: ExprKind::Const(entry), span: key.span });
                    let args = vec![expr, self.form(key)?];
                    expr = Expr { kind: ExprKind::Call { head, args }, span: dict.span.to(key.span) };
                }
                expr
            }
            Some([]) => return error("with-params wants a dictionary", target.span, "nothing here"),
            None => self.form(target)?,
        };
        let mark = self.scopes.open();
        let slot = self.scopes.bind_params();
        let body = Box::new(self.body(body, span)?);
        self.scopes.close(mark);
        Ok(ExprKind::Let { bindings: vec![(Pattern::Name(slot), dict)], body })
    }

    /// A function: `(fn [params] body)` or the tail of a `defn`.
    pub fn function(
        &mut self,
        name: Option<Ustr>,
        doc: Option<Rc<str>>,
        params: &Form,
        body: &[Form],
        span: Span,
    ) -> Resolved<Rc<Code>> {
        let FormKind::List(_, items) = &params.kind else {
            return Err(Box::new(
                Diagnostic::error("a function wants its parameters in brackets")
                    .at(params.span, "expected [x y ...]")
                    .help("write (fn [x] ...) or (defn name [x] ...)"),
            ));
        };
        // Macros may bring parameters from elsewhere.
        let inside = span.source == params.span.source && (span.start..span.end).contains(&params.span.start);
        let head = if inside { span.to(params.span) } else { span };
        self.scopes.enter();
        let resolved =
            self.parameters(items).and_then(|(params, rest)| Ok((params, rest, self.body(body, span)?)));
        let (size, captures) = self.scopes.leave();
        let (params, rest, body) = resolved?;
        let code = Code {
            name,
            params,
            rest,
            doc,
            body: OnceCell::from(body),
            frame_size: OnceCell::from(size),
            captures: RefCell::new(captures),
            span,
            head,
            effect: OnceCell::new(),
            family: Cell::new(None),
        };
        Ok(Rc::new(code))
    }

    fn parameters(&mut self, items: &[Form]) -> Resolved<(Vec<Param>, Option<Pattern>)> {
        let mut params = Vec::new();
        let mut items = items.iter();
        while let Some(item) = items.next() {
            if item.is_symbol("&") {
                let (Some(rest), None) = (items.next(), items.next()) else {
                    return error("& is followed by one last name", item.span, "");
                };
                return Ok((params, Some(self.pattern(rest)?)));
            }
            params.push(self.parameter(item)?);
        }
        Ok((params, None))
    }

    fn parameter(&mut self, form: &Form) -> Resolved<Param> {
        let span = form.span;
        let plain = |pattern, name| Param { pattern, name, shape: None, dtype: None, span };
        match &form.kind {
            FormKind::Symbol(name) => Ok(plain(Pattern::Name(self.scopes.bind(*name)), *name)),
            FormKind::List(Bracket::Round, items) => {
                let (name, dtype, shape) = match items.as_slice() {
                    [name, shape] => (name, None, shape),
                    [name, dtype, shape] => (name, Some(dtype), shape),
                    _ => return error("a typed parameter is written (x [4 2]) or (x f32 [4 2])", span, ""),
                };
                let dtype = match dtype.map(|d| (d, d.symbol().and_then(|s| DType::parse(&s)))) {
                    Some((form, None)) => {
                        return error("unknown dtype", form.span, "expected f32, i32, i64, u32 or bool");
                    }
                    Some((_, dtype)) => dtype,
                    None => None,
                };
                let extents = shape.items(Bracket::Square).map(|items| {
                    let extent =
                        |f: &Form| if let FormKind::Int(n) = f.kind { usize::try_from(n).ok() } else { None };
                    items.iter().map(extent).collect::<Option<Shape>>()
                });
                let (Some(name), Some(Some(shape))) = (name.symbol(), extents) else {
                    return error("a typed parameter is written (x [4 2]) or (x f32 [4 2])", span, "");
                };
                Ok(Param {
                    pattern: Pattern::Name(self.scopes.bind(name)),
                    name,
                    shape: Some(shape),
                    dtype,
                    span,
                })
            }
            _ => Ok(plain(self.pattern(form)?, Ustr::from("arg"))),
        }
    }

    /// A binding pattern; its names are bound from here on.
    fn pattern(&mut self, form: &Form) -> Resolved<Pattern> {
        match &form.kind {
            FormKind::Symbol(name) => Ok(Pattern::Name(self.scopes.bind(*name))),
            FormKind::List(Bracket::Square, items) => {
                let cut = items.iter().position(|f| f.is_symbol("&"));
                let (plain, rest) = items.split_at(cut.unwrap_or(items.len()));
                let plain = plain.iter().map(|f| self.pattern(f)).collect::<Resolved<_>>()?;
                let rest = match rest {
                    [] => None,
                    [_, rest] => Some(Box::new(self.pattern(rest)?)),
                    _ => return error("& is followed by one last name", form.span, ""),
                };
                Ok(Pattern::Vector(plain, rest, form.span))
            }
            FormKind::Dict(entries) => match entries.as_slice() {
                [(key, names)] if matches!(key.kind, FormKind::Keyword(k) if k == "keys") => {
                    let names = names
                        .items(Bracket::Square)
                        .and_then(|n| n.iter().map(Form::symbol).collect::<Option<Vec<_>>>());
                    let Some(names) = names else {
                        return error("{:keys [a b]} wants names in square brackets", form.span, "");
                    };
                    let bound =
                        names.into_iter().map(|n| (n, self.scopes.bind(n))).collect::<Vec<(Ustr, Slot)>>();
                    Ok(Pattern::Keys(bound, form.span))
                }
                _ => error("a dictionary pattern is written {:keys [a b]}", form.span, ""),
            },
            _ => error("expected a name or a pattern", form.span, "cannot be bound"),
        }
    }

    fn template(&mut self, form: &Form, depth: usize) -> Resolved<Template> {
        match &form.kind {
            FormKind::List(bracket, items) => {
                if let [head, inner] = items.as_slice() {
                    if head.is_symbol("unquote") && depth == 0 {
                        return Ok(Template::Unquote(self.form(inner)?));
                    }
                    if head.is_symbol("unquote-splicing") && depth == 0 {
                        return Ok(Template::Splice(self.form(inner)?));
                    }
                }
                let deeper = match items.first() {
                    Some(head) if head.is_symbol("quasiquote") => depth + 1,
                    Some(head) if head.is_symbol("unquote") || head.is_symbol("unquote-splicing") => {
                        depth.saturating_sub(1)
                    }
                    _ => depth,
                };
                let items = items.iter().map(|f| self.template(f, deeper)).collect::<Resolved<Vec<_>>>()?;
                if items.iter().all(|t| matches!(t, Template::Const(_))) {
                    return Ok(Template::Const(form_to_value(form)));
                }
                Ok(Template::List(*bracket, items))
            }
            FormKind::Dict(entries) => {
                let entry = |(k, v): &(Form, Form)| Ok((self.template(k, depth)?, self.template(v, depth)?));
                Ok(Template::Dict(entries.iter().map(entry).collect::<Resolved<_>>()?, form.span))
            }
            _ => Ok(Template::Const(form_to_value(form))),
        }
    }
}

/// What the key of a `case` stands for: itself, or any item of a list in round brackets.
fn alternatives(key: &Form) -> Vec<Value> {
    match key.items(Bracket::Round) {
        Some([quote, x]) if quote.is_symbol("quote") => vec![form_to_value(x)],
        Some(items) => items.iter().map(form_to_value).collect(),
        None => vec![form_to_value(key)],
    }
}

/// An expression whose value `pattern` takes: a vector literal for a vector pattern stays a list (SPEC section 2).
fn taken_apart(pattern: &Pattern, mut value: Expr) -> Expr {
    keep_list(pattern, &mut value);
    value
}

fn keep_list(pattern: &Pattern, expr: &mut Expr) {
    let Pattern::Vector(patterns, ..) = pattern else { return };
    match &mut expr.kind {
        ExprKind::Vector { items, list } => {
            *list = true;
            patterns.iter().zip(items).for_each(|(p, item)| keep_list(p, item));
        }
        ExprKind::Do(body) => body.last_mut().into_iter().for_each(|e| keep_list(pattern, e)),
        ExprKind::Let { body, .. } => keep_list(pattern, body),
        ExprKind::If(parts) => parts[1..].iter_mut().for_each(|e| keep_list(pattern, e)),
        ExprKind::Case { arms, default, .. } => {
            let arms = arms.iter_mut().map(|(_, e)| e).chain(default.as_deref_mut());
            arms.for_each(|e| keep_list(pattern, e));
        }
        _ => {}
    }
}
