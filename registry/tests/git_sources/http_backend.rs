//! Git repositories over smart http on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A server of smart http: `git http-backend`. Under `/private/` it wants credentials. Its thread ends with the process.
pub fn http(folder: &Path) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder: PathBuf = fs::canonicalize(folder).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            thread::spawn(move || answer(&stream, &folder));
        }
    });
    address
}

fn answer(stream: &TcpStream, folder: &Path) -> Option<()> {
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
    if path.starts_with("/private/") {
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
