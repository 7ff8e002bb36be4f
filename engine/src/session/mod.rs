//! Programs that use Sheaf as a library: a [`Session`] loads modules, whose functions are called with [`Value`]s.

mod value;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use sheaf_artifacts::{ArtifactFolder, TuningFlag};
use sheaf_lang::eval::{Interp, Jit, Location, Options, Signal};
use sheaf_lang::host::HostError;
use sheaf_lang::program;
use sheaf_loader::{DevicePolicy, Donate, Kernels, PlacementPolicy, Policies, Reporter, SystemHost};
use sheaf_project::{Home, PackagePrograms, Project};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::render::render;
use sheaf_syntax::{Sources, Span};

use crate::packages::{Dependencies, Packages};
use crate::release::{self, Unusable};
use crate::report::EngineReporter;
use crate::settings::{Environment, project_of, settings_of};
use crate::worker::this_program;
use crate::{Engine, EngineConfig, Secrets, WorkerCommand};

pub use value::Value;

/// Failure of a session: the messages about the program, or one about this machine.
pub struct Error {
    diagnostics: Vec<Diagnostic>,
    locations: Vec<Option<Location>>,
    text: String,
}

impl Error {
    /// The messages.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// File, line and column of each message, at its first label.
    pub fn locations(&self) -> &[Option<Location>] {
        &self.locations
    }

    fn new(sources: &Sources, diagnostics: Vec<Diagnostic>) -> Error {
        let text = diagnostics.iter().map(|d| render(sources, d, false)).collect::<Vec<_>>().join("\n");
        let location = |d: &Diagnostic| Location::of(sources, d.labels.first()?.span);
        let locations = diagnostics.iter().map(location).collect();
        Error { diagnostics, locations, text }
    }

    fn plain(message: impl Into<String>) -> Error {
        Error::new(&Sources::default(), vec![Diagnostic::error(message)])
    }

    fn of_signal(signal: Signal) -> Error {
        Error::new(&Sources::default(), signal.into())
    }
}

/// The messages as the command line shows them: with excerpts of the sources, and a remedy.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

/// As `Display`: a `main` that returns the error shows it so.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Error {}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        let mut diagnostic = Diagnostic::error(error.message);
        diagnostic.help = error.help;
        Error::new(&Sources::default(), vec![diagnostic])
    }
}

impl From<Unusable> for Error {
    fn from(unusable: Unusable) -> Error {
        HostError { message: unusable.why, help: unusable.remedy }.into()
    }
}

/// Configuration of a [`Session`].
pub struct SessionBuilder {
    project: PathBuf,
    found: Option<Project>,
    home: Option<Home>,
    artifacts: Option<PathBuf>,
    options: sheaf_project::Options,
    environment: Box<Environment>,
    evaluation: Options,
    arguments: Vec<String>,
    recompile: bool,
    policies: Policies,
    secrets: Secrets,
    worker: Option<WorkerCommand>,
    reporter: Arc<dyn EngineReporter>,
    dependencies: Box<dyn Dependencies>,
}

impl Default for SessionBuilder {
    fn default() -> SessionBuilder {
        SessionBuilder {
            project: PathBuf::from("."),
            found: None,
            home: None,
            artifacts: None,
            options: sheaf_project::Options::default(),
            environment: Box::new(|name| std::env::var(name).ok()),
            evaluation: Options::default(),
            arguments: Vec::new(),
            recompile: false,
            policies: Policies::default(),
            secrets: Secrets::default(),
            worker: None,
            reporter: Arc::new(()),
            dependencies: Box::new(()),
        }
    }
}

