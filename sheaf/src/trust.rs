//! `sheaf trust`: the user's consent to the requests of a project's file.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use sheaf_project::{MANIFEST_NAME, Project, Request, Trusted};
use sheaf_syntax::visible::visible;

use crate::cli::TrustOptions;
use crate::evaluator::{Failed, failed, home, outside, project_at};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf trust`.
pub fn trust(options: &TrustOptions) -> ExitCode {
    match act(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed) => ExitCode::from(1),
    }
}

fn act(options: &TrustOptions) -> Result<(), Failed> {
    let home = home()?;
    let trusted = Trusted::new(home.trust());
    if options.list {
        return list(&trusted, options.json);
    }
    let project = project_at(options.folder.as_deref().unwrap_or(Path::new(".")))?;
    outside(&home, &project)?;
    if options.revoke {
        return revoke(&trusted, &project);
    }
    let Some(manifest) = &project.manifest else {
        let message =
            format!("there is no {MANIFEST_NAME} in {} or in a folder above", project.root.display());
        messages::error(message, Some("go to the folder of the project, or name it"));
        return Err(Failed);
    };
    let Some(request) = Request::of(manifest) else {
        return say(&format!("{} asks for nothing that needs trust", manifest.path.display()));
    };
    if trusted.allows(&project.root, &request) {
        return say(&format!("what {} asks for is trusted already", manifest.path.display()));
    }
    show(&project, &request, trusted.last(&project.root).as_ref())?;
    if !options.yes && !asked(&project)? {
        return say("nothing is trusted that was not before");
    }
    trusted.allow(&project.root, &request).map_err(failed)?;
    say(&format!("trusted for {}, until these settings change", project.root.display()))
}

/// Shows the request of a project, and its changes.
fn show(project: &Project, request: &Request, before: Option<&Request>) -> Result<(), Failed> {
    let since = if before.is_some() { ", against what was trusted last" } else { "" };
    say(&format!("{} asks for this{since}:", project.root.join(MANIFEST_NAME).display()))?;
    for difference in request.differences(before) {
        say(&format!("  {difference}"))?;
    }
    let means = "whoever holds a trusted key gives you programs that run as you; remotes and mirrors see what you look for";
    say(means)
}

/// Asks the user. It is an error if there is no terminal.
fn asked(project: &Project) -> Result<bool, Failed> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let help = "look at the settings, and run `sheaf trust --yes`; a CI job of a protected branch sets SHEAF_TRUST_PROJECT=1";
        messages::error("nothing is trusted yet, since nobody can be asked here", Some(help));
        return Err(Failed);
    }
    let unread = |error| failed(format!("cannot read from the terminal: {error}"));
    eprint!("trust this for {}? [y/N] ", visible(&project.root.to_string_lossy()));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(unread)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn revoke(trusted: &Trusted, project: &Project) -> Result<(), Failed> {
    let root = project.root.display();
    if trusted.revoke(&project.root).map_err(failed)? {
        return say(&format!("no longer trusted: what {root} asks for"));
    }
    messages::error(
        format!("nothing that {root} asks for was trusted"),
        Some("`sheaf trust --list` shows what is"),
    );
    Err(Failed)
}

fn list(trusted: &Trusted, as_json: bool) -> Result<(), Failed> {
    let all = trusted.list();
    if as_json {
        return print_line(&serde_json::to_string_pretty(&json!(all)).map_err(failed)?);
    }
    if all.is_empty() {
        return say("no project is trusted to choose keys, remotes or mirrors");
    }
    for allowed in all {
        say(&allowed.project)?;
        // The last is the one that is shown when a file changes.
        for consent in allowed.trusted.iter().rev() {
            consent
                .settings
                .differences(Some(&consent.settings))
                .iter()
                .try_for_each(|d| say(&format!(" {d}")))?;
        }
    }
    Ok(())
}

/// Prints a line, which may quote a project's file.
fn say(line: &str) -> Result<(), Failed> {
    print_line(&visible(line))
}
