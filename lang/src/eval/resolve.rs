//! Name resolution: binds every name of an expanded form to a local, a definition or a builtin.

use std::cell::Cell;
use std::rc::Rc;

use ustr::Ustr;

use super::code::{form_to_value, list};
use super::names::Modules;
use super::recur::{Rewritten, rewrite_loop};
use super::scope::{Found, Scopes};
use crate::program::{
    Code, Expr, ExprKind, Function, Meaning, Module, Pattern, Slot, Value, VarLocation, qualified,
};
use crate::stack::maybe_grow;
use sheaf_graph::tensor::DType;
use sheaf_syntax::diagnostic::{Diagnostic, Kind};
use sheaf_syntax::{Bracket, Form, FormKind, Span, SpecialForm};

pub(super) type Resolved<T> = Result<T, Box<Diagnostic>>;

/// True for heads whose direct arguments may be a vector followed by a dtype option, which is not a cast: `cast`, `io`,
/// the creation and the random functions.
pub(crate) fn takes_dtype_option(head: Option<Ustr>) -> bool {
    const HEADS: [&str; 15] = [
        "cast",
        "tensor",
        "io",
        "zeros",
        "ones",
        "full",
        "eye",
        "arange",
        "range",
        "linspace",
        "one-hot",
        "zeros-like",
        "ones-like",
        "choice",
        "fold-in",
    ];
    head.is_some_and(|h| HEADS.contains(&h.as_str()) || h.starts_with("random-"))
}

/// The dtype of a dtype keyword.
pub(crate) fn dtype_keyword(form: &Form) -> Option<DType> {
    let FormKind::Keyword(name) = form.kind else { return None };
    DType::parse(&name)
}

/// A binding of a `let`, by positions among the forms in its brackets.
pub(super) struct Binding {
    pub pattern: usize,
    /// `None` for a name without value.
    pub value: Option<usize>,
    /// The dtype after a vector literal.
    pub dtype: Option<usize>,
}

/// The bindings among the forms in the brackets of a `let`.
pub(super) fn bindings(pairs: &[Form]) -> Vec<Binding> {
    let mut found = Vec::new();
    let mut next = 0;
    while next < pairs.len() {
        let value = (next + 1 < pairs.len()).then_some(next + 1);
        let vector = value.is_some_and(|v| pairs[v].items(Bracket::Square).is_some());
        let dtype = pairs.get(next + 2).and_then(dtype_keyword).filter(|_| vector).map(|_| next + 2);
        found.push(Binding { pattern: next, value, dtype });
        next += if dtype.is_some() { 3 } else { 2 };
    }
    found
}

pub(super) fn error<T>(message: impl Into<String>, span: Span, label: impl Into<String>) -> Resolved<T> {
    Err(Box::new(Diagnostic::error(message).at(span, label)))
}

/// Resolves the forms of one module.
pub(super) struct Resolver<'a> {
    /// The table of names.
    pub names: &'a Modules,
    pub module: Rc<Module>,
    pub scopes: Scopes,
    /// Errors so far; resolution continues with the neighbours.
    pub errors: Vec<Diagnostic>,
    /// True if unknown names are ignored: an earlier failed form may define them.
    pub names_missing: bool,
    /// The defaults of the patterns just bound.
    pub defaults: Vec<MissingKey>,
}

