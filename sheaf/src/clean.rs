//! `sheaf clean`: removes the compiled programs of a project.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::CleanOptions;
use crate::evaluator::{Failed, exit_code, failed, project_at};
use crate::output::print_line;

/// Runs `sheaf clean`.
pub fn clean(options: &CleanOptions) -> ExitCode {
    exit_code(&act(options.folder.as_deref().unwrap_or(Path::new("."))))
}

fn act(folder: &Path) -> Result<(), Failed> {
    let artifacts = project_at(folder)?.artifact_folder();
    let shown = artifacts.display();
    let error = |error: io::Error| failed(format!("{shown} cannot be removed: {error}; close what uses it"));
    match fs::symlink_metadata(&artifacts) {
        // A link is removed, and what it leads to is left alone.
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&artifacts).map_err(error)?,
        Ok(_) => fs::remove_file(&artifacts).map_err(error)?,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            return print_line(&format!("nothing to remove: there is no {shown}"));
        }
        Err(unread) => return Err(error(unread)),
    }
    print_line(&format!("removed {shown}; the next run takes programs from the caches, or compiles them"))
}
