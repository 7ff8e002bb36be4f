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
        let imports = self.imports.borrow();
        if let Some((prefix, rest)) = name.split_once('/').filter(|(p, r)| !p.is_empty() && !r.is_empty()) {
            let import = imports.iter().find(|i| i.alias.is_some_and(|a| a == prefix))?;
            let rest = Ustr::from(rest);
            let found = import.module.definitions.borrow().get(&rest).filter(|_| !private(rest)).cloned();
            return found.map(Meaning::Global);
        }
        let mut direct = Vec::new();
        for import in imports.iter().filter(|i| i.offers(name)) {
            if let Some(global) = import.module.definitions.borrow().get(&name) {
                direct.push((Rc::clone(&import.module), Rc::clone(global)));
            }
        }
        if direct.is_empty() {
            for import in imports.iter().filter(|i| i.offers(name)) {
                import.module.handed_on(name, &mut direct, 0);
            }
        }
        choose(direct)
    }

    fn handed_on(&self, name: Ustr, found: &mut Vec<(Rc<Module>, Rc<Global>)>, depth: usize) {
        for import in self.imports.borrow().iter().filter(|i| depth < 64 && i.offers(name)) {
            if let Some(global) = import.module.definitions.borrow().get(&name) {
                found.push((Rc::clone(&import.module), Rc::clone(global)));
            }
            import.module.handed_on(name, found, depth + 1);
        }
    }

    /// The macro called `name` here.
    pub(super) fn find_macro(&self, name: Ustr) -> Option<Rc<Function>> {
        if let Some(m) = self.macros.borrow().get(&name) {
            return Some(Rc::clone(m));
        }
        self.imports.borrow().iter().filter(|i| i.offers(name)).find_map(|i| i.module.find_macro(name))
    }

    /// Every name that can be used here unqualified, for suggestions.
    pub(super) fn names(&self) -> Vec<Ustr> {
        let mut names: Vec<Ustr> = self.definitions.borrow().keys().copied().collect();
        names.extend(self.macros.borrow().keys());
        for import in self.imports.borrow().iter() {
            names.extend(import.module.names().into_iter().filter(|n| import.offers(*n)));
        }
        names
    }
}

fn choose(mut found: Vec<(Rc<Module>, Rc<Global>)>) -> Option<Meaning> {
    if found.iter().any(|(m, _)| !m.standard) {
        found.retain(|(m, _)| !m.standard);
    }
    found.dedup_by(|a, b| Rc::ptr_eq(&a.1, &b.1));
    let (_, first) = found.first()?;
    if found.iter().all(|(_, g)| Rc::ptr_eq(g, first)) {
        return Some(Meaning::Global(Rc::clone(first)));
    }
    Some(Meaning::Ambiguous(found.into_iter().map(|(m, _)| m.name.clone()).collect()))
}
