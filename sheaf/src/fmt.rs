//! `sheaf fmt`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_project::Project;
use sheaf_syntax::Sources;
use sheaf_syntax::fmt::{DEFAULT_WIDTH, format};
use sheaf_syntax::visible::visible;

use crate::cli::FmtOptions;
use crate::evaluator::{Failed, failed, on_large_stack, project_here, project_of};
use crate::messages;
use crate::output::print;
use crate::sources::{programs, read_source};

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Formats programs, or with `--check` says which are not formatted.
pub fn fmt(options: &FmtOptions) -> ExitCode {
    on_large_stack(|| {
        let mut paths = options.paths.clone();
        if paths.is_empty() {
            paths.push(".".into());
        }
        let mut result = Ok(());
        for path in &paths {
            let done = if path.as_os_str() == STANDARD_INPUT {
                standard_input(options.check)
            } else {
                programs(path).and_then(|files| files_in_place(&files, options.check))
            };
            result = done.and(result);
        }
        result
    })
}

/// Each of the files; one that fails does not keep the others from being formatted.
fn files_in_place(files: &[PathBuf], check: bool) -> Result<(), Failed> {
    let mut result = Ok(());
    for file in files {
        result = file_in_place(file, check).and(result);
    }
    result
}

fn file_in_place(file: &Path, check: bool) -> Result<(), Failed> {
    let text = read_source(file)?;
    let project = project_of(file)?;
    let formatted = formatted(&file.display().to_string(), &text, width(&project))?;
    if formatted == text {
        return Ok(());
    }
    if check {
        println!("{} is not formatted", visible(&file.to_string_lossy()));
        return Err(Failed);
    }
    sheaf_foundation::atomic::replace(file, formatted.as_bytes()).map_err(|e| {
        messages::error(&e, Some(e.remedy()));
        Failed
    })?;
    println!("formatted {}", visible(&file.to_string_lossy()));
    Ok(())
}

fn standard_input(check: bool) -> Result<(), Failed> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|e| failed(format!("cannot read standard input: {e}")))?;
    let project = project_here()?;
    let formatted = formatted("standard input", &text, width(&project))?;
    if check {
        if formatted == text {
            return Ok(());
        }
        println!("standard input is not formatted");
        return Err(Failed);
    }
    print(&formatted)
}

fn width(project: &Project) -> usize {
    project.manifest.as_ref().and_then(|manifest| manifest.fmt.width).unwrap_or(DEFAULT_WIDTH)
}

fn formatted(name: &str, text: &str, width: usize) -> Result<String, Failed> {
    let mut sources = Sources::default();
    let id = sources.add(name, text);
    format(&sources, id, width).map_err(|errors| {
        errors.iter().for_each(|e| messages::show(&sources, e));
        Failed
    })
}
