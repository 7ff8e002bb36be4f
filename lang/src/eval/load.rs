//! Loading files: read, expand, resolve; then run what is left at the top level.

use std::collections::HashMap;
use std::rc::Rc;

use ustr::Ustr;

use super::expr::{Expr, ExprKind, Global};
use super::interp::Interp;
use super::module::{Import, Module};
use super::resolve::{Resolver, dtype_keyword, is_special};
use super::scope::Scopes;
use super::signal::{Eval, Reason, Signal};
use super::value::{Closure, Function, Value};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Bracket, Form, FormKind, SourceId, Span, read};

/// The standard library, by the name it is used under.
pub const STANDARD: [(&str, &str); 2] =
    [("nn", include_str!("../../std/nn.shf")), ("optim", include_str!("../../std/optim.shf"))];

/// The module of the standard library that defines a function of that name.
pub(super) fn standard_module_with(name: &str) -> Option<&'static str> {
    let defines = |text: &str| text.lines().any(|line| line.split(' ').take(2).eq(["(defn", name]));
    STANDARD.iter().find(|(_, text)| defines(text)).map(|(module, _)| *module)
}

/// The builtins that need no Rust, by the section of the documentation that they belong to.
pub const CORE: [(&str, &str); 6] = [
    ("macros", include_str!("../../std/core/macros.shf")),
    ("arithmetic", include_str!("../../std/core/arithmetic.shf")),
    ("activations", include_str!("../../std/core/activations.shf")),
    ("reductions", include_str!("../../std/core/reductions.shf")),
    ("losses", include_str!("../../std/core/losses.shf")),
    ("trees", include_str!("../../std/core/trees.shf")),
];

/// One or more messages; loading goes on after an error to find the next.
pub type Loaded<T> = Result<T, Vec<Diagnostic>>;

/// A text being loaded into a module.
struct Loading {
    module: Rc<Module>,
    /// What the text has defined so far, and where.
    defined: HashMap<Ustr, Span>,
    /// The top level in the order it will run.
    pending: Vec<Pending>,
    /// Functions that mention a name not known yet; a macro used further down may define it.
    postponed: Vec<(Rc<Global>, Form)>,
    /// Every form after expansion.
    expanded: Vec<Form>,
    /// Only expansion is wanted: a name may be unknown.
    only_expand: bool,
}

/// A resolved top-level form that waits for its turn to run, with the slots it needs.
struct Pending {
    expr: Expr,
    frame_size: usize,
}

impl Interp {
    pub(super) fn load_core(&mut self) {
        let core = Rc::new(Module { name: "core".into(), standard: true, ..Module::default() });
        self.core = Some(Rc::clone(&core));
        for (section, text) in CORE {
            if let Err(errors) = self.load(&core, &format!("<{section}>"), text) {
                let text: Vec<String> =
                    errors.iter().map(|d| crate::render::render(&self.sources, d, false)).collect();
                unreachable!("the builtins written in Sheaf are wrong:\n{}", text.join("\n"));
            }
        }
    }

    /// Runs the program in the file `path` whose text is `text`; the value of its last expression.
    pub fn run_program(&mut self, path: &str, text: &str) -> Loaded<Value> {
        let module = Self::program(path);
        self.run_text(&module, path, text)
    }

    /// The module of a program in the file `path`, without definitions yet.
    pub fn program(path: &str) -> Rc<Module> {
        let folder = folder_of(path);
        Rc::new(Module { name: path.into(), root: folder.clone(), folder, ..Module::default() })
    }

    /// Runs more text in a module, which messages call `name`; the value of its last expression.
    pub fn run_text(&mut self, module: &Rc<Module>, name: &str, text: &str) -> Loaded<Value> {
        self.begin();
        self.loading.push(module.name.clone());
        let result = self.load(module, name, text);
        self.loading.pop();
        result
    }

    /// Reads a text, which messages call `name`, for [`Interp::run_forms`].
    pub fn read_forms(&mut self, name: &str, text: &str) -> Loaded<(SourceId, Vec<Form>)> {
        let id = self.sources.add(name, text);
        Ok((id, cast_vectors(read(&self.sources, id)?)))
    }

    /// Makes the names that `forms` define known in a module, before any of them runs.
    pub fn declare(module: &Module, forms: &[Form]) {
        forms.iter().for_each(|form| declare(module, form));
    }

    /// Runs forms in a module, as the next part of its text; the value of the last expression.
    pub fn run_forms(&mut self, module: &Rc<Module>, forms: Vec<Form>) -> Loaded<Value> {
        self.loading.push(module.name.clone());
        let loading = self.prepare_forms(module, forms, false);
        let result = loading.and_then(|loading| self.run_prepared(loading));
        self.loading.pop();
        result
    }

