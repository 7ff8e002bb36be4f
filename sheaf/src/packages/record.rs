//! The line of a published version, put into a registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sheaf_foundation::atomic;
use sheaf_registry::index::{CONFIG_NAME, Entry, package_path};

use crate::evaluator::{Failed, failed};
use crate::messages;

/// Maximum number of pushes while others push to the same registry.
const PUSHES: usize = 5;

/// Adds an entry to a registry.
pub fn record(index: &str, entry: &Entry) -> Result<(), Failed> {
    change_index(index, &format!("{} {}", entry.name, entry.version), |folder| append(folder, entry))
}

/// Changes a file of a registry: in a folder, or with a commit that is pushed to its git repository. `change` gives the
/// path of the file in the registry.
pub fn change_index(
    index: &str,
    message: &str,
    change: impl Fn(&Path) -> Result<PathBuf, Failed>,
) -> Result<(), Failed> {
    if index.starts_with("sparse+") {
        let help = "name the git repository that it is a copy of with --registry";
        return Err(refused(format!("{index} is a static copy, which only follows its registry"), help));
    }
    let folder = Path::new(index.strip_prefix("file://").unwrap_or(index));
    if folder.is_absolute() && folder.join(CONFIG_NAME).is_file() {
        return change(folder).map(drop);
    }
    let scratch = tempfile::tempdir().map_err(failed)?;
    let checkout = scratch.path().join("index");
    git(scratch.path(), &["clone", "--quiet", "--depth", "1", "--", index, "index"])?;
    for attempt in 1..=PUSHES {
        let file = change(&checkout)?;
        git(&checkout, &["add", "--", &file.to_string_lossy()])?;
        git(&checkout, &["commit", "--quiet", "--message", message])?;
        if attempt == PUSHES {
            git(&checkout, &["push", "--quiet", "origin", "HEAD"])?;
            return Ok(());
        }
        if run(&checkout, &["push", "--quiet", "origin", "HEAD"])?.is_ok() {
            return Ok(());
        }
        // Somebody else has changed it meanwhile.
        git(&checkout, &["fetch", "--quiet", "--depth", "1", "origin", "HEAD"])?;
        git(&checkout, &["reset", "--quiet", "--hard", "FETCH_HEAD"])?;
    }
    Ok(())
}

/// Appends the line of an entry to the file of its package; the file in the index.
fn append(folder: &Path, entry: &Entry) -> Result<PathBuf, Failed> {
    let Some(relative) = package_path(&entry.name) else { return Err(Failed) };
    let path = folder.join(&relative);
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    let known = Entry::parse_all(&entry.name, text.as_bytes())
        .map_err(|error| failed(format!("{}: {error}", path.display())))?;
    if known.iter().any(|other| other.version == entry.version) {
        let help = "a published version stays as it is: raise `version` in Sheaf.toml";
        return Err(refused(format!("{} {} is published already", entry.name, entry.version), help));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += &entry.line();
    text.push('\n');
    atomic::replace(&path, text.as_bytes()).map_err(failed)?;
    Ok(PathBuf::from(relative))
}

/// Runs the user's git, which has the user's name, keys and settings for pushes.
fn git(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    run(folder, arguments)?.map_err(|said| {
        let help = "publishing uses git as you do: check that it can push to the registry";
        refused(format!("`git {}` fails: {said}", arguments[0]), help)
    })
}

/// Runs git; its own message if it fails.
fn run(folder: &Path, arguments: &[&str]) -> Result<Result<(), String>, Failed> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            refused(
                format!("git cannot be started: {error}"),
                "install git: publishing to a git registry needs it",
            )
        })?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

/// Shows an error with its remedy.
pub fn refused(message: impl std::fmt::Display, help: &str) -> Failed {
    messages::error(message, Some(help));
    Failed
}
