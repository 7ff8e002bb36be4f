//! The sources of a bundle: the program and the modules it uses, of its own package and of others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sheaf_bundle::{Dependency, Part};
use sheaf_engine::Dependencies;
use sheaf_lang::eval::Interp;
use sheaf_lang::host::HostError;
use sheaf_project::PackagePrograms;
use sheaf_syntax::{Lexeme, Lexer, Token};

use crate::evaluator::{Failed, failed};

/// Answers so far: the folder of the package that asked, the name it used, and the folder found.
type Answers = Rc<RefCell<BTreeMap<(Option<PathBuf>, String), PathBuf>>>;

/// The dependencies of a project, with a record of those that were used.
pub struct Used {
    inner: Box<dyn Dependencies>,
    answers: Answers,
}

impl Used {
    /// Records the answers of `inner` in the second result.
    pub fn new(inner: Box<dyn Dependencies>) -> (Used, Answers) {
        let answers = Answers::default();
        (Used { inner, answers: Rc::clone(&answers) }, answers)
    }
}

impl Dependencies for Used {
    fn folder(&self, package: Option<&Path>, name: &str) -> Result<Option<PathBuf>, HostError> {
        let found = self.inner.folder(package, name)?;
        if let Some(found) = &found {
            self.answers.borrow_mut().insert((package.map(Path::to_owned), name.to_owned()), found.clone());
        }
        Ok(found)
    }

    fn programs(&self) -> Result<Vec<PackagePrograms>, HostError> {
        self.inner.programs()
    }
}

/// The sources, by their places in the bundle.
pub struct Collected {
    /// Place in the bundle, and file.
    pub files: BTreeMap<String, PathBuf>,
    /// Place of the program.
    pub program: String,
    /// Folders of the packages.
    pub dependencies: Vec<Dependency>,
    /// Parts of the runtime that the sources use, each with the first place.
    pub parts: BTreeMap<Part, String>,
}

/// Parts of the runtime whose builtins a text names, each with its line. A name of the program's own counts too: the runtime is only
/// larger then.
fn parts_in(text: &str) -> Vec<(Part, usize)> {
    let atoms = Lexer::new(text).filter(|lexeme| lexeme.token == Token::Atom);
    let named = atoms.filter_map(|Lexeme { start, end, .. }| {
        let part = Part::ALL.into_iter().find(|part| part.builtin() == &text[start..end])?;
        Some((part, text[..start].matches('\n').count() + 1))
    });
    named.collect()
}

/// Collects the sources of a prepared program, whose project has its root at `root`.
pub fn collect(interp: &Interp, program: &Path, root: &Path, answers: &Answers) -> Result<Collected, Failed> {
    let real = |path: &Path| {
        std::fs::canonicalize(path)
            .map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))
    };
    let root = real(root)?;
    let mut packages: BTreeMap<PathBuf, String> = BTreeMap::new();
    for folder in answers.borrow().values() {
        let folder = real(folder)?;
        if !packages.contains_key(&folder) {
            let place = format!("packages/{}", packages.len());
            packages.insert(folder, place);
        }
    }
    let place_of = |path: &Path| {
        let within = |folder: &Path, place: &str| {
            let rest = path.strip_prefix(folder).ok()?;
            let rest: Option<Vec<&str>> = rest.components().map(|part| part.as_os_str().to_str()).collect();
            let rest = rest?.join("/");
            Some(if place.is_empty() { rest } else { format!("{place}/{rest}") })
        };
        let package = packages.iter().find_map(|(folder, place)| within(folder, place));
        package.or_else(|| within(&root, "")).ok_or_else(|| {
            let message =
                format!("{} is used by the program, and lies outside of {}", path.display(), root.display());
            crate::messages::error(
                message,
                Some("move it into the package, or make it a package of its own"),
            );
            Failed
        })
    };
    let mut files = BTreeMap::new();
    let folder = program.parent().unwrap_or(Path::new(""));
    let mut parts = BTreeMap::new();
    for (path, text) in interp.program_texts() {
        for (part, line) in parts_in(&text) {
            parts.entry(part).or_insert_with(|| format!("{path}:{line}"));
        }
        let path = real(&folder.join(&path))?;
        files.insert(place_of(&path)?, path);
    }
    let mut dependencies = Vec::new();
    for ((asking, name), found) in answers.borrow().iter() {
        let of = match asking {
            Some(folder) => packages.get(&real(folder)?).cloned().unwrap_or_default(),
            None => String::new(),
        };
        let folder = packages.get(&real(found)?).cloned().unwrap_or_default();
        dependencies.push(Dependency { of, name: name.clone(), folder });
    }
    // Licences of the program and of each package.
    for (folder, place) in
        packages.iter().map(|(folder, place)| (folder, place.as_str())).chain([(&root, "")])
    {
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            let upper = name.to_ascii_uppercase();
            if ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| upper.starts_with(start))
                && file.path().is_file()
            {
                let place = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
                files.insert(place, file.path());
            }
        }
    }
    Ok(Collected { files, program: place_of(&real(program)?)?, dependencies, parts })
}
