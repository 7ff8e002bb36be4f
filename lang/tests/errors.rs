//! The programs in `tests/errors/`, each with a typical mistake: what they say is in `snapshots/` beside them, below the
//! program that earns it.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

mod support;

use std::fs;
use std::path::Path;

use support::{World, run_in};

/// Words that belong to the making of Sheaf and not to its users.
const JARGON: [&str; 9] =
    ["stablehlo", "mlir", "unwrap", "Option<", "Rc<", "Some(", "rust", "panicked", "lang/src"];

/// One of the mistakes is a recursion without end, which wants the stack that programs have.
#[test]
fn typical_mistakes() {
    let thread = std::thread::Builder::new().stack_size(sheaf_lang::eval::STACK_BYTES);
    let done = thread.spawn(all_mistakes).expect("a thread").join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn all_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/errors");
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
        let programs = entries.filter(|p| p.extension().is_some_and(|e| e == "shf"));
        let mut names: Vec<String> =
            programs.map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a program");
    let world = World::default();
    for name in names(&folder.join("lib")) {
        let path = format!("lib/{name}.shf");
        world.files.borrow_mut().insert(path.clone(), read(&path));
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
                { snapshot_path => "../../tests/errors/snapshots", prepend_module_to_snapshot => false,
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