/// The default of a key that may be missing.
#[derive(Clone)]
pub(super) struct MissingKey {
    pub key: Ustr,
    /// The slot of its name, and that of the dictionary.
    pub slot: Slot,
    pub whole: Slot,
    pub value: Form,
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
            | FormKind::Keyword(_) => constant(form_to_value(form)),
            FormKind::Range(start, end) => {
                let d = Diagnostic::error(format!("{form} is a range, which is only an index"));
                let d = d.at(span, "not the argument of a call");
                Err(Box::new(d.help(if *end == i64::MAX {
                    format!("write (x {form}), or (range {start} n) for the numbers up to n")
                } else {
                    format!("write (x {form}), or (range {start} {end}) for the numbers")
                })))
            }
            FormKind::Symbol(name) => self.name(*name, span, false),
            FormKind::List(Bracket::Square, items) => {
                if items.iter().any(|f| f.is_symbol("for")) && items.iter().any(|f| f.is_symbol("in")) {
                    return Err(Box::new(
                        Diagnostic::error("there are no list comprehensions")
                            .at(span, "")
                            .help("write (map (fn [x] ...) xs), and (filter (fn [x] ...) xs) to choose"),
                    ));
                }
                let items = self.sequence(items, true);
                Ok(Expr { kind: ExprKind::Vector { items, list: false, dtype: None }, span })
            }
            FormKind::List(Bracket::Round, items) => maybe_grow(|| self.list(form, items)),
            FormKind::Dict(entries) => {
                let entry = |(k, v): &(Form, Form)| match form_to_value(k).as_key() {
                    Some(key) => Ok((key, self.form_or_note(v))),
                    None => {
                        error("a dictionary key is a keyword, a string or a symbol", k.span, "found this")
                    }
                };
                Ok(Expr { kind: ExprKind::Dict(entries.iter().map(entry).collect::<Resolved<_>>()?), span })
            }
        }
    }

    /// The result, unless there were errors.
    pub fn finish<T>(mut self, result: Resolved<T>) -> Result<T, Vec<Diagnostic>> {
        match result {
            Ok(value) if self.errors.is_empty() => return Ok(value),
            Ok(_) => {}
            Err(last) => self.errors.push(*last),
        }
        Err(self.errors)
    }

    /// The expression of a form; an error is recorded and a dummy takes its place.
    fn form_or_note(&mut self, form: &Form) -> Expr {
        let mark = self.scopes.open();
        self.form(form).unwrap_or_else(|error| {
            self.scopes.close(mark);
            self.errors.push(*error);
            Expr { kind: ExprKind::Const(Value::Nil), span: form.span }
        })
    }

    /// Consecutive forms; with `casts`, a dtype keyword after a vector literal casts it.
    pub fn sequence(&mut self, forms: &[Form], casts: bool) -> Vec<Expr> {
        let mut out: Vec<Expr> = Vec::with_capacity(forms.len());
        for (i, form) in forms.iter().enumerate() {
            let after_vector = casts && i > 0 && forms[i - 1].items(Bracket::Square).is_some();
            match dtype_keyword(form).filter(|_| after_vector) {
                Some(dtype) => {
                    let vector = out.pop().expect("a vector stands before");
                    out.push(Self::cast(vector, dtype, form.span));
                }
                None => out.push(self.form_or_note(form)),
            }
        }
        out
    }

    /// A vector literal and the dtype after it.
    fn cast(mut vector: Expr, dtype: DType, at: Span) -> Expr {
        read_as(&mut vector, dtype);
        let span = vector.span.to(at);
        Expr { kind: ExprKind::Cast(Box::new(vector), dtype), span }
    }

    /// A body: the last form gives the value.
    pub(super) fn body(&mut self, forms: &[Form], span: Span) -> Expr {
        if let Err(error) = foreign_statement(forms) {
            self.errors.push(*error);
            return Expr { kind: ExprKind::Const(Value::Nil), span };
        }
        let mut exprs = self.sequence(forms, true);
        if exprs.len() == 1 {
            return exprs.swap_remove(0);
        }
        Expr { kind: ExprKind::Do(exprs), span }
    }

    fn name(&mut self, name: Ustr, span: Span, head: bool) -> Resolved<Expr> {
        let Found { dicts, local } = self.scopes.find(name);
        let outer = match local {
            Some(place) => Some(Expr { kind: ExprKind::Local(place, Cell::default()), span }),
            None => self.global(name, span)?,
        };
        if dicts.is_empty() {
            return match outer {
                Some(outer) => Ok(outer),
                None if self.names_missing => Ok(Expr { kind: ExprKind::Const(Value::Nil), span }),
                None => Err(Box::new(self.unknown(name, span, head))),
            };
        }
        // A definition at the head of a call is a function in scope: no look-up needed.
        if head && let Some(Expr { kind: ExprKind::Const(Value::Function(_)), .. }) = outer {
            return Ok(outer.expect("just seen"));
        }
        let otherwise = outer.map(Box::new);
        Ok(Expr { kind: ExprKind::Param { name: self.module.plain(name), dicts, otherwise, head }, span })
    }

    fn global(&self, name: Ustr, span: Span) -> Resolved<Option<Expr>> {
        let builtin = |b| Expr { kind: ExprKind::Const(Value::function(Function::Builtin(b))), span };
        Ok(match self.names.meaning(&self.module, name) {
            Some(Meaning::Global(global)) if global.is_macro.get() => None,
            Some(Meaning::Global(global)) => Some(Expr { kind: ExprKind::Global(global), span }),
            Some(Meaning::Builtin(b)) => Some(builtin(b)),
            Some(Meaning::Ambiguous(places)) => {
                let modules: Vec<&str> = places.iter().map(|(module, _)| module.as_str()).collect();
                let d =
                    Diagnostic::error(format!("{name} is ambiguous: {} define it", modules.join(" and ")))
                        .at(span, "used here")
                        .help("use one of them with :as and write its name in full, or with :only");
                let labelled =
                    |d: Diagnostic, (module, at): &(String, Span)| d.at(*at, format!("that of {module}"));
                return Err(Box::new(places.iter().fold(d, labelled)));
            }
            None => None,
        })
    }

    fn unknown(&self, name: Ustr, span: Span, head: bool) -> Diagnostic {
        let d = Diagnostic::error(format!("unknown name {name}"))
            .of_kind(Kind::UnknownName)
            .at(span, "not defined here");
        if let Some((module, global)) = self.module.keeper(name) {
            let d = Diagnostic::error(format!("{name} is private to {module}"));
            return d.at(span, "used here").at(global.span.get(), "defined here").help(super::uses::PRIVATE);
        }
        if let Some(global) = self.names.find_macro(&self.module, name) {
            let place = global.span.get();
            let d = if place.source.is_library() { d } else { d.at(place, "a macro of that name") };
            if head {
                return d.help("a macro is defined above its uses: move the definition up");
            }
            let d = Diagnostic::error(format!("{name} is a macro, not a value")).at(span, "used as a value");
            let d = if place.source.is_library() { d } else { d.at(place, "the macro") };
            return d.help(format!("it stands first in round brackets: ({name} ...)"));
        }
        if SpecialForm::named(&name).is_some() {
            return Diagnostic::error(format!("{name} is a special form, not a value"))
                .at(span, "used as a value")
                .help(format!("it stands first in round brackets: ({name} ...)"));
        }
        if let Some(help) = self.foreign_name_help(name) {
            return d.help(help);
        }
        if let Some((module, rest)) = qualified(&name)
            && !self.module.aliases().iter().any(|a| *a == module)
        {
            return d.help(if self.module.uses_flat(module) {
                format!("{module} is used without an alias: write {rest}, or (use {module} :as {module})")
            } else {
                format!("no module is called {module} here; (use {module} :as {module}) makes it so")
            });
        }
        let mut known = self.scopes.names();
        known.extend(self.module.names());
        known.extend(self.names.builtin_names());
        known.extend(super::library::library_names());
        match crate::builtins::nearest(&name, known.iter().map(Ustr::as_str)) {
            Some(near) => d.help(format!("did you mean {near}?")),
            None => d.help("define it with (def ...) or (defn ...), or (use ...) the module that does"),
        }
    }

    /// Help for a name from another language.
    fn foreign_name_help(&self, name: Ustr) -> Option<String> {
        let locals = self.scopes.names();
        let means = |n: &str| {
            locals.iter().any(|l| l == n) || self.names.meaning(&self.module, Ustr::from(n)).is_some()
        };
        crate::builtins::foreign_name_help(&name, &means)
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
        // An error in the head does not hide errors in the arguments; but a foreign form may bind names in them.
        let names_missing = self.names_missing;
        let mut head = match first.symbol() {
            Some(name) => self.name(name, first.span, true).unwrap_or_else(|error| {
                let binds = args.first().is_some_and(|f| f.items(Bracket::Square).is_some());
                self.names_missing |= binds || self.foreign_name_help(name).is_some();
                self.errors.push(*error);
                Expr { kind: ExprKind::Const(Value::Nil), span: first.span }
            }),
            None => self.form_or_note(first),
        };
        // Among the indices of get, `...` stands for whole axes.
        let whole_axes = if first.is_symbol("get") { quoted_dots(args) } else { None };
        let args = whole_axes.as_deref().unwrap_or(args);
        let mut args = self.arguments(args, !takes_dtype_option(first.symbol()));
        self.names_missing = names_missing;
        if let ExprKind::Const(Value::Function(f)) = &head.kind
            && let Function::Builtin(b) = &**f
        {
            if b.name == "tensor"
                && let [vector, .., Expr { kind: ExprKind::Const(Value::Keyword(dtype)), .. }] =
                    args.as_mut_slice()
                && let Some(dtype) = DType::parse(dtype)
            {
                read_as(vector, dtype);
            }
            if b.effect
                && let Some(printer) =
                    crate::builtins::printer_for(b, &args.iter().map(literal).collect::<Vec<_>>())
            {
                head.kind = ExprKind::Const(Value::function(Function::Builtin(printer)));
            }
        }
        // The state of a reduce with a vector pattern is destructured, so a vector body stays a list.
        if first.is_symbol("reduce")
            && let [function, init, ..] = args.as_mut_slice()
            && let ExprKind::Fn(code) = &mut function.kind
            && let Some(Code { params, body, .. }) = Rc::get_mut(code)
            && let (Some(state), Some(body)) = (params.first(), body.get_mut())
        {
            keep_list(&state.pattern, body);
            keep_list(&state.pattern, init);
        }
        let mut call = Expr::call(head, args, span);
        if self.names.observed
            && !self.module.standard
            && let ExprKind::Call { on_numbers, .. } = &mut call.kind
        {
            *on_numbers = None;
        }
        Ok(call)
    }

    /// The arguments of a call, including ranges.
    fn arguments(&mut self, forms: &[Form], casts: bool) -> Vec<Expr> {
        if !forms.iter().any(|f| matches!(f.kind, FormKind::Range(..))) {
            return self.sequence(forms, casts);
        }
        let range = |f: &Form| Expr { kind: ExprKind::Const(form_to_value(f)), span: f.span };
        let parts = forms.chunk_by(|a, b| ![a, b].iter().any(|f| matches!(f.kind, FormKind::Range(..))));
        parts
            .flat_map(|part| match part {
                [f] if matches!(f.kind, FormKind::Range(..)) => vec![range(f)],
                part => self.sequence(part, casts),
            })
            .collect()
    }

    /// The special forms; `None` if `head` is not one.
    fn special(&mut self, head: Ustr, args: &[Form], span: Span) -> Resolved<Option<ExprKind>> {
        let form = SpecialForm::named(&head).filter(|form| !form.is_redefinable() || !self.redefined(head));
        let Some(form) = form else { return Ok(None) };
        let wrong = |usage: &str| error(format!("{head} is written {usage}"), span, "");
        Ok(Some(match form {
            SpecialForm::Quote => match args {
                [x] if x.symbol().is_some_and(|s| s.ends_with('\'')) => {
                    return Err(Box::new(
                        Diagnostic::error("text is written in double quotes")
                            .at(span, "a single quote keeps what follows from being evaluated")
                            .help(format!("write \"{}\"", x.to_string().trim_end_matches('\''))),
                    ));
                }
                [x] => ExprKind::Const(form_to_value(x)),
                _ => return wrong("(quote x) or 'x"),
            },
            SpecialForm::Quasiquote => match args {
                [x] => ExprKind::Quasi(Box::new(self.template(x, 0)?)),
                _ => return wrong("(quasiquote x) or `x"),
            },
            SpecialForm::Unquote | SpecialForm::UnquoteSplicing => {
                return error(format!("{head} outside of a quasiquote"), span, "");
            }
            SpecialForm::If => {
                let mut parts = self.sequence(args, true);
                if parts.len() == 2 {
                    parts.push(Expr { kind: ExprKind::Const(Value::Nil), span });
                }
                match <[Expr; 3]>::try_from(parts) {
                    Ok(parts) => ExprKind::If(Box::new(parts)),
                    Err(parts) if parts.len() > 3 => {
                        return Err(Box::new(
                            Diagnostic::error("if takes a condition and one or two branches")
                                .at(parts[3].span, "one too many")
                                .help("several expressions in one branch are (do a b ...), several conditions (cond ...)"),
                        ));
                    }
                    Err(_) => return wrong("(if condition then else?)"),
                }
            }
            SpecialForm::And => ExprKind::And(self.sequence(args, true)),
            SpecialForm::Or => ExprKind::Or(self.sequence(args, true)),
            SpecialForm::Do => ExprKind::Do(self.sequence(args, true)),
            SpecialForm::Let => self.let_form(args, span)?,
            SpecialForm::Case => self.case(args, span)?,
            SpecialForm::Fn | SpecialForm::Lambda => {
                let [params, body @ ..] = args else { return wrong("(fn [params] body...)") };
                if matches!(params.kind, FormKind::List(..)) {
                    has_body(&head, body, span, "(fn [params] body...)")?;
                }
                ExprKind::Fn(self.function(None, None, params, body, span)?)
            }
            SpecialForm::Repeat => {
                let [counter, state, body @ ..] = args else {
                    return wrong("(repeat [i n] [acc init] body)");
                };
                let Some([index, count]) = counter.items(Bracket::Square) else {
                    return Err(Box::new(
                        Diagnostic::error("repeat wants [i n] first")
                            .at(counter.span, "expected a name and a count")
                            .help(if state.items(Bracket::Square).is_some() {
                                format!("write (repeat [i {counter}] {state} ...)")
                            } else {
                                format!(
                                    "(repeat [i {counter}] [acc init] body) hands acc from turn to turn, beginning with \
                                     init; (map f (range {counter})) is a list of results"
                                )
                            }),
                    ));
                };
                let Some(name) = index.symbol() else {
                    return error("repeat counts with a name", index.span, "expected a name");
                };
                let count = Box::new(self.form_or_note(count));
                let (init, state) = self.state(state)?;
                has_body(
                    "repeat",
                    body,
                    span,
                    "(repeat [i n] [acc init] body): the body gives the next acc",
                )?;
                let mark = self.scopes.open();
                let index = self.scopes.bind(name);
                let state = self.pattern(&state)?;
                let defaults = std::mem::take(&mut self.defaults);
                let body = self.with_defaults(&defaults, span, |r| r.body(body, span));
                self.scopes.close(mark);
                let [init, body] = [init, body].map(|e| Box::new(taken_apart(&state, e)));
                ExprKind::Repeat { index, count, state, init, body }
            }
            SpecialForm::While => {
                let [condition, state, body @ ..] = args else {
                    return wrong("(while condition [acc init] body)");
                };
                let (init, state) = self.state(state)?;
                has_body(
                    "while",
                    body,
                    span,
                    "(while condition [acc init] body): the body gives the next acc",
                )?;
                let mark = self.scopes.open();
                let state = self.pattern(&state)?;
                let defaults = std::mem::take(&mut self.defaults);
                let condition = Box::new(self.with_defaults(&defaults, span, |r| r.form_or_note(condition)));
                let body = self.with_defaults(&defaults, span, |r| r.body(body, span));
                self.scopes.close(mark);
                let [init, body] = [init, body].map(|e| Box::new(taken_apart(&state, e)));
                ExprKind::While { condition, state, init, body }
            }
            SpecialForm::Loop => match rewrite_loop(args, span)? {
                Rewritten::Plain(form) => self.form(&form)?.kind,
                Rewritten::Twofold(once, traced) => {
                    let once = Box::new(self.form(&once)?);
                    let found = self.errors.len();
                    let traced = Box::new(self.form(&traced)?);
                    // Errors were reported for the first copy.
                    self.errors.truncate(found);
                    ExprKind::Loop { once, traced }
                }
            },
            SpecialForm::Recur => {
                return Err(Box::new(
                    Diagnostic::error("recur stands where the value of a loop or function would be")
                        .at(span, "something is still to be done with this value, or there is no loop")
                        .help("it is the last thing that the body of the loop does: (loop [i 0] (if (< i 9) (recur (+ i 1)) i))"),
                ));
            }
            SpecialForm::WithParams => self.with_params(args, span)?,
            SpecialForm::Static => match args {
                [x] => ExprKind::Static(Box::new(self.form(x)?)),
                _ => return wrong("(static x)"),
            },
            SpecialForm::Def
            | SpecialForm::Defn
            | SpecialForm::Defmacro
            | SpecialForm::Defparams
            | SpecialForm::Defgrad
            | SpecialForm::Use => {
                let d = Diagnostic::error(format!("{head} belongs at the top level of a file"))
                    .at(span, "found inside another form");
                let name = args.first().and_then(Form::symbol);
                return Err(Box::new(match (form, name) {
                    (SpecialForm::Def | SpecialForm::Defn, Some(name)) => {
                        let value = if form == SpecialForm::Def { "value" } else { "(fn [x] ...)" };
                        d.help(format!("inside a function write (let [{name} {value}] ...)"))
                    }
                    _ => d.help("move it out of the form, to the start of a line of its own"),
                }));
            }
            // Rewritten during expansion, so these stand without arguments, or in a pattern.
            SpecialForm::Cond
            | SpecialForm::ThreadFirst
            | SpecialForm::ThreadLast
            | SpecialForm::ThreadAs
            | SpecialForm::Rest => return Ok(None),
        }))
    }

    /// True if the program redefines the special form `name`.
    pub(super) fn redefined(&self, name: Ustr) -> bool {
        self.scopes.names().contains(&name) || self.names.meaning(&self.module, name).is_some()
    }

    /// Wraps the result of `resolve` in the defaults of the keys just bound.
    pub(super) fn with_defaults(
        &mut self,
        defaults: &[MissingKey],
        span: Span,
        resolve: impl FnOnce(&mut Self) -> Expr,
    ) -> Expr {
        let bindings = self.default_bindings(defaults);
        let body = resolve(self);
        if bindings.is_empty() {
            return body;
        }
        Expr { kind: ExprKind::Let { bindings, body: Box::new(body) }, span }
    }

    /// `slot = slot` if the dictionary has the key, else the default.
    fn default_bindings(&mut self, defaults: &[MissingKey]) -> Vec<(Pattern, Expr)> {
        let binding = |MissingKey { key, slot, whole, value }: &MissingKey| {
            let span = value.span;
            let value = self.form_or_note(value);
            let expr = |kind| Expr { kind, span };
            let local = |slot| expr(ExprKind::Local(VarLocation::Frame(slot), Cell::default()));
            let function = |b| expr(ExprKind::Const(Value::function(Function::Builtin(b))));
            let key = expr(ExprKind::Const(Value::Keyword(*key)));
            let has = Expr::call(function(crate::builtins::HAS_KEY), vec![local(*whole), key], span);
            (Pattern::Name(*slot, Ustr::default()), expr(ExprKind::If(Box::new([has, local(*slot), value]))))
        };
        defaults.iter().map(binding).collect()
    }

    /// `[acc init]` of a loop: the initial value, resolved outside of the loop's scope, and the pattern.
    fn state(&mut self, form: &Form) -> Resolved<(Expr, Form)> {
        match form.items(Bracket::Square) {
            Some([pattern, init @ ..]) if !init.is_empty() => {
                Ok((self.body(init, form.span), pattern.clone()))
            }
            _ => Err(Box::new(
                Diagnostic::error("a loop wants [acc init]: a name or pattern and its first value")
                    .at(form.span, "found this")
                    .help("what changes is carried along: (repeat [i 10] [sum 0] (+ sum i)); (map f (range n)) calls f n times"),
            )),
        }
    }

    fn let_form(&mut self, args: &[Form], span: Span) -> Resolved<ExprKind> {
        let Some((brackets, body)) = args.split_first() else {
            return error("let is written (let [name value ...] body...)", span, "");
        };
        let FormKind::List(_, pairs) = &brackets.kind else {
            return Err(Box::new(
                Diagnostic::error("let wants its bindings in square brackets")
                    .at(brackets.span, "expected [name value ...]")
                    .help(match (brackets.symbol(), body) {
                        (Some(name), [value, ..]) => format!("write (let [{name} {value}] ...)"),
                        _ => "write (let [x 1 y 2] ...)".into(),
                    }),
            ));
        };
        has_body(
            "let",
            body,
            span,
            "(let [name value ...] body...): its names mean nothing outside of its brackets",
        )?;
        let mark = self.scopes.open();
        let mut resolved = Vec::new();
        for binding in bindings(pairs) {
            let name = &pairs[binding.pattern];
            let Some(value) = binding.value.map(|i| &pairs[i]) else {
                return Err(Box::new(
                    Diagnostic::error("let wants a value for every name")
                        .at(name.span, "this one has none")
                        .help("write (let [name value ...] body...)"),
                ));
            };
            let mut value = self.form_or_note(value);
            if let Some(form) = binding.dtype.map(|i| &pairs[i])
                && let Some(dtype) = dtype_keyword(form)
            {
                value = Self::cast(value, dtype, form.span);
            }
            if name.items(Bracket::Round).is_some() && brackets.items(Bracket::Round).is_some() {
                let d = Diagnostic::error("let wants names and values in turn").at(name.span, "found this");
                return Err(Box::new(
                    d.help("write (let [x 1 y 2] ...): each name is followed by its value"),
                ));
            }
            let pattern = self.pattern(name)?;
            let value = taken_apart(&pattern, value);
            resolved.push((pattern, value));
            let defaults = std::mem::take(&mut self.defaults);
            resolved.extend(self.default_bindings(&defaults));
        }
        let body = Box::new(self.body(body, span));
        self.scopes.close(mark);
        Ok(ExprKind::Let { bindings: resolved, body })
    }

    fn case(&mut self, args: &[Form], span: Span) -> Resolved<ExprKind> {
        let Some((subject, arms)) = args.split_first() else {
            return error("case is written (case x k1 v1 ... default?)", span, "");
        };
        let subject = Box::new(self.form_or_note(subject));
        let (pairs, default) = arms.split_at(arms.len() - arms.len() % 2);
        let arms =
            pairs.chunks(2).map(|pair| (alternatives(&pair[0]), self.form_or_note(&pair[1]))).collect();
        let default = default.first().map(|f| Box::new(self.form_or_note(f)));
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
                    let head = Expr { kind: ExprKind::Const(entry), span: key.span };
                    expr = Expr::call(head, vec![expr, self.form(key)?], dict.span.to(key.span));
                }
                expr
            }
            Some([]) => return error("with-params wants a dictionary", target.span, "nothing here"),
            None => self.form(target)?,
        };
        let mark = self.scopes.open();
        let slot = self.scopes.bind_params();
        let body = Box::new(self.body(body, span));
        self.scopes.close(mark);
        Ok(ExprKind::Let { bindings: vec![(Pattern::Name(slot, Ustr::default()), dict)], body })
    }
}

