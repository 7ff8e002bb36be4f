//! The table of names: what a name means in a module.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ustr::Ustr;

use crate::builtins;
use crate::program::{Global, Meaning, Module, is_private};

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
    /// Their loaded or loading parts, each with the module's name.
    pub parts: HashSet<(&'static str, &'static str)>,
    /// The dependencies that were asked for: the folder of the package that asks, the name there, and the folder.
    pub dependencies: Vec<(String, String, String)>,
    /// The answers to the question for the program's own package, by the folder that asks.
    pub own_packages: Vec<(String, Option<String>, String)>,
    /// The files being loaded, outermost first.
    pub loading: Vec<String>,
    /// Builtins redefined by the program, after the warning.
    pub redefined: HashSet<Ustr>,
    /// True if code that is read shall report arithmetic of plain numbers to an observer.
    pub observed: bool,
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
