//! The language corpus in this crate alone: interpreted, and traced to programs that run by the primitives' host
//! rules. `sheaf test tests/corpus` runs it with the real compiler. `CORPUS=shape` limits it to paths with `shape`.

mod support;

use std::path::{Path, PathBuf};

use sheaf_lang::eval::Jit;
use sheaf_lang::render::render;
use sheaf_lang::testing::{Compile, Options, Tester};
use support::compiling_in;

/// Every file below a folder whose name ends in `.shf`, sorted.
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

#[test]
fn every_example_holds_interpreted_and_traced() {
    let files = corpus();
    let wanted = std::env::var("CORPUS").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let pending = std::fs::read_to_string(root.join("tests/corpus/PENDING")).unwrap_or_default();
    let (mut interp, world, _) = compiling_in(Jit::Never, &files);
    let options = Options { tolerance: 1e-5, interpreted: true, compiled: Compile::Always };
    let mut tester = Tester::new(&mut interp, options);
    for (path, text) in files.iter().filter(|(p, t)| p.contains(&wanted) && t.contains(";=>")) {
        let about = text.lines().next().and_then(|l| l.strip_prefix("; corpus: ")).unwrap_or_default();
        tester.file(path, text, pending.lines().any(|l| l.split(' ').next() == Some(about)));
    }
    let reports = tester.finish();
    let cases: usize = reports.iter().map(|r| r.cases).sum();
    let compiled: usize = reports.iter().map(|r| r.compiled).sum();
    println!("{cases} examples in {} files, {compiled} traced", reports.len());
    let failures: Vec<String> =
        reports.iter().flat_map(|r| &r.failures).map(|d| render(&interp.sources, d, false)).collect();
    drop(world);
    let fixed: std::collections::BTreeSet<&String> = reports.iter().flat_map(|r| &r.fixed).collect();
    println!("elements that had to be known: {fixed:#?}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
