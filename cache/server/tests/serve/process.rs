//! The server as a child process.

use std::fmt::Display;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use sheaf_cache_server::serve;
use sheaf_foundation::Digest;

use crate::common::{child, options};

const FOLDER: &str = "SHEAF_TEST_SERVE_FOLDER";

/// Runs the server, if `FOLDER` is set.
#[test]
fn child_that_serves() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut options = options(Path::new(&folder));
    options.tokens = Some(Path::new(&folder).join("tokens")).filter(|path| path.exists());
    // 200 clients of a debug build on a busy machine wait for longer than the default allows.
    options.header_timeout = Duration::from_secs(120);
    // A test may end, and with it the reader of the output, while the server still reports.
    let report = |text: &dyn Display| drop(writeln!(io::stdout(), "{text}"));
    serve(&options, move |event| report(&event)).unwrap();
    report(&"ended");
}

/// A server process; dropping it kills it.
pub struct Process {
    pub child: Child,
    pub address: String,
}

impl Process {
    /// A server on a folder. If that has a file `tokens`, tokens are required.
    pub fn start(folder: &Path) -> Self {
        let mut child = child("process::child_that_serves", FOLDER, folder);
        let output = child.stdout.as_mut().unwrap();
        let mut lines = BufReader::new(output).lines();
        let address = loop {
            let line = lines.next().expect("the server ends").unwrap();
            if let Some((_, address)) = line.split_once("serving at http://") {
                break address.to_owned();
            }
        };
        Self { child, address }
    }

    /// The address of a blob.
    pub fn url(&self, bytes: &[u8]) -> String {
        format!("http://{}/cas/{}", self.address, Digest::of(bytes))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
pub fn send(signal: &str, server: &Process) {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-s", signal, &server.child.id().to_string()]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
impl Process {
    pub async fn put(&self, client: &reqwest::Client, bytes: &[u8]) {
        let put = client.put(self.url(bytes)).body(bytes.to_vec()).send().await.unwrap();
        assert_eq!(put.status(), 201);
    }

    /// Asserts that the peak memory of the process is less than so many MB.
    pub fn check_memory(&self, limit: u64, what: &str) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = line.trim().trim_end_matches("kB").trim().parse().unwrap();
        println!("{what}: the server had {} MB at most", peak / 1000);
        assert!(peak < limit * 1000, "{what}: the server had {peak} kB");
    }
}
