//! A fetch of one commit over the network.

use std::any::Any;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gix::credentials::helper::{Action, NextAction};
use gix::credentials::protocol::{self, Context};
use gix::protocol::transport::client::Account;
use gix::protocol::transport::client::blocking_io::http;
use gix::remote::Direction;
use gix::remote::fetch::{Shallow, Tags};
use gix::remote::ref_map;

use super::connect::connect;
use super::folder::{self, Lock};
use super::progress::Signs;
use super::{Address, GitError, Progress};

/// Interval at which the waiting thread looks at the transfer and at the interrupt flag.
const PAUSE: Duration = Duration::from_millis(20);

/// Time that an interrupted transfer has to end by itself, before its thread is left behind.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum time to connect over http.
const CONNECT: Duration = Duration::from_secs(20);

/// A user name with a password or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password or token. It is not printed.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Settings of fetches.
#[derive(Debug, Clone)]
pub struct Options {
    /// Credentials for the address's own scheme, host and port, over https only. The user's credential helpers are not
    /// asked.
    pub credentials: Option<Credentials>,
    /// The program for `ssh` addresses, with arguments, as in git's `GIT_SSH_COMMAND`; `ssh` if `None`.
    pub ssh_command: Option<String>,
    /// Maximum time without a sign of life from the server.
    pub stall: Duration,
    /// Maximum size of a transfer in bytes.
    pub limit: u64,
    /// Maximum wait for another process that fetches the same repository.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credentials: None,
            ssh_command: None,
            stall: Duration::from_secs(120),
            limit: 2 << 30,
            patience: Duration::from_secs(600),
        }
    }
}

/// The end of a transfer.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The object that the reference names; it is here now.
    Object(gix::ObjectId),
    /// There is no such reference; those of its kind.
    Absent(Vec<String>),
}

/// Fetches the source of the refspec `spec` into the bare repository at `path`, in a thread of its own, and waits for it.
///
/// Reads from servers cannot be interrupted everywhere. An interrupted or stalled thread is left behind with the lock; the
/// end of the process ends it.
pub(super) fn transfer(
    path: &Path,
    address: &Address,
    spec: String,
    options: &Options,
    lock: Lock,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Outcome, Lock), GitError> {
    // Fails only if the process has already selected a provider, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let signs = Signs::default();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::sync_channel(1);
    let job = Job {
        path: path.into(),
        address: address.clone(),
        spec,
        options: options.clone(),
        signs: signs.clone(),
        stop: stop.clone(),
    };
    let (stall, limit) = (options.stall, options.limit);
    let spawned = thread::Builder::new().name("sheaf-fetch".into()).spawn(move || {
        // Hostile bytes must not end the process, even by an error in the library.
        let result = panic::catch_unwind(AssertUnwindSafe(|| job.run()));
        let _ = sender.send((result, lock));
    });
    spawned.map_err(|source| GitError::Folder { path: path.into(), source })?;

    let mut pulse = signs.pulse();
    let mut reported = 0;
    let mut beat = Instant::now();
    let mut stopped: Option<(Instant, GitError)> = None;
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok((_, _)) if stopped.is_some() => {}
            Ok((Ok(result), lock)) => {
                if signs.received() != reported {
                    progress(Progress::Received(signs.received()));
                }
                let has_credentials = options.credentials.is_some();
                let outcome =
                    result.map_err(|error| GitError::of_transfer(address, &error, has_credentials))?;
                return Ok((outcome, lock));
            }
            Ok((Err(_), _)) | Err(RecvTimeoutError::Disconnected) if stopped.is_none() => {
                let cause = "its answer cannot be understood".into();
                return Err(GitError::Protocol { address: address.clone(), cause });
            }
            _ => {}
        }
        if let Some((since, _)) = &stopped {
            // The thread has ended, or had its time.
            let ended = matches!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected) | Ok(_));
            if ended || since.elapsed() >= GRACE {
                break;
            }
            continue;
        }
        let received = signs.received();
        if received != reported {
            reported = received;
            progress(Progress::Received(received));
        }
        if pulse != signs.pulse() {
            pulse = signs.pulse();
            beat = Instant::now();
        }
        let address = || address.clone();
        let error = if interrupt.load(Ordering::Relaxed) {
            GitError::Interrupted { address: address() }
        } else if received > limit {
            GitError::TooLarge { address: address(), limit }
        } else if beat.elapsed() >= stall {
            GitError::Stalled { address: address(), seconds: stall.as_secs() }
        } else {
            continue;
        };
        stop.store(true, Ordering::Relaxed);
        stopped = Some((Instant::now(), error));
    }
    Err(stopped.map_or_else(|| GitError::Interrupted { address: address.clone() }, |(_, error)| error))
}

