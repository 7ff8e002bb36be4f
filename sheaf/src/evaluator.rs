//! Starting an evaluator in the real world, as every command that runs code does.

use std::path::PathBuf;
use std::process::ExitCode;

use sheaf_lang::eval::{Interp, Jit, Options, STACK_BYTES};
use sheaf_lang::host::Backend;
use sheaf_registry::{Home, Project, Settings, UserConfig};

use crate::cli::{DonateMode, EngineOptions, JitMode, NetworkOptions};
use crate::engine::{Donate, Engine, Place};
use crate::messages;
use crate::toolchain;
use crate::world::World;

/// The command failed, and a message has said why.
pub struct Failed;

/// Shows an error of the command itself.
pub fn failed(error: impl std::fmt::Display) -> Failed {
    messages::error(error, None);
    Failed
}

/// Shows an error of the engine, with what to do about it.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
pub fn told(error: sheaf_lang::host::HostError) -> Failed {
    messages::error(&error.message, error.help.as_deref());
    Failed
}

/// Does the work of a command on a thread of its own, for the sake of the evaluator's stack.
pub fn on_large_stack(work: impl FnOnce() -> Result<(), Failed> + Send) -> ExitCode {
    let worker = std::thread::Builder::new().name("program".into()).stack_size(STACK_BYTES);
    let result =
        std::thread::scope(|scope| worker.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join));
    match result {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(Failed))) => ExitCode::from(1),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(e) => {
            messages::error(format!("cannot start a thread for the program: {e}"), Some("free some memory"));
            ExitCode::from(1)
        }
    }
}

/// The user's folders.
pub fn home() -> Result<Home, Failed> {
    Home::locate(environment).map_err(failed)
}

/// An evaluator in that world for a program of `project`; what is compiled is kept in the folder `artifacts`.
pub fn evaluator(
    options: &EngineOptions,
    project: &Project,
    world: World,
    artifacts: impl FnOnce(&Home) -> PathBuf,
) -> Result<Interp, Failed> {
    let jit = match (options.no_jit, options.jit) {
        (true, _) => Jit::Never,
        (_, JitMode::Auto) => Jit::Auto,
        (_, JitMode::Always) => Jit::Always,
    };
    let backend: Option<Box<dyn Backend>> = if jit == Jit::Never {
        None
    } else {
        let home = home()?;
        let artifacts = artifacts(&home);
        let mut settings = settings(&options.network, project, &home)?;
        let compiler = toolchain::used(&mut settings, project)?;
        let (recompile, strict) = (options.recompile, options.strict);
        let donate = match options.donate {
            DonateMode::Auto => Donate::Auto,
            DonateMode::Always => Donate::Always,
            DonateMode::Never => Donate::Never,
        };
        let place = Place {
            home,
            artifacts,
            settings,
            compiler,
            recompile,
            strict,
            donate,
            place: options.place.unwrap_or_default(),
        };
        Some(Box::new(Engine::new(place).map_err(told)?))
    };
    let options = Options { jit, strict: options.strict, ..Options::default() };
    Ok(Interp::new(Box::new(world), backend, options))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The settings in force for a project.
pub fn settings(options: &NetworkOptions, project: &Project, home: &Home) -> Result<Settings, Failed> {
    let user = UserConfig::read(&home.config_file()).map_err(failed)?;
    let manifest_warnings = project.manifest.iter().flat_map(|m| &m.warnings);
    for warning in user.warnings.iter().chain(manifest_warnings) {
        messages::warning(warning, None);
    }
    let given = sheaf_registry::Options {
        index: options.place.toolchain_index.clone(),
        remote: options.cache_remote.clone(),
        read_only: options.read_only,
        offline: options.place.offline,
        executor: options.remote_executor.clone(),
    };
    let settings =
        Settings::merge(Some(&user), project.manifest.as_ref(), environment, &given).map_err(failed)?;
    for refused in &settings.refused {
        messages::warning(refused, Some(&refused.remedy()));
    }
    Ok(settings)
}
