//! Source files: their texts, and the programs in folders.

use std::path::{Path, PathBuf};

use sheaf_loader::{source_text, unreadable};
use sheaf_project::ARTIFACT_FOLDER;
use sheaf_syntax::Sources;

use crate::evaluator::Failed;
use crate::messages;

/// The text of a program.
pub fn read_source(path: &Path) -> Result<String, Failed> {
    source_text(path).map_err(|error| {
        messages::show(&Sources::default(), &error);
        Failed
    })
}

/// The programs that a path means: itself, or all in the folder but for hidden folders and `__sheaf__`, in the order of
/// their names.
pub fn programs(path: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    if path.is_dir() {
        search(path, &mut found)?;
    } else {
        found.push(path.to_owned());
    }
    Ok(found)
}

fn search(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failed> {
    let cannot_read = |e| {
        let e = unreadable(folder, &e);
        messages::error(&e.message, e.help.as_deref());
        Failed
    };
    let entries = std::fs::read_dir(folder).map_err(cannot_read)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(cannot_read)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        // A link to a folder could lead back here.
        let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
        if is_folder && !name.starts_with('.') && name != ARTIFACT_FOLDER {
            search(&path, found)?;
        } else if !is_folder && path.extension().is_some_and(|e| e == "shf") {
            // A leading `./` says nothing.
            found.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    Ok(())
}
