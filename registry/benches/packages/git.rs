//! Git repositories made quickly, a `git daemon`, and clones.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheaf_registry::store::Item;

/// A `git` command in `folder` without the user's configuration.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

pub fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Commits files on `main` and tags the commit `v1`; makes the repository first if it does not exist.
pub fn commit(repository: &Path, files: &[(String, String)]) {
    let is_new = !repository.exists();
    if is_new {
        std::fs::create_dir(repository).unwrap();
        run(command(repository).args(["init", "--quiet", "--bare", "--initial-branch=main"]));
    }
    let parent = if is_new { "" } else { "from refs/heads/main^0\n" };
    let mut stream = format!(
        "commit refs/heads/main\ncommitter A. Author <a@author.example> 1767323045 +0000\ndata 6\nchange\n{parent}"
    );
    for (path, text) in files {
        write!(stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }
    stream += "reset refs/tags/v1\nfrom refs/heads/main\n";
    let mut import = command(repository);
    import.args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().unwrap();
    import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
}

/// Clones the repositories of `items` into `folder`, in processes of `git`.
pub fn clones(items: &[Item], folder: &Path, jobs: usize) -> Duration {
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut clone = command(folder);
                    clone.args(["clone", "--quiet", "--depth", "1", item.address.as_str()]);
                    run(clone.arg(folder.join(&item.name)).stderr(Stdio::null()));
                }
            });
        }
    });
    begun.elapsed()
}

/// A `git daemon`, stopped when dropped.
pub struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Serves the repositories in `folder` on loopback.
    pub fn new(folder: &Path) -> Self {
        let programs = command(folder).arg("--exec-path").output().unwrap().stdout;
        let program = Path::new(String::from_utf8(programs).unwrap().trim()).join("git-daemon");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut daemon = Command::new(program);
        daemon
            .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1", &format!("--port={port}")])
            .arg(format!("--base-path={}", folder.display()))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let daemon = Self { child: daemon.spawn().unwrap(), port };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return daemon;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("git daemon does not start");
    }

    /// Processor time so far of the server and of what it has started, and of this process. `None` where the system does not say.
    pub fn processor_times(&self) -> Option<[Duration; 2]> {
        Some([processor_time(&self.child.id().to_string())?, processor_time("self")?])
    }

    pub fn address(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process and of its ended children, in Linux's `/proc`.
fn processor_time(process: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may have blanks; user and system time of the process, then of its children, in hundredths of a second.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}
