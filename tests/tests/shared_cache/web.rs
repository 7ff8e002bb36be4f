//! A cache with Bazel's http protocol that serves files of a test, with injected faults, for cases that no real server
//! can be brought to. It stops on drop.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::machine::Remote;

/// Longer than any client's timeout.
const FOREVER: Duration = Duration::from_secs(60);

/// Files by their paths, such as `/ac/3f9a…`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A request: its method and path, and the headers with credentials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub line: String,
    pub credentials: Vec<String>,
}

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// No fault.
    None,
    /// The response for such a path starts, and never completes.
    Hangs(&'static str),
    /// The connection breaks within such a response.
    Breaks(&'static str),
    /// Such a response takes this long.
    Slow(&'static str, Duration),
    /// Such a request gets only a status.
    Status(&'static str, u16),
    /// All requests are refused with this status, in words that repeat the credentials.
    Refuses(u16),
    /// Uploads are refused with this status.
    ReadOnly(u16),
}

/// The server.
pub struct Web {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    files: Mutex<Files>,
    requests: Mutex<Vec<Request>>,
    fault: Fault,
    stop: AtomicBool,
}

impl Web {
    /// Serves these files.
    pub fn start(files: Files, fault: Fault) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            files: Mutex::new(files),
            requests: Mutex::default(),
            fault,
            stop: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ours.stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&ours);
                // The client may go before the end.
                thread::spawn(move || shared.answer(stream));
            }
        });
        Web { address, shared, thread: Some(thread) }
    }

    /// Its address for clients.
    pub fn remote(&self) -> Remote {
        Remote::at(format!("http://{}", self.address))
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("requests").clone()
    }

    /// The stored files.
    pub fn files(&self) -> MutexGuard<'_, Files> {
        self.shared.files.lock().expect("files")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut sender) = (0, String::new());
        let mut request = Request { line: format!("{method} {path}"), ..Request::default() };
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(": ") else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().unwrap_or(0);
            }
            if name.eq_ignore_ascii_case("authorization") {
                value.clone_into(&mut sender);
            }
            if ["authorization", "x-amz-security-token"].iter().any(|it| name.eq_ignore_ascii_case(it)) {
                request.credentials.push(value.to_owned());
            }
        }
        self.requests.lock().expect("requests").push(request);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;

        match self.fault {
            Fault::Slow(part, time) if path.starts_with(part) => self.wait(time),
            Fault::Status(part, status) if path.starts_with(part) => return head(&mut stream, status, 0),
            Fault::Refuses(status) => {
                let text = format!("go away, {sender}\nand more\n");
                let length = text.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n"
                )?;
                return write!(stream, "Connection: close\r\n\r\n{text}");
            }
            Fault::ReadOnly(status) if method == "PUT" => return head(&mut stream, status, 0),
            _ => {}
        }
        if method == "PUT" {
            self.files.lock().expect("files").insert(path, body);
            return head(&mut stream, 201, 0);
        }
        let Some(bytes) = self.files.lock().expect("files").get(&path).cloned() else {
            return head(&mut stream, 404, 0);
        };
        head(&mut stream, 200, bytes.len())?;
        if method == "HEAD" {
            return Ok(());
        }
        match self.fault {
            Fault::Hangs(part) if path.starts_with(part) => {
                stream.write_all(&bytes[..bytes.len() / 2])?;
                self.wait(FOREVER);
                Ok(())
            }
            Fault::Breaks(part) if path.starts_with(part) => stream.write_all(&bytes[..bytes.len() / 2]),
            _ => stream.write_all(&bytes),
        }
    }

    /// Waits, at most until the server stops.
    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn head(stream: &mut TcpStream, status: u16, length: usize) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
}
