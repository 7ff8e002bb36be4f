//! A program's host: files, output and warnings of this process.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_foundation::{FileChange, MappedFile, atomic, lost_bytes};
use sheaf_graph::tensor::{FileBytes, FileChanged};
use sheaf_lang::host::{Bar, Host, HostError, Metric, OwnPackage, Writing};
use sheaf_lang::plot::Plot;
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;

use crate::report::Reporter;

/// Bytes of a file from which it is mapped; smaller ones are read, which takes no file descriptor while they are in use.
const MAPPED: u64 = 1 << 16;

/// Age from which an unfinished save is that of a run that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Packages that a program may use: its own, and its dependencies.
pub trait ProgramPackages {
    /// The package that a program in `folder` belongs to.
    fn own(&self, folder: &str) -> Option<OwnPackage>;

    /// The folder of the package that a package calls `name`, as [`Host::dependency`].
    fn dependency(&self, package: &str, name: &str) -> Result<Option<String>, HostError>;
}

/// Files, output, entropy, environment and clock of this process.
pub struct SystemHost {
    broken_pipe: Cell<bool>,
    arguments: Vec<String>,
    reporter: Arc<dyn Reporter>,
    packages: Option<Box<dyn ProgramPackages>>,
    /// The folder of files that are not at the current directory.
    data: Option<PathBuf>,
    /// The files that were mapped, as long as they are in use.
    mapped: Vec<Weak<Mapped>>,
    /// The number of them after which those out of use are forgotten.
    many: usize,
    /// Folders without unfinished saves of runs that were killed.
    tidied: HashSet<PathBuf>,
    /// Losses of mapped files that were reported.
    reported: u64,
    /// A thread for jobs, once there was one.
    background: Option<mpsc::Sender<Box<dyn FnOnce() + Send>>>,
}

/// A mapped file behind the language's trait.
struct Mapped(MappedFile);

impl FileBytes for Mapped {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn check(&self) -> Result<(), FileChanged> {
        self.0.check().map_err(|change| changed(&change))
    }
}

/// The error of a mapped file that has changed.
fn changed(change: &FileChange) -> FileChanged {
    FileChanged {
        message: change.to_string(),
        help: "load it again; a file in use is replaced by writing a new one and renaming it, as (io \"save\") does"
            .into(),
    }
}

impl SystemHost {
    /// The host of a program with these arguments. Warnings go to the reporter.
    pub fn new(arguments: Vec<String>, reporter: Arc<dyn Reporter>) -> SystemHost {
        SystemHost {
            broken_pipe: Cell::new(false),
            arguments,
            reporter,
            packages: None,
            data: None,
            mapped: Vec::new(),
            many: 64,
            tidied: HashSet::new(),
            reported: lost_bytes(),
            background: None,
        }
    }

    /// Adds the packages that its programs may use.
    #[must_use]
    pub fn with_packages(mut self, packages: impl ProgramPackages + 'static) -> SystemHost {
        self.packages = Some(Box::new(packages));
        self
    }

    /// Adds a folder for files that are read and do not exist at the current directory.
    #[must_use]
    pub fn with_data(mut self, folder: &Path) -> SystemHost {
        self.data = Some(folder.into());
        self
    }

    /// Path of a file or pattern to read.
    fn place(&self, path: &str) -> String {
        let Some(folder) = self.data.as_ref().filter(|_| Path::new(path).is_relative()) else {
            return path.to_owned();
        };
        let is_there = |path: &str| {
            Path::new(path).exists() || glob::glob(path).is_ok_and(|mut all| all.next().is_some())
        };
        let inside = folder.join(path).into_os_string().into_string();
        inside.ok().filter(|inside| !is_there(path) && is_there(inside)).unwrap_or_else(|| path.to_owned())
    }
}