    /// A form of a module with every macro use in it replaced.
    pub fn expand_form(&mut self, module: &Rc<Module>, form: Form) -> Loaded<Form> {
        self.expand(module, form).map_err(|signal| vec![as_diagnostic(signal)])
    }

    /// A module without definitions of its own that sees what `module` defines and uses.
    pub fn module_over(module: &Rc<Module>) -> Rc<Module> {
        let import = Import { module: Rc::clone(module), alias: None, only: None };
        Rc::new(Module {
            name: module.name.clone(),
            folder: module.folder.clone(),
            root: module.root.clone(),
            imports: vec![import].into(),
            ..Module::default()
        })
    }

    /// The forms of a program with every macro use replaced; nothing runs but macros and what they call.
    pub fn expand_program(&mut self, path: &str, text: &str) -> Loaded<Vec<Form>> {
        self.begin();
        self.loading.push(path.into());
        let prepared = self.prepare_text(&Self::program(path), path, text, true);
        self.loading.pop();
        Ok(prepared?.expanded)
    }

    fn load(&mut self, module: &Rc<Module>, name: &str, text: &str) -> Loaded<Value> {
        let loading = self.prepare_text(module, name, text, false)?;
        self.run_prepared(loading)
    }

    fn run_prepared(&mut self, loading: Loading) -> Loaded<Value> {
        let mut last = Value::Nil;
        for Pending { expr, frame_size } in loading.pending {
            last = self.run(&expr, frame_size).map_err(|signal| vec![as_diagnostic(signal)])?;
        }
        Ok(last)
    }

    /// Reads, expands and resolves a text; goes on after an error to find the next.
    fn prepare_text(
        &mut self,
        module: &Rc<Module>,
        name: &str,
        text: &str,
        only_expand: bool,
    ) -> Loaded<Loading> {
        let id =
            if module.standard { self.sources.add_library(name, text) } else { self.sources.add(name, text) };
        let forms = cast_vectors(read(&self.sources, id)?);
        self.prepare_forms(module, forms, only_expand)
    }

    /// Expands and resolves the forms of one text; goes on after an error to find the next.
    fn prepare_forms(&mut self, module: &Rc<Module>, forms: Vec<Form>, only_expand: bool) -> Loaded<Loading> {
        self.stack_start = std::ptr::from_ref(&only_expand).addr();
        Self::declare(module, &forms);
        let id = forms.first().map(|f| f.span.source);
        let mut loading = Loading {
            module: Rc::clone(module),
            defined: HashMap::new(),
            pending: Vec::new(),
            postponed: Vec::new(),
            expanded: Vec::new(),
            only_expand,
        };
        let mut errors = Vec::new();
        for form in forms {
            let uses =
                form.items(Bracket::Round).is_some_and(|f| f.first().is_some_and(|f| f.is_symbol("use")));
            if let Err(signal) = self.prepare(&mut loading, form) {
                errors.push(as_diagnostic(signal));
                // What follows a failed use would be wrong for want of the names.
                if uses || self.stopped() {
                    break;
                }
            }
        }
        for (global, form) in std::mem::take(&mut loading.postponed) {
            let items = form.items(Bracket::Round).unwrap_or(&[]);
            match self.function(module, &items[1..], form.span) {
                Ok((_, function)) => *global.value.borrow_mut() = Some(Value::Function(function)),
                Err(_) if only_expand => {}
                Err(signal) => errors.push(as_diagnostic(signal)),
            }
        }
        if errors.is_empty() {
            return Ok(loading);
        }
        errors.sort_by_key(|d| d.labels.iter().find(|l| Some(l.span.source) == id).map(|l| l.span.start));
        Err(errors)
    }

    /// Expands and resolves one top-level form. Functions, macros and uses take effect at once; the rest waits.
    fn prepare(&mut self, loading: &mut Loading, form: Form) -> Eval<()> {
        let module = Rc::clone(&loading.module);
        let form = self.expand(&module, form)?;
        let span = form.span;
        let items = form.items(Bracket::Round).unwrap_or(&[]);
        let (head, args) = items
            .split_first()
            .map_or(("", items), |(head, args)| (head.symbol().map_or("", |name| name.as_str()), args));
        if head == "do" {
            return args.iter().try_for_each(|inner| self.prepare(loading, inner.clone()));
        }
        match head {
            "use" => self.use_form(&module, args, span)?,
            "defmacro" => {
                if args.len() < 3 {
                    return usage("defmacro", span);
                }
                let (name, function) = self.function(&module, args, span)?;
                self.define(loading, name, span)?;
                module.macros.borrow_mut().insert(name, function);
            }
            "defn" => {
                let name = function_name(args, span)?;
                self.define(loading, name, span)?;
                let global = global(&module, name, span);
                match self.function(&module, args, span) {
                    Ok((_, function)) => *global.value.borrow_mut() = Some(Value::Function(function)),
                    Err(_) => loading.postponed.push((global, form.clone())),
                }
            }
            "def" => {
                let [name, value @ ..] = args else { return usage("def", span) };
                let Some(name) = name.symbol() else { return usage("def", span) };
                self.define(loading, name, span)?;
                if loading.only_expand {
                    loading.expanded.push(form.clone());
                    return Ok(());
                }
                let mut resolver = self.resolver(&module);
                let mut value = resolver.sequence(value, true)?;
                let (Some(value), true) = (value.pop(), value.is_empty()) else { return usage("def", span) };
                let frame_size = resolver.scopes.frame_size();
                let kind = ExprKind::Def(global(&module, name, span), Box::new(value));
                loading.pending.push(Pending { expr: Expr { kind, span }, frame_size });
            }
            _ if loading.only_expand => {}
            _ => {
                let mut resolver = self.resolver(&module);
                let expr = resolver.form(&form)?;
                let frame_size = resolver.scopes.frame_size();
                loading.pending.push(Pending { expr, frame_size });
            }
        }
        loading.expanded.push(form);
        Ok(())
    }

