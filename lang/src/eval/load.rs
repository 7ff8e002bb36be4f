//! Loading of files: read, expand, resolve, then run the top level.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ustr::Ustr;

use super::define::{declare, usage};
use super::interp::{Interp, Mode};
use super::last_use::mark_last_uses;
use super::resolve::{Resolver, dtype_keyword, foreign_statement};
use super::scope::Scopes;
use super::signal::{Reason, Signal, Stop};
use super::uses::{folder_of, join};
use crate::program::{Expr, ExprKind, Global, Import, Module, Pending, Value};
use crate::stack::with_large_stack;
use sheaf_syntax::diagnostic::{Diagnostic, Kind};
use sheaf_syntax::{Bracket, Form, FormKind, SourceId, Span, SpecialForm, read};

/// The builtins written in Sheaf, by section of the documentation.
pub const CORE: [(&str, &str); 9] = [
    ("macros", include_str!("../../std/core/macros.shf")),
    ("arithmetic", include_str!("../../std/core/arithmetic.shf")),
    ("activations", include_str!("../../std/core/activations.shf")),
    ("reductions", include_str!("../../std/core/reductions.shf")),
    ("losses", include_str!("../../std/core/losses.shf")),
    ("trees", include_str!("../../std/core/trees.shf")),
    ("transforms", include_str!("../../std/core/transforms.shf")),
    ("lists", include_str!("../../std/core/lists.shf")),
    ("shape", include_str!("../../std/core/search.shf")),
];

/// One or more errors; loading continues after an error to find the next.
pub type Loaded<T> = Result<T, Vec<Diagnostic>>;

/// A text being loaded into a module.
pub(super) struct Loading {
    pub module: Rc<Module>,
    /// The definitions of the text so far, with their spans.
    pub defined: HashMap<Ustr, Span>,
    /// The top-level expressions, in order.
    pending: Vec<Pending>,
    /// Functions that mention an unknown name; a macro used further down may define it.
    postponed: Vec<(Rc<Global>, Form)>,
    /// Every form after expansion.
    expanded: Vec<Form>,
    /// True for expansion only: unknown names are allowed.
    only_expand: bool,
    /// True if an earlier failed form may have defined names: unknown names are then not reported.
    names_missing: bool,
}

impl Interp {
    pub(super) fn load_core(&mut self) {
        let core = Rc::new(Module { name: "core".into(), standard: true, ..Module::default() });
        self.modules.core = Some(Rc::clone(&core));
        for (section, text) in CORE {
            if let Err(errors) = self.load(&core, &format!("<{section}>"), text, true) {
                let text: Vec<String> =
                    errors.iter().map(|d| sheaf_syntax::render::render(&self.sources, d, false)).collect();
                unreachable!("the builtins written in Sheaf are wrong:\n{}", text.join("\n"));
            }
        }
    }

    /// Runs the program `text` of the file `path`; the value of its last expression.
    pub fn run_program(&mut self, path: &str, text: &str) -> Loaded<Value> {
        let module = Self::program(path);
        self.modules.program = Some(Rc::clone(&module));
        self.run_text(&module, path, text)
    }

    /// The module of a program in the file `path`, without definitions.
    pub fn program(path: &str) -> Rc<Module> {
        let folder = folder_of(path);
        Rc::new(Module { name: path.into(), root: folder.clone(), folder, ..Module::default() })
    }

    /// Runs another text in a module; `name` is its name in messages. The value of its last expression.
    pub fn run_text(&mut self, module: &Rc<Module>, name: &str, text: &str) -> Loaded<Value> {
        self.begin();
        self.modules.loading.push(join("", &module.name));
        let result = self.load(module, name, text, true);
        self.modules.loading.pop();
        result
    }

    /// Reads a text for [`Interp::run_forms`]; `name` is its name in messages.
    pub fn read_forms(&mut self, name: &str, text: &str) -> Loaded<(SourceId, Vec<Form>)> {
        let id = self.sources.add(name, text);
        Ok((id, cast_vectors(read(&self.sources, id)?)))
    }

