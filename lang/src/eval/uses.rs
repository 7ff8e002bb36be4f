//! `(use ...)`: resolution of module names to files, loaded once (SPEC section 8).

use std::rc::Rc;

use ustr::Ustr;

use super::interp::Interp;
use super::library::STANDARD;
use super::load::Loaded;
use super::signal::Eval;
use crate::host::{HostError, OwnPackage};
use crate::program::{Import, Module, is_private};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span, source_text};

impl Interp {
    /// `(use name)`, `(use name :as n)`, `(use name :only [a b])`, `(use ./file.shf)`.
    pub(super) fn use_form(
        &mut self,
        module: &Rc<Module>,
        args: &[Form],
        span: Span,
        run: bool,
    ) -> Loaded<()> {
        let (name, mut import) = options(args, span)?;
        import.module = self.used_module(module, name, span, run)?;
        if import.module.standard && (import.alias.is_some() || import.only.is_some()) {
            self.load_whole(&name)?;
        }
        for name in import.only.iter().flatten() {
            offered(&import.module, *name, span)?;
        }
        module.imports.borrow_mut().push(import);
        Ok(())
    }

    /// The module `name` in `user`, loaded at its first use; with `run`, its expressions run.
    fn used_module(&mut self, user: &Rc<Module>, name: Ustr, span: Span, run: bool) -> Loaded<Rc<Module>> {
        let relative = is_path(&name);
        let file = if relative {
            path_fits(&name, span)?;
            inside_package(user, join(&user.folder, &name), span)?
        } else {
            name_fits(&name, span)?;
            join(&user.root, &format!("{name}.shf"))
        };
        let found = FoundFile { name, file, root: user.root.clone(), package: user.package.clone() };
        let missing = match self.module_of(&found, span, run) {
            Some(Ok(loaded)) => return loaded,
            Some(Err(missing)) => missing,
            None => return Err(vec![cycle(&self.modules.loading, &found.file, span)]),
        };
        if relative {
            return Err(vec![not_found(&name, &missing.message, span)]);
        }
        if user.package.is_empty()
            && let Some(module) = self.module_of_own_package(user, name, span, run)?
        {
            return Ok(module);
        }
        if let Some(standard) = self.standard_module(&name) {
            return Ok(standard);
        }
        self.module_of_dependency(user, name, &missing, span, run)
    }

    /// A module of the program's own package, for programs outside its source folder: tests and examples, which also use
    /// it by its name.
    fn module_of_own_package(
        &mut self,
        user: &Rc<Module>,
        name: Ustr,
        span: Span,
        run: bool,
    ) -> Loaded<Option<Rc<Module>>> {
        let own = self.host.own_package(&user.root).map_err(|error| vec![unusable(&name, error, span)])?;
        let Some(OwnPackage { name: own, sources }) = own else { return Ok(None) };
        self.modules.own_packages.push((user.root.clone(), own.clone(), sources.clone()));
        let root = join("", &sources);
        let (package, module) = name.split_once('/').unwrap_or((name.as_str(), ENTRY));
        let module = if own.as_deref() == Some(package) { module } else { name.as_str() };
        let file = join(&root, &format!("{module}.shf"));
        let found = FoundFile { name, file, root, package: String::new() };
        match self.module_of(&found, span, run) {
            Some(Ok(loaded)) => loaded.map(Some),
            Some(Err(_)) => Ok(None),
            None => Err(vec![cycle(&self.modules.loading, &found.file, span)]),
        }
    }

    /// A module of a dependency: `lib` is its entry, and `name/module` another file of its sources.
    fn module_of_dependency(
        &mut self,
        user: &Rc<Module>,
        name: Ustr,
        missing: &HostError,
        span: Span,
        run: bool,
    ) -> Loaded<Rc<Module>> {
        let (package, module) = name.split_once('/').unwrap_or((name.as_str(), ENTRY));
        let package = match self.host.dependency(&user.package, package) {
            Ok(Some(folder)) => {
                self.modules.dependencies.push((user.package.clone(), package.to_owned(), folder.clone()));
                folder
            }
            Ok(None) => return Err(vec![not_found(&name, &missing.message, span)]),
            Err(error) => return Err(vec![unusable(&name, error, span)]),
        };
        let root = join(&package, "src");
        let found = FoundFile { name, file: join(&root, &format!("{module}.shf")), root, package };
        match self.module_of(&found, span, run) {
            Some(Ok(loaded)) => loaded,
            Some(Err(mut missing)) => {
                missing.help.get_or_insert_with(|| MODULES.into());
                Err(vec![unusable(&name, missing, span)])
            }
            None => Err(vec![cycle(&self.modules.loading, &found.file, span)]),
        }
    }