impl Host for SystemHost {
    fn print(&mut self, text: &str) -> Result<(), HostError> {
        if self.broken_pipe.get() {
            return Ok(());
        }
        let mut written = Ok(());
        self.reporter.printing(&mut || {
            let mut out = io::stdout().lock();
            written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        });
        match written {
            // The reader of the output has closed it; the program may still have work to do.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.broken_pipe.set(true),
            Err(e) => {
                return Err(HostError {
                    message: format!("cannot write to standard output: {e}"),
                    help: None,
                });
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        self.reporter.warning(sources, warning);
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        let path = &self.place(path);
        std::fs::read(path).map_err(|e| unreadable(Path::new(path), &e))
    }

    fn map_file(&mut self, path: &str) -> Result<Arc<dyn FileBytes>, HostError> {
        let path = &self.place(path);
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < MAPPED) {
            return Ok(Arc::new(self.read_file(path)?));
        }
        match MappedFile::open(Path::new(path)) {
            Ok(file) => {
                let file = Arc::new(Mapped(file));
                if self.mapped.len() >= self.many {
                    self.mapped.retain(|known| known.strong_count() > 0);
                    self.many = 64.max(2 * self.mapped.len());
                }
                self.mapped.push(Arc::downgrade(&file));
                Ok(file)
            }
            // A pipe or a device.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(Arc::new(self.read_file(path)?)),
            Err(e) => Err(unreadable(Path::new(path), &e)),
        }
    }

    fn lost_bytes(&mut self) -> Option<HostError> {
        let lost = lost_bytes();
        if lost == self.reported {
            return None;
        }
        self.reported = lost;
        let mapped = self.mapped.iter().filter_map(Weak::upgrade);
        mapped.into_iter().find_map(|file| file.check().err()).map(HostError::from)
    }

    fn in_background(&mut self, job: Box<dyn FnOnce() + Send>) -> bool {
        let sender = match &self.background {
            Some(sender) => sender,
            None => {
                let (sender, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
                let thread = std::thread::Builder::new().name("sheaf-data".into());
                if thread.spawn(move || jobs.into_iter().for_each(|job| job())).is_err() {
                    return false;
                }
                self.background.insert(sender)
            }
        };
        sender.send(job).is_ok()
    }

    fn own_package(&mut self, folder: &str) -> Result<Option<OwnPackage>, HostError> {
        Ok(self.packages.as_ref().and_then(|packages| packages.own(folder)))
    }

    fn dependency(&mut self, package: &str, name: &str) -> Result<Option<String>, HostError> {
        self.packages.as_ref().map_or(Ok(None), |packages| packages.dependency(package, name))
    }

    fn write_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), HostError> {
        self.write_with(path, &mut |to| to.write_all(bytes))
    }

    fn write_with(&mut self, path: &str, write: &mut Writing<'_>) -> Result<(), HostError> {
        let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if self.tidied.insert(folder.to_owned()) {
            atomic::remove_unfinished(folder, ABANDONED);
        }
        atomic::replace_with(Path::new(path), write)
            .map_err(|e| HostError { message: e.to_string(), help: Some(e.remedy().into()) })
    }

    fn exists(&mut self, path: &str) -> Result<bool, HostError> {
        std::fs::exists(self.place(path)).map_err(|e| unreadable(Path::new(path), &e))
    }

    fn list(&mut self, path: &str) -> Result<Vec<String>, HostError> {
        let path = &self.place(path);
        let mut found: Vec<PathBuf> = if path.contains(['*', '?', '[']) {
            let matches = glob::glob(path).map_err(|e| HostError {
                message: format!("{path} is not a pattern of file names: {}", e.msg),
                help: Some("* stands for any characters, ? for one, [a-z] for one of those".into()),
            })?;
            matches.collect::<Result<_, _>>().map_err(|e| unreadable(e.path(), e.error()))?
        } else {
            let entries = std::fs::read_dir(path).map_err(|e| unlisted(Path::new(path), &e))?;
            let entries = entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>();
            entries.map_err(|e| unlisted(Path::new(path), &e))?
        };
        found.sort_unstable();
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|name| HostError {
                message: format!("the file name {} is not text", name.display()),
                help: Some("give the file another name".into()),
            })
        };
        found.into_iter().map(text).collect()
    }

    fn entropy(&mut self) -> Result<u32, HostError> {
        getrandom::u32().map_err(|e| HostError {
            message: format!("the operating system gives no entropy: {e}"),
            help: Some("seed with a number of your own: (random-key 42)".into()),
        })
    }

    fn arguments(&self) -> Vec<String> {
        self.arguments.clone()
    }

    fn variable(&self, name: &str) -> Result<Option<String>, HostError> {
        match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(HostError {
                message: format!("the environment variable {name} is not UTF-8 text"),
                help: Some("set it to plain text".into()),
            }),
        }
    }

    fn wants_metrics(&self) -> bool {
        self.reporter.wants_metrics()
    }

    fn metric(&mut self, metric: &Metric) -> Result<(), HostError> {
        self.reporter.metric(metric);
        Ok(())
    }

    fn progress(&mut self, label: &str, total: u64) -> Box<dyn Bar> {
        self.reporter.progress(label, total)
    }

    #[cfg(feature = "plot")]
    fn plot(&mut self, path: &str, plot: &Plot) -> Result<(), HostError> {
        let Some(format) = sheaf_plot::Format::of(path) else {
            return Err(HostError { message: format!("{path} is no .png or .svg file"), help: None });
        };
        let bytes = sheaf_plot::draw(plot, format)
            .map_err(|error| HostError { message: format!("{path} cannot be drawn: {error}"), help: None })?;
        self.write_file(path, &bytes)
    }

    #[cfg(not(feature = "plot"))]
    fn plot(&mut self, path: &str, _: &Plot) -> Result<(), HostError> {
        Err(HostError {
            message: format!("{path} cannot be drawn: this program was built without pictures"),
            help: Some("build it with the feature `plot`".into()),
        })
    }

    fn milliseconds(&self) -> Result<i64, HostError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let milliseconds = since.ok().and_then(|d| i64::try_from(d.as_millis()).ok());
        milliseconds.ok_or_else(|| HostError {
            message: "the clock stands before 1970".into(),
            help: Some("set the machine's clock".into()),
        })
    }
}

