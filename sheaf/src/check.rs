//! `sheaf check`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use sheaf_lang::eval::{Checked, Jit, Options};
use sheaf_syntax::diagnostic::{Diagnostic, Label, Severity};
use sheaf_syntax::{Sources, Span};

use crate::cli::CheckOptions;
use crate::evaluator::{Failed, interpreter, on_large_stack, project_of};
use crate::messages;
use crate::sources::programs;
use sheaf_loader::source_text;

/// Checks programs without running them: exit code 1 if anything is wrong.
pub fn check(options: &CheckOptions) -> ExitCode {
    on_large_stack(|| {
        let mut checked = Checked::default();
        let here = [PathBuf::from(".")];
        let paths = if options.paths.is_empty() { &here } else { options.paths.as_slice() };
        let files = paths.iter().map(|path| programs(path)).collect::<Result<Vec<_>, Failed>>()?.concat();
        if files.is_empty() {
            let help = "programs are files that end in .shf; `sheaf new NAME` makes a package with one";
            messages::error("there are no programs to check", Some(help));
            return Err(Failed);
        }
        let project = project_of(&files[0])?;
        let mut interp =
            interpreter(Options { jit: Jit::Never, ..Options::default() }, &project, &options.dependencies)?;
        for file in &files {
            let name = file.display().to_string();
            // A module that a program before used has been checked with it.
            if interp.sources.iter().any(|(known, _)| known == name) {
                continue;
            }
            match source_text(file) {
                Ok(text) => checked.add(interp.check_program(&name, &text)),
                Err(error) => checked.errors.push(error),
            }
        }
        // A module may have been checked by itself before a program used it.
        let mut seen = HashSet::new();
        checked.errors.retain(|d| seen.insert(diagnostic(&interp.sources, d).to_string()));
        if options.json {
            println!("{:#}", report(&interp.sources, &checked));
        } else {
            checked.errors.iter().for_each(|e| messages::show(&interp.sources, e));
            println!("{}", summary(&checked));
        }
        if checked.errors.is_empty() { Ok(()) } else { Err(Failed) }
    })
}

fn summary(checked: &Checked) -> String {
    let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let mut parts = vec![count(checked.functions, "function"), count(checked.calls, "call")];
    if checked.traced > 0 {
        parts.push(format!("the shapes in {}", count(checked.traced, "typed function")));
    }
    let found = match checked.errors.len() {
        0 => "no errors".into(),
        n => count(n, "error"),
    };
    format!("{found}; checked {}: {}", count(checked.files, "file"), parts.join(", "))
}

/// The output of `--json`.
fn report(sources: &Sources, checked: &Checked) -> Value {
    json!({
        "files": checked.files,
        "functions": checked.functions,
        "calls": checked.calls,
        "traced": checked.traced,
        "diagnostics": checked.errors.iter().map(|d| diagnostic(sources, d)).collect::<Vec<_>>(),
    })
}

fn diagnostic(sources: &Sources, d: &Diagnostic) -> Value {
    let mut labels = d.labels.iter().map(|l| label(sources, l));
    let mut out = labels.next().unwrap_or_else(|| json!({}));
    out["severity"] = json!(match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    });
    out["message"] = json!(d.message);
    out["labels"] = labels.collect();
    out["notes"] = json!(d.notes);
    out["help"] = json!(d.help);
    out
}

/// A place: lines and columns count from 1, columns in characters; the end is one past the last character.
fn label(sources: &Sources, label: &Label) -> Value {
    let (line, column) = sources.position(label.span);
    let (end_line, end_column) = sources.position(Span { start: label.span.end, ..label.span });
    json!({
        "file": sources.name(label.span.source),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "text": label.text,
    })
}
