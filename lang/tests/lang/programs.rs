//! Whole programs, interpreted.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use crate::support::{compiling_in, run};
use sheaf_lang::eval::Jit;
use sheaf_lang::testing::{BATCH, Compile, Options, Tester};
use sheaf_syntax::render::render;

/// The losses of JAX 0.10.2 for the same seed, weights and data.
#[test]
fn xor_losses_are_those_of_jax() {
    let program = include_str!("../../../examples/xor/train.shf");
    let out = run(program);
    for (epoch, loss) in [(100, 0.022934), (200, 0.007262), (300, 0.004058), (400, 0.002744), (500, 0.002041)]
    {
        let line =
            out.lines().find(|l| l.starts_with(&format!("epoch {epoch:3}"))).expect("a line for the epoch");
        let found: f64 = line.rsplit(' ').next().expect("a loss").parse().expect("a number");
        assert!((found - loss).abs() < 0.5e-3 * loss, "epoch {epoch}: {found}, JAX has {loss}");
    }
}

/// The mixed precision example trains, in `bf16` with weights of `f32`; with fewer steps here.
#[test]
fn mixed_precision_learns() {
    let program =
        include_str!("../../../examples/mixed/train.shf").replace("(train x y 400)", "(train x y 100)");
    let out = run(&program);
    assert!(out.contains("weights are :f32, products :bf16"), "{out}");
    let line = out.lines().find(|l| l.starts_with("accuracy ")).unwrap_or_else(|| panic!("{out}"));
    let accuracy: f64 = line.split(' ').nth(1).expect("a figure").parse().expect("a number");
    assert!(accuracy > 0.9, "{out}");
}

/// All checked examples in `tests/programs` pass.
#[test]
fn programs_do_what_their_comments_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let mut files: Vec<(String, String)> = std::fs::read_dir(&folder)
        .expect("the folder of programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "shf"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source file");
            (format!("tests/programs/{}", path.file_name().expect("a name").display()), text)
        })
        .collect();
    files.sort();
    let (mut interp, _world, _) = compiling_in(Jit::Never, &files);
    let options = Options { tolerance: 1e-5, interpreted: true, compiled: Compile::Never, batch: BATCH };
    let mut tester = Tester::new(&mut interp, options);
    for (path, text) in &files {
        tester.file(path, text, false);
    }
    let reports = tester.finish();
    let failures: Vec<String> =
        reports.iter().flat_map(|r| &r.failures).map(|d| render(&interp.sources, d, false)).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(reports.iter().all(|r| r.cases > 0), "a program without checks: {reports:#?}");
}
