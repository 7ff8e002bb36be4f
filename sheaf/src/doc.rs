//! `sheaf doc`.

use std::path::Path;
use std::process::ExitCode;

use sheaf_lang::builtins::{foreign_name_help, nearest};
use sheaf_lang::docs::{self, Entry};
use sheaf_syntax::visible::visible;
use sheaf_syntax::{Sources, read};

use crate::cli::DocOptions;
use crate::evaluator::{Failed, failed, on_large_stack, project_here, report_error};
use crate::messages;
use crate::output::print_line;
use crate::packages::{self, options::DependencyOptions};
use crate::sources::read_source;

/// Shows the documentation of names.
pub fn doc(options: &DocOptions) -> ExitCode {
    on_large_stack(|| doc_here(options))
}

fn doc_here(options: &DocOptions) -> Result<(), Failed> {
    let (entries, name) = match options.subject.as_slice() {
        [file, name @ ..] if Path::new(file).extension().is_some_and(|e| e == "shf") => {
            (of_program(Path::new(file))?, name.first())
        }
        [package, name @ ..]
            if docs::find(package).is_none()
                && let Some(entries) = of_package(package, &options.dependencies)? =>
        {
            (entries, name.first())
        }
        [_, name, ..] => {
            let help = "a program or a package comes before a name, as in `sheaf doc model.shf forward` and `sheaf doc attention-lib alibi-bias`";
            messages::error(format!("{name} is one name too many"), Some(help));
            return Err(Failed);
        }
        name => (docs::entries(), name.first()),
    };
    let chosen = match name {
        None => entries,
        Some(name) => choose(entries, name)?,
    };
    let text = if options.json {
        serde_json::to_string_pretty(&chosen).map_err(failed)?
    } else if options.markdown {
        docs::markdown(&chosen)
    } else if name.is_none() && options.subject.is_empty() {
        docs::overview(&chosen) + "`sheaf doc NAME` says more about a name."
    } else {
        visible(&chosen.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")).into_owned()
    };
    print_line(text.trim_end())
}

/// The entries of the functions and macros in a file.
fn of_program(file: &Path) -> Result<Vec<Entry>, Failed> {
    let text = read_source(file)?;
    let mut sources = Sources::default();
    let id = sources.add(file.display().to_string(), &*text);
    read(&sources, id).map_err(|errors| {
        errors.iter().for_each(|e| messages::show(&sources, e));
        Failed
    })?;
    Ok(docs::definitions(&text))
}

/// The entries of the public functions and macros of a package, or of one of its modules: `attention-lib/masks`. `None`
/// if the project has no such dependency.
fn of_package(text: &str, how: &DependencyOptions) -> Result<Option<Vec<Entry>>, Failed> {
    let (package, module) =
        text.split_once('/').map_or((text, None), |(package, module)| (package, Some(module)));
    let project = project_here()?;
    let manifest = project.manifest.iter();
    let mut known =
        manifest.flat_map(|manifest| manifest.dependencies.iter().chain(&manifest.dev_dependencies));
    let folder = if project.manifest.iter().any(|manifest| manifest.package.name.as_deref() == Some(package))
    {
        Some(project.root.clone())
    } else if known.any(|dependency| dependency.name == package) {
        let dependencies = packages::prepare(&project, how)?;
        dependencies.folder(None, package).map_err(report_error)?
    } else {
        None
    };
    let Some(folder) = folder else { return Ok(None) };
    let mut files = packages::programs_in(&folder.join("src"));
    if let Some(module) = module {
        files.retain(|file| {
            file.strip_prefix(&folder).is_ok_and(|path| path == Path::new(&format!("src/{module}.shf")))
        });
    }
    let mut entries = Vec::new();
    for file in &files {
        entries.extend(of_program(file)?.into_iter().filter(|entry| !entry.name.starts_with('-')));
    }
    Ok(Some(entries))
}

/// The entries of that name, or of the section of that name.
fn choose(entries: Vec<Entry>, name: &str) -> Result<Vec<Entry>, Failed> {
    let (named, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.name == name);
    if !named.is_empty() {
        return Ok(named);
    }
    let (section, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|entry| entry.section == name);
    if !section.is_empty() {
        return Ok(section);
    }
    let known = others.iter().flat_map(|entry| [entry.name.as_str(), entry.section.as_str()]);
    let means = |n: &str| docs::find(n).is_some();
    let help = foreign_name_help(name, &means).unwrap_or_else(|| match nearest(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "`sheaf doc` lists all names".into(),
    });
    messages::error(format!("nothing is called {name}"), Some(&help));
    Err(Failed)
}
