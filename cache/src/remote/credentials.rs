//! Credentials for remote caches. They are never shown, and not part of any key.
//!
//! A remote that the user has not named, in the configuration, the environment or an option, gets only the credentials
//! in its address: a project's file may name any server. For the others, the first available of these is used:
//!
//! 1. user name and password in its address;
//! 2. the credential helper, a program that speaks Bazel's credential-helper protocol: `HELPER get`, an address as JSON on its
//!    standard input, headers as JSON on its standard output;
//! 3. `SHEAF_CACHE_TOKEN`, a bearer token: for all remotes, or as `HOST=TOKEN` for one;
//! 4. the netrc file, if it names the host.
//!
//! Tokens are only sent over encrypted connections, or to this machine.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use netrc::Netrc;
use reqwest::Url;
use serde::Deserialize;
use sheaf_foundation::{is_private, shown};

use super::RemoteError;

/// Time limit of a credential helper.
const HELPER_TIME: Duration = Duration::from_secs(10);
/// Upper limit of a helper's answer, in bytes.
const HELPER_LIMIT: u64 = 64 * 1024;

/// The environment variable of the bearer token.
pub const TOKEN_VARIABLE: &str = "SHEAF_CACHE_TOKEN";
/// The environment variable of the signing key.
pub const KEY_VARIABLE: &str = "SHEAF_CACHE_KEY";
/// The environment variables that hold secrets, removed from the environment of child processes.
pub const SECRETS: [&str; 2] = [TOKEN_VARIABLE, KEY_VARIABLE];

/// A text whose `Debug` output is redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Sources of credentials.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// `SHEAF_CACHE_TOKEN`.
    pub token: Option<Secret>,
    /// The program and its arguments, separated by spaces.
    pub helper: Option<String>,
    /// Use the user's netrc file: the default one, or that of the variable `NETRC`; false in tests.
    pub netrc: bool,
}

/// Headers with their values.
pub(crate) type Headers = Vec<(String, Secret)>;

impl Credentials {
    /// The headers for the remote at `address`. `chosen` is true if the user named it, rather than a file of the
    /// project.
    pub(crate) fn headers(&self, address: &Url, chosen: bool) -> Result<Headers, RemoteError> {
        if !matches!(address.scheme(), "http" | "https" | "grpc" | "grpcs") {
            // Folders need none, and object stores have their own.
            return Ok(Vec::new());
        }
        let authorization = |value: String| vec![("authorization".to_owned(), Secret(value))];
        let in_the_clear = |what: &str, source: &str| RemoteError::Address {
            address: shown(address),
            cause: format!(
                "{what} would be sent where everybody can read it; use https, grpcs, or no {source}"
            ),
        };
        if !address.username().is_empty() || address.password().is_some() {
            let decode = |text: &str| percent_decoded(text);
            let password = decode(address.password().unwrap_or_default());
            return Ok(authorization(basic(&decode(address.username()), &password)));
        }
        if !chosen {
            return Ok(Vec::new());
        }
        if let Some(helper) = &self.helper {
            let headers = ask(helper, address).map_err(|cause| RemoteError::Helper {
                address: shown(address),
                helper: helper.split(' ').next().unwrap_or_default().to_owned(),
                cause,
            })?;
            if !headers.is_empty() {
                return if is_private(address) {
                    Ok(headers)
                } else {
                    Err(in_the_clear("what the credential helper gives", "helper"))
                };
            }
        }
        if let Some(token) = self.token_for(address) {
            if !is_private(address) {
                return Err(in_the_clear("a token", "token"));
            }
            return Ok(authorization(format!("Bearer {}", token.reveal())));
        }
        if self.netrc && is_private(address) {
            // A missing or unreadable netrc file is ignored.
            if let Ok(netrc) = Netrc::new()
                && let Some(header) = address.host_str().and_then(|host| netrc_header(&netrc, host))
            {
                return Ok(authorization(header));
            }
        }
        Ok(Vec::new())
    }

    fn token_for(&self, address: &Url) -> Option<Secret> {
        let text = self.token.as_ref()?.reveal();
        let host = address.host_str().unwrap_or_default();
        let with_port = address.port().map(|port| format!("{host}:{port}"));
        if let Some((name, token)) = text.split_once('=')
            // In a bearer token these may only stand at the end: RFC 6750, section 2.1.
            && !token.trim_end_matches('=').is_empty()
        {
            let is_for_this = name == host || with_port.as_deref() == Some(name);
            return is_for_this.then(|| Secret::new(token));
        }
        Some(Secret::new(text))
    }
}

fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The netrc entry of a host. Its `default` entry is ignored: its password would be sent to any host that a project
/// names.
fn netrc_header(netrc: &Netrc, host: &str) -> Option<String> {
    // The parser keeps the `default` entry under this name, among the hosts.
    let entry = netrc.hosts.get(host).filter(|_| host != "default")?;
    Some(basic(&entry.login, &entry.password))
}

/// Answer of a credential helper.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    headers: std::collections::BTreeMap<String, Vec<String>>,
}

/// Runs a credential helper. Its answer is bounded in time and size.
fn ask(helper: &str, address: &Url) -> Result<Headers, String> {
    let mut words = helper.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // It does not need these secrets.
    for name in SECRETS {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read its input closes the pipe.
        let _ = writeln!(input, "{}", serde_json::json!({ "uri": shown(address) }));
    }
    let output = child.stdout.take();
    // Reading stops after the JSON: a child process of the helper may keep the pipe open.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let answer = output.and_then(|output| {
            serde_json::Deserializer::from_reader(output.take(HELPER_LIMIT)).into_iter::<Answer>().next()
        });
        let _ = sender.send(answer);
    });
    let late = || format!("it gave no answer within {} s", HELPER_TIME.as_secs());
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < HELPER_TIME => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(late());
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    let answer = receiver.recv_timeout(HELPER_TIME.saturating_sub(start.elapsed())).map_err(|_| late())?;
    // The answer holds a secret, so the message must not quote it.
    let Some(Ok(answer)) = answer else { return Err("its answer is no JSON with headers".into()) };
    let all = answer.headers.into_iter();
    Ok(all.flat_map(|(name, values)| values.into_iter().map(move |v| (name.clone(), Secret(v)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(credentials: &Credentials, address: &str, chosen: bool) -> Option<String> {
        let headers = credentials.headers(&Url::parse(address).unwrap(), chosen).unwrap();
        headers.first().map(|(name, value)| format!("{name}: {}", value.reveal()))
    }

    #[test]
    fn a_token_goes_to_remotes_that_the_user_named() {
        let all = Credentials { token: Some(Secret::new("abc==")), ..Credentials::default() };
        assert_eq!(headers(&all, "https://a.example", true).unwrap(), "authorization: Bearer abc==");
        assert_eq!(headers(&all, "https://a.example", false), None);
        let one = Credentials { token: Some(Secret::new("a.example=abc")), ..Credentials::default() };
        assert_eq!(headers(&one, "https://a.example", true).unwrap(), "authorization: Bearer abc");
        assert_eq!(headers(&one, "https://a.example", false), None);
        assert_eq!(headers(&one, "https://b.example", true), None);
        let port = Credentials { token: Some(Secret::new("a.example:81=abc")), ..Credentials::default() };
        assert_eq!(headers(&port, "https://a.example:81/x", true).unwrap(), "authorization: Bearer abc");
    }

    #[test]
    fn a_token_for_a_host_goes_to_no_other() {
        let one = |token: &str| Credentials { token: Some(Secret::new(token)), ..Credentials::default() };
        assert_eq!(headers(&one("localhost=abc"), "http://127.0.0.1:80", true), None);
        assert_eq!(
            headers(&one("localhost=abc"), "http://localhost:80", true).unwrap(),
            "authorization: Bearer abc"
        );
        assert_eq!(
            headers(&one("cache=abc=="), "https://cache", true).unwrap(),
            "authorization: Bearer abc=="
        );
    }

    #[test]
    fn a_remote_that_a_project_names_gets_what_its_address_has() {
        let all = Credentials {
            token: Some(Secret::new("abc")),
            helper: Some("a-helper-that-is-not-started".into()),
            netrc: true,
        };
        assert_eq!(headers(&all, "https://a.example", false), None);
        assert_eq!(headers(&all, "https://a:b@a.example", false).unwrap(), "authorization: Basic YTpi");
    }

    #[test]
    fn folders_and_object_stores_get_nothing() {
        let all = Credentials { token: Some(Secret::new("abc")), helper: Some("false".into()), netrc: false };
        assert_eq!(headers(&all, "file:///mnt/cache", true), None);
        assert_eq!(headers(&all, "s3://bucket/prefix", true), None);
    }

    #[test]
    fn a_token_is_not_sent_in_the_clear() {
        let all = Credentials { token: Some(Secret::new("abc")), ..Credentials::default() };
        assert!(headers(&all, "http://127.0.0.1:80", true).is_some());
        assert!(headers(&all, "grpc://localhost:80", true).is_some());
        assert!(headers(&all, "grpc://127.0.0.1:80", true).is_some());
        assert!(headers(&all, "grpc://[::1]:80", true).is_some());
        for other in ["grpc://a.example", "grpc://127.0.0.1.example", "grpc://10.0.0.1"] {
            assert!(all.headers(&Url::parse(other).unwrap(), true).is_err(), "{other}");
        }
        let error = all.headers(&Url::parse("http://a.example").unwrap(), true).unwrap_err();
        insta::assert_snapshot!(error, @"`http://a.example/` is not the address of a remote cache: a token would be sent where everybody can read it; use https, grpcs, or no token");
    }

    #[test]
    fn what_stands_in_the_address_counts_first_and_is_not_shown() {
        let all = Credentials { token: Some(Secret::new("abc")), ..Credentials::default() };
        // RFC 7617, section 2.
        let address = "https://Aladdin:open%20sesame@a.example/x?y=z";
        let expected = "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
        assert_eq!(headers(&all, address, true).unwrap(), expected);
        assert_eq!(shown(&Url::parse(address).unwrap()), "https://a.example/x");
        assert_eq!(format!("{all:?}"), "Credentials { token: Some(Secret), helper: None, netrc: false }");
    }

    #[test]
    fn nothing_secret_is_shown_of_what_is_no_address() {
        let shown_all = |address: &str| match Url::parse(address) {
            Ok(url) => shown(&url),
            Err(_) => sheaf_foundation::shown_text(address),
        };
        for (address, expected) in [
            ("me:SECRET@host", "host"),
            ("me:SECRET@host:9092/x", "host:9092/x"),
            ("SECRET@host", "host"),
            ("me:SECRET", "me…"),
            ("me:SECRET@host:port", "host:port"),
            ("https://me:SECRET@host:port", "https://host:port"),
            ("https://me:SEC@RET@host/x?y=SECRET", "https://host/x"),
            ("https://me:SECRET", "https://me…"),
            ("https://me:SEC#RET@host:port", "https://host:port"),
            ("http:/me:SECRET@host", "http://host/"),
            ("mailto:me:SECRET@host", "host"),
            ("host?token=SECRET", "host…"),
            ("file:///mnt/cache", "file:///mnt/cache"),
        ] {
            assert_eq!(shown_all(address), expected, "{address}");
        }
    }

    #[test]
    fn the_default_of_a_netrc_file_is_for_no_host() {
        let netrc: Netrc =
            "machine a.example login me password one\ndefault login me password two\n".parse().unwrap();
        assert_eq!(netrc_header(&netrc, "a.example"), Some(basic("me", "one")));
        for other in ["default", "b.example", "localhost", ""] {
            assert_eq!(netrc_header(&netrc, other), None, "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_helper_is_asked_as_bazel_asks_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, body: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            Credentials { helper: Some(path.display().to_string()), ..Credentials::default() }
        };
        let good = script(
            "good",
            r#"read line; test "$1" = get && test "$line" = '{"uri":"https://a.example/x"}' && echo '{"headers":{"Authorization":["Bearer t"]}}'"#,
        );
        assert_eq!(headers(&good, "https://a.example/x", true).unwrap(), "Authorization: Bearer t");
        let silent = script("silent", "echo '{}'");
        assert_eq!(headers(&silent, "https://a.example/x", true), None);
        // A process that it leaves running may keep the pipe open.
        let agent = script(
            "agent",
            r#"sleep 40 & echo $! > "$0.pid"; echo '{"headers":{"Authorization":["Bearer t"]}}'"#,
        );
        let start = Instant::now();
        assert_eq!(headers(&agent, "https://a.example/x", true).unwrap(), "Authorization: Bearer t");
        assert!(start.elapsed() < Duration::from_secs(30), "it was waited for");
        let pid = std::fs::read_to_string(folder.path().join("agent.pid")).unwrap();
        let _ = Command::new("kill").arg(pid.trim()).status();
        // Its answer is a secret too.
        let generous = script("generous", r#"echo '{"headers":{"Authorization":["Bearer t"]}}'"#);
        let error = generous.headers(&Url::parse("http://a.example").unwrap(), true).unwrap_err();
        assert!(matches!(error, RemoteError::Address { .. }), "{error}");
        let curious = script("curious", r#"test -z "$SHEAF_CACHE_TOKEN$SHEAF_CACHE_KEY" && echo '{}'"#);
        assert_eq!(headers(&curious, "https://a.example/x", true), None);
        for bad in [script("bad", "exit 3"), script("no-json", "echo secret")] {
            let error = bad.headers(&Url::parse("https://a.example").unwrap(), true).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(matches!(error, RemoteError::Helper { .. }));
        }
    }
}
