//! Resolution of binding forms: functions, parameters, patterns; and of quasiquoted templates.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use arcstr::ArcStr;
use ustr::Ustr;

use super::code::form_to_value;
use super::last_use::mark_last_uses;
use super::recur::rewrite_function;
use super::resolve::{MissingKey, Resolved, Resolver, error};
use crate::program::{
    Code, Meaning, Param, ParamType, Pattern, Slot, TOO_LARGE, Template, fits_memory, joined,
};
use sheaf_graph::tensor::{DType, Shape};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span, SpecialForm};

/// Fails at a default in Python's syntax, `y=3`.
fn default_of_python(name: &str, span: Span) -> Resolved<()> {
    let Some((name, value)) = name.split_once('=') else { return Ok(()) };
    if !name.starts_with(char::is_alphabetic) {
        return Ok(());
    }
    let value = if value.is_empty() { "value" } else { value };
    Err(Box::new(
        Diagnostic::error("a parameter has no default of its own")
            .at(span, "this would be its whole name")
            .help(format!(
                "take it by name: & {{:keys [{name}] :or {{{name} {value}}}}}, for a call (f x :{name} ...)"
            )),
    ))
}

/// Fails if one of the `earlier` parameters has the name of `param`, which would hide it. Names of ignored parameters may repeat.
fn unlike_earlier(earlier: &[Param], param: &Param) -> Resolved<()> {
    let name = |param: &Param| if let Pattern::Name(_, name) = param.pattern { Some(name) } else { None };
    let Some(own) = name(param).filter(|name| !name.starts_with('_')) else { return Ok(()) };
    match earlier.iter().find(|earlier| name(earlier) == Some(own)) {
        Some(first) => Err(Box::new(
            Diagnostic::error(format!("two parameters are called {own}"))
                .at(param.span, "again here")
                .at(first.span, "first here")
                .help("give one of them another name; _ stands for one that is not used"),
        )),
        None => Ok(()),
    }
}

/// Fails at several parameter lists as in Clojure, `([x] ...) ([x y] ...)`.
fn one_parameter_list(params: &Form, body: &[Form]) -> Resolved<()> {
    let list = |form: &Form| {
        let [params, _, ..] = form.items(Bracket::Round)? else { return None };
        params.items(Bracket::Square).map(|_| params.span)
    };
    if list(params).is_none() || body.iter().any(|form| list(form).is_none()) {
        return Ok(());
    }
    Err(Box::new(
        Diagnostic::error("a function has one list of parameters")
            .at(params.span, "with this another form of the function begins")
            .help("further arguments are collected by & rest, or named with defaults by & {:keys [y] :or {y 1}}"),
    ))
}

