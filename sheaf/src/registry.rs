//! `sheaf registry`: care of a registry, in a checkout of its repository.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use semver::Version;
use serde_json::json;
use sheaf_registry::git::Local;
use sheaf_registry::index::{GitFiles, IndexFiles};
use sheaf_registry::store::SourceStore;
use sheaf_registry::tend;
use sheaf_syntax::visible::visible;

use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;
use crate::output::print_line;
use crate::packages::TerminalFetches;

/// Commands of `sheaf registry`.
#[derive(Clone, Debug, Subcommand)]
pub enum RegistryCommand {
    /// Make the first files of a registry
    #[command(after_help = "Example:\n  sheaf registry init team-registry")]
    Init {
        /// The folder to make
        folder: PathBuf,
        /// Name of the registry in messages; otherwise that of the folder
        #[arg(long)]
        name: Option<String>,
    },
    /// Check the files of a registry, and with --base a change of them: what its CI runs on a pull request
    #[command(
        after_help = "Examples:\n  sheaf registry check --base origin/main\n  sheaf registry check --base origin/main --fetch"
    )]
    Check {
        /// The folder of the registry
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// The commit before the change: published versions must be the same since
        #[arg(long, value_name = "COMMIT")]
        base: Option<String>,
        /// With --base: fetch the sources of new versions, and compare commit, tree, name and version
        #[arg(long, requires = "base")]
        fetch: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Withdraw a version from new resolutions; projects that have locked it keep it
    #[command(
        after_help = "Example:\n  sheaf registry yank attention-lib 1.2.0 --reason 'wrong mask at even lengths'"
    )]
    Yank {
        /// The package
        package: String,
        /// The version
        version: Version,
        /// The reason that users are shown
        #[arg(long, required_unless_present = "undo", conflicts_with = "undo")]
        reason: Option<String>,
        /// Offer the version again
        #[arg(long)]
        undo: bool,
        /// The folder of the registry
        #[arg(long, default_value = ".")]
        folder: PathBuf,
    },
}

/// Runs `sheaf registry`.
pub fn registry(command: &RegistryCommand) -> ExitCode {
    exit_code(&match command {
        RegistryCommand::Init { folder, name } => init(folder, name.as_deref()),
        RegistryCommand::Check { folder, base, fetch, json } => check(folder, base.as_deref(), *fetch, *json),
        RegistryCommand::Yank { package, version, reason, folder, .. } => {
            yank(folder, package, version, reason.as_deref())
        }
    })
}

fn init(folder: &Path, name: Option<&str>) -> Result<(), Failed> {
    let own = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    tend::init(folder, name.unwrap_or(&own)).map_err(failed)?;
    let shown = folder.display();
    print_line(&format!(
        "made a registry in {shown}; next:\n  cd {shown}\n  git init && git add . && git commit -m 'A registry'\n  \
         git push ADDRESS HEAD:main"
    ))
}

fn check(folder: &Path, base: Option<&str>, fetch: bool, as_json: bool) -> Result<(), Failed> {
    let base = base.map(|base| before(folder, base)).transpose()?;
    let mut problems =
        tend::check(folder, base.as_ref().map(|base| base as &dyn IndexFiles)).map_err(failed)?;
    if let (true, Some(base)) = (fetch, &base) {
        // Not the user's store, which may have the sources from elsewhere.
        let scratch = tempfile::tempdir().map_err(failed)?;
        let store = SourceStore::new(scratch.path().join("sources"));
        let new = tend::new_entries(folder, base);
        let reporter = TerminalFetches::default();
        problems.extend(tend::fetch(&new, &store, &scratch.path().join("git"), &reporter));
    }
    if as_json {
        let list: Vec<_> = problems.iter().map(|p| json!({ "file": p.file, "problem": p.cause })).collect();
        print_line(&format!("{:#}", json!(list)))?;
    } else {
        problems.iter().for_each(|p| messages::error(format!("{}: {}", p.file, visible(&p.cause)), None));
    }
    if !problems.is_empty() {
        return Err(Failed);
    }
    if as_json { Ok(()) } else { print_line("the registry is as its users need it") }
}

/// The files of the registry in another commit.
fn before(folder: &Path, base: &str) -> Result<GitFiles, Failed> {
    let commit = Local::open(folder).and_then(|local| local.commit(base)).map_err(failed)?;
    Ok(GitFiles::new(commit))
}

fn yank(folder: &Path, package: &str, version: &Version, reason: Option<&str>) -> Result<(), Failed> {
    let path = tend::yank(folder, package, version, reason).map_err(failed)?;
    let done = if reason.is_some() { "yanked" } else { "offered again:" };
    print_line(&format!("{done} {package} {version}; commit and push {}", path.display()))
}
