//! Sandboxes: a program run in one has access only to the system's own programs.

use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mount::Mount;
use crate::neutral::Neutral;
use crate::output::Output;

/// Default time limit of a run; longer runs hang.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Default source of the compiler: an unreachable address.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A folder with programs, and a `SHEAF_HOME`, for a single test. Removed on drop.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// A sandbox without a compiler and without a network.
    pub fn new() -> Sandbox {
        let root = tempfile::tempdir().expect("a temporary folder");
        for folder in ["work", "home", "tmp"] {
            fs::create_dir(root.path().join(folder)).expect("a folder");
        }
        Sandbox { root }
    }

    /// A sandbox with the pinned compiler, installed once for all tests; its caches are its own. `None` if the compiler
    /// can be neither found nor downloaded, after printing that.
    pub fn with_compiler() -> Option<Sandbox> {
        let data = crate::compiler::data_folder()?;
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.home().join("data")).expect("a folder");
        let (there, here) = (data.join("toolchains"), sandbox.home().join("data/toolchains"));
        // The folder behind the link is only read: the installation is complete. The rest of the data folder, such as
        // keys, belongs to this sandbox.
        #[cfg(unix)]
        std::os::unix::fs::symlink(there, here).expect("a link");
        #[cfg(windows)]
        std::os::windows::fs::symlink_dir(there, here).expect("a link");
        Some(sandbox)
    }

    /// Like [`with_compiler`](Self::with_compiler), with the store of compiled programs that such sandboxes share under
    /// `target`: for tests whose subject is a program's result. What another test or an earlier run has compiled, they take.
    pub fn with_shared_store() -> Option<Sandbox> {
        let sandbox = Sandbox::with_compiler()?;
        let store = crate::kept_folder().join("store");
        fs::create_dir_all(&store).expect("a folder");
        #[cfg(unix)]
        std::os::unix::fs::symlink(store, sandbox.home().join("cache")).expect("a link");
        #[cfg(windows)]
        std::os::windows::fs::symlink_dir(store, sandbox.home().join("cache")).expect("a link");
        Some(sandbox)
    }

    /// A path in the current folder of runs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    /// `SHEAF_HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Folder of the runs' temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Writes a file into the current folder of runs, creating the folders in between.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    /// Copies one of the repository's examples here, sources and data, and returns its path.
    pub fn example(&self, name: &str) -> String {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples");
        let source = fs::read(examples.join(name)).expect("an example");
        self.write(name, source);
        name.to_owned()
    }

    /// Copies a folder of the repository's examples here.
    pub fn example_folder(&self, name: &str) {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join(name), &self.path(name));
    }

    /// Replaces this sandbox's `work` and cache by copies of another one's.
    pub fn copy_from(&self, other: &Sandbox) {
        copy(&other.path(""), &self.path(""));
        copy(&other.home().join("cache"), &self.home().join("cache"));
    }

    /// Runs `sheaf` with these arguments to completion.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.sheaf(arguments).run()
    }

    /// A run of `sheaf` with these arguments.
    pub fn sheaf(&self, arguments: &[&str]) -> Run<'_> {
        Run {
            sandbox: self,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: vec![("SHEAF_TOOLCHAIN_INDEX".into(), NOWHERE.into())],
            input: String::new(),
            mount: None,
            timeout: TIMEOUT,
            folder: String::new(),
        }
    }

    /// Copies a folder of the repository's `tests` here.
    pub fn folder(&self, name: &str) {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests").join(name), &self.path(name));
    }

    /// The names of all files under a folder of this sandbox, relative to it and sorted.
    pub fn files(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            let Ok(entries) = fs::read_dir(&next) else { continue };
            for entry in entries {
                let entry = entry.expect("an entry");
                if entry.file_type().expect("a type").is_dir() {
                    folders.push(entry.path());
                } else {
                    let path = entry.path();
                    names.push(path.strip_prefix(folder).expect("inside").display().to_string());
                }
            }
        }
        names.sort();
        names
    }

    fn neutral(&self) -> Neutral {
        let mut neutral = Neutral::default();
        for name in ["work", "home", "tmp"] {
            neutral.path(&self.root.path().join(name), name);
        }
        neutral
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox::new()
    }
}

fn copy(from: &Path, to: &Path) {
    for name in Sandbox::files(from) {
        let target = to.join(&name);
        fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        fs::copy(from.join(&name), target).expect("a copy");
    }
}

/// A run that is being prepared.
#[derive(Debug)]
pub struct Run<'a> {
    sandbox: &'a Sandbox,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    input: String,
    mount: Option<(Mount, PathBuf)>,
    timeout: Duration,
    folder: String,
}

impl Run<'_> {
    /// Runs in a folder of the sandbox.
    #[must_use]
    pub fn at(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Sets a longer time limit.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets an environment variable; an empty value unsets it.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self
    }

    /// Mounts a separate file system at a folder, which disappears after the run.
    #[must_use]
    pub fn mounted(mut self, mount: Mount, at: PathBuf) -> Self {
        self.mount = Some((mount, at));
        self
    }

    /// The command, in the sandbox's environment.
    pub fn command(&self) -> Command {
        let program = crate::sheaf();
        let mut command = match &self.mount {
            None => Command::new(program),
            Some((mount, at)) => mount.command(at, &self.listing(), &program),
        };
        command.args(&self.arguments).env_clear();
        command.current_dir(self.sandbox.path(&self.folder)).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let home = self.sandbox.root.path();
        command
            .env("HOME", home)
            .env("TMPDIR", self.sandbox.temporary())
            .env("SHEAF_HOME", self.sandbox.home());
        command.env("NO_COLOR", "1").env("LC_ALL", "C");
        for (name, value) in &self.environment {
            if value.is_empty() {
                command.env_remove(name)
            } else {
                command.env(name, value)
            };
        }
        command
    }

    /// Runs to completion.
    ///
    /// # Panics
    /// If the program cannot be started, or hangs.
    pub fn run(&self) -> Output {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::piped());
        let mut child = command.spawn().expect("sheaf starts");
        // A program that does not read it has closed the pipe, which is fine.
        let _ = child.stdin.take().expect("a pipe").write_all(self.input.as_bytes());
        let stdout = collect(child.stdout.take().expect("a pipe"));
        let stderr = collect(child.stderr.take().expect("a pipe"));
        let status = wait(&mut child, self.timeout);
        let text = |thread: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().expect("a reader")).into_owned()
        };
        let (stdout, stderr) = (text(stdout), text(stderr));
        let Some(status) = status else {
            panic!("{:?} still ran after {:?}\n{stdout}\n{stderr}", self.arguments, self.timeout);
        };
        let listing = fs::read_to_string(self.listing()).unwrap_or_default();
        Output {
            programs: self.programs(),
            command: self.arguments.clone(),
            code: status.code(),
            stdout,
            stderr,
            mounted: listing.lines().map(str::to_owned).collect(),
            neutral: self.sandbox.neutral(),
        }
    }

    /// File with the names of the files that a mounted file system has at the end.
    fn listing(&self) -> PathBuf {
        self.sandbox.temporary().join("listing")
    }

    /// The text of the programs among the arguments.
    fn programs(&self) -> Vec<(String, String)> {
        let programs =
            self.arguments.iter().filter(|name| Path::new(name).extension().is_some_and(|e| e == "shf"));
        let text = |name: &String| Some((name.clone(), fs::read_to_string(self.sandbox.path(name)).ok()?));
        programs.filter_map(text).collect()
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// Waits for the end; kills a process that hangs.
fn wait(child: &mut Child, timeout: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        if start.elapsed() > timeout {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
