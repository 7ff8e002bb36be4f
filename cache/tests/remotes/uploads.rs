//! Background uploads: slow lines, and servers that refuse some blobs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use sheaf_artifacts::Action;
use sheaf_cache::remote::{Address, Credentials};
use sheaf_cache::{
    Claim, Compilation, RemoteAddress, RemoteSettings, Remotes, SignedClaim, Trouble, TrustedKeys, Upload,
};
use sheaf_cache_server::{ServeOptions, Server};
use sheaf_foundation::{Digest, SecretKey};

use crate::checks;

/// The remote at `address`, with this look-up budget.
fn remotes(address: &str, budget: Duration) -> Remotes {
    let settings = RemoteSettings {
        addresses: vec![RemoteAddress { address: address.into(), named: true, writable: true }],
        credentials: Credentials { token: None, helper: None, netrc: false },
        trusted: TrustedKeys::default(),
        budget,
        run_budget: None,
    };
    Remotes::open(&settings).expect("an address").expect("a remote")
}

/// An upload of this size.
fn upload(name: &str, size: usize) -> Upload {
    let action = Action {
        program: name.into(),
        compiler: "3.13.0".into(),
        compiler_digest: Digest::of(b"3.13.0"),
        flags: vec![],
        alternatives: vec![],
        tuned: None,
        device: "cuda".into(),
        cpu: None,
        donation: [].into(),
        debug: false,
        rejected: vec![],
    };
    let vmfb = checks::bytes(name, size);
    let claim = Claim::new(&action, name.as_bytes(), &vmfb, Compilation::default());
    let key = SecretKey::generate("ci").expect("a key");
    Upload {
        action: Address::of(name.as_bytes()),
        signed: SignedClaim::new(claim, Some(&key)),
        blobs: vec![(Address::of(&vmfb), vmfb)],
    }
}

/// Answers the requests of one connection of Bazel's http cache: all entries are missing, and uploads are read slowly.
fn answer_slowly(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            if line == "\r\n" {
                break;
            }
            lines.push(line.to_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut left: usize = length.unwrap_or(0);
        let is_put = lines[0].starts_with("put ");
        while is_put && left > 0 {
            let mut piece = vec![0; left.min(20_000)];
            reader.read_exact(&mut piece).ok()?;
            left -= piece.len();
            thread::sleep(Duration::from_millis(100));
        }
        let status = if is_put { "201 Created" } else { "404 Not Found" };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

#[test]
fn a_slow_line_has_time_for_large_programs() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| answer_slowly(stream));
        }
    });
    let mut remotes = remotes(&address, Duration::from_millis(500));
    // Two seconds in all, with pauses longer than the look-up budget.
    remotes.put(upload("large", 400_000));
    assert_eq!(remotes.finish(Duration::from_secs(60)), 0);
    assert_eq!(remotes.troubles(), []);
}

#[test]
fn what_a_server_does_not_take_keeps_nothing_else_back() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ServeOptions::new(([127, 0, 0, 1], 0).into(), folder.path());
    options.max_blob = 100_000;
    let server = Server::bind(&options).expect("a port");
    let address = format!("http://{}", server.address());
    runtime.spawn(server.run(std::future::pending()));

    let mut remotes = remotes(&address, Duration::from_secs(10));
    let uploads = [upload("small", 1000), upload("large", 200_000), upload("last", 1000)];
    uploads.iter().cloned().for_each(|upload| remotes.put(upload));
    assert_eq!(remotes.finish(Duration::from_secs(60)), 0);
    let troubles = remotes.troubles();
    assert!(
        matches!(&troubles[..], [Trouble::Remote(error)] if error.to_string().contains("413")),
        "{troubles:?}"
    );
    let is_there = |upload: &Upload| folder.path().join("ac").join(name(upload.action)).exists();
    assert_eq!(uploads.each_ref().map(is_there), [true, false, true]);
}

/// Path of an entry in our server's storage, below the folder of its kind.
fn name(address: Address) -> String {
    let hash = address.digest.to_string();
    format!("{}/{hash}", &hash[..2])
}

#[test]
fn a_server_that_is_not_there_is_tried_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let mut remotes = remotes(&address, Duration::from_secs(10));
    (0..5).for_each(|index| remotes.put(upload(&format!("program {index}"), 1000)));
    assert_eq!(remotes.finish(Duration::from_secs(60)), 0);
    assert_eq!(remotes.troubles().len(), 1);
    assert!(!remotes.writes());
}
