//! The standard library, available without `use` (SPEC section 8).
//!
//! A part of a module, which is a file, is loaded with the first text that mentions one of its names; other programs never parse it.

use std::rc::Rc;

use ustr::Ustr;

use super::interp::Interp;
use super::load::Loaded;
use super::names::Modules;
use super::signal::Eval;
use crate::program::{Import, Meaning, Module, Value, is_private};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Form, FormKind};

/// A part of a module of the standard library: its name, and its text.
type Part = (&'static str, &'static str);

/// The parts of a module with one file per subject.
macro_rules! parts {
    ($module:literal, $($file:literal),*) => {
        &[$(($file, include_str!(concat!("../../std/", $module, "/", $file, ".shf")))),*]
    };
}

/// The part of a module of one file.
macro_rules! part {
    ($module:literal) => {
        &[($module, include_str!(concat!("../../std/", $module, ".shf")))]
    };
}

/// The parts of the standard library, by the name of each module.
pub const STANDARD: [(&str, &[Part]); 10] = [
    (
        "nn",
        parts!(
            "nn",
            "layers",
            "normalisation",
            "convolution",
            "pooling",
            "recurrent",
            "attention",
            "grouped-attention",
            "positions",
            "experts",
            "lora",
            "losses",
            "initialisers",
            "orthogonal",
            "older"
        ),
    ),
    ("optim", parts!("optim", "optimisers", "variants", "schedules")),
    ("data", part!("data")),
    ("text", part!("text")),
    ("generate", part!("generate")),
    (
        "linalg",
        parts!(
            "linalg",
            "blocks",
            "cholesky",
            "eigen",
            "functions",
            "lu",
            "norms",
            "qr",
            "svd",
            "triangular"
        ),
    ),
    (
        "distributions",
        parts!("distributions", "continuous", "discrete", "multivariate", "samplers", "special"),
    ),
    ("training", parts!("training", "accumulation", "losses", "metrics", "trees")),
    (
        "solvers",
        parts!("solvers", "fixed-point", "interpolation", "linear", "minimize", "odeint", "root", "vectors"),
    ),
    ("fourier", part!("fourier")),
];

/// Modules that older programs use, now always available.
const OLDER: [&str; 2] = ["macros", "misc"];

/// The names of the library, sorted by whether they are public, by the module of private ones, and by themselves, with module and part.
const INDEX: Index = include!(concat!(env!("OUT_DIR"), "/library_index.rs"));

type Index = &'static [((bool, &'static str, &'static str), &'static str, &'static str)];

/// A module and its part.
type Home = (&'static str, &'static str);

/// The home of a public name.
fn public_home(name: Ustr) -> Option<Home> {
    home((true, "", name.as_str()))
}

/// The home of a name in a text of `user`: the same module if the name is private.
fn home_for(user: &Module, name: Ustr) -> Option<Home> {
    if !is_private(&name) {
        return public_home(name);
    }
    if user.standard { home((false, &user.name, name.as_str())) } else { None }
}

fn home(key: (bool, &str, &str)) -> Option<Home> {
    let place = INDEX.binary_search_by_key(&key, |(key, ..)| *key).ok()?;
    Some((INDEX[place].1, INDEX[place].2))
}

/// The public names of the standard library.
pub(super) fn library_names() -> impl Iterator<Item = Ustr> {
    INDEX.iter().filter(|((public, ..), ..)| *public).map(|((.., name), ..)| Ustr::from(name))
}

impl Interp {
    /// Loads the parts of the standard library mentioned in `forms` of a module, unless the name has another meaning there.
    pub(super) fn provide(&mut self, module: &Module, forms: &[Form]) -> Loaded<()> {
        if self.modules.core.as_ref().is_some_and(|core| std::ptr::eq(&raw const **core, module)) {
            return Ok(());
        }
        let mut wanted = Vec::new();
        let mut open: Vec<&Form> = forms.iter().collect();
        while let Some(form) = open.pop() {
            match &form.kind {
                FormKind::Symbol(name) => {
                    // A module may hand on a name of the library: (use ./model.shf :as m), m/linear.
                    let handed = name.rsplit_once('/').map(|(_, own)| own).filter(|own| !own.is_empty());
                    if let Some(home) = home_for(module, handed.map_or(*name, Ustr::from))
                        && !self.modules.parts.contains(&home)
                        && !wanted.contains(&home)
                        && module.find(*name).is_none()
                    {
                        wanted.push(home);
                    }
                }
                FormKind::List(_, items) => open.extend(items),
                FormKind::Dict(entries) => open.extend(entries.iter().flat_map(|(key, value)| [key, value])),
                _ => {}
            }
        }
        wanted.into_iter().try_for_each(|home| self.load_part(home))
    }

