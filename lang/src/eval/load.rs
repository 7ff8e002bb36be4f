//! Loading files: read, expand, resolve; then run what is left at the top level.

use std::rc::Rc;

use ustr::Ustr;

use super::expr::{Expr, ExprKind, Global};
use super::interp::Interp;
use super::module::{Import, Module};
use super::resolve::Resolver;
use super::scope::Scopes;
use super::signal::{Eval, Reason, Signal};
use super::value::{Closure, Function, Value};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Bracket, Form, FormKind, Span, read};

/// The standard library, by the name it is used under.
const STANDARD: [(&str, &str); 2] =
    [("nn", include_str!("../../std/nn.shf")), ("optim", include_str!("../../std/optim.shf"))];

/// The builtins that need no Rust.
const CORE: &str = include_str!("../../std/core.shf");

/// One or more messages; loading goes on after an error to find the next.
pub type Loaded<T> = Result<T, Vec<Diagnostic>>;

/// A resolved top-level form that waits for its turn to run, with the slots it needs.
struct Pending {
    expr: Expr,
    frame_size: usize,
}

impl Interp {
    pub(super) fn load_core(&mut self) {
        let core = Rc::new(Module { name: "core".into(), standard: true, ..Module::default() });
        self.core = Some(Rc::clone(&core));
        if let Err(errors) = self.load(&core, "<core>", CORE) {
            let text: Vec<String> =
                errors.iter().map(|d| crate::render::render(&self.sources, d, false)).collect();
            unreachable!("the builtins written in Sheaf are wrong:\n{}", text.join("\n"));
        }
    }

    /// Runs the program in the file `path` whose text is `text`; the value of its last expression.
    pub fn run_program(&mut self, path: &str, text: &str) -> Loaded<Value> {
        let module = Self::program(path);
        self.run_text(&module, path, text)
    }

    /// The module of a program in the file `path`, without definitions yet.
    pub fn program(path: &str) -> Rc<Module> {
        Rc::new(Module { name: path.into(), folder: folder_of(path), ..Module::default() })
    }

    /// Runs more text in a module, which messages call `name`; the value of its last expression.
    pub fn run_text(&mut self, module: &Rc<Module>, name: &str, text: &str) -> Loaded<Value> {
        self.loading.push(module.name.clone());
        let result = self.load(module, name, text);
        self.loading.pop();
        result
    }

    fn load(&mut self, module: &Rc<Module>, name: &str, text: &str) -> Loaded<Value> {
        let id = self.sources.add(name, text);
        let forms = read(&self.sources, id)?;
        let mut errors = Vec::new();
        for form in &forms {
            declare(module, form, &mut errors);
        }
        let mut pending = Vec::new();
        for form in forms {
            if let Err(signal) = self.prepare(module, form, &mut pending) {
                errors.push(as_diagnostic(signal));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut last = Value::Nil;
        for Pending { expr, frame_size } in pending {
            last = self.run(&expr, frame_size).map_err(|signal| vec![as_diagnostic(signal)])?;
        }
        Ok(last)
    }

    /// Expands and resolves one top-level form. Functions, macros and uses take effect at once; the rest waits.
    fn prepare(&mut self, module: &Rc<Module>, form: Form, pending: &mut Vec<Pending>) -> Eval<()> {
        let span = form.span;
        if let Some([head, args @ ..]) = form.items(Bracket::Round) {
            if head.is_symbol("defmacro") {
                // The body is code of its own: expanded like any other.
                let expanded = self.expand(module, form.clone())?;
                let Some([_, args @ ..]) = expanded.items(Bracket::Round) else {
                    return usage("defmacro", span);
                };
                let (name, function) = self.define_function(module, args, span)?;
                module.macros.borrow_mut().insert(name, function);
                return Ok(());
            }
            if head.is_symbol("use") {
                return self.use_form(module, args, span);
            }
        }
        let form = self.expand(module, form)?;
        let items = form.items(Bracket::Round).unwrap_or(&[]);
        match items.first().and_then(Form::symbol).as_ref().map_or("", Ustr::as_str) {
            "do" => {
                for inner in items[1..].iter().cloned() {
                    self.prepare(module, inner, pending)?;
                }
            }
            "defn" => {
                let (name, function) = self.define_function(module, &items[1..], span)?;
                let global = self.global(module, name, span);
                *global.value.borrow_mut() = Some(Value::Function(function));
            }
            "def" => {
                let [_, name, value @ ..] = items else { return usage("def", span) };
                let Some(name) = name.symbol() else { return usage("def", span) };
                let global = self.global(module, name, span);
                let mut resolver = self.resolver(module);
                let value = match value {
                    [value] => resolver.form(value).map_err(|d| Signal::from(*d))?,
                    [vector, dtype] => {
                        let both = [vector.clone(), dtype.clone()];
                        let whole = Form { kind: FormKind::List(Bracket::Square, both.to_vec()), span };
                        first_item(resolver.form(&whole).map_err(|d| Signal::from(*d))?, span)?
                    }
                    _ => return usage("def", span),
                };
                let frame_size = resolver.scopes.frame_size();
                pending.push(Pending {
                    expr: Expr { kind: ExprKind::Def(global, Box::new(value)), span },
                    frame_size,
                });
            }
            _ => {
                let mut resolver = self.resolver(module);
                let expr = resolver.form(&form).map_err(|d| Signal::from(*d))?;
                let frame_size = resolver.scopes.frame_size();
                pending.push(Pending { expr, frame_size });
            }
        }
        Ok(())
    }

    fn resolver<'a>(&'a self, module: &Rc<Module>) -> Resolver<'a> {
        Resolver { interp: self, module: Rc::clone(module), scopes: Scopes::new() }
    }