/// Fails at statements of other languages: `f(x)`, a name directly followed by a bracket; `x = 1`.
pub(super) fn foreign_statement(forms: &[Form]) -> Resolved<()> {
    for (i, pair) in forms.windows(2).enumerate() {
        if let [Form { kind: FormKind::Symbol(name), span }, Form { kind: FormKind::Symbol(sign), .. }] = pair
            && matches!(sign.as_str(), "=" | ":=" | "<-")
            && let Some(value) = forms.get(i + 2)
        {
            return Err(Box::new(
                Diagnostic::error("a name gets its value inside of a form")
                    .at(span.to(value.span), "")
                    .help(format!("write (def {name} {value}), or (let [{name} {value}] ...) in a function")),
            ));
        }
        if let [Form { kind: FormKind::Symbol(name), span }, args] = pair
            && let Some(items) = args.items(Bracket::Round)
            && (span.source, span.end) == (args.span.source, args.span.start)
        {
            let items: String = items.iter().map(|f| format!(" {f}")).collect();
            return Err(Box::new(
                Diagnostic::error("the function stands inside the bracket of a call, not before it")
                    .at(span.to(args.span), "")
                    .help(format!("write ({name}{items})")),
            ));
        }
    }
    Ok(())
}

/// The arguments with each `...` as a constant; `None` if there is none.
fn quoted_dots(args: &[Form]) -> Option<Vec<Form>> {
    let quoted = |arg: &Form| {
        let quote = Form { kind: FormKind::Symbol(Ustr::from("quote")), span: arg.span };
        if arg.is_symbol("...") { list(vec![quote, arg.clone()], arg.span) } else { arg.clone() }
    };
    args.iter().any(|arg| arg.is_symbol("...")).then(|| args.iter().map(quoted).collect())
}