    /// Notes that `name` is defined at `span`: not twice in a text, and not in the place of a special form. Says so
    /// once where a builtin is redefined.
    fn define(&mut self, loading: &mut Loading, name: Ustr, span: Span) -> Eval<()> {
        if is_special(&name) {
            return Err(Diagnostic::error(format!("{name} is a special form and cannot be redefined"))
                .at(span, "defined here")
                .help("choose another name")
                .into());
        }
        if let Some(first) = loading.defined.insert(name, span) {
            loading.defined.insert(name, first);
            return Err(Diagnostic::error(format!("{name} is defined twice"))
                .at(span, "defined again here")
                .at(first, "first defined here")
                .into());
        }
        let core = |core: &Rc<Module>| core.find(name).is_some() || core.find_macro(name).is_some();
        let builtin = crate::builtins::find(&name).is_some() || self.core.as_ref().is_some_and(core);
        if builtin && !loading.module.standard && self.redefined.insert(name) {
            let warning =
                Diagnostic::warning(format!("{name} is a builtin; this definition takes its place"))
                    .at(span, "redefined here")
                    .help("under another name, both can be used");
            self.host.warn(&self.sources, &warning);
        }
        Ok(())
    }

    fn resolver<'a>(&'a self, module: &Rc<Module>) -> Resolver<'a> {
        Resolver { interp: self, module: Rc::clone(module), scopes: Scopes::new() }
    }

    /// `name "doc"? [params] :option* body+`, or `(name params) body+`.
    fn function(&mut self, module: &Rc<Module>, args: &[Form], span: Span) -> Eval<(Ustr, Rc<Function>)> {
        let name = function_name(args, span)?;
        let (doc, args) = match args {
            [_, doc, rest @ ..] if !rest.is_empty() => match &doc.kind {
                FormKind::Str(text) => (Some(Rc::clone(text)), [&args[..1], rest].concat()),
                _ => (None, args.to_vec()),
            },
            _ => (None, args.to_vec()),
        };
        let (params, body) = match args.as_slice() {
            [head, body @ ..] if head.symbol().is_none() => {
                let params = head.items(Bracket::Round).unwrap_or(&[])[1..].to_vec();
                (Form { kind: FormKind::List(Bracket::Square, params), span: head.span }, body)
            }
            [_, params, body @ ..] => (params.clone(), body),
            _ => return usage("defn", span),
        };
        // Options such as :jit are accepted; a keyword is one only if another form follows it.
        let options = body.iter().take_while(|f| matches!(f.kind, FormKind::Keyword(_))).count();
        let body = &body[options.min(body.len().saturating_sub(1))..];
        if body.is_empty() {
            return Err(Diagnostic::error(format!("{name} has no body"))
                .at(span, "")
                .help("write (defn name [params] body...)")
                .into());
        }
        let code = self.resolver(module).function(Some(name), doc, &params, body, span)?;
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
                    import.alias = Some(value.symbol().map_or_else(|| usage("use", span), Ok)?);
                }
                [key, value] if matches!(key.kind, FormKind::Keyword(k) if k == "only") => {
                    let names = value.items(Bracket::Square);
                    let names = names.and_then(|n| n.iter().map(Form::symbol).collect());
                    import.only = Some(names.map_or_else(|| usage("use", span), Ok)?);
                }
                _ => return usage("use", span),
            }
        }
        import.module = self.module(module, name, span)?;
        let gives = |n: &&Ustr| import.module.find(**n).is_some() || import.module.find_macro(**n).is_some();
        if let Some(missing) = import.only.iter().flatten().find(|n| !gives(n)) {
            let d = Diagnostic::error(format!("{name} does not define {missing}")).at(span, "");
            let known = import.module.names();
            return Err(match crate::builtins::nearest(missing, known.iter().map(Ustr::as_str)) {
                Some(near) => d.help(format!("did you mean {near}?")).into(),
                None => d.into(),
            });
        }
        module.imports.borrow_mut().push(import);
        Ok(())
    }

    /// The module that `name` means in `user`, loaded at its first use.
    fn module(&mut self, user: &Rc<Module>, name: Ustr, span: Span) -> Eval<Rc<Module>> {
        let relative = name.starts_with("./") || name.starts_with("../");
        let file =
            if relative { join(&user.folder, &name) } else { join(&user.root, &format!("{name}.shf")) };
        let library = format!("<{name}>");
        let known = self.modules.get(&file).or_else(|| self.modules.get(&library).filter(|_| !relative));
        if let Some(module) = known {
            return Ok(Rc::clone(module));
        }
        if self.loading.contains(&file) {
            let start = self.loading.iter().position(|f| *f == file).unwrap_or(0);
            let mut cycle = self.loading[start..].to_vec();
            cycle.push(file);
            let cycle = cycle.join(" uses ");
            return Err(Diagnostic::error(format!("modules use each other in a cycle: {cycle}"))
                .at(span, "the cycle closes here")
                .into());
        }
        let (key, text, standard) = match self.host.read_file(&file) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| {
                    Signal::from(Diagnostic::error(format!("{file} is not UTF-8 text")).at(span, "used here"))
                })?;
                (file, text, false)
            }
            Err(error) => match STANDARD.iter().find(|(n, _)| name == *n) {
                Some((_, text)) if !relative => (library, (*text).to_string(), true),
                _ => {
                    let help = if relative {
                        "the path starts at the folder of this file".to_string()
                    } else {
                        let known = STANDARD.map(|(n, _)| n).join(", ");
                        format!(
                            "the standard library has {known}; a file of yours is used as (use ./file.shf)"
                        )
                    };
                    let d = Diagnostic::error(format!("cannot use {name}: {error}")).at(span, "used here");
                    return Err(d.help(help).into());
                }
            },
        };
        let module = Rc::new(Module {
            name: name.to_string(),
            folder: folder_of(&key),
            root: user.root.clone(),
            standard,
            ..Module::default()
        });
        self.loading.push(key.clone());
        let loaded = self.load(&module, &key, &text);
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

