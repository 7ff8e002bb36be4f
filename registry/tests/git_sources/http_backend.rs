//! Git repositories over smart http on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server of smart http: `git http-backend`. Its thread ends with the process, or when it is cut.
pub struct HttpServer {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    folder: PathBuf,
    /// The only `Authorization` that opens `/private/`.
    private: Option<String>,
    /// The `Authorization` of each request.
    seen: Mutex<Vec<Option<String>>>,
    cut: AtomicBool,
}

/// Serves the repositories in a folder. Those under `/private/` want credentials that nobody has.
pub fn http(folder: &Path) -> SocketAddr {
    HttpServer::start(folder, None).address
}

impl HttpServer {
    /// Serves the repositories in a folder, those under `/private/` for requests with this `Authorization`.
    pub fn start(folder: &Path, private: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = fs::canonicalize(folder).unwrap();
        let private = private.map(str::to_owned);
        let state = Arc::new(State { folder, private, seen: Mutex::default(), cut: AtomicBool::new(false) });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.cut.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
                thread::spawn(move || answer(&stream, &shared));
            }
        });
        Self { address, state }
    }

    /// Ends the server: connections are refused from now on.
    #[allow(dead_code, reason = "tests of packages end servers")]
    pub fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        // Wakes the listener, and waits until it is gone.
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }

    /// The `Authorization` of each request since the last call.
    #[allow(dead_code, reason = "tests of packages look for credentials")]
    pub fn seen(&self) -> Vec<Option<String>> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }
}

fn answer(stream: &TcpStream, state: &State) -> Option<()> {
    let folder = &state.folder;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut request = line.split(' ');
    let (method, target) = (request.next()?.to_owned(), request.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
    let mut body = Vec::new();
    if header("transfer-encoding").is_some_and(|value| value == "chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = u64::from_str_radix(size.trim(), 16).ok()?;
            reader.by_ref().take(size).read_to_end(&mut body).ok()?;
            reader.read_line(&mut String::new()).ok()?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(size) = header("content-length") {
        reader.by_ref().take(size.parse().ok()?).read_to_end(&mut body).ok()?;
    }
    let mut stream = stream;
    let authorization = header("authorization");
    let is_open = authorization.is_some() && authorization == state.private;
    state.seen.lock().unwrap().push(authorization);
    if path.starts_with("/private/") && !is_open {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"git\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return stream.write_all(refusal.as_bytes()).ok();
    }
    let mut backend = Command::new("git");
    backend
        .arg("http-backend")
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default());
    let mut backend =
        backend.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut input = backend.stdin.take()?;
    thread::spawn(move || input.write_all(&body));
    let output = backend.wait_with_output().ok()?.stdout;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let length = output.len() - end - 4;
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
        .ok()?;
    stream.write_all(&output[end + 4..]).ok()
}
