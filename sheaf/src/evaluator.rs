//! Starting an evaluator in the real world, as every command that runs code does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use sheaf_artifacts::ArtifactFolder;
use sheaf_cache::remote::{KEY_VARIABLE, TOKEN_VARIABLE};
use sheaf_engine::{
    CompileService, Dependencies, DevicePolicy, Donate, EngineConfig, Kernels, Packages, Secrets, Session,
    WorkerCommand, this_program,
};
use sheaf_lang::eval::{Interp, Jit, Options, STACK_BYTES};
use sheaf_loader::{Policies, SystemHost};
use sheaf_observe::Metrics;
use sheaf_project::{Home, Project, Settings};
use sheaf_syntax::Sources;
use sheaf_target::Release;

use crate::cli::{DonateMode, EngineOptions, JitMode, KernelsMode, NetworkOptions};
use crate::messages;
use crate::packages::{self, options::DependencyOptions};
use crate::progress::{RunReporter, TerminalReporter};

/// The command failed, and a message has said why.
pub struct Failed;

/// Shows an error of the command itself.
pub fn failed(error: impl std::fmt::Display) -> Failed {
    messages::error(error, None);
    Failed
}

/// Shows an error of the engine, with its remedy.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
pub fn report_error(error: sheaf_lang::host::HostError) -> Failed {
    messages::error(&error.message, error.help.as_deref());
    Failed
}

/// Does the work of a command on a thread of its own, for the sake of the evaluator's stack.
pub fn on_large_stack(work: impl FnOnce() -> Result<(), Failed> + Send) -> ExitCode {
    on_thread(|| exit_code(&work()))
}

/// [`on_large_stack`] for a command with exit codes of its own.
pub fn on_thread(work: impl FnOnce() -> ExitCode + Send) -> ExitCode {
    let worker = std::thread::Builder::new().name("program".into()).stack_size(STACK_BYTES);
    let result =
        std::thread::scope(|scope| worker.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join));
    match result {
        Ok(Ok(code)) => code,
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

/// The exit code of a command that has said what failed.
pub fn exit_code(result: &Result<(), Failed>) -> ExitCode {
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) }
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
    project_at(file.parent().unwrap_or(Path::new("")))
}

/// The project that the current folder is in.
pub fn project_here() -> Result<Project, Failed> {
    project_at(Path::new("."))
}

/// The project that a folder is in.
pub fn project_at(folder: &Path) -> Result<Project, Failed> {
    sheaf_engine::project_of(folder, &environment, &TerminalReporter).map_err(report_error)
}

/// Fails if the user's named home is in the project.
pub fn outside(home: &Home, project: &Project) -> Result<(), Failed> {
    home.outside(project, environment).map_err(failed)
}

/// An evaluator for a program of `project` with these arguments; metrics go to their files, programs are kept in the folder
/// `artifacts`.
pub fn evaluator(
    options: &EngineOptions,
    project: &Project,
    arguments: Vec<String>,
    metrics: Metrics,
    artifacts: impl FnOnce(&Home) -> PathBuf,
) -> Result<Interp, Failed> {
    let network = options.lock.network(&options.network);
    let dependencies = packages::prepare(project, &DependencyOptions::of(&options.lock, &network))?;
    let jit = match (options.no_jit, options.jit) {
        (true, _) => Jit::Never,
        (_, JitMode::Auto) => Jit::Auto,
        (_, JitMode::Always) => Jit::Always,
    };
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
    let device = match (options.device, options.place) {
        (Some(DevicePolicy::Gpu(_)), Some(_)) => {
            return Err(failed(
                "--place names threads of the processor, and --device a GPU: leave out one of the two",
            ));
        }
        (Some(device), _) => device,
        // Threads are those of the processor.
        (None, Some(_)) => DevicePolicy::Cpu,
        (None, None) => DevicePolicy::Auto,
    };
    let mut session = Session::builder()
        .located(project.clone())
        .options(given(&network))
        .jit(jit)
        .strict(options.strict)
        .no_bounds_check(options.no_bounds_check)
        .arguments(arguments)
        .recompile(options.recompile)
        .kernels(kernels)
        .flags(options.flags.clone().map(BTreeSet::from_iter))
        .donate(donate)
        .frozen_shapes(options.frozen_shapes)
        .device(device)
        .placement(options.place.unwrap_or_default())
        .dependencies(dependencies)
        .reporter(Arc::new(RunReporter::new(metrics)));
    if jit != Jit::Never {
        let home = home()?;
        session = session.artifacts(artifacts(&home)).home(home).secrets(secrets()?);
    }
    session.build_interp().map_err(shown)
}

/// An evaluator without a compiler, for programs of `project`.
pub fn interpreter(options: Options, project: &Project, how: &DependencyOptions) -> Result<Interp, Failed> {
    Ok(interpreter_with(options, project, packages::prepare(project, how)?))
}

/// An evaluator without a compiler, for programs of `project` with these dependencies.
pub fn interpreter_with(options: Options, project: &Project, dependencies: Box<dyn Dependencies>) -> Interp {
    let packages = Packages::new(project.clone(), dependencies);
    let host = SystemHost::new(Vec::new(), Arc::new(TerminalReporter)).with_packages(packages);
    Interp::new(Box::new(host), None, options)
}

/// Shows the messages of a session.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn shown(error: sheaf_engine::Error) -> Failed {
    for diagnostic in error.diagnostics() {
        messages::show(&Sources::default(), diagnostic);
    }
    Failed
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
        // The plans of a build name their devices.
        policies: Policies { device: DevicePolicy::Cpu, ..Policies::default() },
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

pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The settings in force for a project.
pub fn settings(options: &NetworkOptions, project: &Project, home: &Home) -> Result<Settings, Failed> {
    let given = given(options);
    let settings = sheaf_engine::settings_of(project, home, &given, &environment, &TerminalReporter);
    let package_programs = packages::dependencies(project)?.programs().map_err(report_error)?;
    Ok(Settings { package_programs, ..settings.map_err(report_error)? })
}

/// The settings that options give.
fn given(options: &NetworkOptions) -> sheaf_project::Options {
    sheaf_project::Options {
        index: options.place.toolchain_index.clone(),
        remote: options.cache_remote.clone(),
        read_only: options.read_only,
        offline: options.place.offline,
        executor: options.remote_executor.clone(),
    }
}
