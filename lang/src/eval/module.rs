//! Modules: definitions of a file, what it uses, and what a name means in it (SPEC section 8).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use ustr::Ustr;

use super::expr::Global;
use super::value::Function;
use crate::builtins::Builtin;

/// A file of the program or of the standard library.
#[derive(Debug, Default)]
pub struct Module {
    /// The name under which it was used, or the file of the program.
    pub name: String,
    /// The folder that relative `(use ./x.shf)` starts from.
    pub folder: String,
    /// The source folder of the program it belongs to, where `(use x)` looks.
    pub root: String,
    /// Whether it belongs to the standard library, whose names give way to others.
    pub standard: bool,
    pub(super) definitions: RefCell<IndexMap<Ustr, Rc<Global>>>,
    pub(super) macros: RefCell<HashMap<Ustr, Rc<Function>>>,
    pub(super) imports: RefCell<Vec<Import>>,
}

/// A `(use ...)`.
#[derive(Debug)]
pub(super) struct Import {
    pub module: Rc<Module>,
    pub alias: Option<Ustr>,
    pub only: Option<Vec<Ustr>>,
}

/// What a name means.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// A definition.
    Global(Rc<Global>),
    /// A function written in Rust.
    Builtin(&'static Builtin),
    /// Definitions of one level that differ: the modules they are in.
    Ambiguous(Vec<String>),
}

/// Whether a module keeps the name to itself.
fn private(name: Ustr) -> bool {
    name.len() > 1 && name.starts_with('-')
}

impl Import {
    fn offers(&self, name: Ustr) -> bool {
        self.alias.is_none() && !private(name) && self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

impl Module {
    /// What `name` means here, builtins left to the caller.
    pub(super) fn find(&self, name: Ustr) -> Option<Meaning> {
        if let Some(global) = self.definitions.borrow().get(&name) {
            return Some(Meaning::Global(Rc::clone(global)));
        }
        choose(self.imported(name))
    }

    /// The modules that `name` may come from, with the name it has there: what an alias names, or every flat import.
    fn sources(&self, name: Ustr) -> (Ustr, Vec<Rc<Module>>) {
        let imports = self.imports.borrow();
        let qualified = name.split_once('/').filter(|(p, r)| !p.is_empty() && !r.is_empty());
        let Some((prefix, rest)) = qualified.map(|(p, r)| (p, Ustr::from(r))) else {
            return (name, imports.iter().filter(|i| i.offers(name)).map(|i| Rc::clone(&i.module)).collect());
        };
        let named = |i: &&Import| i.alias.is_some_and(|a| a == prefix) && !private(rest);
        (rest, imports.iter().filter(named).map(|i| Rc::clone(&i.module)).collect())
    }

    /// What other modules give under `name`: their own definitions, or else what they were given themselves.
    fn imported(&self, name: Ustr) -> Vec<(Rc<Module>, Rc<Global>)> {
        let (name, modules) = self.sources(name);
        let own = |m: &Rc<Module>| Some((Rc::clone(m), Rc::clone(m.definitions.borrow().get(&name)?)));
        let direct: Vec<_> = modules.iter().filter_map(own).collect();
        if direct.is_empty() { modules.iter().flat_map(|m| m.imported(name)).collect() } else { direct }
    }

    /// The macro called `name` here.
    pub(super) fn find_macro(&self, name: Ustr) -> Option<Rc<Function>> {
        if let Some(m) = self.macros.borrow().get(&name) {
            return Some(Rc::clone(m));
        }
        let (name, modules) = self.sources(name);
        modules.iter().find_map(|m| m.find_macro(name))
    }

    /// Every name that can be used here unqualified, for suggestions.
    pub(super) fn names(&self) -> Vec<Ustr> {
        let mut names: Vec<Ustr> = self.definitions.borrow().keys().copied().collect();
        names.extend(self.macros.borrow().keys());
        for import in self.imports.borrow().iter() {
            let given = import.module.names().into_iter();
            match import.alias {
                Some(alias) => names.extend(given.map(|n| Ustr::from(&format!("{alias}/{n}")))),
                None => names.extend(given.filter(|n| import.offers(*n))),
            }
        }
        names
    }
}

fn choose(mut found: Vec<(Rc<Module>, Rc<Global>)>) -> Option<Meaning> {
    if found.iter().any(|(m, _)| !m.standard) {
        found.retain(|(m, _)| !m.standard);
    }
    let (_, first) = found.first()?;
    if found.iter().all(|(_, g)| Rc::ptr_eq(g, first)) {
        return Some(Meaning::Global(Rc::clone(first)));
    }
    let mut names: Vec<String> = found.into_iter().map(|(m, _)| m.name.clone()).collect();
    names.dedup();
    Some(Meaning::Ambiguous(names))
}
