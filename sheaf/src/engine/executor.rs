//! Compilation on a cluster, where the settings name one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sheaf_cache::reapi::execute::ExecuteError;
use sheaf_cache::{Executor, Model};
use sheaf_lang::host::HostError;
use sheaf_registry::{Home, Settings};
use sheaf_toolchain::{Platform, Release, locate_release};

use super::action::{FOLDER, described};
use super::caches;
use super::compile::Compiled;
use super::unit::Job;
use crate::messages;

/// How long the cluster may take for one program, its queue and the first transfer of the compiler included.
const LIMIT: Duration = Duration::from_secs(1800);

/// The cluster.
pub struct Cluster {
    executor: Executor,
    /// Whether it has failed in this run, so that this machine compiles.
    given_up: AtomicBool,
}

impl Cluster {
    /// The cluster of the settings. `None` where there is none, or the network is to be left alone.
    pub fn open(settings: &Settings) -> Result<Option<Cluster>, HostError> {
        let Some(address) = settings.executor.value.as_ref().filter(|_| !settings.offline.value) else {
            return Ok(None);
        };
        let origin = &settings.executor.origin;
        let credentials = caches::credentials(settings);
        let executor = Executor::open(address, &credentials, caches::is_chosen(origin));
        let executor = executor.map_err(|error| HostError {
            message: format!("{origin}: {error}"),
            help: Some("give the grpc or grpcs address of a Remote Execution service".into()),
        })?;
        Ok(Some(Cluster { executor, given_up: AtomicBool::new(false) }))
    }

    /// Whether it may compile a job: it has not failed in this run, and the job is of a kind that it can compile.
    pub fn takes(&self, job: &Job) -> bool {
        // IREE 3.13 needs a remedy between two phases of such a compilation (toolchain/src/apart.rs), which its own command
        // does not have.
        job.action.model != Model::Inline && !self.given_up.load(Ordering::Relaxed)
    }

    /// Compiles a job there. `None` where the cluster does not serve, which a warning has said.
    pub fn compile(&self, job: &Job, home: &Home) -> Option<Compiled> {
        if !self.takes(job) {
            return None;
        }
        let action = described(&job.action)?;
        let installed = Release::find(&job.action.compiler, Platform::LinuxX86_64)
            .and_then(|release| locate_release(&release, home.data()));
        let start = Instant::now();
        let result = self.executor.compile(&action, LIMIT, |file| {
            let name = file.path.strip_prefix(FOLDER)?;
            installed.as_ref().map(|toolchain| toolchain.folder.join(name))
        });
        match result {
            Ok(bytes) => Some(Compiled::Yes { bytes, seconds: start.elapsed().as_secs_f64() }),
            Err(error @ ExecuteError::Compiler { .. }) => {
                Some(Compiled::Rejected { error: error.to_string(), remedy: error.remedy().into() })
            }
            Err(error) => {
                // Several may wait for it at once; one of them says so.
                if !self.given_up.swap(true, Ordering::Relaxed) {
                    messages::warning_with(&error, "this machine compiles instead", Some(error.remedy()));
                }
                None
            }
        }
    }
}
