//! Modules: definitions of a file, its imports, and name look-up (SPEC section 8).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use ustr::Ustr;

use super::expr::Global;
use super::value::Value;
use crate::builtins::Builtin;
use sheaf_syntax::Span;

/// A file of the program or of the standard library.
#[derive(Debug, Default)]
pub struct Module {
    /// The name in `use`, or the file of the program.
    pub name: String,
    /// The base folder of relative `(use ./x.shf)`.
    pub folder: String,
    /// The source folder of its program, searched by `(use x)`.
    pub root: String,
    /// The folder of its package, if that is a dependency; empty for the program's own files.
    pub package: String,
    /// True for the standard library, whose names have the lowest precedence.
    pub standard: bool,
    pub(crate) definitions: RefCell<IndexMap<Ustr, Rc<Global>>>,
    pub(crate) imports: RefCell<Vec<Import>>,
    /// Aliases that macros of other modules left in this one: the module and the name there.
    pub(crate) foreign: RefCell<HashMap<Ustr, (Rc<Module>, Ustr)>>,
}

/// A `(use ...)`.
#[derive(Debug)]
pub(crate) struct Import {
    pub module: Rc<Module>,
    pub alias: Option<Ustr>,
    pub only: Option<Vec<Ustr>>,
}

/// A name visible in a module, and its value.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name there: with the alias of its module, if there is one.
    pub name: Ustr,
    /// The value.
    pub value: Value,
    /// True for a macro.
    pub is_macro: bool,
}

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// A definition.
    Global(Rc<Global>),
    /// A function written in Rust.
    Builtin(&'static Builtin),
    /// Conflicting definitions of one level: their modules and spans.
    Ambiguous(Vec<(String, Span)>),
}

/// True if the name is private to its module.
pub(crate) fn is_private(name: &str) -> bool {
    name.len() > 1 && name.starts_with('-')
}

impl Import {
    fn lists(&self, name: Ustr) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

/// The alias and the name of `m/name`.
pub(crate) fn qualified(name: &str) -> Option<(&str, Ustr)> {
    name.split_once('/').filter(|(p, r)| !p.is_empty() && !r.is_empty()).map(|(p, r)| (p, Ustr::from(r)))
}

impl Module {
    /// The meaning of `name` here, except builtins.
    pub(crate) fn find(&self, name: Ustr) -> Option<Meaning> {
        if let Some(global) = self.definitions.borrow().get(&name) {
            return Some(Meaning::Global(Rc::clone(global)));
        }
        choose(self.imported(name))
    }

    /// The modules that `name` may come from, private or not, with its name there: that of an alias, or every flat
    /// import. True for each that was imported by `:as` or `:only`.
    fn sources(&self, name: Ustr) -> (Ustr, Vec<(Rc<Module>, bool)>) {
        let (prefix, name) = qualified(&name).map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
        let imports = self.imports.borrow();
        let from = imports.iter().filter(|i| i.alias.as_ref().map(Ustr::as_str) == prefix && i.lists(name));
        (name, from.map(|i| (Rc::clone(&i.module), prefix.is_some() || i.only.is_some())).collect())
    }

    /// The exports of other modules under `name`: their own definitions, or else their re-exports. Names of the always
    /// available standard library have lower precedence than both.
    fn imported(&self, name: Ustr) -> Vec<(Rc<Module>, Rc<Global>)> {
        let (name, modules) = self.sources(name);
        if is_private(&name) {
            return Vec::new();
        }
        let own = |(m, named): &(Rc<Module>, bool)| Some((Rc::clone(m), m.own(name)?, *named));
        let direct: Vec<_> = modules.iter().filter_map(own).collect();
        let firm = direct.iter().any(|(m, _, named)| *named || !m.standard);
        let direct: Vec<_> = direct.into_iter().map(|(m, global, _)| (m, global)).collect();
        if firm {
            return direct;
        }
        let handed: Vec<_> = modules.iter().flat_map(|(m, _)| m.imported(name)).collect();
        if direct.is_empty() || handed.iter().any(|(m, _)| !m.standard) { handed } else { direct }
    }

    fn own(&self, name: Ustr) -> Option<Rc<Global>> {
        self.definitions.borrow().get(&name).cloned()
    }

    /// The module that keeps `name` private, for the error message.
    pub(crate) fn keeper(&self, name: Ustr) -> Option<(String, Rc<Global>)> {
        let (name, modules) = self.sources(name);
        let own = |(m, _): &(Rc<Module>, bool)| Some((m.name.clone(), m.own(name)?));
        if is_private(&name) { modules.iter().find_map(own) } else { None }
    }

    /// The aliases of the modules used here.
    pub(crate) fn aliases(&self) -> Vec<Ustr> {
        self.imports.borrow().iter().filter_map(|i| i.alias).collect()
    }

    /// True if the module `name` is used here without an alias.
    pub(crate) fn uses_flat(&self, name: &str) -> bool {
        self.imports.borrow().iter().any(|i| i.alias.is_none() && i.module.name == name)
    }

    /// All names visible here besides the builtins, for suggestions.
    pub fn names(&self) -> Vec<Ustr> {
        self.defined().into_iter().map(|(name, _)| name).collect()
    }

    /// The definitions visible here that have a value.
    pub fn definitions(&self) -> Vec<Definition> {
        let defined = self.defined().into_iter();
        let look = |(name, global): (Ustr, Rc<Global>)| {
            let value = global.value.borrow().clone()?;
            Some(Definition { name, value, is_macro: global.is_macro.get() })
        };
        defined.filter_map(look).collect()
    }

    /// The definitions visible here, under their names here: own ones first, in order, then those of modules.
    fn defined(&self) -> Vec<(Ustr, Rc<Global>)> {
        let own = self.definitions.borrow();
        let mut defined: Vec<_> = own.iter().map(|(name, global)| (*name, Rc::clone(global))).collect();
        for import in self.imports.borrow().iter() {
            let given =
                import.module.defined().into_iter().filter(|(n, _)| !is_private(n) && import.lists(*n));
            match import.alias {
                Some(alias) => defined.extend(given.map(|(n, g)| (Ustr::from(&format!("{alias}/{n}")), g))),
                None => defined.extend(given),
            }
        }
        defined
    }

    /// The name without the module mark added by a macro.
    pub(crate) fn plain(&self, name: Ustr) -> Ustr {
        self.foreign.borrow().get(&name).map_or(name, |(home, name)| home.plain(*name))
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
    let mut places: Vec<(String, Span)> =
        found.into_iter().map(|(m, g)| (m.name.clone(), g.span.get())).collect();
    places.dedup();
    Some(Meaning::Ambiguous(places))
}
