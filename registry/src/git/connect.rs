//! Connections to git servers.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
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

/// A connection to a `git daemon`. Requests are written in many small parts: with the operating system's delay for these, a
/// fetch waits three times for 40 ms.
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
    let place = Some((host.to_owned(), url.port));
    let (writer, path) = (stream.try_clone()?, url.path.clone());
    Ok(Box::new(Connection::new(stream, writer, version, path, place, ConnectMode::Daemon, false)))
}
