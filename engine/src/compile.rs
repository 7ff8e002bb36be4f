//! The compiler: installed when it is first needed, run as a worker process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_artifacts::Action;
use sheaf_cache::Store;
use sheaf_lang::eval::Interrupt;
use sheaf_lang::host::HostError;
use sheaf_lang::observe::Activity;
use sheaf_project::{Addresses, Home, Origin, Setting, Settings};
use sheaf_target::Release;
use sheaf_toolchain::{
    CompileError, Compiler, InstallError, Listing, Toolchain, install_release, locate_release,
};

use super::caches::Secrets;
use super::executor::Cluster;
use sheaf_loader::timeline::timed;
use sheaf_loader::{Job, Reporter};

use super::worker::WorkerCommand;
use crate::background::Background;
use crate::report::EngineReporter;

/// Consequence of interpretation for the user.
const SLOWER: &str = "results are the same, only slower";

/// The cost of a compilation that succeeded, and which of the action's alternatives it was.
#[derive(Clone, Copy, Debug)]
pub struct CompileRun {
    /// Seconds that the compiler took, failed attempts included.
    pub seconds: f64,
    /// Position among [`Action::attempts`](sheaf_artifacts::Action::attempts).
    pub alternative: usize,
}

/// Compiles an action by the first of its attempts that succeeds.
pub fn compile_action(
    compiler: &mut Compiler,
    action: &Action,
    limit: Option<Duration>,
) -> Result<(Vec<u8>, CompileRun), CompileError> {
    let start = Instant::now();
    let (bytes, alternative) = compiler.compile_first(&action.program, &action.attempts(), limit)?;
    Ok((bytes, CompileRun { seconds: start.elapsed().as_secs_f64(), alternative }))
}

/// The result of a compilation.
pub enum Compiled {
    /// The VMFB.
    Yes {
        /// The VMFB.
        bytes: Vec<u8>,
        /// Cost and alternative of the compilation.
        run: CompileRun,
    },
    /// The compiler failed on this program.
    Rejected {
        /// The error.
        error: String,
        /// The fix to suggest to the user.
        remedy: String,
    },
    /// There is no compiler; a warning has said so.
    NoCompiler,
}

/// Compiles on a cluster or in a local worker process, which is started on first use.
pub struct CompileService {
    home: Home,
    settings: Settings,
    compiler: Option<Release<'static>>,
    /// The cluster that compiles; `None` if this machine does.
    cluster: Option<Cluster>,
    /// Fail rather than interpret.
    strict: bool,
    /// True while instrumented twins are compiled, without which a run goes on.
    for_observer: bool,
    state: State,
    /// Ends a compilation from outside.
    interrupt: Interrupt,
    worker: WorkerCommand,
    reporter: Arc<dyn EngineReporter>,
}

enum State {
    /// Nothing has been compiled in this run.
    Unused,
    /// The worker is there.
    Ready(Box<Compiler>),
    /// There is no compiler; a warning has said why.
    Without,
}

impl CompileService {
    /// A service without a compiler yet.
    pub fn new(
        home: Home,
        settings: Settings,
        secrets: &Secrets,
        compiler: Option<Release<'static>>,
        strict: bool,
        worker: WorkerCommand,
        reporter: Arc<dyn EngineReporter>,
    ) -> Result<CompileService, HostError> {
        let shown: Arc<dyn Reporter> = Arc::<dyn EngineReporter>::clone(&reporter);
        let cluster = Cluster::open(&settings, secrets, &shown)?;
        let (state, interrupt) = (State::Unused, Interrupt::default());
        let for_observer = false;
        Ok(CompileService {
            home,
            settings,
            compiler,
            cluster,
            strict,
            for_observer,
            state,
            interrupt,
            worker,
            reporter,
        })
    }

    /// From now on `interrupt` ends the compilation, and the compiler's process with it.
    pub fn stopped_by(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Says whether instrumented twins are compiled from now on.
    pub fn set_for_observer(&mut self, twins: bool) {
        self.for_observer = twins;
    }

    /// Compiles a job. Without a compiler, a warning has said so.
    pub fn compile(&mut self, job: &Job) -> Result<Compiled, HostError> {
        timed(Activity::Compile, &job.name, |_: &_| None, || self.compile_now(job))
    }

    /// Begins to compile a job beside the run, with the compiler of this machine. `None` without one, or with a cluster.
    pub fn begin(&self, job: &Job, store: Store) -> Option<Background> {
        if self.cluster.is_some() {
            return None;
        }
        let toolchain = locate_release(&self.compiler?, self.home.data())?;
        let (worker, interrupt) = (Arc::clone(&self.worker), self.interrupt.clone());
        let begun = Background::begin(job, store, toolchain, worker, interrupt)?;
        self.reporter.note(&format!(
            "compiling {}, which writes its results over its arguments, beside the run",
            job.name
        ));
        Some(begun)
    }

    fn compile_now(&mut self, job: &Job) -> Result<Compiled, HostError> {
        if let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.serves()) {
            let activity = self.reporter.begin(&format!("compiling {} on the cluster", job.name));
            let compiled = cluster.compile(job, &self.home);
            drop(activity);
            if let Some(compiled) = compiled {
                return Ok(compiled);
            }
        }
        if matches!(self.state, State::Unused) {
            self.state = match self.toolchain()? {
                Some(toolchain) => {
                    let interrupt = self.interrupt.clone();
                    let worker = Arc::clone(&self.worker);
                    let compiler = Compiler::new(move || worker(), toolchain);
                    State::Ready(Box::new(compiler.stopped_by(move || interrupt.raised())))
                }
                None => State::Without,
            };
        }
        let State::Ready(compiler) = &mut self.state else { return Ok(Compiled::NoCompiler) };
        let activity = self.reporter.begin(&format!("compiling {}", job.name));
        let result = compile_action(compiler, &job.action, job.limit);
        drop(activity);
        let error = match result {
            Ok((bytes, run)) => return Ok(Compiled::Yes { bytes, run }),
            Err(CompileError::Interrupted) => {
                return Err(HostError { message: CompileError::Interrupted.to_string(), help: None });
            }
            Err(error) => error,
        };
        // A compiler that cannot be started fails for the next program too.
        let gone = matches!(
            error,
            CompileError::Start { .. } | CompileError::Load { .. } | CompileError::Version { .. }
        );
        if gone {
            self.give_up(&job.name, &error, &error.remedy())?;
            self.state = State::Without;
            return Ok(Compiled::NoCompiler);
        }
        Ok(Compiled::Rejected { error: error.to_string(), remedy: error.remedy() })
    }