    /// Loads all parts of a standard module, if there is such a module.
    pub(super) fn load_whole(&mut self, module: &str) -> Loaded<()> {
        let Some((name, parts)) = STANDARD.into_iter().find(|(n, _)| *n == module) else { return Ok(()) };
        parts.iter().try_for_each(|(part, _)| self.load_part((name, part)))
    }

    /// The standard module `name`, with the parts that are loaded; `None` if there is none.
    pub(super) fn standard_module(&mut self, name: &str) -> Option<Rc<Module>> {
        if let Some(module) = self.modules.standard.get(name) {
            return Some(Rc::clone(module));
        }
        let older = OLDER.iter().find(|older| **older == name).copied();
        let name = STANDARD.into_iter().map(|(n, _)| n).find(|n| *n == name).or(older)?;
        let module = Rc::new(Module { name: name.into(), standard: true, ..Module::default() });
        if let (Some(_), Some(core)) = (older, &self.modules.core) {
            let import = Import { module: Rc::clone(core), alias: None, only: None };
            module.imports.borrow_mut().push(import);
        }
        self.modules.standard.insert(name, Rc::clone(&module));
        Some(module)
    }

    fn load_part(&mut self, home: Home) -> Loaded<()> {
        let (name, part) = home;
        let parts = STANDARD.into_iter().find(|(n, _)| *n == name).map_or(&[] as &[Part], |(_, parts)| parts);
        let (Some(module), Some((_, text))) =
            (self.standard_module(name), parts.iter().find(|(n, _)| *n == part))
        else {
            return Ok(());
        };
        // Registered while it loads, so that parts may use each other.
        if !self.modules.parts.insert(home) {
            return Ok(());
        }
        let source = if part == name { format!("<{name}>") } else { format!("<{name}/{part}>") };
        let loaded = self.load(&module, &source, text, true);
        if loaded.is_err() {
            self.modules.parts.remove(&home);
        }
        loaded.map(drop)
    }

    /// Loads the part of a standard module that defines a name, if there is one.
    pub(super) fn load_definition(&mut self, module: &str, name: &str) -> Loaded<()> {
        let Some(module) = self.standard_module(module) else { return Ok(()) };
        let home = home_for(&module, Ustr::from(name)).filter(|home| home.0 == module.name);
        home.map_or(Ok(()), |home| self.load_part(home))
    }

    /// The value of a definition of a standard module, for builtins of which a part is written in Sheaf.
    pub(crate) fn library_value(&mut self, module: &str, name: &str) -> Eval<Value> {
        self.load_definition(module, name).map_err(|mut errors| errors.swap_remove(0))?;
        let module = self.modules.standard.get(module);
        let global = module.and_then(|module| module.definitions.borrow().get(&Ustr::from(name)).cloned());
        let value = global.and_then(|global| global.value.borrow().clone());
        value.ok_or_else(|| Diagnostic::error(format!("{name} of the library has no value yet")).into())
    }
}

impl Modules {
    /// The meaning of a public name among the loaded parts of the standard library.
    pub(super) fn in_library(&self, name: Ustr) -> Option<Meaning> {
        let module = self.standard.get(public_home(name)?.0)?;
        module.definitions.borrow().get(&name).cloned().map(Meaning::Global)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::eval::Options;
    use crate::eval::interrupt::tests::NoHost;

    #[test]
    fn each_part_loads_first_with_what_it_mentions() {
        for (module, parts) in STANDARD {
            for (part, _) in parts {
                let mut interp = Interp::new(Box::new(NoHost), None, Options::default());
                let loaded = interp.load_part((module, part));
                assert!(loaded.is_ok(), "{module}/{part}: {loaded:?}");
                assert!(interp.modules.parts.contains(&(module, *part)));
            }
        }
    }

    #[test]
    fn the_index_has_every_documented_name_and_none_of_a_builtin() {
        let documented: BTreeSet<String> =
            crate::docs::entries().into_iter().filter(|e| e.module.is_some()).map(|e| e.name).collect();
        let indexed: BTreeSet<String> = library_names().map(|n| n.to_string()).collect();
        assert_eq!(documented, indexed);
        let entries = crate::docs::entries();
        for name in indexed {
            assert_eq!(entries.iter().filter(|e| e.name == name).count(), 1, "{name} has two meanings");
        }
    }
}
