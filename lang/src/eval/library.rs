//! The standard library, available without `use` (SPEC section 8).
//!
//! A module is loaded with the first text that mentions one of its names; other programs never parse it.

use std::rc::Rc;
use std::sync::OnceLock;

use ustr::{Ustr, UstrMap};

use super::interp::Interp;
use super::load::Loaded;
use super::names::Modules;
use crate::program::{Import, Meaning, Module, is_private};
use sheaf_syntax::{Form, FormKind};

/// The text of a module with one file per subject.
macro_rules! text {
    ($module:literal, $($file:literal),*) => {
        concat!($(include_str!(concat!("../../std/", $module, "/", $file, ".shf"))),*)
    };
}

/// The standard library, by the name of each module.
pub const STANDARD: [(&str, &str); 10] = [
    (
        "nn",
        text!(
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
    ("optim", text!("optim", "optimisers", "variants", "schedules")),
    ("data", include_str!("../../std/data.shf")),
    ("text", include_str!("../../std/text.shf")),
    ("generate", include_str!("../../std/generate.shf")),
    (
        "linalg",
        text!("linalg", "blocks", "cholesky", "eigen", "functions", "lu", "norms", "qr", "svd", "triangular"),
    ),
    (
        "distributions",
        text!("distributions", "continuous", "discrete", "multivariate", "samplers", "special"),
    ),
    ("training", text!("training", "accumulation", "losses", "metrics", "trees")),
    (
        "solvers",
        text!("solvers", "fixed-point", "interpolation", "linear", "minimize", "odeint", "root", "vectors"),
    ),
    ("fourier", include_str!("../../std/fourier.shf")),
];

/// Modules that older programs use, now always available.
const OLDER: [&str; 2] = ["macros", "misc"];

/// The module of each public name.
fn index() -> &'static UstrMap<&'static str> {
    static INDEX: OnceLock<UstrMap<&'static str>> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = UstrMap::default();
        for (module, text) in STANDARD {
            // Each definition starts in the first column of a line: `documented` in the tests below verifies it.
            let names = text.lines().filter_map(|line| line.strip_prefix("(defn ")?.split(' ').next());
            index.extend(names.filter(|name| !is_private(name)).map(|name| (Ustr::from(name), module)));
        }
        index
    })
}

/// The public names of the standard library.
pub(super) fn library_names() -> impl Iterator<Item = Ustr> {
    index().keys().copied()
}

impl Interp {
    /// Loads the standard modules mentioned in `forms` of a module, unless the name has another meaning there.
    pub(super) fn provide(&mut self, module: &Module, forms: &[Form]) -> Loaded<()> {
        if self.modules.core.as_ref().is_some_and(|core| std::ptr::eq(&raw const **core, module)) {
            return Ok(());
        }
        let mut wanted = Vec::new();
        let mut open: Vec<&Form> = forms.iter().collect();
        while let Some(form) = open.pop() {
            match &form.kind {
                FormKind::Symbol(name) => {
                    if let Some(home) = index().get(name)
                        && !self.modules.standard.contains_key(home)
                        && !wanted.contains(home)
                        && module.find(*name).is_none()
                    {
                        wanted.push(*home);
                    }
                }
                FormKind::List(_, items) => open.extend(items),
                FormKind::Dict(entries) => open.extend(entries.iter().flat_map(|(key, value)| [key, value])),
                _ => {}
            }
        }
        wanted
            .into_iter()
            .try_for_each(|name| self.standard_module(name).map_or(Ok(()), |loaded| loaded.map(drop)))
    }

    /// The standard module `name`, loaded at its first use; `None` if there is none.
    pub(super) fn standard_module(&mut self, name: &str) -> Option<Loaded<Rc<Module>>> {
        if let Some(module) = self.modules.standard.get(name) {
            return Some(Ok(Rc::clone(module)));
        }
        let older = OLDER.iter().find(|older| **older == name).map(|older| (*older, ""));
        let (name, text) = STANDARD.into_iter().find(|(n, _)| *n == name).or(older)?;
        let module = Rc::new(Module { name: name.into(), standard: true, ..Module::default() });
        if let (Some(_), Some(core)) = (older, &self.modules.core) {
            let import = Import { module: Rc::clone(core), alias: None, only: None };
            module.imports.borrow_mut().push(import);
        }
        // Registered while it loads, so that modules may use each other.
        self.modules.standard.insert(name, Rc::clone(&module));
        let loaded = self.load(&module, &format!("<{name}>"), text, true);
        if loaded.is_err() {
            self.modules.standard.remove(name);
        }
        Some(loaded.map(|_| module))
    }
}

impl Modules {
    /// The meaning of a name among the loaded modules of the standard library.
    pub(super) fn in_library(&self, name: Ustr) -> Option<Meaning> {
        let module = self.standard.get(index().get(&name)?)?;
        module.definitions.borrow().get(&name).cloned().map(Meaning::Global)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