/// A vector literal and the dtype after it as one form, as they are in a body.
fn cast_vectors(forms: Vec<Form>) -> Vec<Form> {
    let mut out: Vec<Form> = Vec::with_capacity(forms.len());
    for form in forms {
        match out.last_mut() {
            Some(vector) if dtype_keyword(&form).is_some() && vector.items(Bracket::Square).is_some() => {
                let span = vector.span.to(form.span);
                let symbol = Form { kind: FormKind::Symbol(Ustr::from("let")), span };
                let bindings = Form { kind: FormKind::List(Bracket::Square, Vec::new()), span };
                let items = vec![symbol, bindings, vector.clone(), form];
                *vector = Form { kind: FormKind::List(Bracket::Round, items), span };
            }
            _ => out.push(form),
        }
    }
    out
}

/// The name in `(defn name ...)` or `(defn (name params) ...)`.
fn function_name(args: &[Form], span: Span) -> Eval<Ustr> {
    let name = args.first().and_then(|head| match head.items(Bracket::Round) {
        Some(items) => items.first()?.symbol(),
        None => head.symbol(),
    });
    name.map_or_else(|| usage("defn", span), Ok)
}

/// The definition of `name`, made if it is new.
fn global(module: &Module, name: Ustr, span: Span) -> Rc<Global> {
    let mut definitions = module.definitions.borrow_mut();
    Rc::clone(definitions.entry(name).or_insert_with(|| Rc::new(Global { name, span, value: None.into() })))
}

/// Makes the name of a definition known before any form is resolved, so that functions may refer to later ones.
fn declare(module: &Module, form: &Form) {
    if let Some([head, args @ ..]) = form.items(Bracket::Round)
        && (head.is_symbol("def") || head.is_symbol("defn"))
        && let Ok(name) = function_name(args, form.span)
    {
        global(module, name, form.span);
    }
}

/// The message for a signal that nobody handled.
pub(crate) fn as_diagnostic(signal: Signal) -> Diagnostic {
    match signal {
        Signal::Error(d) => *d,
        Signal::Trace(stop) => {
            let message = match stop.reason {
                Reason::Value { wanted, .. } => format!("{wanted} must be known while tracing"),
                Reason::Effect(name) => format!("{name} has an effect"),
                Reason::Loop => "the loop is too long to be unrolled".into(),
                Reason::Elements { wanted, ty } => {
                    format!("{wanted} depends on the elements of a tensor {ty}")
                }
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
