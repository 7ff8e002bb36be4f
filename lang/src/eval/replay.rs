//! Replays: the innermost call around a broken guard, packed with its arguments, its program's texts and the definitions
//! that it needs; and run again, interpreted, operation by operation.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::interp::{Interp, Mode};
use super::load::Loaded;
use super::observed::Observing;
use crate::builtins;
use crate::observe::{Capsule, PackedFunction, PackedTransform, Packer, Place};
use crate::program::{Closure, Code, Expr, ExprKind, Function, Global, Module, Value, is_private};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Sources, Span};

/// Maximum transformations around one function, as an evaluator allows.
const MAX_TRANSFORMS: usize = 100;

/// The files and the start and end of a span, from inside out through the macro uses that made its code.
fn place_of(sources: &Sources, mut span: Span) -> Place {
    let mut place = Vec::new();
    loop {
        let name = sources.get(span.source).map_or_else(String::new, |(name, _)| name.to_owned());
        place.push((name, span.start, span.end));
        match sources.expansion(span.source) {
            Some(expansion) => span = expansion.used,
            None => return place,
        }
    }
}

impl Interp {
    /// The innermost open call of a function, or else the open call, packed; `None` if it cannot be.
    pub(super) fn capsule(&self, observing: &Observing, broken: &str) -> Option<Vec<u8>> {
        let program = self.modules.program.as_ref()?;
        let (function, arguments) = observing.innermost()?;
        let mut packer = Packer::default();
        let mut needed = Needed { interp: self, seen: HashSet::new(), globals: Vec::new() };
        let packed = needed.function(&mut packer, &function)?;
        let mut capsule = Capsule::new(program.name.clone(), packed);
        capsule.broken = broken.into();
        capsule.guards = observing.guards.iter().map(ToString::to_string).collect();
        for argument in arguments {
            let packed = packer.value(argument, &mut |packer, f| needed.function(packer, f))?;
            capsule.arguments.push(packed);
        }
        while let Some(global) = needed.globals.pop() {
            let value = global.value.borrow().clone();
            // An expression without a value yet is not needed before the break.
            let Some(value) = value else { continue };
            if let Some(packed) = packer.value(&value, &mut |packer, f| needed.function(packer, f)) {
                let place = place_of(&self.sources, global.span.get());
                capsule.definitions.push((place, global.name.to_string(), packed));
            }
        }
        let is_file = |(name, _): &(&str, &str)| !(name.starts_with('<') && name.ends_with('>'));
        capsule.sources = self
            .sources
            .iter()
            .filter(is_file)
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        capsule.dependencies.clone_from(&self.modules.dependencies);
        capsule.own.clone_from(&self.modules.own_packages);
        packer.finish(&mut capsule);
        capsule.to_bytes()
    }

    /// Reads the program of a capsule, without running it, and then runs its call; the call's result.
    ///
    /// The host gives the texts of the capsule as files, and nothing else.
    pub fn replay(&mut self, capsule: &Capsule) -> Loaded<Value> {
        let text =
            capsule.sources.iter().find(|(name, _)| *name == capsule.program).map(|(_, text)| text.as_str());
        let Some(text) = text else { return Err(vec![damaged("the text of its program is missing")]) };
        self.mode = Mode::Prepare;
        self.unrun = Some(Vec::new());
        let prepared = self.run_program(&capsule.program, text);
        self.mode = Mode::Run;
        let top = self.unrun.take().unwrap_or_default();
        prepared?;
        let known = self.known(&top);
        for (place, name, packed) in &capsule.definitions {
            let value = capsule.unpacked(packed, &|f| known.function(capsule, f, 0));
            let value = value.map_err(|what| vec![damaged(&what)])?;
            match known.globals.get(&(place.clone(), name.clone())) {
                Some(global) => _ = global.value.replace(Some(value)),
                None => return Err(vec![damaged(&format!("its program has no definition of {name}"))]),
            }
        }
        let unpacked = |packed| capsule.unpacked(packed, &|f| known.function(capsule, f, 0));
        let call = known.function(capsule, &capsule.function, 0).and_then(|function| {
            Ok((function, capsule.arguments.iter().map(unpacked).collect::<Result<Vec<_>, _>>()?))
        });
        let (function, arguments) = call.map_err(|what| vec![damaged(&what)])?;
        let site = self.call_site("the replayed call");
        self.apply(&function, arguments.into(), site)
    }

    /// Every code and definition of the program and its modules.
    fn known(&self, top: &[Expr]) -> Known {
        let mut known = Known::default();
        top.iter().for_each(|expr| known.expr(&self.sources, expr));
        let modules = self.modules.core.iter().chain(&self.modules.program);
        for module in modules.chain(self.modules.files.values()).chain(self.modules.standard.values()) {
            known.module(&self.sources, module);
        }
        known
    }
}

