//! `sheaf new` and `sheaf init`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_project::{ARTIFACT_FOLDER, DEFAULT_MAIN, MANIFEST_NAME, package_name};

use crate::cli::{InitOptions, NewOptions};
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;

const MODEL: &str = include_str!("new/model.shf");
const MAIN: &str = include_str!("new/main.shf");
const TESTS: &str = include_str!("new/tests.shf");

/// Makes a folder with a package in it.
pub fn new(options: &NewOptions) -> ExitCode {
    let path = &options.path;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    exit_code(&check_name(&name, "choose another name").and_then(|()| check_empty(path)).and_then(|()| {
        create(path, &name)?;
        println!("made the package {name}; next:\n  cd {}\n  sheaf run", path.display());
        Ok(())
    }))
}

/// Makes a package of the current folder.
pub fn init(options: &InitOptions) -> ExitCode {
    exit_code(&init_here(options))
}

fn init_here(options: &InitOptions) -> Result<(), Failed> {
    let folder = std::env::current_dir()
        .map_err(|e| failed(format!("the current folder cannot be report_error: {e}")))?;
    if folder.join(MANIFEST_NAME).exists() {
        let help = "`sheaf run` runs its main program; another package needs another folder";
        messages::error(format!("this folder is a package already: it has a {MANIFEST_NAME}"), Some(help));
        return Err(Failed);
    }
    let own_name = || folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = options.name.clone().unwrap_or_else(own_name);
    check_name(&name, "give another name, as in `sheaf init --name my-model`")?;
    create(Path::new(""), &name)?;
    println!("made the package {name}; next:\n  sheaf run");
    Ok(())
}

/// Checks that a package can be called so: it is a folder, and a name after `use`.
fn check_name(name: &str, help: &str) -> Result<(), Failed> {
    let Err(cause) = package_name(name) else { return Ok(()) };
    messages::error(cause, Some(help));
    Err(Failed)
}

fn check_empty(path: &Path) -> Result<(), Failed> {
    let taken = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    };
    if !taken {
        return Ok(());
    }
    let help = "choose another name, or use `sheaf init` in that folder";
    messages::error(format!("{} exists already", path.display()), Some(help));
    Err(Failed)
}

/// Writes a package into a folder. Existing files stay as they are.
fn create(folder: &Path, name: &str) -> Result<(), Failed> {
    let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nmain = \"{DEFAULT_MAIN}\"\n");
    write_new(&folder.join(MANIFEST_NAME), &manifest)?;
    write_new(&folder.join(".gitignore"), &format!("{ARTIFACT_FOLDER}/\n"))?;
    // The example belongs together: beside existing sources it would be in the way.
    if folder.join(DEFAULT_MAIN).exists() || folder.join("src/model.shf").exists() {
        return Ok(());
    }
    for (path, text) in [(DEFAULT_MAIN, MAIN), ("src/model.shf", MODEL), ("tests/model.shf", TESTS)] {
        write_new(&folder.join(path), text)?;
    }
    Ok(())
}

/// Writes a file that is not there yet, with its folder.
fn write_new(path: &PathBuf, text: &str) -> Result<(), Failed> {
    let write = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    match write() {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            println!("kept {}", path.display());
            Ok(())
        }
        Err(e) => Err(failed(format!("{} cannot be written: {e}", path.display()))),
        Ok(()) => Ok(()),
    }
}
