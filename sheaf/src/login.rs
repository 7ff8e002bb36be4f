//! `sheaf login`: the user's credentials for registries and git servers.

use std::io::{self, IsTerminal, Read as _};
use std::process::ExitCode;

use sheaf_registry::{Login, Logins};

use crate::cli::LoginOptions;
use crate::evaluator::{Failed, exit_code, failed, home};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf login`.
pub fn login(options: &LoginOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &LoginOptions) -> Result<(), Failed> {
    let path = home()?.credentials();
    let mut logins = Logins::read(&path).map_err(failed)?;
    let Some(host) = &options.host else {
        return logins.hosts().try_for_each(print_line);
    };
    // A whole address is what people copy; only its host matters.
    let host = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    if host.is_empty() || host.contains('@') {
        let help = "give the name of the host alone, as in `sheaf login git.example`; --user takes a name";
        messages::error(format!("{host:?} is not the name of a host"), Some(help));
        return Err(Failed);
    }
    if options.remove {
        if !logins.set(host, None) {
            messages::error(
                format!("there are no credentials for {host}"),
                Some("`sheaf login` lists the hosts"),
            );
            return Err(Failed);
        }
        logins.write(&path).map_err(failed)?;
        return print_line(&format!("removed the credentials for {host}"));
    }
    let token = token(host).map_err(|error| failed(format!("the token cannot be read: {error}")))?;
    if token.is_empty() || token.chars().any(char::is_control) {
        let help = "type it, or pass it on standard input: `sheaf login git.example < token-file`";
        messages::error("a token is one line of text", Some(help));
        return Err(Failed);
    }
    logins.set(host, Some(Login { user: options.user.clone(), token }));
    logins.write(&path).map_err(failed)?;
    print_line(&format!("kept the token for {host} in {}", path.display()))
}

/// The token: typed without being shown, or the whole of standard input.
fn token(host: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        eprint!("token for {host}: ");
        return Ok(console::Term::stderr().read_secure_line()?.trim().to_owned());
    }
    let mut text = String::new();
    io::stdin().take(1 << 16).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}