    /// The module of a file, loaded at its first use; `None` while it is being loaded, and the host's error if it cannot
    /// be read.
    fn module_of(
        &mut self,
        found: &FoundFile,
        span: Span,
        run: bool,
    ) -> Option<Result<Loaded<Rc<Module>>, HostError>> {
        let FoundFile { name, file, root, package } = found;
        if let Some(module) = self.modules.files.get(file) {
            return Some(Ok(Ok(Rc::clone(module))));
        }
        if self.modules.loading.contains(file) {
            return None;
        }
        let bytes = match self.host.read_file(file) {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(error)),
        };
        let text = match source_text(file, bytes) {
            Ok(text) => text,
            Err(error) => return Some(Ok(Err(vec![error.at(span, "used here")]))),
        };
        let module = Rc::new(Module {
            name: name.to_string(),
            folder: folder_of(file),
            root: root.clone(),
            package: package.clone(),
            ..Module::default()
        });
        self.modules.loading.push(file.clone());
        let loaded = self.load(&module, file, &text, run);
        self.modules.loading.pop();
        if let Err(errors) = loaded {
            let in_use = |d: Diagnostic| d.at(span, format!("while loading {name} here"));
            return Some(Ok(Err(errors.into_iter().map(in_use).collect())));
        }
        self.modules.files.insert(file.clone(), Rc::clone(&module));
        Some(Ok(Ok(module)))
    }
}

/// The entry of a package, a file of its folder `src`.
const ENTRY: &str = "lib";

/// Help for a module that a package does not have.
const MODULES: &str = "a package's entry is its src/lib.shf, and (use package/module) its src/module.shf";

/// A file that a `use` names.
struct FoundFile {
    /// The name in `use`.
    name: Ustr,
    file: String,
    /// The folder that its own `(use x)` searches.
    root: String,
    /// The folder of its package; see [`Module::package`].
    package: String,
}

const USAGE: &str = "use is written (use name), (use name :as n), (use name :only [a b]) or (use ./file.shf)";

/// The name and the options of a `use`; the module is not resolved.
fn options(args: &[Form], span: Span) -> Eval<(Ustr, Import)> {
    let wrong = |at: Span, help: Option<String>| {
        let d = Diagnostic::error(USAGE).at(at, "");
        Err(if let Some(help) = help { d.help(help) } else { d }.into())
    };
    let Some((name, options)) = args.split_first() else { return wrong(span, None) };
    let Some(name) = name.symbol() else {
        let help = match &name.kind {
            FormKind::Str(text) => Some(format!("the name stands without quotes: (use {text})")),
            _ => None,
        };
        return wrong(span, help);
    };
    let mut import = Import { module: Rc::default(), alias: None, only: None };
    for pair in options.chunks(2) {
        let [FormKind::Keyword(key), value] = [&pair[0].kind, pair.last().map_or(&pair[0].kind, |f| &f.kind)]
        else {
            let names = pair.iter().find(|form| form.items(Bracket::Square).is_some());
            return wrong(span, names.map(|names| format!("write (use {name} :only {names})")));
        };
        match (key.as_str(), value) {
            ("as", FormKind::Symbol(alias)) => import.alias = Some(*alias),
            ("only", FormKind::List(Bracket::Square, names)) => {
                let Some(names) = names.iter().map(Form::symbol).collect() else { return wrong(span, None) };
                import.only = Some(names);
            }
            _ => return wrong(span, None),
        }
    }
    Ok((name, import))
}

/// Fails unless a module exports `name`.
fn offered(module: &Rc<Module>, name: Ustr, span: Span) -> Eval<()> {
    let found = module.find(name).is_some();
    if found && !is_private(&name) {
        return Ok(());
    }
    if found {
        let d = Diagnostic::error(format!("{name} is private to {}", module.name)).at(span, "used here");
        return Err(d.help(PRIVATE).into());
    }
    let d = Diagnostic::error(format!("{} does not define {name}", module.name)).at(span, "");
    let known = module.names();
    let public = known.iter().filter(|n| !is_private(n)).map(Ustr::as_str);
    Err(match crate::builtins::nearest(&name, public) {
        Some(near) => d.help(format!("did you mean {near}?")).into(),
        None => d.into(),
    })
}

