//! An http server on loopback whose answers a test decides.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Maximum number of connections that a server answers.
const CONNECTIONS: usize = 500;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub authorization: Option<String>,
    pub tag: Option<String>,
}

/// An answer.
pub enum Reply {
    /// A body with its entity tag.
    Body(String, &'static str),
    Status(u16),
    Redirect(String),
    /// Half of a body, and the end of the connection.
    Half(String),
    /// Half of a body, and nothing more.
    Stall(String),
}

/// A server; its thread ends with the process or after a number of connections.
pub struct Web {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    pub fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().take(CONNECTIONS).flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(&stream, &seen, &*answer));
            }
        });
        Self { address, requests }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Their paths, sorted.
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self.requests().into_iter().map(|request| request.path).collect();
        paths.sort();
        paths
    }
}

fn serve(
    mut stream: &TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Reply,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, authorization: None, tag: None };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        let value = Some(value.trim().to_owned());
        match &*name.to_ascii_lowercase() {
            "authorization" => request.authorization = value,
            "if-none-match" => request.tag = value,
            _ => {}
        }
    }
    let reply = answer(&request);
    seen.lock().unwrap().push(request);
    let mut send = |head: &str, length: usize, body: &str| {
        let text = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).ok()
    };
    match reply {
        Reply::Body(text, "") => send("200 OK", text.len(), &text),
        Reply::Body(text, tag) => send(&format!("200 OK\r\netag: {tag}"), text.len(), &text),
        Reply::Status(status) => send(&format!("{status} X"), 0, ""),
        Reply::Redirect(to) => send(&format!("302 Found\r\nlocation: {to}"), 0, ""),
        Reply::Half(text) => send("200 OK", text.len() * 2, &text),
        Reply::Stall(text) => {
            send("200 OK", text.len() * 2, &text)?;
            thread::sleep(Duration::from_secs(5));
            Some(())
        }
    }
}
