//! Servers of git repositories on loopback.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sheaf_registry::git::Address;

use crate::fixture::git_command;

/// A `git daemon`, stopped when dropped.
pub struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Serves the repositories in `folder`.
    pub fn new(folder: &Path) -> Self {
        let programs = git_command(folder).arg("--exec-path").output().unwrap().stdout;
        let program = Path::new(String::from_utf8(programs).unwrap().trim()).join("git-daemon");
        for _ in 0..20 {
            let port = free_port();
            let mut child = Command::new(&program)
                .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1", &format!("--port={port}")])
                .arg(format!("--base-path={}", folder.display()))
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            for _ in 0..200 {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Self { child, port };
                }
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("git daemon does not start");
    }

    pub fn address(&self, path: &str) -> Address {
        Address::parse(&format!("git://127.0.0.1:{}/{path}", self.port)).unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that accepts connections and says nothing.
pub fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let kept: Vec<_> = listener.incoming().collect();
        drop(kept);
    });
    address
}