impl SessionBuilder {
    /// Folder whose project has the settings, and the `__sheaf__` of compiled programs. The current folder by default.
    #[must_use]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = folder.into();
        self
    }

    /// A project that is located already.
    #[must_use]
    pub fn located(mut self, project: Project) -> Self {
        self.found = Some(project);
        self
    }

    /// The user's folders; by default those of the environment.
    #[must_use]
    pub fn home(mut self, home: Home) -> Self {
        self.home = Some(home);
        self
    }

    /// Folder of compiled programs, instead of the project's `__sheaf__`.
    #[must_use]
    pub fn artifacts(mut self, folder: impl Into<PathBuf>) -> Self {
        self.artifacts = Some(folder.into());
        self
    }

    /// Settings that come before all files and the environment: caches, network, cluster.
    #[must_use]
    pub fn options(mut self, options: sheaf_project::Options) -> Self {
        self.options = options;
        self
    }

    /// Replaces the environment variables of this process.
    #[must_use]
    pub fn environment(mut self, variable: impl Fn(&str) -> Option<String> + 'static) -> Self {
        self.environment = Box::new(variable);
        self
    }

    /// Functions that are compiled: those that pay, all, or none.
    #[must_use]
    pub fn jit(mut self, jit: Jit) -> Self {
        self.evaluation.jit = jit;
        self
    }

    /// Makes it an error that a function which should be compiled is interpreted.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.evaluation.strict = strict;
        self
    }

    /// Leaves out the checks of indices in compiled programs.
    #[must_use]
    pub fn no_bounds_check(mut self, off: bool) -> Self {
        self.evaluation.no_bounds_check = off;
        self
    }

    /// Arguments that `(io "args")` gives.
    #[must_use]
    pub fn arguments(mut self, arguments: Vec<String>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Compiles anew, without a look into the caches.
    #[must_use]
    pub fn recompile(mut self, recompile: bool) -> Self {
        self.recompile = recompile;
        self
    }

    /// Policy for small programs and loops.
    #[must_use]
    pub fn kernels(mut self, kernels: Kernels) -> Self {
        self.policies.kernels = kernels;
        self
    }

    /// Flags of the compiler in place of those that rules and tuning records choose. Programs with which the compiler fails are
    /// compiled as without them.
    #[must_use]
    pub fn flags(mut self, flags: Option<BTreeSet<TuningFlag>>) -> Self {
        self.policies.flags = flags;
        self
    }

    /// Policy for calls that consume arguments.
    #[must_use]
    pub fn donate(mut self, donate: Donate) -> Self {
        self.policies.donate = donate;
        self
    }

    /// Makes it an error to call a compiled function with other shapes than those in `__sheaf__`.
    #[must_use]
    pub fn frozen_shapes(mut self, frozen: bool) -> Self {
        self.policies.frozen_shapes = frozen;
        self.evaluation.frozen_shapes = frozen;
        self
    }

    /// The device of compiled programs. By default the first GPU, or the processor.
    #[must_use]
    pub fn device(mut self, device: DevicePolicy) -> Self {
        self.policies.device = device;
        self
    }

    /// Threads of compiled programs on the processor.
    #[must_use]
    pub fn placement(mut self, placement: PlacementPolicy) -> Self {
        self.policies.placement = placement;
        self
    }

    /// Signing key and token for remote caches; none by default.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Command of the process in which the compiler runs; by default this program, which must then call
    /// [`answer_compile_worker`](crate::answer_compile_worker) first in its `main`.
    #[must_use]
    pub fn worker(mut self, worker: WorkerCommand) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Receiver of progress and warnings; none by default.
    #[must_use]
    pub fn reporter(mut self, reporter: Arc<dyn EngineReporter>) -> Self {
        self.reporter = reporter;
        self
    }

    /// Folders of the project's dependencies; none by default.
    #[must_use]
    pub fn dependencies(mut self, dependencies: Box<dyn Dependencies>) -> Self {
        self.dependencies = dependencies;
        self
    }

    /// Starts the session. The compiler is started, and installed, when a function is compiled.
    ///
    /// # Errors
    ///
    /// The user's folders or the project's files cannot be used, or no device can be opened.
    pub fn build(self) -> Result<Session, Error> {
        Ok(Session { interp: Rc::new(RefCell::new(self.build_interp()?)) })
    }

    /// The evaluator of the session.
    ///
    /// # Errors
    ///
    /// As [`SessionBuilder::build`].
    pub fn build_interp(mut self) -> Result<Interp, Error> {
        let project = match self.found.take() {
            Some(project) => project,
            None => project_of(&self.project, &*self.environment, &*self.reporter)?,
        };
        let dependencies = std::mem::replace(&mut self.dependencies, Box::new(()));
        let jit = self.evaluation.jit != Jit::Never;
        let programs = if jit { dependencies.programs()? } else { Vec::new() };
        let shown: Arc<dyn Reporter> = Arc::<dyn EngineReporter>::clone(&self.reporter);
        let host = SystemHost::new(self.arguments.clone(), shown)
            .with_packages(Packages::new(project.clone(), dependencies));
        let evaluation = self.evaluation;
        let engine = if jit { Some(self.engine(&project, programs)?) } else { None };
        let backend = engine.map(|engine| Box::new(engine) as Box<dyn sheaf_lang::host::Backend>);
        Ok(Interp::new(Box::new(host), backend, evaluation))
    }

    fn engine(self, project: &Project, programs: Vec<PackagePrograms>) -> Result<Engine, Error> {
        let (environment, reporter) = (&*self.environment, &*self.reporter);
        let home = match self.home {
            Some(home) => home,
            None => Home::locate(environment).map_err(|error| Error::plain(error.to_string()))?,
        };
        let mut settings = settings_of(project, &home, &self.options, environment, reporter)?;
        settings.package_programs = programs;
        let compiler = release::choose(&mut settings, project, reporter)?;
        let folder = self.artifacts.unwrap_or_else(|| project.artifact_folder());
        let worker = match self.worker {
            Some(worker) => worker,
            None => this_program()?,
        };
        let config = EngineConfig {
            recompile: self.recompile,
            strict: self.evaluation.strict,
            policies: self.policies,
            secrets: self.secrets,
            reporter: self.reporter,
            ..EngineConfig::new(
                home,
                ArtifactFolder::owned(folder, project.owners.clone()),
                settings,
                compiler,
                worker,
            )
        };
        Ok(Engine::new(config)?)
    }
}