    fn global(&self, module: &Rc<Module>, name: Ustr, span: Span) -> Rc<Global> {
        let mut definitions = module.definitions.borrow_mut();
        Rc::clone(
            definitions.entry(name).or_insert_with(|| Rc::new(Global { name, span, value: None.into() })),
        )
    }

    /// `name "doc"? [params] :option* body+`, or `(name params) body+`.
    fn define_function(
        &mut self,
        module: &Rc<Module>,
        args: &[Form],
        span: Span,
    ) -> Eval<(Ustr, Rc<Function>)> {
        let (name, params, body) = match args {
            [head, body @ ..] if head.items(Bracket::Round).is_some() => {
                let items = head.items(Bracket::Round).unwrap_or(&[]);
                let Some((name, params)) = items.split_first() else { return usage("defn", span) };
                let params = Form { kind: FormKind::List(Bracket::Square, params.to_vec()), span: head.span };
                (name, params, body)
            }
            [name, doc, params, body @ ..] if matches!(doc.kind, FormKind::Str(_)) => {
                (name, params.clone(), body)
            }
            [name, params, body @ ..] => (name, params.clone(), body),
            _ => return usage("defn", span),
        };
        let doc =
            args.get(1).and_then(|f| if let FormKind::Str(s) = &f.kind { Some(Rc::clone(s)) } else { None });
        let Some(name) = name.symbol() else { return usage("defn", span) };
        // Options such as :jit are accepted; a keyword is one only if another form follows it.
        let options = body.iter().take_while(|f| matches!(f.kind, FormKind::Keyword(_))).count();
        let body = &body[options.min(body.len().saturating_sub(1))..];
        if body.is_empty() {
            return Err(Diagnostic::error(format!("{name} has no body"))
                .at(span, "")
                .help("write (defn name [params] body...)")
                .into());
        }
        let code = self
            .resolver(module)
            .function(Some(name), doc, &params, body, span)
            .map_err(|d| Signal::from(*d))?;
        Ok((name, Rc::new(Function::Closure(Closure { code, captured: Vec::new() }))))
    }

    /// `(use name)`, `(use name :as n)`, `(use name :only [a b])`, `(use ./file.shf)`.
    fn use_form(&mut self, module: &Rc<Module>, args: &[Form], span: Span) -> Eval<()> {
        let Some((name, options)) = args.split_first().and_then(|(n, o)| Some((n.symbol()?, o))) else {
            return usage("use", span);
        };
        let mut import = Import { module: Rc::default(), alias: None, only: None };
        for pair in options.chunks(2) {
            match pair {
                [key, value] if matches!(key.kind, FormKind::Keyword(k) if k == "as") => {
                    import.alias = value.symbol()
                }
                [key, value] if matches!(key.kind, FormKind::Keyword(k) if k == "only") => {
                    import.only =
                        value.items(Bracket::Square).and_then(|n| n.iter().map(Form::symbol).collect());
                }
                _ => return usage("use", span),
            }
        }
        import.module = self.module(module, name, span)?;
        if let Some(missing) =
            import.only.iter().flatten().find(|n| !import.module.definitions.borrow().contains_key(*n))
        {
            return Err(Diagnostic::error(format!("{name} does not define {missing}")).at(span, "").into());
        }
        module.imports.borrow_mut().push(import);
        Ok(())
    }

