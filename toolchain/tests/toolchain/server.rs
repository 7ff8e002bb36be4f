//! A web server on the loopback interface that can also misbehave. Stopped on drop.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A request, with header names in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A response, and how it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The announced length, if any.
    announced: Option<usize>,
    /// Send this many bytes at a time, with a pause after each.
    pieces: Option<(usize, Duration)>,
    /// Time to keep the connection open after the body.
    hang: Duration,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let announced = Some(body.len());
        Self { status, headers: Vec::new(), body, announced, pieces: None, hang: Duration::ZERO }
    }

    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body)
    }

    /// Closes the connection without a response.
    pub(crate) fn none() -> Self {
        Self::new(0, "")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, "no such file")
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn json(body: String) -> Self {
        Self::ok(body).header("Content-Type", "application/vnd.pypi.simple.v1+json")
    }

    pub(crate) fn html(body: String) -> Self {
        Self::ok(body).header("Content-Type", "text/html; charset=utf-8")
    }

    /// Sends only this many of the announced bytes.
    pub(crate) fn cut(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }

    /// Does not announce the length of the body.
    pub(crate) fn unannounced(mut self) -> Self {
        self.announced = None;
        self
    }

    pub(crate) fn slowly(mut self, bytes: usize, pause: Duration) -> Self {
        self.pieces = Some((bytes, pause));
        self
    }

    pub(crate) fn hanging(mut self, time: Duration) -> Self {
        self.hang = time;
        self
    }

    /// The part of a file that the request asks for.
    pub(crate) fn range(request: &Request, file: &[u8]) -> Self {
        let range = request.header("range").strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
        match range.and_then(|start| start.parse::<usize>().ok()) {
            Some(start) => Self::new(206, &file[start..])
                .header("Content-Range", format!("bytes {start}-{}/{}", file.len() - 1, file.len())),
            None => Self::ok(file),
        }
    }

    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        if self.status == 0 {
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if let Some(length) = self.announced {
            head.extend(["Content-Length: ", &length.to_string(), "\r\n"]);
        }
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"\r\n")?;
        let (size, pause) = self.pieces.unwrap_or((usize::MAX, Duration::ZERO));
        for piece in self.body.chunks(size.min(self.body.len().max(1))) {
            stream.write_all(piece)?;
            thread::sleep(pause);
        }
        thread::sleep(self.hang);
        Ok(())
    }
}

/// A running server.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers every request with the result of `respond`.
    pub(crate) fn start(respond: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (log, stopped, respond) = (Arc::clone(&requests), Arc::clone(&stop), Arc::new(respond));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (log, respond) = (Arc::clone(&log), Arc::clone(&respond));
                let Ok(mut stream) = stream else { continue };
                thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    let response = respond(&request);
                    log.lock().expect("no panic").push(request);
                    // The client may be gone, killed by a test.
                    let _ = response.send(&mut stream);
                });
            }
        });
        Self { address, requests, stop, thread: Some(thread) }
    }

    /// A plain mirror with one file.
    pub(crate) fn mirror(name: &'static str, bytes: Vec<u8>) -> Self {
        Self::start(move |request| {
            if request.path == format!("/{name}") {
                Response::range(request, &bytes)
            } else {
                Response::not_found()
            }
        })
    }

    /// Its address, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requested paths, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.path).collect()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads the head of a request; there is no body.
fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    Some(Request { path, headers })
}