/// The value of a literal.
fn literal(expr: &Expr) -> Option<&Value> {
    if let ExprKind::Const(value) = &expr.kind { Some(value) } else { None }
}

/// Fails if a form has no body.
fn has_body(form: &str, body: &[Form], span: Span, usage: &str) -> Resolved<()> {
    if !body.is_empty() {
        return Ok(());
    }
    let d = Diagnostic::error(format!("{form} has no body")).at(span, "it ends here without one");
    Err(Box::new(d.help(format!("write {usage}"))))
}

/// The keys of a `case` arm: itself, or the items of a list in round brackets.
fn alternatives(key: &Form) -> Vec<Value> {
    match key.items(Bracket::Round) {
        Some([quote, x]) if quote.special() == Some(SpecialForm::Quote) => vec![form_to_value(x)],
        Some(items) => items.iter().map(form_to_value).collect(),
        None => vec![form_to_value(key)],
    }
}

/// An expression destructured by `pattern`: a vector literal for a vector pattern stays a list (SPEC section 2).
fn taken_apart(pattern: &Pattern, mut value: Expr) -> Expr {
    keep_list(pattern, &mut value);
    value
}

/// Numbers of a vector literal are read as `dtype`, with all digits that it holds.
fn read_as(vector: &mut Expr, dtype: DType) {
    if let ExprKind::Vector { dtype: read, .. } = &mut vector.kind {
        *read = Some(dtype);
    }
}

fn keep_list(pattern: &Pattern, expr: &mut Expr) {
    let Pattern::Vector(patterns, ..) = pattern else { return };
    match &mut expr.kind {
        ExprKind::Vector { items, list, .. } => {
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
