//! `sheaf test`: checks the `;=>` comments of source files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_lang::testing::{BATCH, Compile, FileReport, Options, Tester};
use sheaf_observe::Metrics;

use crate::cli::{JitMode, KernelsMode, TestOptions};
use crate::evaluator::{Failed, evaluator, failed, on_large_stack, project_of};
use crate::messages;
use crate::output::print;
use crate::sources::{programs, read_source};

/// The file that lists subjects that need not compile yet: a name and the reason, one to a line.
const PENDING: &str = "PENDING";

/// Number of examples in one program, if that is to be one kernel.
const KERNEL_BATCH: usize = 4;

/// Start of the first line of a file of examples that names their subject.
const ABOUT: &str = "; corpus: ";

/// Checks the examples of files.
pub fn test(options: &TestOptions) -> ExitCode {
    on_large_stack(|| test_here(options))
}

/// A file with examples.
struct Source {
    path: PathBuf,
    text: String,
    /// Its examples need not compile.
    pending: bool,
}

fn test_here(options: &TestOptions) -> Result<(), Failed> {
    let paths = if options.paths.is_empty() { vec![PathBuf::from(".")] } else { options.paths.clone() };
    let sources = sources(&paths)?;
    if sources.is_empty() {
        let help = "an example is an expression and a comment `;=> value` or `;=> error: text` after it";
        messages::error("there are no examples to test", Some(help));
        return Err(Failed);
    }
    // Examples are small and many: their programs go to the user's cache, not beside the sources.
    let scratch = tempfile::tempdir().map_err(failed)?;
    let project = project_of(&sources[0].path)?;
    let mut interp =
        evaluator(&options.engine, &project, Vec::new(), Metrics::default(), |_| scratch.path().to_owned())?;
    let how = Options {
        tolerance: options.tolerance,
        interpreted: options.engine.no_jit || options.engine.jit == JitMode::Auto,
        compiled: match (options.engine.no_jit, options.engine.jit) {
            (true, _) => Compile::Never,
            (_, JitMode::Auto) => Compile::IfPossible,
            (_, JitMode::Always) => Compile::Always,
        },
        // A kernel has few operands.
        batch: if options.engine.kernels == KernelsMode::Always { KERNEL_BATCH } else { BATCH },
    };
    let mut tester = Tester::new(&mut interp, how);
    for source in &sources {
        tester.file(&source.path.display().to_string(), &source.text, source.pending);
    }
    let reports = tester.finish();
    for failure in reports.iter().flat_map(|r| &r.failures) {
        messages::show(&interp.sources, failure);
    }
    let shown = if options.json { json(&reports) } else { summary(&reports, how) };
    print(&format!("{shown}\n"))?;
    if reports.iter().all(|r| r.failures.is_empty()) { Ok(()) } else { Err(Failed) }
}

/// The files with examples among the paths and in folders.
fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failed> {
    let mut sources = Vec::new();
    for path in paths {
        for file in programs(path)? {
            let text = read_source(&file)?;
            if text.contains(";=>") {
                let pending = is_pending(&file, &text)?;
                sources.push(Source { path: file, text, pending });
            }
        }
    }
    Ok(sources)
}

/// True if a list in a folder above says that the subject of a file need not compile yet.
fn is_pending(path: &Path, text: &str) -> Result<bool, Failed> {
    let Some(about) = text.lines().next().and_then(|l| l.strip_prefix(ABOUT)) else { return Ok(false) };
    for folder in path.ancestors().skip(1) {
        let list = folder.join(PENDING);
        if list.is_file() {
            let list = read_source(&list)?;
            return Ok(list.lines().any(|l| l.split_whitespace().next() == Some(about.trim())));
        }
    }
    Ok(false)
}

fn total(reports: &[FileReport], count: impl Fn(&FileReport) -> usize) -> usize {
    reports.iter().map(count).sum()
}

fn summary(reports: &[FileReport], how: Options) -> String {
    let failed = total(reports, |r| r.failures.len());
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "{} in {}: {} passed, {failed} failed",
        count(total(reports, |r| r.cases), "example"),
        count(reports.len(), "file"),
        total(reports, |r| r.passed)
    );
    if how.compiled != Compile::Never {
        text += &format!(
            "; {} ran compiled, {} needed no program",
            total(reports, |r| r.compiled),
            total(reports, |r| r.known)
        );
        let pending = total(reports, |r| r.pending);
        if pending > 0 {
            text += &format!(", {pending} cannot be compiled yet");
        }
    }
    text
}

fn json(reports: &[FileReport]) -> String {
    let file = |r: &FileReport| {
        serde_json::json!({
            "file": r.name,
            "examples": r.cases,
            "passed": r.passed,
            "compiled": r.compiled,
            "known": r.known,
            "pending": r.pending,
            "failures": r.failures.iter().map(|d| &d.message).collect::<Vec<_>>(),
        })
    };
    serde_json::Value::from(reports.iter().map(file).collect::<Vec<_>>()).to_string()
}