    /// The module that `name` means in `user`, loaded at its first use.
    fn module(&mut self, user: &Rc<Module>, name: Ustr, span: Span) -> Eval<Rc<Module>> {
        let relative = name.starts_with("./") || name.starts_with("../");
        let file =
            if relative { join(&user.folder, &name) } else { join(&user.folder, &format!("{name}.shf")) };
        let known = |key: &str, interp: &Interp| interp.modules.get(key).cloned();
        if let Some(module) = known(&file, self).or_else(|| known(&name, self)) {
            return Ok(module);
        }
        let (key, text, standard) = match self.host.read_file(&file) {
            _ if self.loading.contains(&file) => {
                let start = self.loading.iter().position(|f| *f == file).unwrap_or(0);
                let mut cycle = self.loading[start..].to_vec();
                cycle.push(file);
                return Err(Diagnostic::error(format!(
                    "modules use each other in a cycle: {}",
                    cycle.join(" uses ")
                ))
                .at(span, "the cycle closes here")
                .into());
            }
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| {
                    Signal::from(Diagnostic::error(format!("{file} is not UTF-8 text")).at(span, "used here"))
                })?;
                (file, text, false)
            }
            Err(error) => match STANDARD.iter().find(|(n, _)| name == *n) {
                Some((n, text)) if !relative => ((*n).to_string(), (*text).to_string(), true),
                _ => {
                    return Err(Diagnostic::error(format!("cannot use {name}: {error}"))
                        .at(span, "used here")
                        .help(format!(
                            "the standard library has {}; a file of yours is used as (use ./file.shf)",
                            STANDARD.map(|(n, _)| n).join(", ")
                        ))
                        .into());
                }
            },
        };
        let module = Rc::new(Module {
            name: name.to_string(),
            folder: folder_of(&key),
            standard,
            ..Module::default()
        });
        self.loading.push(key.clone());
        let shown = if standard { format!("<{key}>") } else { key.clone() };
        let loaded = self.load(&module, &shown, &text);
        self.loading.pop();
        if let Err(mut errors) = loaded {
            let first = errors.swap_remove(0);
            return Err(first.at(span, format!("while loading {name} here")).into());
        }
        self.modules.insert(key, Rc::clone(&module));
        Ok(module)
    }
}

fn usage<T>(form: &str, span: Span) -> Eval<T> {
    let how = match form {
        "def" => "(def name value)",
        "use" => "(use name), (use name :as n), (use name :only [a b]) or (use ./file.shf)",
        "defmacro" => "(defmacro name [params] body...)",
        _ => "(defn name \"doc\"? [params] body...)",
    };
    Err(Diagnostic::error(format!("{form} is written {how}")).at(span, "").into())
}

/// The one item of a vector expression, made from `[1 2] :i32`.
fn first_item(expr: Expr, span: Span) -> Eval<Expr> {
    match expr.kind {
        ExprKind::Vector { mut items, .. } if items.len() == 1 => Ok(items.swap_remove(0)),
        _ => usage("def", span),
    }
}

/// Makes the name of a definition known before any form is resolved, so that functions may refer to later ones.
fn declare(module: &Module, form: &Form, errors: &mut Vec<Diagnostic>) {
    let Some([head, name, ..]) = form.items(Bracket::Round) else { return };
    if !(head.is_symbol("def") || head.is_symbol("defn")) {
        return;
    }
    let name = match name.items(Bracket::Round) {
        Some([name, ..]) => name.symbol(),
        _ => name.symbol(),
    };
    let Some(name) = name else { return };
    let mut definitions = module.definitions.borrow_mut();
    if let Some(first) = definitions.get(&name) {
        errors.push(
            Diagnostic::error(format!("{name} is defined twice"))
                .at(form.span, "defined again here")
                .at(first.span, "first defined here"),
        );
        return;
    }
    definitions.insert(name, Rc::new(Global { name, span: form.span, value: None.into() }));
}

/// The message for a signal that nobody handled.
pub(super) fn as_diagnostic(signal: Signal) -> Diagnostic {
    match signal {
        Signal::Error(d) => *d,
        Signal::Trace(stop) => {
            let message = match stop.reason {
                Reason::Value { wanted, .. } => format!("{wanted} must be known while tracing"),
                Reason::Effect(name) => format!("{name} has an effect"),
                Reason::Loop => "the loop is too long to be unrolled".into(),
                Reason::Unsupported(what) => what,
            };
            let d = Diagnostic::error(message);
            match stop.span {
                Some(span) => d.at(span, ""),
                None => d,
            }
        }
    }
}

fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string())
}

/// `name` relative to `folder`, with `.` and `..` resolved as text, so that one file has one name.
fn join(folder: &str, name: &str) -> String {
    let whole = if folder.is_empty() || name.starts_with('/') {
        name.to_string()
    } else {
        format!("{folder}/{name}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|p| !p.is_empty() && *p != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
