//! Modules: definitions of a file, its imports, and name look-up (SPEC section 8).

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use ustr::Ustr;

use super::expr::Global;
use super::value::Value;
use crate::builtins::{self, Builtin};
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
    /// True for the standard library, whose names have the lowest precedence.
    pub standard: bool,
    pub(super) definitions: RefCell<IndexMap<Ustr, Rc<Global>>>,
    pub(super) imports: RefCell<Vec<Import>>,
    /// Aliases that macros of other modules left in this one: the module and the name there.
    pub(super) foreign: RefCell<HashMap<Ustr, (Rc<Module>, Ustr)>>,
}

/// A `(use ...)`.
#[derive(Debug)]
pub(super) struct Import {
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
pub(super) enum Meaning {
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
pub(super) fn qualified(name: &str) -> Option<(&str, Ustr)> {
    name.split_once('/').filter(|(p, r)| !p.is_empty() && !r.is_empty()).map(|(p, r)| (p, Ustr::from(r)))
}

impl Module {
    /// The meaning of `name` here, except builtins.
    pub(super) fn find(&self, name: Ustr) -> Option<Meaning> {
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
    pub(super) fn keeper(&self, name: Ustr) -> Option<(String, Rc<Global>)> {
        let (name, modules) = self.sources(name);
        let own = |(m, _): &(Rc<Module>, bool)| Some((m.name.clone(), m.own(name)?));
        if is_private(&name) { modules.iter().find_map(own) } else { None }
    }

    /// The aliases of the modules used here.
    pub(super) fn aliases(&self) -> Vec<Ustr> {
        self.imports.borrow().iter().filter_map(|i| i.alias).collect()
    }

    /// True if the module `name` is used here without an alias.
    pub(super) fn uses_flat(&self, name: &str) -> bool {
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
    pub(super) fn plain(&self, name: Ustr) -> Ustr {
        self.foreign.borrow().get(&name).map_or(name, |(home, name)| home.plain(*name))
    }
}

/// The modules of an evaluation, and the table of what names mean in them.
#[derive(Default)]
pub(super) struct Modules {
    /// The builtins written in Sheaf; `None` while the evaluator is made.
    pub core: Option<Rc<Module>>,
    /// The module of the program.
    pub program: Option<Rc<Module>>,
    /// The modules used by it, by file.
    pub files: HashMap<String, Rc<Module>>,
    /// The loaded or loading modules of the standard library.
    pub standard: HashMap<&'static str, Rc<Module>>,
    /// The files being loaded, outermost first.
    pub loading: Vec<String>,
    /// Builtins redefined by the program, after the warning.
    pub redefined: HashSet<Ustr>,
}

impl Modules {
    /// The meaning of a name in `module`: its definitions and imports, then the builtins, then the standard library.
    pub(super) fn meaning(&self, module: &Module, name: Ustr) -> Option<Meaning> {
        if let Some((home, name)) = module.foreign.borrow().get(&name) {
            return self.meaning(home, *name);
        }
        // Private names of the language are for the standard library.
        let open = module.standard || !is_private(&name);
        module
            .find(name)
            .or_else(|| self.core.as_ref().filter(|_| open).and_then(|core| core.find(name)))
            .or_else(|| builtins::find(&name).filter(|_| open).map(Meaning::Builtin))
            .or_else(|| self.in_library(name))
    }

    /// The macro of that name: a function defined in the same file shadows a macro from elsewhere.
    pub(super) fn find_macro(&self, module: &Module, name: Ustr) -> Option<Rc<Global>> {
        match self.meaning(module, name)? {
            Meaning::Global(global) if global.is_macro.get() => Some(global),
            _ => None,
        }
    }

    /// The names of all builtins.
    pub(super) fn builtin_names(&self) -> Vec<Ustr> {
        let core = self.core.iter().flat_map(|c| c.names());
        core.chain(builtins::all().map(|b| Ustr::from(b.name))).filter(|n| !is_private(n)).collect()
    }

    /// The name in `user` for the meaning of `name` in `home`: `name` itself if it means the same in both, or nothing
    /// in `home`.
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
        // No program can write this name: an alias does not end like a file.
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
