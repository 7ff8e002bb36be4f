//! A slow web server on the loopback interface. Stopped on drop.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Size of the pieces sent, in bytes.
const PIECE: usize = 1 << 20;

/// A plain mirror of one wheel of the compiler, and below `/simple` an index with it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a file under its name, with a pause after each mebibyte.
    pub fn mirror(file: &Path, pause: Duration) -> Server {
        let target = format!("/{}", file.file_name().expect("a name").display());
        let bytes: Arc<[u8]> = fs::read(file).expect("a file").into();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (bytes, target, log) = (Arc::clone(&bytes), target.clone(), Arc::clone(&log));
                // The client may be gone, killed by a test.
                thread::spawn(move || answer(stream, &target, &bytes, pause, &log));
            }
        });
        Server { address, requests, stop, thread: Some(thread) }
    }

    /// The requested paths, in order.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
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

fn answer(
    mut stream: TcpStream,
    target: &str,
    bytes: &[u8],
    pause: Duration,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    log.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    if path == "/simple/iree-base-compiler/" {
        let page = format!("<a href='{target}'>it</a>");
        return write!(
            stream,
            "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
    }
    if path != target {
        return stream.write_all(b"HTTP/1.1 404 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    write!(stream, "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", bytes.len())?;
    for piece in bytes.chunks(PIECE) {
        stream.write_all(piece)?;
        thread::sleep(pause);
    }
    Ok(())
}
