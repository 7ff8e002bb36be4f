//! The cache server as a separate process, over loopback http: a look-up, an upload, 200 concurrent clients and the
//! memory they take, and the time to index 10,000 entries at start-up.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::Instant;

use sheaf_benches::median;
use sheaf_cache_server::{Event, ServeOptions, serve};
use sheaf_foundation::Digest;

/// Variable with the served folder; set in the server process only.
const FOLDER: &str = "SHEAF_BENCH_SERVE_FOLDER";

/// Size of an ordinary compiled program.
const PROGRAM: usize = 200_000;
const CLIENTS: usize = 200;
/// Size of each client's download.
const PULLED: usize = 4 << 20;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let mut child = command.env(FOLDER, folder).stdout(Stdio::piped()).spawn().expect("a process");
        let mut address = String::new();
        let output = child.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut address).expect("an address");
        Self { child, address: address.trim().to_owned() }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        BufReader::new(stream)
    }

    /// Peak memory in MB.
    fn peak(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes / 1000)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and reads the response; returns its size.
fn ask(connection: &mut BufReader<TcpStream>, method: &str, path: &str, body: &[u8]) -> usize {
    let head = format!("{method} /{path} HTTP/1.1\r\nHost: cache\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("sent");
    let (mut line, mut length) = (String::new(), 0);
    connection.read_line(&mut line).expect("an answer");
    assert!(line.contains(" 200 ") || line.contains(" 201 "), "{method} {path}: {line}");
    while line.trim() != "" {
        line.clear();
        connection.read_line(&mut line).expect("a header");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let copied = std::io::copy(&mut connection.take(length), &mut std::io::sink()).expect("a body");
    assert_eq!(copied, length);
    copied as usize
}

/// Incompressible bytes, different for each seed.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// An `ActionResult` with one file `blob`: its path is field 1, its digest field 2, and so are hash and size in that.
fn action_result(blob: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let mut digest = field(1, Digest::of(blob).to_string().as_bytes());
    digest.push(2 << 3);
    let mut size = blob.len();
    while size >= 0x80 {
        digest.push(size as u8 | 0x80);
        size >>= 7;
    }
    digest.push(size as u8);
    field(2, &[field(1, b"main.vmfb"), field(2, &digest)].concat())
}

fn main() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut options = ServeOptions::new(([127, 0, 0, 1], 0).into(), folder);
        options.capacity = 4 << 30;
        let report = |event| {
            if let Event::Listening { url } = event {
                println!("{}", url.trim_start_matches("http://"));
            }
        };
        serve(&options, report).expect("a server");
        return;
    }
    let folder = std::env::temp_dir().join(format!("sheaf-bench-serve-{}", std::process::id()));
    let server = Server::start(&folder);

    let mut connection = server.connect();
    let program = noise(PROGRAM, 0);
    let (blob, action) = (format!("cas/{}", Digest::of(&program)), format!("ac/{}", Digest::of(b"action")));
    ask(&mut connection, "PUT", &blob, &program);
    ask(&mut connection, "PUT", &action, &action_result(&program));
    let hit = median(201, || {
        ask(&mut connection, "GET", &action, b"");
        assert_eq!(ask(&mut connection, "GET", &blob, b""), PROGRAM);
    });
    println!("hit: entry and program of {PROGRAM} bytes, median of 201: {:.2} ms", hit.as_secs_f64() * 1e3);
    let mut seed = 0;
    let put = median(101, || {
        seed += 1;
        let program = noise(PROGRAM, seed);
        ask(&mut connection, "PUT", &format!("cas/{}", Digest::of(&program)), &program);
    });
    println!("write, synced: a program of {PROGRAM} bytes, median of 101: {:.2} ms", put.as_secs_f64() * 1e3);

    let large = noise(PULLED, 1_000_000);
    let path = format!("cas/{}", Digest::of(&large));
    ask(&mut connection, "PUT", &path, &large);
    let ready = Barrier::new(CLIENTS + 1);
    let seconds = std::thread::scope(|scope| {
        let pull = || {
            let mut connection = server.connect();
            ready.wait();
            assert_eq!(ask(&mut connection, "GET", &path, b""), PULLED);
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(pull)).collect();
        ready.wait();
        let start = Instant::now();
        clients.into_iter().for_each(|client| client.join().expect("a client"));
        start.elapsed().as_secs_f64()
    });
    let rate = (CLIENTS * PULLED) as f64 / 1e6 / seconds;
    print!("{CLIENTS} clients that pull {PULLED} bytes each: {seconds:.2} s, {rate:.0} MB/s");
    println!(", at most {} MB of memory", server.peak().map_or("?".into(), |peak| peak.to_string()));

    for seed in 0..10_000_u64 {
        let bytes = seed.to_le_bytes();
        ask(&mut connection, "PUT", &format!("cas/{}", Digest::of(&bytes)), &bytes);
    }
    drop(server);
    let start = Instant::now();
    let server = Server::start(&folder);
    println!("start on a folder of 10,000 entries: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}
