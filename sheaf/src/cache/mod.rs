//! `sheaf cache`: the store of compiled programs, its remotes and the keys that are trusted.

mod audit;
mod key;
mod options;
mod serve;
mod store;
mod transfer;
mod why;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sheaf_cache::{Remotes, Store, TrustedKeys};
use sheaf_engine as engine;
use sheaf_foundation::SecretKey;
use sheaf_project::{Project, Settings};

use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, failed, home, project_here, report_error, secrets, settings};
use crate::messages;

pub use options::CacheCommand;

/// Runs `sheaf cache`.
pub fn cache(command: &CacheCommand) -> ExitCode {
    let done = match command {
        CacheCommand::Pull(options) => return crate::build::pull(options),
        CacheCommand::Size { json } => store::size(*json),
        CacheCommand::Stats { json } => store::stats(*json),
        CacheCommand::Gc { max_size, json } => store::collect(*max_size, *json),
        CacheCommand::Clear => store::clear(),
        CacheCommand::Verify { json } => store::verify(*json),
        CacheCommand::Why { function, network, json } => why::why(function, network, *json),
        CacheCommand::Export { file } => transfer::export(file),
        CacheCommand::Import { file, network } => transfer::import(file, network),
        CacheCommand::Push { all, network } => transfer::push(*all, network),
        CacheCommand::Audit { sample, seed, network } => audit::audit(*sample, *seed, network),
        CacheCommand::Serve(arguments) => serve::run(arguments),
        CacheCommand::Key(command) => key::key(command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed) => ExitCode::from(1),
    }
}

/// Inputs of the commands about the cache.
struct CacheContext {
    project: Project,
    settings: Settings,
    store: Store,
    key: Option<Arc<SecretKey>>,
    trusted: TrustedKeys,
}

impl CacheContext {
    /// The context of the project in the current folder, if there is one.
    fn here(network: &NetworkOptions) -> Result<CacheContext, Failed> {
        let home = home()?;
        let project = project_here()?;
        let settings = settings(network, &project, &home)?;
        let secrets = secrets()?;
        let key = engine::signing_key(&home, &secrets).map_err(report_error)?;
        let trusted = engine::trusted_keys(&settings, key.as_deref()).map_err(report_error)?;
        let store = Store::new(home.cache());
        Ok(CacheContext { project, settings, store, key, trusted })
    }

    /// The remote caches; it is an error to have none.
    fn remotes(&self) -> Result<Remotes, Failed> {
        if let Some(remotes) =
            engine::remotes(&self.settings, &self.trusted, &secrets()?).map_err(report_error)?
        {
            return Ok(remotes);
        }
        let Settings { remote, offline, .. } = &self.settings;
        if remote.value.is_empty() {
            let help =
                "give one with --cache-remote, SHEAF_CACHE_REMOTE, or `remote` under [cache] in Sheaf.toml";
            messages::error("there is no remote cache", Some(help));
        } else {
            let message =
                format!("no remote cache can be reached: the network may not be used ({})", offline.origin);
            let help = "allow the network, or name a folder with --cache-remote file:///FOLDER";
            messages::error(message, Some(help));
        }
        Err(Failed)
    }
}

/// The store of this user, for all projects.
fn local_store() -> Result<Store, Failed> {
    Ok(Store::new(home()?.cache()))
}

/// Shows something as JSON.
fn show_json(value: &serde_json::Value) -> Result<(), Failed> {
    println!("{}", serde_json::to_string_pretty(value).map_err(failed)?);
    Ok(())
}

/// A number of bytes for people.
fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} KB", count / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{} GB", count / 1_000_000_000),
    }
}

/// A number of programs for people.
fn programs(count: usize) -> String {
    sheaf_loader::counted(count, "program")
}

/// Time since a moment, for people. Clocks of other machines may go ahead.
fn ago(time: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match now.saturating_sub(time) {
        0..60 => "just now".into(),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..86400 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86400),
    }
}