/// An evaluator with compiled execution, for programs that use Sheaf as a library.
///
/// A session, its modules, functions and values belong to the thread that made them; several threads have a session each.
/// Sessions of one process share nothing but the caches on disk.
#[derive(Clone)]
pub struct Session {
    interp: Rc<RefCell<Interp>>,
}

impl Session {
    /// A configuration with the defaults of `sheaf run`.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// Runs the program in a file; its definitions.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the messages of the program.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Module, Error> {
        let path = path.as_ref();
        let text =
            sheaf_loader::source_text(path).map_err(|error| Error::new(&Sources::default(), vec![error]))?;
        self.load_text(&path.display().to_string(), &text)
    }

    /// Runs a program whose text messages call `name`; its definitions.
    ///
    /// # Errors
    ///
    /// The messages of the program.
    pub fn load_text(&self, name: &str, text: &str) -> Result<Module, Error> {
        let module = Interp::program(name);
        let result = self.interp.borrow_mut().run_text(&module, name, text);
        self.checked(result)?;
        Ok(Module { session: self.clone(), module })
    }

    fn checked<T>(&self, result: Result<T, Vec<Diagnostic>>) -> Result<T, Error> {
        result.map_err(|errors| Error::new(&self.interp.borrow().sources, errors))
    }
}

/// The definitions of a program that a session has loaded.
#[derive(Clone)]
pub struct Module {
    session: Session,
    module: Rc<program::Module>,
}

impl Module {
    /// The value of a definition.
    ///
    /// # Errors
    ///
    /// The program does not define it.
    pub fn value(&self, name: &str) -> Result<Value, Error> {
        self.session.checked(Interp::definition(&self.module, name).map_err(|error| vec![error])).map(Value)
    }

    /// A function of the program.
    ///
    /// # Errors
    ///
    /// The program does not define it.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let callee = self.value(name)?;
        let site = self.session.interp.borrow_mut().call_site(name);
        Ok(Function { session: self.session.clone(), callee, site })
    }
}

/// A function of a program.
#[derive(Clone)]
pub struct Function {
    session: Session,
    callee: Value,
    /// Place of its calls in messages.
    site: Span,
}

impl Function {
    /// The result for these arguments. Calls are compiled by the session's policy, as those of a program.
    ///
    /// # Errors
    ///
    /// The messages of the call.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, Error> {
        let arguments = arguments.iter().map(|argument| argument.0.clone()).collect();
        let result = self.session.interp.borrow_mut().apply(&self.callee.0, arguments, self.site);
        self.session.checked(result).map(Value)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.module.name).finish()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.callee.to_string()).finish()
    }
}
