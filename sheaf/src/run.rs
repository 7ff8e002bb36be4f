//! `sheaf run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_project::Project;

use crate::build;
use crate::cli::RunOptions;
use crate::evaluator::{Failed, evaluator, on_large_stack, path_here, project_here, project_of};
use crate::explain;
use crate::messages;
use crate::sources::read_source;

/// Runs a program.
pub fn run(options: &RunOptions) -> ExitCode {
    on_large_stack(|| run_here(options))
}

fn run_here(options: &RunOptions) -> Result<(), Failed> {
    let (file, project) = match (&options.file, &options.code) {
        (Some(file), _) => (file.clone(), project_of(file)?),
        (None, None) => main_program()?,
        (None, Some(_)) => {
            let project = project_here()?;
            (path_here(&project, "-c"), project)
        }
    };
    let text = options.code.clone().map_or_else(|| read_source(&file), Ok)?;
    let mut interp =
        evaluator(&options.engine, &project, options.arguments.clone(), |home| match options.code {
            // A text is typed and gone: its compiled programs are kept with the caches.
            Some(_) => home.repl_artifacts(),
            None => project.artifact_folder(),
        })?;
    let result = interp.run_program(&file.display().to_string(), &text);
    let reports = interp.reports();
    // A program that stopped before any call has nothing to tell but its error; a tool gets its line all the same.
    if options.explain && (options.json || result.is_ok() || !reports.is_empty()) {
        explain::show(&reports, options.json)?;
    }
    let result = result.map(|_| ()).map_err(|errors| {
        for e in &errors {
            messages::show(&interp.sources, e);
        }
        Failed
    });
    match &options.record {
        // Calls before an error are recorded.
        Some(path) => build::record(&interp, &file, path).and(result),
        None => result,
    }
}

/// The program of the package that the current folder is in, by a path as short as it can be.
pub(crate) fn main_program() -> Result<(PathBuf, Project), Failed> {
    let project = project_here()?;
    let Some(main) = project.main() else {
        let help = "name the program, as in `sheaf run train.shf`, or make a package with `sheaf init`";
        messages::error("there is no program to run: no Sheaf.toml here or in a folder above", Some(help));
        return Err(Failed);
    };
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let short = main.strip_prefix(here).map(Path::to_owned);
    Ok((short.unwrap_or(main), project))
}
