//! The programs of `__sheaf__`, and what is said of damaged ones.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use sheaf_artifacts::{ActionKey, ArtifactFolder, Entry, FolderError, Lookup, Miss};
use sheaf_target::{Destination, Processor};

use crate::found::Found;
use crate::report::Reporter;
use crate::unit::{Job, retarget};

/// Consequence of a compiled program that cannot be written.
pub const NOT_KEPT: &str = "the run goes on; only a later one may have to compile again";

/// Consequence of a compiled program that cannot be read.
pub const NOT_USED: &str = "it is not used: the program is taken from another cache or compiled again";

/// Consequence of a damaged compiled program.
const REPLACED: &str =
    "it is not used: the program is taken from another cache or compiled again, and the file replaced";

/// Warnings about caches, each once in a run: one fault may meet every function of a program.
pub struct Faults {
    warned: RefCell<HashSet<String>>,
    reporter: Arc<dyn Reporter>,
}

impl Faults {
    /// No warnings yet.
    pub fn new(reporter: Arc<dyn Reporter>) -> Faults {
        Faults { warned: RefCell::default(), reporter }
    }

    /// The receiver of the warnings.
    pub fn reporter(&self) -> &Arc<dyn Reporter> {
        &self.reporter
    }

    /// Warns of damage in a cache; that something is simply not there is no trouble.
    pub fn report(&self, miss: &Miss) {
        if let Miss::Foreign { line } = miss {
            self.reporter.passed_over(line);
        } else if miss.is_trouble() {
            let meaning = if miss.remedy().is_some() { NOT_USED } else { REPLACED };
            self.warn(miss, meaning, miss.remedy());
        }
    }

    /// Shows a warning about a cache, once in a run.
    pub fn warn(&self, message: &dyn std::fmt::Display, meaning: &str, remedy: Option<&str>) {
        let message = message.to_string();
        if !self.warned.borrow().contains(&message) {
            self.reporter.warn(&message, Some(&meaning), remedy);
            self.warned.borrow_mut().insert(message);
        }
    }
}

/// `__sheaf__` of a program.
pub struct ProgramFolder {
    folder: ArtifactFolder,
    faults: Rc<Faults>,
}

impl ProgramFolder {
    /// The programs in `folder`; `faults` receives warnings.
    pub fn new(folder: ArtifactFolder, faults: Rc<Faults>) -> ProgramFolder {
        ProgramFolder { folder, faults }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The entries of its manifest.
    pub fn entries(&self) -> Vec<Entry> {
        self.folder.entries().unwrap_or_default()
    }

    /// Warns of a manifest that cannot be used.
    pub fn report_faults(&self) {
        if let Err(miss) = self.folder.entries() {
            self.faults.report(&miss);
        }
    }

    /// A program by its key. Warns of a damaged one, which is replaced once the job is compiled.
    pub fn find(&self, key: &ActionKey) -> Option<(Vec<u8>, Entry)> {
        match self.folder.find(key) {
            Lookup::Hit { bytes, entry } => Some((bytes, entry)),
            Lookup::Miss(miss) => {
                self.faults.report(&miss);
                None
            }
        }
    }

    /// True if its manifest lists a program with this key, or with it but for a tuning record.
    pub fn lists(&self, key: &ActionKey) -> bool {
        self.folder.lists(key)
    }

    /// The program of a job, or one that was built for any processor with features that this one has, the most capable
    /// first.
    pub fn find_for(&self, job: &Job) -> Option<Found> {
        match self.find(&job.action.key()) {
            Some((bytes, entry)) => Some(Found::in_folder(bytes, &entry)),
            None => self.find_portable(job),
        }
    }

    /// As [`ProgramFolder::find_for`], without the program of the job itself.
    pub fn find_portable(&self, job: &Job) -> Option<Found> {
        if !self.path().exists() {
            return None;
        }
        portable(job)
            .find_map(|job| self.find(&job.action.key()))
            .map(|(bytes, entry)| Found::in_folder(bytes, &entry))
    }

    /// Keeps a program beside the sources. Trouble is no reason to stop: the next run compiles it again.
    pub fn record(&self, job: &Job, bytes: &[u8], alternative: usize) {
        match self.try_record(job, bytes, alternative) {
            Err(FolderError::Foreign { line }) => self.faults.reporter.passed_over(&line),
            Err(e) => self.faults.warn(&e, NOT_KEPT, e.remedy()),
            Ok(_) => {}
        }
    }

    /// The same, where it must succeed.
    pub fn try_record(&self, job: &Job, bytes: &[u8], alternative: usize) -> Result<Entry, FolderError> {
        self.folder.record(&job.action, job.specialisation.clone(), bytes, alternative)
    }
}

/// The job for each named processor whose programs this machine runs, the most capable first; none for other devices.
pub fn portable(job: &Job) -> impl Iterator<Item = Job> + '_ {
    let is_host = job.action.device == Destination::HOST.device();
    let processors = if is_host { Processor::portable() } else { Vec::new() };
    processors.into_iter().map(|processor| {
        let mut job = job.clone();
        retarget(&mut job, &Destination::Cpu(processor), false);
        job
    })
}
