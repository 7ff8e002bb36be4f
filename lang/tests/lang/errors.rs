//! The programs in `tests/errors/`, each with a typical mistake: their messages are in `snapshots/` beside them, below
//! the program.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::support::{HostDevice, World, run_in, run_with};
use sheaf_lang::eval::{Interp, Jit, Options};

/// Internal terms that messages must not use.
const JARGON: [&str; 9] =
    ["stablehlo", "mlir", "unwrap", "Option<", "Rc<", "Some(", "rust", "panicked", "lang/src"];

/// One of the mistakes is an endless recursion, which needs the stack of a real program.
#[test]
fn typical_mistakes() {
    let thread = std::thread::Builder::new().stack_size(sheaf_lang::eval::STACK_BYTES);
    let done = thread.spawn(all_mistakes).expect("a thread").join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// The folder with the programs.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/errors")
}

/// The names of the programs in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
    let programs = entries.filter(|p| p.extension().is_some_and(|e| e == "shf"));
    let mut names: Vec<String> =
        programs.map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The programs in `compiled/`: reasons not to compile, as warnings, and as errors with `--strict`.
#[test]
fn what_cannot_be_compiled() {
    let folder = folder().join("compiled");
    let mut wrong = Vec::new();
    for name in names(&folder) {
        let program = fs::read_to_string(folder.join(format!("{name}.shf"))).expect("a program");
        let run = |strict| {
            let world = World::default();
            let device = HostDevice { log: Rc::default(), at_once: false };
            let options = Options { jit: Jit::Always, strict, ..Options::default() };
            let mut interp = Interp::new(Box::new(world.clone()), Some(Box::new(device)), options);
            run_with(&mut interp, &world, &program)
        };
        let mut said = run(false);
        // Other errors are the same with --strict.
        if !said.contains("error:") {
            assert!(said.contains("warning:"), "{name} says nothing:\n{said}");
            said += &format!("\n--- with --strict\n{}", run(true));
        }
        assert!(said.contains("error:") && said.contains("help:"), "{name} has no remedy:\n{said}");
        for word in JARGON {
            assert!(!said.to_lowercase().contains(&word.to_lowercase()), "{name} says {word}:\n{said}");
        }
        let compared = std::panic::catch_unwind(|| {
            insta::with_settings!(
                { snapshot_path => "../../../tests/errors/compiled/snapshots", prepend_module_to_snapshot => false,
                  omit_expression => true },
                { insta::assert_snapshot!(name.as_str(), format!("{program}---\n{said}")) }
            );
        });
        if compared.is_err() {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "other messages than before: {}", wrong.join(", "));
}

fn all_mistakes() {
    let folder = folder();
    let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a program");
    let world = World::default();
    for name in names(&folder.join("lib")) {
        let path = format!("lib/{name}.shf");
        world.files.borrow_mut().insert(path.clone(), read(&path).into_bytes());
    }
    let mistakes = names(&folder);
    assert!(mistakes.len() >= 40, "{} mistakes", mistakes.len());
    let mut wrong = Vec::new();
    for name in mistakes {
        let program = read(&format!("{name}.shf"));
        let said = run_in(&world, &program);
        for word in JARGON {
            assert!(!said.to_lowercase().contains(&word.to_lowercase()), "{name} says {word}:\n{said}");
        }
        assert!(said.contains("error:"), "{name} says nothing:\n{said}");
        let compared = std::panic::catch_unwind(|| {
            insta::with_settings!(
                { snapshot_path => "../../../tests/errors/snapshots", prepend_module_to_snapshot => false,
                  omit_expression => true },
                { insta::assert_snapshot!(name.as_str(), format!("{program}---\n{said}")) }
            );
        });
        if compared.is_err() {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "other messages than before: {}", wrong.join(", "));
}