/// Help for a private name.
pub(super) const PRIVATE: &str =
    "a name that starts with - is for its own file; if others need it, name it there without the -";

fn is_path(name: &str) -> bool {
    name.starts_with("./") || name.starts_with("../")
}

fn path_fits(name: &str, span: Span) -> Eval<()> {
    if name.ends_with('/') || name.ends_with("/..") || name.ends_with("/.") {
        let d = Diagnostic::error(format!("{name} is a folder; use takes a file")).at(span, "used here");
        return Err(d.help("write (use ./folder/file.shf)").into());
    }
    Ok(())
}

/// Fails unless a module's name is words joined by `/`: it never leaves the searched folders.
fn name_fits(name: &str, span: Span) -> Eval<()> {
    let d = |message: String| Diagnostic::error(message).at(span, "used here");
    let path_help = "a file is used by its path from this file, which starts with ./ or ../";
    if name.starts_with('/') {
        return Err(d(format!("{name} is an absolute path")).help(path_help).into());
    }
    if name.contains('\\') {
        return Err(d(format!("{name} has a backslash")).help("folders are parted by /").into());
    }
    if name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err(d(format!("{name} is not the name of a module")).help(path_help).into());
    }
    Ok(())
}

fn not_found(name: &str, reason: &str, span: Span) -> Diagnostic {
    if let Some((package, _)) = name.split_once('/').filter(|_| !is_path(name)) {
        return Diagnostic::error(format!("cannot use {name}: there is no package {package}"))
            .at(span, "used here")
            .note(reason.to_string())
            .help(format!(
                "`sheaf add {package}` adds a package; a file of yours is used as (use ./{name}.shf)"
            ));
    }
    let help = if is_path(name) && name.strip_suffix(".shf").is_none() {
        format!("the path of a file ends in .shf: (use {name}.shf)")
    } else if is_path(name) {
        "the path starts at the folder of this file".to_string()
    } else if let Some(stem) = name.strip_suffix(".shf") {
        format!("write (use {stem}), or (use ./{name}) for a file beside this one")
    } else {
        let known = STANDARD.map(|(n, _)| n);
        match crate::builtins::nearest(name, known.into_iter()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!(
                "`sheaf add {name}` adds a package; a file of yours is used as (use ./file.shf); the standard library \
                 has {}",
                known.join(", ")
            ),
        }
    };
    Diagnostic::error(format!("cannot use {name}: {reason}")).at(span, "used here").help(help)
}

/// The error of a package that cannot be used.
fn unusable(name: &str, error: HostError, span: Span) -> Diagnostic {
    let d = Diagnostic::error(format!("cannot use {name}: {}", error.message)).at(span, "used here");
    match error.help {
        Some(help) => d.help(help),
        None => d,
    }
}

/// The file, unless it is outside the dependency that names it: such a package would read other files of the user.
fn inside_package(user: &Module, file: String, span: Span) -> Eval<String> {
    let outside = !user.package.is_empty()
        && file.strip_prefix(&user.package).is_none_or(|rest| !rest.starts_with('/'));
    if outside {
        return Err(Diagnostic::error(format!("{file} is outside the package of this file"))
            .at(span, "used here")
            .help("a package uses its own files, and its dependencies by name")
            .into());
    }
    Ok(file)
}

/// The error of modules that use each other, `last` and all that are being loaded since.
fn cycle(loading: &[String], last: &str, span: Span) -> Diagnostic {
    let start = loading.iter().position(|file| file == last).unwrap_or(0);
    let mut cycle = loading[start..].to_vec();
    cycle.push(last.to_string());
    Diagnostic::error(format!("modules use each other in a cycle: {}", cycle.join(" uses ")))
        .at(span, "the cycle closes here")
        .help("put what both need into a module of its own")
}

pub(super) fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string())
}

/// `name` relative to `folder`, with `.` and `..` resolved lexically, so that one file has one name.
pub(super) fn join(folder: &str, name: &str) -> String {
    let whole = if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|p| !p.is_empty() && *p != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
