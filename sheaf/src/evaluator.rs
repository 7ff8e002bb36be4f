//! Starting an evaluator in the real world, as every command that runs code does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use sheaf_cache::remote::{KEY_VARIABLE, TOKEN_VARIABLE};
use sheaf_cache::{ArtifactFolder, Guard, MANIFEST_FILE};
use sheaf_engine::{
    CompileService, Donate, Engine, EngineConfig, Kernels, Secrets, WorkerCommand, this_program,
};
use sheaf_lang::eval::{Interp, Jit, Options, STACK_BYTES};
use sheaf_lang::host::Backend;
use sheaf_project::{FileError, Home, HomeError, Owners, Project, Request, Settings, Trusted, UserConfig};
use sheaf_toolchain::Release;

use crate::cli::{DonateMode, EngineOptions, JitMode, KernelsMode, NetworkOptions};
use crate::messages;
use crate::progress::TerminalReporter;
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
pub fn report_error(error: sheaf_lang::host::HostError) -> Failed {
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
            messages::error(
                format!("cannot start a thread for the program: {e}"),
                Some("free some memory, or allow more threads (`ulimit -u`)"),
            );
            ExitCode::from(1)
        }
    }
}

/// The user's folders.
pub fn home() -> Result<Home, Failed> {
    Home::locate(environment).map_err(failed)
}

/// The path of a text without a file: beside the main program of the package, or else in the current folder.
pub fn path_here(project: &Project, name: &str) -> PathBuf {
    let Some(main) = project.main().filter(|main| main.parent().is_some_and(Path::is_dir)) else {
        return name.into();
    };
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let path = main.with_file_name(name);
    path.strip_prefix(here).map(Path::to_owned).unwrap_or(path)
}

/// The project of the program `file`.
pub fn project_of(file: &Path) -> Result<Project, Failed> {
    told_of(Project::locate(file, owners()?))
}

/// The project that the current folder is in.
pub fn project_here() -> Result<Project, Failed> {
    project_at(Path::new("."))
}

/// The project that a folder is in.
pub fn project_at(folder: &Path) -> Result<Project, Failed> {
    told_of(Project::locate_from(folder, owners()?))
}

/// That the user's folders are not the project's.
pub fn outside(home: &Home, project: &Project) -> Result<(), Failed> {
    home.outside(project, environment).map_err(failed)
}

fn told_of(project: Result<Project, FileError>) -> Result<Project, Failed> {
    let project = project.map_err(failed)?;
    project.passed_over.iter().for_each(messages::passed_over);
    Ok(project)
}

/// Whose files count, as the environment and the user's configuration say.
fn owners() -> Result<Owners, Failed> {
    let named = match Home::locate(environment) {
        Ok(home) => UserConfig::read(&home.config_file()).map_err(failed)?.safe_directories,
        // Without a home there is nothing in it; with one of somebody else there is no telling.
        Err(HomeError::NoHome) => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    Ok(Owners::of_process(environment, &named))
}

/// The folder for compiled programs at `path`, in a project or elsewhere: it is used only while it is the user's.
pub fn artifacts(project: &Project, path: PathBuf) -> ArtifactFolder {
    let owners = project.owners.clone();
    ArtifactFolder::guarded(
        path,
        Guard::new(move |path, metadata| {
            let is_list = path.file_name().is_some_and(|name| name == MANIFEST_FILE);
            let foreign =
                if is_list { owners.foreign(path, metadata) } else { owners.foreign_folder(path, metadata) };
            foreign.map(|foreign| foreign.to_string())
        }),
    )
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
        let artifacts = self::artifacts(project, artifacts(&home));
        let mut settings = settings(&options.network, project, &home)?;
        let compiler = toolchain::used(&mut settings, project)?;
        let (recompile, strict) = (options.recompile, options.strict);
        let kernels = match options.kernels {
            KernelsMode::Auto => Kernels::Auto,
            KernelsMode::Always => Kernels::Always,
            KernelsMode::Never => Kernels::Never,
        };
        let donate = match options.donate {
            DonateMode::Auto => Donate::Auto,
            DonateMode::Always => Donate::Always,
            DonateMode::Never => Donate::Never,
        };
        let config = EngineConfig {
            recompile,
            strict,
            donate,
            kernels,
            placement: options.place.unwrap_or_default(),
            ..engine_config(home, artifacts, settings, compiler)?
        };
        Some(Box::new(Engine::new(config).map_err(report_error)?))
    };
    let options = Options {
        jit,
        strict: options.strict,
        no_bounds_check: options.no_bounds_check,
        ..Options::default()
    };
    Ok(Interp::new(Box::new(world), backend, options))
}

/// Secrets of the environment.
pub fn secrets() -> Result<Secrets, Failed> {
    let text =
        |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Secrets::new(text(KEY_VARIABLE), text(TOKEN_VARIABLE)).map_err(report_error)
}

/// Compile workers are this program.
pub fn worker() -> Result<WorkerCommand, Failed> {
    this_program().map_err(report_error)
}

/// The configuration of an engine that shows its progress on the terminal.
pub fn engine_config(
    home: Home,
    artifacts: ArtifactFolder,
    settings: Settings,
    compiler: Option<Release<'static>>,
) -> Result<EngineConfig, Failed> {
    Ok(EngineConfig {
        secrets: secrets()?,
        reporter: Arc::new(TerminalReporter),
        ..EngineConfig::new(home, artifacts, settings, compiler, worker()?)
    })
}

/// The compiler on this machine or on the project's cluster.
pub fn compile_service(
    home: Home,
    settings: Settings,
    compiler: Option<Release<'static>>,
) -> Result<CompileService, Failed> {
    CompileService::new(home, settings, &secrets()?, compiler, true, worker()?, Arc::new(TerminalReporter))
        .map_err(report_error)
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The settings in force for a project.
pub fn settings(options: &NetworkOptions, project: &Project, home: &Home) -> Result<Settings, Failed> {
    outside(home, project)?;
    let user = UserConfig::read(&home.config_file()).map_err(failed)?;
    let manifest_warnings = project.manifest.iter().flat_map(|m| &m.warnings);
    for warning in user.warnings.iter().chain(manifest_warnings) {
        messages::warning(warning, None);
    }
    let given = sheaf_project::Options {
        index: options.place.toolchain_index.clone(),
        remote: options.cache_remote.clone(),
        read_only: options.read_only,
        offline: options.place.offline,
        executor: options.remote_executor.clone(),
    };
    let trusted = Trusted::new(home.trust());
    let allowed = |request: &Request| trusted.allows(&project.root, request);
    let settings = Settings::merge(Some(&user), project.manifest.as_ref(), allowed, environment, &given);
    let settings = settings.map_err(failed)?;
    for refused in &settings.refused {
        messages::warning(refused, Some(&refused.remedy()));
    }
    settings.passed_over.iter().for_each(messages::passed_over);
    Ok(settings)
}
