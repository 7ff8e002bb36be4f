//! Writes the index of the standard library: its names, sorted, each with its module and its part, which is a file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "files of the build machine, before the crate is one"
)]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=std");
    let mut index = Vec::new();
    for entry in fs::read_dir("std")? {
        let path = entry?.path();
        let module = stem(&path);
        // The parts of `core` are always loaded.
        if module == "core" {
            continue;
        }
        for file in files(&path)? {
            let text = fs::read_to_string(&file)?;
            index.extend(text.lines().filter_map(defined).map(|(is_public, name)| {
                let of = if is_public { String::new() } else { module.clone() };
                ((is_public, of, name.to_owned()), module.clone(), stem(&file))
            }));
        }
    }
    index.sort();
    // A `defgrad` has the name of a function.
    index.dedup();
    let output =
        env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(output.join("library_index.rs"), format!("&{index:?}"))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of a module, which is one or a folder.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
}

/// The name that a line defines, true if it is public. Each definition starts in the first column, which a test of the index verifies.
fn defined(line: &str) -> Option<(bool, &str)> {
    let (form, rest) = line.strip_prefix("(def")?.split_once(' ')?;
    let name = rest.split([' ', ')']).next()?;
    let is_public = !name.starts_with('-');
    (!is_public || form == "n").then_some((is_public, name))
}
