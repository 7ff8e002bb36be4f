//! Stores on a network file system: one folder of a server, mounted on two machines that do not see each other's locks.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sheaf_tests::{Sandbox, skip};
use tempfile::TempDir;

use crate::faults::story;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, SQUARES, warnings};
use crate::servers;
use crate::shared::taken;

/// Paths of the server on Debian and others.
const SERVERS: [&str; 3] =
    ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];

/// Number of processes per machine that compile the same programs concurrently.
const CROWD: usize = 8;

/// A program with two functions, and its output.
const TWO: &str = "(defn halves [x] (/ x 2))\n(print (halves [2 4]))\n";
const TWO_PRINTS: &str = "14.0\n[1. 2.]\n";

/// A folder of another machine, mounted by SFTP. Unmounted on drop.
struct Mounted {
    at: TempDir,
    mount: Child,
    server: Child,
}

impl Mounted {
    /// Mounts `folder`. `None`, after a message, if that is impossible.
    fn new(folder: &Path) -> Option<Mounted> {
        let sshfs = servers::tool("SHEAF_TEST_SSHFS", "", "sshfs")?;
        let Some(server) = SERVERS.iter().find(|server| Path::new(server).exists()) else {
            skip("no sftp-server: run scripts/remote-servers");
            return None;
        };
        let at = tempfile::tempdir().expect("a folder");
        let (ours, theirs) = UnixStream::pair().expect("a connection");
        let server = spawn(Command::new(server), theirs).expect("an sftp-server");
        let mut command = Command::new(sshfs);
        command.arg(format!(":{}", folder.display())).arg(at.path()).args(["-f", "-o", "passive"]);
        let mount = spawn(command, ours).expect("sshfs");
        let mut mounted = Mounted { at, mount, server };
        let mark = folder.join("served");
        fs::write(&mark, "").expect("a file");
        let start = Instant::now();
        while !mounted.at.path().join("served").exists() {
            if mounted.mount.try_wait().expect("a child").is_some()
                || start.elapsed() > Duration::from_secs(20)
            {
                skip("sshfs cannot mount here");
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Some(mounted)
    }

    /// Two machines with the same folder mounted, and the folder.
    fn two() -> Option<(TempDir, [Mounted; 2])> {
        let folder = tempfile::tempdir().expect("a folder");
        let both = [Mounted::new(folder.path())?, Mounted::new(folder.path())?];
        Some((folder, both))
    }

    /// A path in it.
    fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    /// Puts a machine's own store there.
    fn hold_store(&self, sandbox: &Sandbox) {
        symlink(self.path("store"), sandbox.home().join("cache")).expect("a link");
    }

    /// Breaks it: its files can be neither read nor written any more.
    fn cut(&mut self) {
        self.mount.kill().expect("killed");
        self.mount.wait().expect("its end");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("fusermount3").args(["-u", "-z"]).arg(self.at.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            let _ = self.mount.kill();
        }
        let _ = self.mount.wait();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts a program that communicates through one end of a socket.
fn spawn(mut command: Command, end: UnixStream) -> std::io::Result<Child> {
    let end = OwnedFd::from(end);
    command.stdin(end.try_clone()?).stdout(end).stderr(Stdio::null()).spawn()
}

/// Two machines with one store, many processes each: duplicates are allowed, damage is not.
#[test]
fn crowds_of_two_machines_share_a_store() {
    let Some((folder, mounts)) = Mounted::two() else { return };
    fs::create_dir(folder.path().join("store")).expect("a folder");
    let Some(sandboxes) = mounts.iter().map(|_| Sandbox::with_compiler()).collect::<Option<Vec<_>>>() else {
        return;
    };
    let mut children = Vec::new();
    for number in 0..CROWD {
        for (mount, sandbox) in mounts.iter().zip(&sandboxes) {
            if number == 0 {
                mount.hold_store(sandbox);
            }
            let name = format!("p{number}/two.shf");
            sandbox.write(&name, format!("{SQUARES}{TWO}"));
            let mut command = sandbox.sheaf(&[&name, "--jit", "always"]).command();
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            children.push(command.spawn().expect("sheaf starts"));
        }
    }
    let mut compiled = [0, 0];
    for child in children {
        let output = child.wait_with_output().expect("its end");
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said == TWO_PRINTS, "{said}{told}");
        assert!(!told.contains("warning"), "{told}");
        for (count, name) in compiled.iter_mut().zip(["sum-of-squares", "halves"]) {
            *count += told.lines().filter(|line| **line == format!("compiling {name}")).count();
        }
    }
    // Among the processes of one machine the lock works.
    assert!(
        compiled.iter().all(|count| (1..=2).contains(count)),
        "how often each was compiled: {compiled:?}"
    );
    for sandbox in &sandboxes {
        let size: serde_json::Value =
            serde_json::from_str(&sandbox.run(&["cache", "size", "--json"]).silent()).expect("JSON");
        assert_eq!(size["entries"], 2, "{size}");
        let verified = sandbox.run(&["cache", "verify"]);
        assert_eq!(verified.code, Some(0), "{verified}");
    }
    let files = Sandbox::files(&folder.path().join("store"));
    let whole = |name: &String| !name.contains("tmp");
    assert!(files.iter().all(whole), "something was left: {files:?}");
}

/// Processes of one machine are killed while they write to the store; the other machine finds only complete files.
#[test]
fn a_writer_killed_on_a_network_file_system_harms_nobody() {
    let Some((folder, mounts)) = Mounted::two() else { return };
    fs::create_dir(folder.path().join("store")).expect("a folder");
    let Some(sandboxes) = mounts.iter().map(|_| Sandbox::with_compiler()).collect::<Option<Vec<_>>>() else {
        return;
    };
    for (mount, sandbox) in mounts.iter().zip(&sandboxes) {
        sandbox.write("squares.shf", SQUARES);
        mount.hold_store(sandbox);
    }
    for kill in 0..6 {
        // By the other machine, as by an independent one.
        assert_eq!(sandboxes[1].run(&["cache", "clear"]).code, Some(0), "kill {kill}");
        for sandbox in &sandboxes {
            let _ = fs::remove_dir_all(sandbox.path("__sheaf__"));
        }
        let mut command = sandboxes[0].sheaf(&RUN_SQUARES).command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sheaf starts");
        thread::sleep(Duration::from_millis(100 + RandomState::new().hash_one(0) % 600));
        child.kill().expect("killed");
        child.wait().expect("its end");
        let output = sandboxes[1].run(&RUN_SQUARES);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "kill {kill}: {output}");
        assert_eq!(warnings(&output), [""; 0], "kill {kill}: {output}");
        assert_eq!(sandboxes[1].run(&["cache", "verify"]).code, Some(0), "kill {kill}");
    }
}

/// A shared folder on a network file system as the remote of two machines.
#[test]
fn a_shared_folder_on_a_network_file_system() {
    let Some((_folder, mounts)) = Mounted::two() else { return };
    let remotes =
        mounts.each_ref().map(|mount| Remote::at(format!("file://{}", mount.path("remote").display())));
    let writers: Vec<_> = remotes.iter().map_while(Machine::writing).map(Machine::squares).collect();
    if writers.is_empty() {
        return;
    }
    let start = |machine: &Machine| {
        let mut command = machine.sheaf(&RUN_SQUARES).command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sheaf starts")
    };
    for child in writers.iter().map(start).collect::<Vec<_>>() {
        let output = child.wait_with_output().expect("its end");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == FOURTEEN.as_bytes(), "{told}");
        assert!(!told.contains("warning"), "{told}");
    }
    for remote in &remotes {
        let reading = Machine::reading(remote).squares();
        assert_eq!(taken(reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
    }
}

/// The file server disappears, under the store or under a shared folder: one warning, and the run succeeds.
#[test]
fn a_file_server_that_goes_away() {
    let Some((folder, [mut store, mut shared])) = Mounted::two() else { return };
    fs::create_dir(folder.path().join("store")).expect("a folder");
    let Some(machine) = Machine::writing(&Remote::at("")) else { return };
    let machine = machine.squares();
    store.hold_store(&machine.sandbox);
    assert_eq!(machine.run(&RUN_SQUARES).compiled(), FOURTEEN);
    store.cut();
    let output = machine.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    let _ = fs::remove_dir_all(machine.sandbox.path("__sheaf__"));
    let output = machine.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    insta::assert_snapshot!("file_server_of_the_store_gone", story(&output));

    let remote = Remote::at(format!("file://{}", shared.path("remote").display()));
    let Some(machine) = Machine::writing(&remote) else { return };
    let machine = machine.squares();
    shared.cut();
    let output = machine.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    let story = story(&output).replace(&shared.at.path().display().to_string(), "[mounted]");
    insta::assert_snapshot!("file_server_of_a_shared_folder_gone", story);
}