    /// The error for a statement of another language among `forms`, such as `x = 1`.
    pub fn foreign_statement(forms: &[Form]) -> Option<Diagnostic> {
        foreign_statement(forms).err().map(|error| *error)
    }

    /// Declares the names that `forms` define in a module, before any of them runs.
    pub fn declare(module: &Rc<Module>, forms: &[Form]) {
        for form in forms {
            declare(module, form);
        }
    }

    /// Runs forms in a module, as the next part of its text; the value of the last expression.
    pub fn run_forms(&mut self, module: &Rc<Module>, forms: Vec<Form>) -> Loaded<Value> {
        self.modules.loading.push(join("", &module.name));
        let loading = self.prepare_forms(module, forms, false);
        let result = loading.and_then(|loading| with_large_stack(|| self.run_prepared(loading)));
        self.modules.loading.pop();
        result
    }

    /// Expands every macro use in a form of a module.
    pub fn expand_form(&mut self, module: &Rc<Module>, form: Form) -> Loaded<Form> {
        self.provide(module, std::slice::from_ref(&form))?;
        Ok(self.expand(module, form)?)
    }

    /// An empty module that sees the definitions and imports of `module`.
    pub fn module_over(module: &Rc<Module>) -> Rc<Module> {
        let import = Import { module: Rc::clone(module), alias: None, only: None };
        Rc::new(Module {
            name: module.name.clone(),
            folder: module.folder.clone(),
            root: module.root.clone(),
            package: module.package.clone(),
            imports: vec![import].into(),
            ..Module::default()
        })
    }

    /// The fully expanded forms of a program; only macros and their dependencies run.
    pub fn expand_program(&mut self, path: &str, text: &str) -> Loaded<Vec<Form>> {
        self.begin();
        self.modules.loading.push(join("", path));
        let prepared = self.prepare_text(&Self::program(path), path, text, true);
        self.modules.loading.pop();
        // The modules that it uses have not run either.
        self.modules.files.clear();
        Ok(prepared?.expanded)
    }

    /// Loads a text into a module; its expressions run only with `run`.
    pub(super) fn load(&mut self, module: &Rc<Module>, name: &str, text: &str, run: bool) -> Loaded<Value> {
        let loading = self.prepare_text(module, name, text, !run)?;
        if run { self.run_prepared(loading) } else { Ok(Value::Nil) }
    }

    fn run_prepared(&mut self, loading: Loading) -> Loaded<Value> {
        match self.mode {
            Mode::Check(_) if !loading.module.standard => {
                self.check_prepared(&loading.module, &loading.pending);
                return Ok(Value::Nil);
            }
            Mode::Prepare if !loading.module.standard => {
                if let Some(unrun) = &mut self.unrun {
                    unrun.extend(loading.pending.into_iter().map(|pending| pending.expr));
                }
                return Ok(Value::Nil);
            }
            _ => {}
        }
        let mut last = Value::Nil;
        for Pending { expr, frame_size } in loading.pending {
            last = self.run(&expr, frame_size)?;
        }
        Ok(last)
    }

    /// Reads, expands and resolves a text.
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

    /// Expands and resolves the forms of one text; continues after an error to find the next.
    fn prepare_forms(&mut self, module: &Rc<Module>, forms: Vec<Form>, only_expand: bool) -> Loaded<Loading> {
        with_large_stack(|| self.prepare_all(module, forms, only_expand))
    }

