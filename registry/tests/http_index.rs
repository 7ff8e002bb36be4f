//! A static copy of an index, behind a real http server on loopback.

// Tests, and the server beside them.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use sheaf_registry::index::{HttpFiles, IndexFiles};
use url::Url;

/// The answer to a request for a path.
#[derive(Clone)]
enum Answer {
    File(&'static str),
    /// Half of a file, and then the end of the connection.
    Half(&'static str),
    Redirect(String),
}

/// Path, status and Authorization header.
type Request = (String, u16, Option<String>);

/// A server of files with entity tags. Its thread ends with the process.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    /// All requests.
    log: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start() -> (Server, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/index/", listener.local_addr().unwrap());
        let server = Server::default();
        let shared = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                thread::spawn(move || shared.serve(&stream));
            }
        });
        (server, Url::parse(&address).unwrap())
    }

    fn set(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(format!("/index/{path}"), answer);
    }

    /// The requests since the last call.
    fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream).lines();
        let mut stream = stream;
        loop {
            let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
            let headers: HashMap<String, String> = lines
                .by_ref()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .filter_map(|line| line.split_once(": ").map(|(k, v)| (k.to_lowercase(), v.to_owned())))
                .collect();
            let answer = self.answers.lock().unwrap().get(&path).cloned();
            let authorization = headers.get("authorization").cloned();
            let log = |status| self.log.lock().unwrap().push((path.clone(), status, authorization.clone()));
            match answer {
                Some(Answer::File(text)) => {
                    let tag = format!("\"{}\"", text.len());
                    if headers.get("if-none-match") == Some(&tag) {
                        log(304);
                        write!(stream, "HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n\r\n").ok()?;
                    } else {
                        log(200);
                        let head = format!(
                            "HTTP/1.1 200 OK\r\netag: {tag}\r\ncontent-length: {}\r\n\r\n",
                            text.len()
                        );
                        stream.write_all((head + text).as_bytes()).ok()?;
                    }
                }
                Some(Answer::Half(text)) => {
                    log(200);
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 2 * text.len());
                    stream.write_all((head + text).as_bytes()).ok()?;
                    return stream.shutdown(std::net::Shutdown::Both).ok();
                }
                Some(Answer::Redirect(to)) => {
                    log(302);
                    write!(stream, "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
                        .ok()?;
                }
                None => {
                    log(404);
                    write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok()?;
                }
            }
        }
    }
}

fn files(address: &Url, cache: &Path, token: Option<&str>, offline: bool) -> HttpFiles {
    HttpFiles::new(address.clone(), cache.into(), token, offline).unwrap()
}

fn text(files: &HttpFiles, path: &str) -> Option<String> {
    files.read(path).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn a_file_is_one_request_and_an_unchanged_one_has_no_body() {
    let (server, address) = Server::start();
    let cache = tempfile::tempdir().unwrap();
    server.set("3/o/ode", Answer::File("one\n"));
    let open = |offline| files(&address, cache.path(), None, offline);
    assert_eq!(text(&open(false), "3/o/ode").as_deref(), Some("one\n"));
    assert_eq!(text(&open(false), "3/o/odd"), None);
    assert_eq!(text(&open(false), "3/o/ode").as_deref(), Some("one\n"));
    server.set("3/o/ode", Answer::File("one\ntwo\n"));
    assert_eq!(text(&open(false), "3/o/ode").as_deref(), Some("one\ntwo\n"));
    let statuses: Vec<_> = server.requests().into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, [200, 404, 304, 200]);
    assert_eq!(text(&open(true), "3/o/ode").as_deref(), Some("one\ntwo\n"));
    assert_eq!(text(&open(true), "3/o/odd"), None);
    let paths: Vec<String> = (0..40).map(|i| format!("3/p/{i}")).collect();
    paths.iter().for_each(|path| server.set(path, Answer::File("x\n")));
    let files = open(false);
    files.prefetch(&paths);
    assert!(paths.iter().all(|path| text(&files, path).is_some()));
    assert_eq!(server.requests().len(), 40, "one for each package");
}

#[test]
fn a_server_that_stops_halfway_changes_nothing() {
    let (server, address) = Server::start();
    let cache = tempfile::tempdir().unwrap();
    server.set("3/o/ode", Answer::File("one\n"));
    assert!(text(&files(&address, cache.path(), None, false), "3/o/ode").is_some());
    server.set("3/o/ode", Answer::Half("one\ntwo\n"));
    let error = files(&address, cache.path(), None, false).read("3/o/ode").unwrap_err();
    assert_eq!(error.remedy, "check the address and the network, or use --offline");
    assert_eq!(text(&files(&address, cache.path(), None, true), "3/o/ode").as_deref(), Some("one\n"));
}

#[test]
fn a_redirect_elsewhere_takes_no_token_along() {
    let (server, address) = Server::start();
    let (other, elsewhere) = Server::start();
    let cache = tempfile::tempdir().unwrap();
    server.set("3/o/ode", Answer::Redirect("/index/3/o/new".into()));
    server.set("3/o/new", Answer::File("here\n"));
    server.set("3/o/odd", Answer::Redirect(elsewhere.join("3/o/odd").unwrap().into()));
    other.set("3/o/odd", Answer::File("there\n"));
    let files = files(&address, cache.path(), Some("secret"), false);
    assert_eq!(text(&files, "3/o/ode").as_deref(), Some("here\n"));
    assert_eq!(text(&files, "3/o/odd").as_deref(), Some("there\n"));
    let token = Some("Bearer secret".to_owned());
    assert!(server.requests().iter().all(|(_, _, authorization)| *authorization == token));
    assert_eq!(other.requests(), [("/index/3/o/odd".to_owned(), 200, None)]);
    server.set("3/o/loop", Answer::Redirect("/index/3/o/loop".into()));
    assert!(files.read("3/o/loop").is_err());
    assert!(server.requests().len() < 10);
}
