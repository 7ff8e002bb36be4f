//! Compilation on a cluster, where the settings name one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sheaf_artifacts::Action;
use sheaf_cache::Executor;
use sheaf_cache::reapi::execute::ExecuteError;
use sheaf_cache::remote::RemoteError;
use sheaf_lang::host::HostError;
use sheaf_project::{Home, Settings};
use sheaf_target::{Platform, Release};
use sheaf_toolchain::locate_release;

use super::action::{FOLDER, described_run};
use super::caches::{self, Secrets};
use super::compile::{CompileRun, Compiled};
use sheaf_loader::{Job, Reporter};

/// Maximum time of the cluster for one program, its queue and the first transfer of the compiler included.
const LIMIT: Duration = Duration::from_secs(1800);

/// Consequence of a cluster that fails.
const HERE: &str = "this machine compiles instead";

/// The cluster.
pub struct Cluster {
    executor: Executor,
    /// True after a failure in this run: this machine compiles.
    given_up: AtomicBool,
    reporter: Arc<dyn Reporter>,
}

impl Cluster {
    /// The cluster of the settings. `None` if there is none, or the network is to be left alone.
    pub fn open(
        settings: &Settings,
        secrets: &Secrets,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Option<Cluster>, HostError> {
        let Some(address) = settings.executor.value.as_ref().filter(|_| !settings.offline.value) else {
            return Ok(None);
        };
        let origin = &settings.executor.origin;
        let credentials = caches::credentials(settings, secrets);
        match Executor::open(address, &credentials) {
            Ok(executor) => {
                let given_up = AtomicBool::new(false);
                Ok(Some(Cluster { executor, given_up, reporter: Arc::clone(reporter) }))
            }
            Err(error @ RemoteError::Helper { .. }) => {
                reporter.warn(&error, Some(&HERE), Some(error.remedy()));
                Ok(None)
            }
            Err(error) => Err(HostError {
                message: format!("{origin}: {error}"),
                help: Some("give the grpc or grpcs address of a Remote Execution service".into()),
            }),
        }
    }

    /// True if it may be asked: it has not failed in this run.
    pub fn serves(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed)
    }

    /// Compiles a job there. `None` if the cluster does not serve, after a warning.
    pub fn compile(&self, job: &Job, home: &Home) -> Option<Compiled> {
        if !self.serves() {
            return None;
        }
        let start = Instant::now();
        match self.run(&job.action, home)? {
            Ok((bytes, alternative)) => {
                let run = CompileRun { seconds: start.elapsed().as_secs_f64(), alternative };
                Some(Compiled::Yes { bytes, run })
            }
            Err(error @ ExecuteError::Compiler { .. }) => {
                Some(Compiled::Rejected { error: error.to_string(), remedy: error.remedy().into() })
            }
            Err(error) => {
                // Several may wait for it at once; one of them says so.
                if !self.given_up.swap(true, Ordering::Relaxed) {
                    self.reporter.warn(&error, Some(&HERE), Some(error.remedy()));
                }
                None
            }
        }
    }

    /// Runs the compiler there with each alternative until it succeeds; the program and the position of the alternative.
    /// `None` if the compiler's files are not known.
    fn run(&self, action: &Action, home: &Home) -> Option<Result<(Vec<u8>, usize), ExecuteError>> {
        let mut first = None;
        for (alternative, flags) in action.attempts().iter().enumerate() {
            match self.attempt(action, flags, home)? {
                Ok(bytes) => return Some(Ok((bytes, alternative))),
                Err(error @ ExecuteError::Compiler { .. }) => first = first.or(Some(error)),
                Err(error) => return Some(Err(error)),
            }
        }
        first.map(Err)
    }

    /// Runs the compiler there. `None` if the compiler's files are not known.
    fn attempt(
        &self,
        action: &Action,
        flags: &[String],
        home: &Home,
    ) -> Option<Result<Vec<u8>, ExecuteError>> {
        let installed = Release::find(&action.compiler, Platform::LinuxX86_64)
            .and_then(|release| locate_release(&release, home.data()));
        let described = described_run(action, flags)?;
        Some(self.executor.compile(&described, LIMIT, |file| {
            let name = file.path.strip_prefix(FOLDER)?;
            installed.as_ref().map(|toolchain| toolchain.folder.join(name))
        }))
    }
}