    fn prepare_all(&mut self, module: &Rc<Module>, forms: Vec<Form>, only_expand: bool) -> Loaded<Loading> {
        let declared: Vec<Ustr> = forms.iter().filter_map(|form| declare(module, form)).collect();
        let id = forms.first().map(|f| f.span.source);
        let mut loading = Loading {
            module: Rc::clone(module),
            defined: HashMap::new(),
            pending: Vec::new(),
            postponed: Vec::new(),
            expanded: Vec::new(),
            only_expand,
            names_missing: false,
        };
        self.provide(module, &forms)?;
        let mut errors = Vec::new();
        let mut forms = forms;
        while let Err(error) = foreign_statement(&forms) {
            // Without the intended call, so that its parts are not reported too.
            let call = error.labels[0].span;
            forms.retain(|f| !(call.start..call.end).contains(&f.span.start));
            errors.push(*error);
        }
        for form in forms {
            let gives_names = self.gives_names(module, &form);
            if let Err(mut found) = self.prepare(&mut loading, form) {
                loading.names_missing |= gives_names;
                errors.append(&mut found);
                if self.stopped() {
                    break;
                }
            }
        }
        for (global, form) in std::mem::take(&mut loading.postponed) {
            let items = form.items(Bracket::Round).unwrap_or(&[]);
            match self.function(&loading, &items[1..], form.span) {
                Ok(function) => self.give(&global, Value::Function(function)),
                Err(_) if only_expand => {}
                Err(mut found) => errors.append(&mut found),
            }
        }
        if matches!(self.mode, Mode::Check(_)) {
            // Check the resolved forms all the same.
            let errors = self.in_order(errors, id);
            self.note(|checked| checked.errors.extend(errors));
            return Ok(loading);
        }
        if errors.is_empty() {
            return Ok(loading);
        }
        // Remove definitions without a value: in a session, the earlier meaning of the name counts.
        let mut definitions = module.definitions.borrow_mut();
        for name in declared {
            if definitions.get(&name).is_some_and(|g| g.value.borrow().is_none()) {
                definitions.shift_remove(&name);
            }
        }
        drop(definitions);
        Err(self.in_order(errors, id))
    }

    /// Errors in source order, each unknown name once.
    fn in_order(&self, mut errors: Vec<Diagnostic>, id: Option<SourceId>) -> Vec<Diagnostic> {
        let place = |d: &Diagnostic| {
            let used = d.labels.iter().map(|l| self.sources.used(l.span));
            used.filter(|span| Some(span.source) == id).map(|span| span.start).next()
        };
        errors.sort_by_key(place);
        let mut unknown = HashSet::new();
        errors.retain(|d| d.kind != Kind::UnknownName || unknown.insert(d.message.clone()));
        errors
    }

    /// True if names may be unknown after an error in this form: it uses a module, defines a macro, or is a macro use.
    fn gives_names(&self, module: &Rc<Module>, form: &Form) -> bool {
        let Some(head) = form.items(Bracket::Round).and_then(|items| items.first()?.symbol()) else {
            return false;
        };
        matches!(SpecialForm::named(&head), Some(SpecialForm::Use | SpecialForm::Defmacro | SpecialForm::Do))
            || self.modules.find_macro(module, head).is_some()
    }