    /// The cluster that compiles, if there is one, with the user's folders.
    pub fn cluster(&self) -> Option<(&Cluster, &Home)> {
        self.cluster.as_ref().map(|cluster| (cluster, &self.home))
    }

    /// True if there is a compiler already. None is fetched for programs that a run does as well without.
    pub fn is_there(&self) -> bool {
        match self.state {
            _ if self.cluster.is_some() => true,
            State::Unused => self.is_installed(),
            State::Ready(_) => true,
            State::Without => false,
        }
    }

    fn is_installed(&self) -> bool {
        self.compiler.is_some_and(|release| locate_release(&release, self.home.data()).is_some())
    }

    fn shown(&self) -> &dyn Reporter {
        &*self.reporter
    }

    /// Says that a function is interpreted, since there is no program of it; an error if that is forbidden.
    pub fn give_up(&self, name: &str, why: &dyn std::fmt::Display, remedy: &str) -> Result<(), HostError> {
        if self.for_observer {
            let message = format!(
                "the inside of {name} is not observed, since its program for that cannot be compiled; only its arguments \
                 and results are"
            );
            self.shown().warn(message, Some(&why), Some(remedy));
            return Ok(());
        }
        if self.strict {
            let message = format!("{name} cannot be compiled, and --strict forbids interpreting it: {why}");
            return Err(HostError { message, help: Some(remedy.to_owned()) });
        }
        let message = format!("{name} is interpreted, since it cannot be compiled; {SLOWER}");
        self.shown().warn(message, Some(&why), Some(remedy));
        Ok(())
    }

    /// The installed compiler, installed now if need be. `None` if that cannot be done here and now.
    fn toolchain(&self) -> Result<Option<Toolchain>, HostError> {
        match self.find_toolchain()? {
            Ok(toolchain) => Ok(Some(toolchain)),
            Err(Absent { why, remedy }) if self.strict && !self.for_observer => {
                let message = format!("there is no compiler, and --strict forbids interpreting: {why}");
                Err(HostError { message, help: Some(remedy) })
            }
            Err(Absent { why, remedy }) => {
                let message = format!(
                    "there is no compiler, so what has not been compiled before is interpreted; {SLOWER}"
                );
                self.shown().warn(message, Some(&why), Some(&format!("{remedy}; the next run tries again")));
                Ok(None)
            }
        }
    }

    /// The installed compiler, installed now if need be; the inner error says why there is none. The outer one is
    /// nothing to work around: a file with another checksum, or a setting without a meaning.
    pub fn find_toolchain(&self) -> Result<Result<Toolchain, Absent>, HostError> {
        let Some(release) = self.compiler else {
            let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
            let error = InstallError::UnsupportedPlatform { system, processor };
            return Ok(Err(Absent { why: error.to_string(), remedy: error.remedy() }));
        };
        if let Some(toolchain) = locate_release(&release, self.home.data()) {
            return Ok(Ok(toolchain));
        }
        if self.settings.offline.value {
            let why =
                format!("it is not installed, and may not be fetched ({})", self.settings.offline.origin);
            return Ok(Err(Absent { why, remedy: "allow the network once".into() }));
        }
        let settings = fetching(&self.settings);
        match install_release(&release, self.home.data(), &settings, &*self.reporter.installation()) {
            Ok(toolchain) => Ok(Ok(toolchain)),
            // A file with another checksum is nothing to work around in silence.
            Err(error @ (InstallError::Checksum { .. } | InstallError::BadSetting { .. })) => {
                Err(HostError { message: error.to_string(), help: Some(error.remedy()) })
            }
            Err(error) => Ok(Err(Absent { why: error.to_string(), remedy: error.remedy() })),
        }
    }
}

/// Reason why there is no compiler.
pub struct Absent {
    /// The reason, a clause.
    pub why: String,
    /// The fix to suggest to the user.
    pub remedy: String,
}

/// The settings for fetching a compiler.
pub fn fetching(settings: &Settings) -> sheaf_toolchain::Settings {
    let place = |setting: &Setting<String>, key: &str| sheaf_toolchain::Setting {
        value: setting.value.clone(),
        origin: match &setting.origin {
            Origin::File(path) => format!("`toolchain.{key}` in {}", path.display()),
            origin => origin.to_string(),
        },
    };
    sheaf_toolchain::Settings {
        mirrors: settings.mirrors.iter().map(|mirror| place(mirror, "mirrors")).collect(),
        index: settings.index.as_ref().map(|index| place(index, "index")),
        listing: settings.addresses.clone().map(|Addresses { index, files }| Listing { index, files }),
        offline: settings.offline.value,
        no_credentials: settings.sources_without_credentials().into_iter().map(str::to_owned).collect(),
        ..sheaf_toolchain::Settings::default()
    }
}