impl Resolver<'_> {
    /// A function: `(fn [params] body)` or the tail of a `defn`.
    pub fn function(
        &mut self,
        name: Option<Ustr>,
        doc: Option<ArcStr>,
        params: &Form,
        body: &[Form],
        span: Span,
    ) -> Resolved<Rc<Code>> {
        one_parameter_list(params, body)?;
        let FormKind::List(_, items) = &params.kind else {
            let how = match (name, params.symbol()) {
                (None, Some(param)) => format!("write (fn [{}] ...)", param.trim_end_matches(':')),
                (Some(name), Some(param)) => format!("write (defn {name} [{param}] ...)"),
                _ => "write (fn [x] ...) or (defn name [x] ...)".into(),
            };
            return Err(Box::new(
                Diagnostic::error("a function wants its parameters in brackets")
                    .at(params.span, "expected [x y ...]")
                    .help(how),
            ));
        };
        // Macros may take parameters from elsewhere.
        let inside = span.source == params.span.source && (span.start..span.end).contains(&params.span.start);
        let head = if inside { Span { end: params.span.end, ..span } } else { span };
        let recur =
            if self.redefined(Ustr::from("recur")) { None } else { rewrite_function(items, body, span) };
        let (items, body) = match &recur {
            Some((items, body)) => (items.as_slice(), std::slice::from_ref(body)),
            None => (items.as_slice(), body),
        };
        self.scopes.enter();
        let resolved = self.parameters(items).map(|(params, rest)| {
            let defaults = std::mem::take(&mut self.defaults);
            (params, rest, self.with_defaults(&defaults, span, |r| r.body(body, span)))
        });
        let (size, captures) = self.scopes.leave();
        let (params, rest, body) = resolved?;
        mark_last_uses(&body);
        let by_name = |(i, p): (usize, &Param)| {
            p.ty.is_none() && matches!(p.pattern, Pattern::Name(slot, _) if slot as usize == i)
        };
        let plain = rest.is_none() && params.iter().enumerate().all(by_name);
        let code = Code {
            name,
            params,
            rest,
            plain,
            doc,
            body: OnceCell::from(body),
            frame_size: OnceCell::from(size),
            captures: RefCell::new(captures),
            span,
            head,
            effect: OnceCell::new(),
            family: Cell::new(None),
            gradient: RefCell::default(),
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
            let param = self.parameter(item)?;
            unlike_earlier(&params, &param)?;
            params.push(param);
        }
        Ok((params, None))
    }

    fn parameter(&mut self, form: &Form) -> Resolved<Param> {
        let span = form.span;
        let plain = |pattern, name| Param { pattern, name, ty: None, span };
        match &form.kind {
            FormKind::Symbol(name) => {
                default_of_python(name, span)?;
                Ok(plain(Pattern::Name(self.scopes.bind(*name), *name), *name))
            }
            FormKind::List(Bracket::Round, items) => {
                let Some((name, ty)) = self.parameter_type(items, span)? else {
                    let d = Diagnostic::error(
                        "a typed parameter is written (x [4 2]), (x f32 [4 2]) or (p :as Name)",
                    );
                    return Err(Box::new(
                        d.at(span, "found this")
                            .help("extents are whole numbers, known when the file is read"),
                    ));
                };
                let pattern = Pattern::Name(self.scopes.bind(name), name);
                Ok(Param { pattern, name, ty: Some(ty), span })
            }
            _ => Ok(plain(self.pattern(form)?, Ustr::from("arg"))),
        }
    }

    /// The name and type in `(x f32 [4 2])` or `(p :as Name)`; `None` for other forms.
    fn parameter_type(&self, items: &[Form], span: Span) -> Resolved<Option<(Ustr, ParamType)>> {
        let (name, dtype, shape) = match items {
            [name, Form { kind: FormKind::Keyword(as_), .. }, tree] if *as_ == "as" => {
                let Some((name, tree)) = name.symbol().zip(tree.symbol()) else { return Ok(None) };
                return Ok(Some((name, self.named_tree(tree, span)?)));
            }
            [name, shape] => (name, None, shape),
            [name, dtype, shape] => (name, Some(dtype), shape),
            _ => return Ok(None),
        };
        let dtype = match dtype.map(|d| (d, &d.kind)) {
            Some((form, FormKind::Symbol(d) | FormKind::Keyword(d))) => Some(
                DType::named(d).map_err(|e| Box::new(Diagnostic::error(e).at(form.span, "this dtype")))?,
            ),
            Some(_) => return Ok(None),
            None => None,
        };
        let extent = |f: &Form| if let FormKind::Int(n) = f.kind { usize::try_from(n).ok() } else { None };
        let extents = |items: &[Form]| items.iter().map(extent).collect::<Option<Shape>>();
        let at = shape.span;
        let shape = shape.items(Bracket::Square).and_then(extents);
        if let Some(shape) = shape.as_ref().filter(|shape| !fits_memory(shape)) {
            return Err(Box::new(
                Diagnostic::error(format!("{name} has {TOO_LARGE}"))
                    .at(at, joined(shape))
                    .help("the extents are multiplied: is one of them too large, or one too many?"),
            ));
        }
        Ok(name.symbol().zip(shape).map(|(name, shape)| (name, ParamType::Tensor(shape, dtype))))
    }

    /// The type declared by `(defparams name ...)`.
    fn named_tree(&self, name: Ustr, span: Span) -> Resolved<ParamType> {
        let d = || Diagnostic::error(format!("{name} is not the name of a parameter tree"));
        let found = match self.names.meaning(&self.module, name) {
            Some(Meaning::Global(global)) => Some((global.value.borrow().clone(), global.span.get())),
            _ => None,
        };
        match found {
            Some((Some(value), at)) => ParamType::of(&value, &name)
                .map_err(|what| Box::new(d().at(span, "used here").at(at, "defined here").note(what))),
            _ => Err(Box::new(
                d().at(span, "not defined here")
                    .help(format!("write (defparams {name} {{:W [2 8] :b [8]}}) above")),
            )),
        }
    }

    /// A binding pattern; binds its names from here on.
    pub(super) fn pattern(&mut self, form: &Form) -> Resolved<Pattern> {
        match &form.kind {
            FormKind::Symbol(name) => Ok(Pattern::Name(self.scopes.bind(*name), *name)),
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
            FormKind::Dict(entries) => self.keys_pattern(entries, form.span),
            _ => error("expected a name or a pattern", form.span, "cannot be bound"),
        }
    }

    /// `{:keys [a b] :or {b 0} :as whole}`
    fn keys_pattern(&mut self, entries: &[(Form, Form)], span: Span) -> Resolved<Pattern> {
        const USAGE: &str = "a dictionary pattern is written {:keys [a b] :or {b 0} :as whole}";
        let (mut names, mut defaults, mut whole) = (None, [].as_slice(), None);
        for (key, value) in entries {
            match (&key.kind, &value.kind) {
                (FormKind::Keyword(k), FormKind::List(Bracket::Square, items)) if *k == "keys" => {
                    let symbols = items.iter().map(Form::symbol).collect::<Option<Vec<_>>>();
                    let Some(symbols) = symbols else {
                        return error(
                            "{:keys [a b]} wants names in square brackets",
                            value.span,
                            "found this",
                        );
                    };
                    names = Some(symbols);
                }
                (FormKind::Keyword(k), FormKind::Dict(values)) if *k == "or" => defaults = values,
                (FormKind::Keyword(k), FormKind::Symbol(name)) if *k == "as" => whole = Some(*name),
                (FormKind::Keyword(k), _) if *k == "keys" => {
                    return error("{:keys [a b]} wants names in square brackets", value.span, "found this");
                }
                _ => return error(USAGE, key.span, "this is no part of one"),
            }
        }
        let Some(names) = names else { return error(USAGE, span, "it has no :keys") };
        let bound: Vec<(Ustr, Slot)> =
            names.into_iter().map(|n| (self.module.plain(n), self.scopes.bind(n))).collect();
        let whole = match whole {
            Some(name) => Some(self.scopes.bind(name)),
            None if defaults.is_empty() => None,
            None => Some(self.scopes.bind(Ustr::from("the dictionary of a pattern"))),
        };
        for (key, value) in defaults {
            let name = key.symbol().map(|n| self.module.plain(n));
            let Some(&(key, slot)) = bound.iter().find(|(k, _)| name == Some(*k)) else {
                return error(format!(":or gives {key} a value, which is not among the :keys"), key.span, "");
            };
            let value = value.clone();
            self.defaults.extend(whole.map(|whole| MissingKey { key, slot, whole, value }));
        }
        Ok(Pattern::Keys(bound, whole, span))
    }

    pub(super) fn template(&mut self, form: &Form, depth: usize) -> Resolved<Template> {
        match &form.kind {
            FormKind::List(bracket, items) => {
                if let [head, inner] = items.as_slice() {
                    match head.special().filter(|_| depth == 0) {
                        Some(SpecialForm::Unquote) => return Ok(Template::Unquote(self.form(inner)?)),
                        Some(SpecialForm::UnquoteSplicing) => return Ok(Template::Splice(self.form(inner)?)),
                        _ => {}
                    }
                }
                let deeper = match items.first().and_then(Form::special) {
                    Some(SpecialForm::Quasiquote) => depth + 1,
                    Some(SpecialForm::Unquote | SpecialForm::UnquoteSplicing) => depth.saturating_sub(1),
                    _ => depth,
                };
                let items = items.iter().map(|f| self.template(f, deeper)).collect::<Resolved<Vec<_>>>()?;
                if items.iter().all(|t| matches!(t, Template::Const(_))) {
                    return Ok(Template::Const(form_to_value(form)));
                }
                Ok(Template::List(*bracket, items, form.span))
            }
            FormKind::Dict(entries) => {
                let entry = |(k, v): &(Form, Form)| Ok((self.template(k, depth)?, self.template(v, depth)?));
                Ok(Template::Dict(entries.iter().map(entry).collect::<Resolved<_>>()?, form.span))
            }
            _ => Ok(Template::Const(form_to_value(form))),
        }
    }
}
