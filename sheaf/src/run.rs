//! `sheaf run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_project::Project;

use crate::build;
use crate::cli::RunOptions;
use crate::evaluator::{Failed, evaluator, on_thread, path_here, project_here, project_of};
use crate::explain;
use crate::messages;
use crate::observe::{self, GUARDED};
use crate::replay;
use crate::sources::read_source;

/// Runs a program.
pub fn run(options: &RunOptions) -> ExitCode {
    on_thread(|| match run_here(options) {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Guarded) => ExitCode::from(GUARDED),
        Err(Failed) => ExitCode::from(1),
    })
}

/// The end of a run.
enum Ended {
    /// All was done.
    Done,
    /// A guard stopped it, and a message has said where.
    Guarded,
}

fn run_here(options: &RunOptions) -> Result<Ended, Failed> {
    let (file, project) = match (&options.file, &options.code) {
        (Some(file), _) => (file.clone(), project_of(file)?),
        (None, None) => main_program()?,
        (None, Some(_)) => {
            let project = project_here()?;
            (path_here(&project, "-c"), project)
        }
    };
    let text = options.code.clone().map_or_else(|| read_source(&file), Ok)?;
    let metrics = options.observe.metrics()?;
    let mut interp = evaluator(&options.engine, &project, options.arguments.clone(), metrics, |home| {
        match options.code {
            // A text is typed and gone: its compiled programs are kept with the caches.
            Some(_) => home.repl_artifacts(),
            None => project.artifact_folder(),
        }
    })?;
    let observation = options.observe.start(&mut interp)?;
    let result = interp.run_program(&file.display().to_string(), &text);
    let reports = interp.reports();
    // A program that stopped before any call has nothing to tell but its error; a tool gets its line all the same.
    if options.explain && (options.json || result.is_ok() || !reports.is_empty()) {
        explain::show(&reports, options.json)?;
    }
    let result = match result {
        Ok(_) => {
            options.observe.warn_of_unknown(&interp.sources);
            Ok(Ended::Done)
        }
        Err(errors) => {
            match observe::show_breach(&mut interp) {
                Some(breach) => {
                    if let Some(path) = replay::save(&breach) {
                        eprintln!("Replay: sheaf replay {}", path.display());
                    }
                }
                None => errors.iter().for_each(|e| messages::show(&interp.sources, e)),
            }
            let guarded = errors.iter().any(|e| e.kind.is_guard());
            if guarded { Ok(Ended::Guarded) } else { Err(Failed) }
        }
    };
    let observed = observation.map_or(Ok(()), |observation| observation.finish());
    let result = result.and_then(|ended| observed.map(|()| ended));
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