    /// Expands and resolves one top-level form. Functions, macros and uses take effect at once; expressions are queued.
    fn prepare(&mut self, loading: &mut Loading, form: Form) -> Loaded<()> {
        let module = Rc::clone(&loading.module);
        let form = self.expand(&module, form)?;
        let span = form.span;
        let items = form.items(Bracket::Round).unwrap_or(&[]);
        let (head, args) = items.split_first().map_or((None, items), |(head, args)| (head.special(), args));
        match head {
            Some(SpecialForm::Do) => {
                let mut inner = cast_vectors(args.to_vec()).into_iter();
                return inner.try_for_each(|inner| self.prepare(loading, inner));
            }
            Some(SpecialForm::Use) => self.use_form(&module, args, span, !loading.only_expand)?,
            Some(head @ SpecialForm::Defmacro) => {
                if args.len() < 3 {
                    return Ok(usage(head, span)?);
                }
                let function = self.function(loading, args, span)?;
                let global = self.define(loading, head, args, span)?;
                global.is_macro.set(true);
                self.give(&global, Value::Function(function));
            }
            Some(head @ SpecialForm::Defn) => {
                let global = self.define(loading, head, args, span)?;
                match self.function(loading, args, span) {
                    Ok(function) => self.give(&global, Value::Function(function)),
                    Err(_) => loading.postponed.push((global, form.clone())),
                }
            }
            Some(SpecialForm::Defparams) => self.params_form(loading, args, span)?,
            Some(SpecialForm::Defgrad) => self.gradient_form(loading, args, span)?,
            Some(head @ SpecialForm::Def) => {
                let [name, value @ ..] = args else { return Ok(usage(head, span)?) };
                if value.len() > 1
                    && value[0].items(Bracket::Square).is_some()
                    && dtype_keyword(&value[1]).is_none()
                {
                    let d = Diagnostic::error("def gives a name to one value; defn defines a function");
                    return Err(vec![d.at(span, "").help(format!("write (defn {name} {} ...)", value[0]))]);
                }
                let global = self.define(loading, head, args, span)?;
                let mut resolver = self.resolver(loading);
                let value = resolver.sequence(value, true);
                let frame_size = resolver.scopes.frame_size();
                let mut value = match resolver.finish(Ok(value)) {
                    Err(_) if loading.only_expand => Vec::new(),
                    value => value?,
                };
                match (value.pop(), value.is_empty()) {
                    (Some(expr), true) => {
                        mark_last_uses(&expr);
                        *global.pending.borrow_mut() = Some(Rc::new(Pending { expr, frame_size }));
                    }
                    _ if loading.only_expand => {}
                    _ => return Ok(usage(head, span)?),
                }
                loading
                    .pending
                    .push(Pending { expr: Expr { kind: ExprKind::Def(global), span }, frame_size: 0 });
            }
            _ if loading.only_expand => {}
            _ => {
                let mut resolver = self.resolver(loading);
                let expr = resolver.form(&form);
                let frame_size = resolver.scopes.frame_size();
                let expr = resolver.finish(expr)?;
                mark_last_uses(&expr);
                loading.pending.push(Pending { expr, frame_size });
            }
        }
        loading.expanded.push(form);
        Ok(())
    }

    pub(super) fn resolver<'a>(&'a self, loading: &Loading) -> Resolver<'a> {
        Resolver {
            names: &self.modules,
            module: Rc::clone(&loading.module),
            scopes: Scopes::new(),
            errors: Vec::new(),
            names_missing: loading.names_missing,
            defaults: Vec::new(),
        }
    }
}

/// Combines each vector literal with the dtype after it into one form, as in a body.
pub(super) fn cast_vectors(forms: Vec<Form>) -> Vec<Form> {
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

/// The error message of an unhandled signal.
pub(crate) fn as_diagnostic(stop: Stop) -> Diagnostic {
    match stop {
        Stop::Error(d) => d,
        Stop::Trace(stop) => {
            let message = match stop.reason {
                Reason::Value { wanted, .. } => format!("{wanted} must be known while tracing"),
                Reason::Effect(name) => format!("{name} has an effect"),
                Reason::Unevaluated(name) => format!("{name} has no value before the program runs"),
                Reason::Loop => "the loop is too long to be unrolled".into(),
                Reason::Reads => "the items of a handle are read".into(),
                Reason::NoVjp(reason) => format!("there is no gradient here: {reason}"),
                Reason::Elements { wanted, ty, .. } => {
                    format!("{wanted} depends on the elements of a tensor {ty}")
                }
            };
            let d = Diagnostic::error(message);
            let d = match stop.span {
                Some(span) => d.at(span, ""),
                None => d,
            };
            stop.differing.into_iter().fold(d, |d, differing| d.note(differing.clause))
        }
    }
}

impl From<Signal> for Vec<Diagnostic> {
    fn from(signal: Signal) -> Vec<Diagnostic> {
        vec![as_diagnostic(*signal)]
    }
}