/// The error of a folder that cannot be listed, with a remedy.
fn unlisted(path: &Path, error: &io::Error) -> HostError {
    if error.kind() == io::ErrorKind::NotADirectory {
        return HostError {
            message: format!("{} is a file, not a folder", path.display()),
            help: Some("name a folder, or a pattern such as data/*.csv".into()),
        };
    }
    unreadable(path, error)
}

/// The text of a source file, or why it cannot be read.
pub fn source_text(path: &Path) -> Result<String, Diagnostic> {
    let bytes = std::fs::read(path).map_err(|e| {
        let error = unreadable(path, &e);
        let mut d = Diagnostic::error(error.message);
        d.help = error.help;
        d
    })?;
    sheaf_syntax::source_text(path.display(), bytes)
}

/// The error of a file that cannot be read, with a remedy.
pub fn unreadable(path: &Path, error: &io::Error) -> HostError {
    let shown = path.display();
    let here = std::env::current_dir().map_or_else(|_| ".".into(), |d| d.display().to_string());
    let (message, help) = match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => (
            format!("{shown} does not exist"),
            Some(format!("the path starts at the current directory, which is {here}")),
        ),
        io::ErrorKind::NotFound => {
            (format!("{shown} does not exist"), Some("check the spelling of the path".into()))
        }
        io::ErrorKind::PermissionDenied => {
            (format!("{shown} may not be read"), Some("change its permissions, or run as its owner".into()))
        }
        io::ErrorKind::IsADirectory => (
            format!("{shown} is a folder, not a file"),
            Some("name a file, perhaps one in that folder".into()),
        ),
        #[cfg(unix)]
        _ if sheaf_foundation::too_many_files(error) => (
            format!("{shown} cannot be read: {error}"),
            Some("load fewer files at a time, join them, or raise the limit of open files, ulimit -n".into()),
        ),
        _ => (format!("{shown} cannot be read: {error}"), None),
    };
    HostError { message, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_whole_read_listed_and_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let mut host = SystemHost::new(vec!["a".into()], Arc::new(()));
        host.write_file(&path("new/b.txt"), b"one").unwrap();
        host.write_file(&path("new/b.txt"), b"two").unwrap();
        host.write_file(&path("new/a.csv"), b"1").unwrap();
        assert_eq!(host.read_file(&path("new/b.txt")).unwrap(), b"two");
        assert!(host.exists(&path("new/b.txt")).unwrap() && !host.exists(&path("new/c.txt")).unwrap());
        // Nothing but the files is left.
        assert_eq!(host.list(&path("new")).unwrap(), [path("new/a.csv"), path("new/b.txt")]);
        assert_eq!(host.list(&path("new/*.txt")).unwrap(), [path("new/b.txt")]);
        assert_eq!(host.list(&path("*.txt")).unwrap(), [""; 0]);
        let refused = host.list(&path("new/a.csv")).unwrap_err();
        assert!(refused.message.ends_with("is a file, not a folder"), "{refused}");
        let refused = host.list(&path("[")).unwrap_err();
        assert!(refused.message.contains("is not a pattern"), "{refused}");
        let refused = host.write_file(&path("new/a.csv/x"), b"").unwrap_err();
        assert!(refused.help.is_some(), "{refused}");
    }

    #[test]
    fn files_are_mapped_and_what_cannot_be_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, large) = (folder.path().join("a.bin"), folder.path().join("large.bin"));
        std::fs::write(&path, b"bytes").unwrap();
        std::fs::write(&large, vec![1; 1 << 16]).unwrap();
        let mut host = SystemHost::new(Vec::new(), Arc::new(()));
        let file = host.map_file(path.to_str().unwrap()).unwrap();
        assert_eq!((file.bytes(), file.check(), host.mapped.len()), (b"bytes".as_slice(), Ok(()), 0));
        let file = host.map_file(large.to_str().unwrap()).unwrap();
        assert_eq!((file.bytes().len(), file.check(), host.mapped.len()), (1 << 16, Ok(()), 1));
        let refused = host.map_file(folder.path().to_str().unwrap()).err().unwrap();
        assert!(refused.message.ends_with("is a folder, not a file"), "{refused}");
        let refused = host.map_file(folder.path().join("none").to_str().unwrap()).err().unwrap();
        assert!(refused.message.ends_with("does not exist"), "{refused}");
        #[cfg(unix)]
        assert_eq!(host.map_file("/dev/null").unwrap().bytes(), b"");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_loses_bytes_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        std::fs::write(&path, vec![1; 1 << 17]).unwrap();
        let mut host = SystemHost::new(Vec::new(), Arc::new(()));
        let file = host.map_file(path.to_str().unwrap()).unwrap();
        assert_eq!(host.lost_bytes(), None);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1).unwrap();
        assert_eq!(file.bytes()[1 << 16], 0);
        let lost = host.lost_bytes().unwrap();
        assert!(lost.message.contains("it had 131072 bytes, and now has 1"), "{lost}");
        assert!(lost.help.unwrap().starts_with("load it again"));
        assert_eq!(host.lost_bytes(), None);
    }

    #[test]
    fn jobs_run_on_one_other_thread_in_turn() {
        let mut host = SystemHost::new(Vec::new(), Arc::new(()));
        let (sender, receiver) = mpsc::channel();
        for i in 0..5 {
            let sender = sender.clone();
            assert!(host.in_background(Box::new(move || {
                sender.send((i, std::thread::current().id())).expect("it is waited for");
            })));
        }
        let jobs: Vec<_> = (0..5).map(|_| receiver.recv().unwrap()).collect();
        assert_eq!(jobs.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(
            jobs.iter().all(|(_, thread)| *thread == jobs[0].1 && *thread != std::thread::current().id())
        );
    }

    #[test]
    fn a_save_that_stops_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin").to_str().unwrap().to_owned();
        let mut host = SystemHost::new(Vec::new(), Arc::new(()));
        host.write_with(&path, &mut |to| to.write_all(b"old")).unwrap();
        let stopped = host.write_with(&path, &mut |to| {
            to.write_all(&vec![0; 1 << 20])?;
            Err(io::Error::other("it stops"))
        });
        assert!(stopped.unwrap_err().message.ends_with("could not be written: it stops"));
        assert_eq!(host.read_file(&path).unwrap(), b"old");
        assert_eq!(host.list(folder.path().to_str().unwrap()).unwrap(), [path]);
    }

    #[test]
    fn a_picture_is_drawn_or_it_is_said_that_none_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svg").to_str().unwrap().to_owned();
        let points = (0..3).map(|i| (f64::from(i), f64::from(i * i))).collect();
        let content = sheaf_lang::plot::Content::Curves {
            curves: vec![sheaf_lang::plot::Curve { name: String::new(), points }],
            lines: true,
            log_y: false,
            axes: sheaf_lang::plot::Axes::default(),
        };
        let plot = Plot { title: String::new(), width: None, height: None, content };
        let drawn = SystemHost::new(Vec::new(), Arc::new(())).plot(&path, &plot);
        if cfg!(feature = "plot") {
            drawn.unwrap();
            assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
        } else {
            let refused = drawn.unwrap_err();
            assert!(refused.message.ends_with("this program was built without pictures"), "{refused}");
            assert!(refused.help.unwrap().contains("`plot`"));
        }
    }

    #[test]
    fn the_run_and_the_machine() {
        let mut host = SystemHost::new(vec!["--fast".into()], Arc::new(()));
        assert_eq!(host.arguments(), ["--fast"]);
        assert_eq!(host.variable("SHEAF_NO_SUCH_VARIABLE").unwrap(), None);
        assert!(host.variable("PATH").unwrap().is_some());
        assert!(host.milliseconds().unwrap() > 1_700_000_000_000);
        let numbers: Vec<u32> = (0..4).map(|_| host.entropy().unwrap()).collect();
        assert!(numbers.iter().any(|n| *n != numbers[0]), "{numbers:?}");
    }
}
