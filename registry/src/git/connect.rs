//! Connections to git servers.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;
use gix::remote::Direction;
use gix::url::Scheme;

/// Port of `git` addresses that name none.
const PORT: u16 = 9418;

/// Maximum time to connect to one address of a host.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to the server of a remote.
type Connected<'a, 'repository> =
    gix::remote::Connection<'a, 'static, 'repository, Box<dyn Transport + Send>>;

/// Connects to the server of `remote`.
pub(super) fn connect<'a, 'repository>(
    remote: &'a gix::Remote<'repository>,
) -> Result<Connected<'a, 'repository>, gix::Error> {
    let (url, version) = remote.sanitized_url_and_version(Direction::Fetch)?;
    match url.host() {
        Some(host) if url.scheme == Scheme::Git && url.user().is_none() => {
            let transport = daemon(host, &url, version).map_err(gix::Error::from_error)?;
            Ok(remote.to_connection_with_transport(transport))
        }
        _ => remote.connect(Direction::Fetch),
    }
}

/// A connection to a `git daemon`.
fn daemon(host: &str, url: &gix::Url, version: Protocol) -> io::Result<Box<dyn Transport + Send>> {
    let mut stream = Err(io::Error::other("could not resolve the host"));
    for address in (host.trim_matches(['[', ']']), url.port.unwrap_or(PORT)).to_socket_addrs()? {
        stream = TcpStream::connect_timeout(&address, PATIENCE);
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream?;
    stream.set_nodelay(true)?;
    let writer = Requests(Arc::new(Mutex::new(BufWriter::new(stream.try_clone()?))));
    let reader = BufReader::new(Answers { stream, requests: writer.clone() });
    let (place, path) = (Some((host.to_owned(), url.port)), url.path.clone());
    Ok(Box::new(Connection::new(reader, writer, version, path, place, ConnectMode::Daemon, false)))
}

/// The sending side. Requests are written in many small parts, and sent as a whole when the answer is read: with the
/// operating system's delay for small parts a fetch would wait three times for 40 ms, and without it a server that refuses
/// the first part would have closed the connection before the last, its message unread.
#[derive(Clone)]
struct Requests(Arc<Mutex<BufWriter<TcpStream>>>);

impl Requests {
    fn with<T>(&self, work: impl FnOnce(&mut BufWriter<TcpStream>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Requests {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Write::flush)
    }
}

/// The receiving side.
struct Answers {
    stream: TcpStream,
    requests: Requests,
}

impl Read for Answers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let sent = self.requests.flush();
        match (self.stream.read(buffer), sent) {
            // A server says why it closes the connection; without a word, the failure to send is the cause.
            (Ok(0) | Err(_), Err(error)) => Err(error),
            (received, _) => received,
        }
    }
}
