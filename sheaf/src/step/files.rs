//! Files between the steps.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sheaf_artifacts::{Action, Specialisation};
use sheaf_engine::Plan;

use crate::evaluator::{Failed, failed};
use crate::messages;

/// The format and version of both files.
const FORMAT: &str = "sheaf step 1";

/// Name of the file about all calls.
const CALLS: &str = "calls.json";

/// The descriptions of all calls for the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    format: String,
    /// For each call, the description for each candidate.
    pub calls: Vec<Vec<Specialisation>>,
}

/// The compilation of one call: candidates, best first, each the fallback of the one before.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lowered {
    format: String,
    /// The candidates.
    pub candidates: Vec<Candidate>,
}

/// One candidate.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// All inputs of the compilation, the program without source locations.
    pub action: Action,
    /// Seconds after which the compiler is given up, besides the limit for all programs.
    seconds: Option<u64>,
}

impl Candidate {
    /// The time limit.
    pub fn limit(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }
}

impl Calls {
    /// The descriptions of these plans.
    pub fn of(plans: &[Plan]) -> Calls {
        let described =
            |plan: &Plan| (0..plan.candidates()).map(|c| plan.job(c).specialisation.clone()).collect();
        Calls { format: FORMAT.into(), calls: plans.iter().map(described).collect() }
    }

    /// Reads the file in a folder of lowered calls.
    pub fn read(folder: &Path) -> Result<Calls, Failed> {
        let path = folder.join(CALLS);
        let calls: Calls = read(&path)?;
        known(&path, &calls.format)?;
        Ok(calls)
    }

    /// Writes the file into a folder of lowered calls.
    pub fn write(&self, folder: &Path) -> Result<(), Failed> {
        write(&folder.join(CALLS), self)
    }
}

impl Lowered {
    /// The compilation of a plan.
    pub fn of(plan: &Plan) -> Lowered {
        let candidate = |position: usize| {
            let job = plan.job(position);
            let mut action = job.action.clone();
            action.program = sheaf_artifacts::strip_locations(&action.program).into_owned();
            Candidate { action, seconds: job.limit.map(|limit| limit.as_secs()) }
        };
        Lowered { format: FORMAT.into(), candidates: (0..plan.candidates()).map(candidate).collect() }
    }

    /// The file of the call at a position.
    pub fn path(folder: &Path, position: usize) -> PathBuf {
        folder.join(format!("{position}.json"))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Lowered, Failed> {
        let lowered: Lowered = read(path)?;
        known(path, &lowered.format)?;
        Ok(lowered)
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<(), Failed> {
        write(path, self)
    }
}

/// The bytes of a file.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path).map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failed> {
    serde_json::from_slice(&bytes(path)?).map_err(|error| {
        let message = format!("{} is no file of `sheaf step lower`: {error}", path.display());
        messages::error(message, Some("lower the program again"));
        Failed
    })
}

fn known(path: &Path, format: &str) -> Result<(), Failed> {
    if format == FORMAT {
        return Ok(());
    }
    let message = format!("{} is written as {format:?}, but this Sheaf reads {FORMAT:?}", path.display());
    messages::error(message, Some("use one version of Sheaf for all steps"));
    Err(Failed)
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), Failed> {
    let text = sheaf_artifacts::to_pretty_json(content).map_err(failed)?;
    sheaf_foundation::atomic::write(path, &text).map_err(failed)
}
