//! The language corpus in this crate alone: interpreted, and traced to programs that run by the primitives' host
//! rules. `sheaf test tests/corpus` runs it with the real compiler. `CORPUS=shape` limits it to paths with `shape`.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::compiling_in;
use sheaf_lang::docs::entries;
use sheaf_lang::eval::Jit;
use sheaf_lang::testing::{BATCH, Compile, Options, Tester};
use sheaf_syntax::render::render;

/// Values that must be known, so that an example with a tensor as value runs no program.
const FIXED: [&str; 4] =
    ["a shape", "the items of a handle", "the items that differ", "the number of elements that differ"];

/// All `.shf` files below a folder, sorted.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "shf") {
            found.push(path);
        }
    }
}

fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut found = Vec::new();
    sources(&root.join("tests/corpus"), &mut found);
    let name = |p: &Path| p.strip_prefix(root).expect("inside").display().to_string();
    found.iter().map(|p| (name(p), std::fs::read_to_string(p).expect("a source file"))).collect()
}

/// The subject line of a file.
fn subject(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("; corpus: ").map(str::trim)
}

#[test]
fn every_name_has_a_file_with_three_values_and_an_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let list = std::fs::read_to_string(root.join("tests/corpus/NAMES")).expect("the list of names");
    let listed =
        list.lines().filter(|l| !l.starts_with(';')).flat_map(str::split_whitespace).map(String::from);
    let names: BTreeSet<String> = listed.chain(entries().into_iter().map(|e| e.name)).collect();
    let files = corpus();
    let faults: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let own = files.iter().filter(|(_, text)| subject(text) == Some(name));
            let marks: Vec<&str> =
                own.flat_map(|(_, text)| text.split(";=>").skip(1)).map(str::trim_start).collect();
            let errors = marks.iter().filter(|m| m.starts_with("error:")).count();
            let values = marks.len() - errors;
            (values < 3 || errors < 1).then(|| format!("{name}: {values} values, {errors} errors"))
        })
        .collect();
    assert!(faults.is_empty(), "{} names lack examples:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_example_holds_interpreted_and_traced() {
    let files = corpus();
    let wanted = std::env::var("CORPUS").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let pending = std::fs::read_to_string(root.join("tests/corpus/PENDING")).unwrap_or_default();
    let (mut interp, world, _) = compiling_in(Jit::Never, &files);
    let options = Options { tolerance: 1e-5, interpreted: true, compiled: Compile::Always, batch: BATCH };
    let mut tester = Tester::new(&mut interp, options);
    for (path, text) in files.iter().filter(|(p, t)| p.contains(&wanted) && t.contains(";=>")) {
        let about = subject(text).unwrap_or_default();
        tester.file(path, text, pending.lines().any(|l| l.split(' ').next() == Some(about)));
    }
    let reports = tester.finish();
    let failures: Vec<String> =
        reports.iter().flat_map(|r| &r.failures).map(|d| render(&interp.sources, d, false)).collect();
    drop(world);
    let fixed: BTreeSet<&str> = reports.iter().flat_map(|r| &r.fixed).map(String::as_str).collect();
    assert!(
        fixed.iter().all(|wanted| FIXED.contains(wanted)),
        "the elements of tensors are asked: {fixed:?}"
    );
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