/// A transfer, for its thread.
struct Job {
    path: PathBuf,
    address: Address,
    spec: String,
    options: Options,
    signs: Signs,
    stop: Arc<AtomicBool>,
}

impl Job {
    fn run(self) -> Result<Outcome, gix::Error> {
        let mut repository = folder::open(&self.path)?;
        if let Some(command) = &self.options.ssh_command {
            let mut config = repository.config_snapshot_mut();
            config.set_raw_value("core.sshCommand", command.as_str())?;
            config.commit()?;
        }
        if let Some(id) = self.fetch(&repository, &self.spec, true)?.0 {
            return Ok(Outcome::Object(id));
        }
        // The server has sent the asked references only; now all of their kind, for near names.
        let kind = ["refs/tags/", "refs/heads/"].into_iter().find(|kind| self.spec[1..].starts_with(kind));
        let names = match kind {
            Some(kind) => self.fetch(&repository, &format!("+{kind}*:refs/sheaf/none/*"), false)?.1,
            None => Vec::new(),
        };
        Ok(Outcome::Absent(names))
    }

    /// The first object that `spec` names, received if `receive`, and the names of all references that the server sent.
    fn fetch(
        &self,
        repository: &gix::Repository,
        spec: &str,
        receive: bool,
    ) -> Result<(Option<gix::ObjectId>, Vec<String>), gix::Error> {
        let url =
            self.address.remote().ok_or_else(|| gix::Error::from_error(gix::error::message("not remote")))?;
        let url = url.clone();
        let remote = repository
            .remote_at_without_url_rewrite(url.clone())?
            .with_fetch_tags(Tags::None)
            .with_refspecs([spec], Direction::Fetch)?;
        let mut connection = connect(&remote)?;
        let credentials = self.options.credentials.clone();
        connection.set_credentials(move |action| Ok(answer(action, credentials.as_ref(), &url)));
        connection.set_transport_options(http_options(self.options.stall));
        let prepared = connection.prepare_fetch(self.signs.counter(), ref_map::Options::default())?;

        let map = prepared.ref_map();
        let names = map.remote_refs.iter().map(|reference| reference.unpack().0.to_string()).collect();
        let id = map.mappings.first().and_then(|mapping| mapping.remote.as_id()).map(ToOwned::to_owned);
        // Packs arrive whole, and each commit was wanted for itself: if it is here, so is its tree.
        if let Some(id) = id.filter(|id| receive && !repository.has_object(id)) {
            let depth = std::num::NonZeroU32::MIN;
            prepared.with_shallow(Shallow::DepthAtRemote(depth)).receive(self.signs.counter(), &self.stop)?;
            return Ok((Some(id), names));
        }
        Ok((id, names))
    }
}

/// Answers a server that wants credentials: with those of its own scheme, host and port, else with none.
fn answer(action: Action, credentials: Option<&Credentials>, home: &gix::Url) -> Option<protocol::Outcome> {
    let Action::Get(context) = action else { return None };
    let asks = context.url.as_ref().and_then(|url| gix::url::parse(url.as_slice()).ok());
    let place = |url: &gix::Url| (url.scheme.clone(), url.host().map(str::to_owned), url.port_or_default());
    let own = asks.is_some_and(|asks| place(&asks) == place(home));
    credentials.filter(|_| own).map(|credentials| protocol::Outcome {
        identity: Account {
            username: credentials.user.clone(),
            password: credentials.password.clone(),
            oauth_refresh_token: None,
        },
        next: NextAction::from(Context::default()),
    })
}

/// Options of http: time limits, later than that of the waiting thread, whose message says more, and the proxies of the
/// environment, as for other downloads.
fn http_options(stall: Duration) -> Box<dyn Any> {
    let client = http::reqwest::Options {
        configure_client: Some(Box::new(move |client| {
            Ok(client.connect_timeout(CONNECT).timeout(stall * 2))
        })),
        configure_request: None,
    };
    Box::new(http::Options { backend: Some(Arc::new(Mutex::new(client))), ..http::Options::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_to_their_own_server_only() {
        let credentials = Credentials { user: "me".into(), password: "secret".into() };
        let home = gix::url::parse("https://git.example/a").unwrap();
        let given = |url: &str| answer(Action::get_for_url(url), Some(&credentials), &home).is_some();
        assert!(given("https://git.example/a"));
        assert!(given("https://git.example:443/b"));
        for other in [
            "http://git.example/a",
            "https://git.example:8443/a",
            "https://other.example/a",
            "https://git.example.other.example/a",
            "https://git.example@other.example/a",
            "ssh://git.example/a",
            "",
        ] {
            assert!(!given(other), "{other}");
        }
        assert!(answer(Action::get_for_url("https://git.example/a"), None, &home).is_none());
        assert!(answer(Action::Store("".into()), Some(&credentials), &home).is_none());
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
