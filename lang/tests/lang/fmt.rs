//! Formatting of the repository's programs: each reads the same, and formatting is idempotent.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use std::path::{Path, PathBuf};

use sheaf_lang::eval::STACK_BYTES;
use sheaf_syntax::fmt::{DEFAULT_WIDTH, format};
use sheaf_syntax::{Form, Sources, read};

/// All `.shf` files below a folder.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            programs(&path, found);
        } else if path.extension().is_some_and(|e| e == "shf") {
            found.push(path);
        }
    }
}

fn forms(text: &str) -> Option<Vec<String>> {
    let mut sources = Sources::default();
    let id = sources.add("program", text);
    Some(read(&sources, id).ok()?.iter().map(Form::to_string).collect())
}

fn formatted(text: &str, width: usize) -> String {
    let mut sources = Sources::default();
    let id = sources.add("program", text);
    format(&sources, id, width).expect("a text that reads")
}

#[test]
fn the_programs_of_the_repository_keep_their_meaning() {
    let check = || {
        let mut paths = Vec::new();
        programs(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace"), &mut paths);
        let mut count = 0;
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a source file");
            // Some are invalid on purpose.
            let Some(before) = forms(&text) else { continue };
            for width in [30, 60, DEFAULT_WIDTH] {
                let once = formatted(&text, width);
                assert_eq!(forms(&once).as_ref(), Some(&before), "{}", path.display());
                assert_eq!(formatted(&once, width), once, "{}", path.display());
                let comments = |text: &str| text.lines().filter(|line| line.contains(";=>")).count();
                assert_eq!(comments(&once), comments(&text), "{}", path.display());
            }
            count += 1;
        }
        assert!(count > 10, "{count} programs");
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(check);
    assert!(thread.expect("a thread").join().is_ok(), "see above");
}
