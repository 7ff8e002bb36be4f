//! `sheaf run`.

use std::process::ExitCode;

use sheaf_lang::eval::{Interp, Jit, Options, STACK_BYTES};
use sheaf_lang::host::Backend;
use sheaf_registry::{Home, Project, Settings, UserConfig};

use crate::cli::{JitMode, RunOptions};
use crate::engine::{Engine, Place};
use crate::messages;
use crate::world::{World, unreadable};

/// Runs a program. The evaluator gets a thread of its own for the sake of its stack.
pub fn run(options: &RunOptions) -> ExitCode {
    let worker = std::thread::Builder::new().name("program".into()).stack_size(STACK_BYTES);
    let result = std::thread::scope(|scope| {
        worker.spawn_scoped(scope, || run_here(options)).map(std::thread::ScopedJoinHandle::join)
    });
    match result {
        Ok(Ok(done)) => match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failed) => ExitCode::from(1),
        },
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(e) => {
            messages::error(format!("cannot start a thread for the program: {e}"), Some("free some memory"));
            ExitCode::from(1)
        }
    }
}

/// The run failed, and a message has said why.
struct Failed;

/// Shows an error of the command itself.
fn failed(error: impl std::fmt::Display) -> Failed {
    messages::error(error, None);
    Failed
}

fn run_here(options: &RunOptions) -> Result<(), Failed> {
    let shown = options.file.display().to_string();
    let text = match std::fs::read(&options.file) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let help = "a program is plain text: save the file in that encoding";
            messages::error(format!("{shown} is not UTF-8 text from byte {at} on"), Some(help));
            Failed
        })?,
        Err(e) => {
            let e = unreadable(&options.file, &e);
            messages::error(&e.message, e.help.as_deref());
            return Err(Failed);
        }
    };
    let jit = match (options.no_jit, options.jit) {
        (true, _) => Jit::Never,
        (_, JitMode::Auto) => Jit::Auto,
        (_, JitMode::Always) => Jit::Always,
    };
    let backend = if jit == Jit::Never { None } else { Some(engine(options)?) };
    let mut interp = Interp::new(Box::<World>::default(), backend, Options { jit });
    let result = interp.run_program(&shown, &text);
    if options.explain {
        explain(&interp);
    }
    result.map(|_| ()).map_err(|errors| {
        for e in &errors {
            messages::show(&interp.sources, e);
        }
        Failed
    })
}

fn engine(options: &RunOptions) -> Result<Box<dyn Backend>, Failed> {
    Ok(Box::new(Engine::new(place(options)?).map_err(failed)?))
}

/// Where the engine of a run keeps things, and its settings.
fn place(options: &RunOptions) -> Result<Place, Failed> {
    let environment = |name: &str| std::env::var(name).ok();
    let home = Home::locate(environment).map_err(failed)?;
    let user = UserConfig::read(&home.config_file()).map_err(failed)?;
    let project = Project::locate(&options.file).map_err(failed)?;
    let manifest_warnings = project.manifest.iter().flat_map(|m| &m.warnings);
    for warning in user.warnings.iter().chain(manifest_warnings) {
        messages::warning(warning, None);
    }
    let given = sheaf_registry::Options {
        index: options.toolchain_index.clone(),
        offline: options.offline,
        ..sheaf_registry::Options::default()
    };
    let settings =
        Settings::merge(Some(&user), project.manifest.as_ref(), environment, &given).map_err(failed)?;
    Ok(Place { home, artifacts: project.artifact_folder(), settings, recompile: options.recompile })
}

/// Says which functions ran compiled, and why others did not.
fn explain(interp: &Interp) {
    for report in interp.reports() {
        let name = if report.transform.is_empty() {
            report.function
        } else {
            format!("{} ({})", report.function, report.transform)
        };
        match report.interpreted {
            None => eprintln!("{name}: compiled, {} calls", report.compiled_calls),
            Some(reason) => eprintln!("{name}: interpreted, {reason}"),
        }
    }
}
