//! The program to run: of a bundle, or a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use sheaf_artifacts::ArtifactFolder;
use sheaf_bundle::{BundlePackages, MANIFEST, Manifest};
use sheaf_foundation::Owners;
use sheaf_lang::eval::{Interp, Jit};
use sheaf_lang::host::{Backend, HostError};
use sheaf_loader::{Loader, Policies, Reporter, SystemHost, source_text};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;

use crate::options::Options;
use crate::terminal::{self, TerminalReporter};

/// Failure of the command; `None` if a message has been shown.
pub struct Failure(Option<Diagnostic>);

impl Failure {
    /// A failure with its remedy.
    pub fn new(message: String, help: Option<&str>) -> Failure {
        let mut error = Diagnostic::error(message);
        error.help = help.map(str::to_owned);
        Failure(Some(error))
    }

    /// A failure whose message has been shown.
    pub fn shown() -> Failure {
        Failure(None)
    }

    /// Shows it.
    pub fn show(&self) {
        if let Some(error) = &self.0 {
            terminal::show(&Sources::default(), error);
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure::new(error.message, error.help.as_deref())
    }
}

/// A program with its surroundings.
pub struct Program {
    path: PathBuf,
    /// The bundle it is of.
    bundle: Option<(PathBuf, Manifest)>,
    /// Holds the unpacked bundle of this executable.
    _unpacked: Option<tempfile::TempDir>,
}

impl Program {
    /// The program at a path, or without one that of this executable.
    pub fn locate(path: Option<&Path>) -> Result<Program, Failure> {
        match path {
            Some(path) if path.is_dir() => Program::of_bundle(path, None),
            Some(path) => Ok(Program { path: path.into(), bundle: None, _unpacked: None }),
            None => {
                let executable = executable();
                let appended = sheaf_bundle::find_appended(&executable).map_err(|error| {
                    Failure::new(format!("{}: {error}", executable.display()), Some("copy it again"))
                })?;
                if let Some(mut appended) = appended {
                    let folder = tempfile::Builder::new().prefix("sheaf-").tempdir();
                    let folder = folder.map_err(|error| {
                        let help = "free some space there, or name another folder in TMPDIR";
                        Failure::new(format!("the bundle cannot be unpacked: {error}"), Some(help))
                    })?;
                    appended.unpack(folder.path()).map_err(|error| {
                        Failure::new(format!("{}: {error}", executable.display()), Some("copy it again"))
                    })?;
                    let root = folder.path().to_owned();
                    return Program::of_bundle(&root, Some(folder));
                }
                let beside = executable.parent().unwrap_or(Path::new("."));
                if beside.join(MANIFEST).is_file() {
                    return Program::of_bundle(beside, None);
                }
                let help =
                    "name the folder of a bundle, or a program: `sheaf-rt digits`, `sheaf-rt train.shf`";
                Err(Failure::new("there is no bundle in this executable, nor beside it".into(), Some(help)))
            }
        }
    }

    fn of_bundle(root: &Path, unpacked: Option<tempfile::TempDir>) -> Result<Program, Failure> {
        let manifest = Manifest::read(root).map_err(|error| {
            Failure::new(
                error.to_string(),
                Some("name a folder that `sheaf bundle` has made, or copy it again"),
            )
        })?;
        let path = root.join(&manifest.program);
        Ok(Program { path, bundle: Some((root.into(), manifest)), _unpacked: unpacked })
    }

    /// The path for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The source.
    pub fn text(&self) -> Result<String, Failure> {
        source_text(&self.path).map_err(|error| Failure(Some(error)))
    }

    /// The folder of its compiled functions.
    fn artifacts(&self) -> PathBuf {
        let folder = match &self.bundle {
            Some((root, _)) => root,
            None => self.path.parent().unwrap_or(Path::new("")),
        };
        folder.join("__sheaf__")
    }

    /// An evaluator for the program.
    pub fn interp(&self, options: &Options) -> Result<Interp, Failure> {
        let reporter: Arc<dyn Reporter> = Arc::new(TerminalReporter(Mutex::new(options.metrics()?)));
        let mut host = SystemHost::new(options.arguments.clone(), Arc::clone(&reporter));
        let mut frozen_shapes = options.frozen_shapes;
        if let Some((root, manifest)) = &self.bundle {
            host = host.with_packages(BundlePackages::new(root, manifest)).with_data(root);
            frozen_shapes |= manifest.frozen_shapes;
        }
        let evaluation = sheaf_lang::eval::Options {
            jit: options.jit,
            strict: options.strict,
            frozen_shapes,
            ..Default::default()
        };
        let backend: Option<Box<dyn Backend>> = if options.jit == Jit::Never {
            None
        } else {
            let programs = ArtifactFolder::owned(
                self.artifacts(),
                Owners::of_process(|name| std::env::var(name).ok(), &[]),
            );
            let policies = Policies { device: options.device, ..Policies::default() };
            Some(Box::new(Loader::new(programs, policies, None, reporter)?))
        };
        Ok(Interp::new(Box::new(host), backend, evaluation))
    }
}

/// This executable. Without `/proc`, as in an empty root, its path is that which it was called by.
fn executable() -> PathBuf {
    let called = || std::env::args_os().next().map(PathBuf::from);
    std::env::current_exe().ok().or_else(called).unwrap_or_default()
}

/// Compares a bundle with its manifest.
pub fn verify(path: Option<&Path>) -> ExitCode {
    let root = match path {
        Some(path) => path.to_owned(),
        None => executable().parent().unwrap_or(Path::new(".")).to_owned(),
    };
    match sheaf_bundle::verify(&root) {
        Ok((manifest, signer, faults)) if faults.is_empty() => {
            let by = signer.map_or("not signed".into(), |key| format!("signed by {key}"));
            terminal::note(&format!("{}: {} files as listed, {by}\n", manifest.name, manifest.files.len()));
            ExitCode::SUCCESS
        }
        Ok((_, _, faults)) => {
            for fault in faults {
                terminal::error(&fault.to_string(), None);
            }
            ExitCode::from(1)
        }
        Err(error) => {
            terminal::error(&error.to_string(), None);
            ExitCode::from(1)
        }
    }
}
