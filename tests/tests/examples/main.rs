//! The models in `examples/`: each runs at a small size, and at its own size in `make nightly`, and its quality is compared with
//! that of the untrained model and of a trivial one.

mod digits;
mod factors;
mod gpt2;
mod gpu;
mod minilm;
mod others;
mod statistics;
mod tokens;

use std::path::Path;
use std::time::Duration;

use sheaf_tests::{Sandbox, jax_python, skip};

/// Longest run: a whole training on a busy machine.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A sandbox with the compiler and these files of `examples/`. `None`, after a message, if one is not there.
fn sandbox(files: &[&str]) -> Option<Sandbox> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples");
    for file in files {
        if !examples.join(file).exists() {
            skip(&format!("examples/{file} is not there: run the scripts/fetch-* of its folder"));
            return None;
        }
    }
    let sandbox = Sandbox::with_shared_store()?;
    for file in files {
        sandbox.example(file);
    }
    Some(sandbox)
}

/// The output of a program, compiled throughout; `size` is its argument, by default its own.
#[track_caller]
fn run(sandbox: &Sandbox, program: &str, jit: &[&str], size: Option<&str>) -> String {
    let (folder, name) = program.split_once('/').expect("a folder");
    let mut arguments = vec![name];
    arguments.extend(jit);
    arguments.extend(size.map(|size| ["--", size]).into_iter().flatten());
    let output = sandbox.sheaf(&arguments).at(folder).within(LIMIT).run();
    assert_eq!(output.code, Some(0), "{output}");
    assert!(!output.stderr.contains("warning"), "{output}");
    println!("{}", output.stdout);
    output.stdout
}

/// The numbers of the last line that begins with `label`, percentages as parts of 1.
#[track_caller]
fn figures<const N: usize>(output: &str, label: &str) -> [f64; N] {
    let line = output.lines().rfind(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no line begins with `{label}` in\n{output}"));
    let number = |word: &str| {
        let word = word.trim_end_matches([',', ':']);
        match word.strip_suffix('%') {
            Some(percent) => Some(percent.parse::<f64>().ok()? / 100.0),
            None => word.parse().ok(),
        }
    };
    let numbers: Vec<f64> = line[label.len()..].split_whitespace().filter_map(number).collect();
    numbers.try_into().unwrap_or_else(|found| panic!("{found:?} are not {N} numbers in `{line}`"))
}
