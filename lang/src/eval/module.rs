//! Modules: definitions of a file, what it uses, and what a name means in it (SPEC section 8).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use ustr::Ustr;

use super::expr::Global;
use super::interp::Interp;
use super::value::Value;
use crate::builtins::{self, Builtin};
use crate::syntax::Span;

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
    pub(super) imports: RefCell<Vec<Import>>,
    /// Names that macros of other modules left in this one: what each is called in the module it comes from.
    pub(super) foreign: RefCell<HashMap<Ustr, (Rc<Module>, Ustr)>>,
}

/// A `(use ...)`.
#[derive(Debug)]
pub(super) struct Import {
    pub module: Rc<Module>,
    pub alias: Option<Ustr>,
    pub only: Option<Vec<Ustr>>,
}

/// A name that can be used in a module, and its value.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name there: with its alias, if the module it is from has one.
    pub name: Ustr,
    /// The value.
    pub value: Value,
    /// True for a macro.
    pub is_macro: bool,
}

/// What a name means.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// A definition.
    Global(Rc<Global>),
    /// A function written in Rust.
    Builtin(&'static Builtin),
    /// Definitions of one level that differ: the modules they are in, and where.
    Ambiguous(Vec<(String, Span)>),
}

/// Whether a module keeps the name to itself.
pub(crate) fn is_private(name: &str) -> bool {
    name.len() > 1 && name.starts_with('-')
}

impl Import {
    fn lists(&self, name: Ustr) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

/// `m/name` as the alias and the name.
pub(super) fn qualified(name: &str) -> Option<(&str, Ustr)> {
    name.split_once('/').filter(|(p, r)| !p.is_empty() && !r.is_empty()).map(|(p, r)| (p, Ustr::from(r)))
}

impl Module {
    /// What `name` means here, builtins left to the caller.
    pub(super) fn find(&self, name: Ustr) -> Option<Meaning> {
        if let Some(global) = self.definitions.borrow().get(&name) {
            return Some(Meaning::Global(Rc::clone(global)));
        }
        choose(self.imported(name))
    }

    /// The modules that `name` may come from, private or not, with the name it has there: what an alias names, or
    /// every flat import. With each, whether the program asked for the name by `:as` or `:only`.
    fn sources(&self, name: Ustr) -> (Ustr, Vec<(Rc<Module>, bool)>) {
        let (prefix, name) = qualified(&name).map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
        let imports = self.imports.borrow();
        let from = imports.iter().filter(|i| i.alias.as_ref().map(Ustr::as_str) == prefix && i.lists(name));
        (name, from.map(|i| (Rc::clone(&i.module), prefix.is_some() || i.only.is_some())).collect())
    }

    /// What other modules give under `name`: their own definitions, or else what they were given themselves. A name of
    /// the standard library that is there anyway gives way to both.
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

    /// The module that keeps the definition of `name` to itself, for the message to those who try.
    pub(super) fn keeper(&self, name: Ustr) -> Option<(String, Rc<Global>)> {
        let (name, modules) = self.sources(name);
        let own = |(m, _): &(Rc<Module>, bool)| Some((m.name.clone(), m.own(name)?));
        if is_private(&name) { modules.iter().find_map(own) } else { None }
    }

    /// The aliases of the modules used here.
    pub(super) fn aliases(&self) -> Vec<Ustr> {
        self.imports.borrow().iter().filter_map(|i| i.alias).collect()
    }

    /// Whether the module called `name` is used here without an alias.
    pub(super) fn uses_flat(&self, name: &str) -> bool {
        self.imports.borrow().iter().any(|i| i.alias.is_none() && i.module.name == name)
    }

    /// Every name that can be used here beside the builtins, for suggestions.
    pub fn names(&self) -> Vec<Ustr> {
        self.defined().into_iter().map(|(name, _)| name).collect()
    }

    /// The definitions that can be used here and have a value, for those who look around.
    pub fn definitions(&self) -> Vec<Definition> {
        let defined = self.defined().into_iter();
        let look = |(name, global): (Ustr, Rc<Global>)| {
            let value = global.value.borrow().clone()?;
            Some(Definition { name, value, is_macro: global.is_macro.get() })
        };
        defined.filter_map(look).collect()
    }

    /// The definitions that can be used here, each under its name here: own ones first, in their order, then those of
    /// modules.
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

    /// The name without the mark of the module that a macro brought it from.
    pub(super) fn plain(&self, name: Ustr) -> Ustr {
        self.foreign.borrow().get(&name).map_or(name, |(home, name)| home.plain(*name))
    }
}

impl Interp {
    /// What a name means in `module`: its definitions and imports, then the builtins, then the standard library.
    pub(super) fn meaning(&self, module: &Module, name: Ustr) -> Option<Meaning> {
        if let Some((home, name)) = module.foreign.borrow().get(&name) {
            return self.meaning(home, *name);
        }
        // What the language keeps to itself is for the standard library.
        let open = module.standard || !is_private(&name);
        module
            .find(name)
            .or_else(|| self.core.as_ref().filter(|_| open).and_then(|core| core.find(name)))
            .or_else(|| builtins::find(&name).filter(|_| open).map(Meaning::Builtin))
            .or_else(|| self.in_library(name))
    }

    /// The name under which `user` sees what `name` means in `home`: `name` itself where it means the same to both, or
    /// nothing to `home`.
    pub(super) fn name_from(&self, home: &Rc<Module>, user: &Rc<Module>, name: Ustr) -> Ustr {
        if Rc::ptr_eq(home, user) {
            return name;
        }
        let same = match (self.meaning(home, name), self.meaning(user, name)) {
            (None, _) => true,
            (Some(Meaning::Global(a)), Some(Meaning::Global(b))) => Rc::ptr_eq(&a, &b),
            (Some(Meaning::Builtin(a)), Some(Meaning::Builtin(b))) => std::ptr::eq(a, b),
            _ => false,
        };
        if same {
            return name;
        }
        // No name that a program writes: an alias does not end like a file.
        let mut marked = format!("{}.shf/{name}", home.name.trim_end_matches(".shf"));
        let mut foreign = user.foreign.borrow_mut();
        while foreign.get(&Ustr::from(&marked)).is_some_and(|(other, _)| !Rc::ptr_eq(other, home)) {
            marked.insert(0, '.');
        }
        let marked = Ustr::from(&marked);
        foreign.insert(marked, (Rc::clone(home), name));
        marked
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