fn damaged(what: &str) -> Diagnostic {
    Diagnostic::error(format!("the capsule cannot be replayed: {what}"))
        .help("run the program again with --guard: a broken guard writes another capsule")
}

/// The definitions that a function needs.
struct Needed<'a> {
    interp: &'a Interp,
    seen: HashSet<usize>,
    globals: Vec<Rc<Global>>,
}

impl Needed<'_> {
    fn function(&mut self, packer: &mut Packer, function: &Function) -> Option<PackedFunction> {
        Some(match function {
            Function::Builtin(builtin) => PackedFunction::Builtin(builtin.name.into()),
            Function::Transformed(transform, inner) => PackedFunction::Transformed(
                PackedTransform::of(transform),
                Box::new(self.function(packer, inner)?),
            ),
            Function::Closure(closure) => {
                self.code(&closure.code);
                let mut captured = Vec::new();
                for value in &closure.captured {
                    captured.push(packer.value(value, &mut |packer, f| self.function(packer, f))?);
                }
                PackedFunction::Code(place_of(&self.interp.sources, closure.code.span), captured)
            }
        })
    }

    fn code(&mut self, code: &Rc<Code>) {
        if !self.seen.insert(Rc::as_ptr(code) as usize) {
            return;
        }
        if let Some(body) = code.body.get() {
            self.expr(body);
        }
        if let Some(gradient) = &*code.gradient.borrow() {
            self.code(gradient);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Global(global) = &expr.kind
            && self.seen.insert(Rc::as_ptr(global) as usize)
        {
            let value = global.value.borrow().clone();
            match value {
                Some(Value::Function(f)) if is_definition(global, &f) => {
                    if let Some(code) = f.code() {
                        self.code(code);
                    }
                }
                Some(_) if !global.span.get().source.is_library() => self.globals.push(Rc::clone(global)),
                _ => {}
            }
        }
        if let ExprKind::Fn(code) = &expr.kind {
            self.code(code);
        }
        expr.for_each_part(&mut |part| self.expr(part));
    }
}

/// True for the function of a `defn`, which reading the program makes again.
fn is_definition(global: &Global, function: &Function) -> bool {
    matches!(function, Function::Closure(c) if c.captured.is_empty() && c.code.name == Some(global.name))
}

/// The codes and definitions of a program that was read again.
#[derive(Default)]
struct Known {
    codes: HashMap<Place, Rc<Code>>,
    globals: HashMap<(Place, String), Rc<Global>>,
}

impl Known {
    fn module(&mut self, sources: &Sources, module: &Module) {
        for (name, global) in module.definitions.borrow().iter() {
            self.globals.insert((place_of(sources, global.span.get()), name.to_string()), Rc::clone(global));
            if let Some(function) = global.function()
                && let Some(code) = function.code()
            {
                self.code(sources, code);
            }
            if let Some(pending) = &*global.pending.borrow() {
                self.expr(sources, &pending.expr);
            }
        }
    }

    fn code(&mut self, sources: &Sources, code: &Rc<Code>) {
        let known = self.codes.insert(place_of(sources, code.span), Rc::clone(code));
        if known.is_some_and(|known| Rc::ptr_eq(&known, code)) {
            return;
        }
        if let Some(body) = code.body.get() {
            self.expr(sources, body);
        }
    }

    fn expr(&mut self, sources: &Sources, expr: &Expr) {
        if let ExprKind::Fn(code) = &expr.kind {
            self.code(sources, code);
        }
        expr.for_each_part(&mut |part| self.expr(sources, part));
    }

    fn function(
        &self,
        capsule: &Capsule,
        packed: &PackedFunction,
        transforms: usize,
    ) -> Result<Value, String> {
        let function = match packed {
            PackedFunction::Builtin(name) => match builtins::find(name).filter(|_| !is_private(name)) {
                Some(builtin) => Function::Builtin(builtin),
                None => return Err(format!("there is no builtin {name}")),
            },
            PackedFunction::Code(place, captured) => {
                let code = self.codes.get(place).ok_or("its program has no such function")?;
                let captured: Vec<Value> = captured
                    .iter()
                    .map(|value| capsule.unpacked(value, &|f| self.function(capsule, f, 0)))
                    .collect::<Result<_, _>>()?;
                if captured.len() != code.captures.borrow().len() {
                    return Err("its function captured other values".into());
                }
                Function::Closure(Closure { code: Rc::clone(code), captured })
            }
            PackedFunction::Transformed(_, _) if transforms >= MAX_TRANSFORMS => {
                return Err("its function has too many transformations".into());
            }
            PackedFunction::Transformed(transform, inner) => {
                let Value::Function(inner) = self.function(capsule, inner, transforms + 1)? else {
                    return Err("its function is none".into());
                };
                Function::Transformed(transform.unpacked(), inner)
            }
        };
        Ok(Value::function(function))
    }
}
