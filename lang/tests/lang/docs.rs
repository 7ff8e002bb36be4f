//! Documentation: every example of every entry runs, and the reference page is up to date.

use crate::support::World;
use sheaf_lang::docs::{self, Entry};
use sheaf_lang::eval::{Interp, STACK_BYTES};
use sheaf_lang::testing::{BATCH, Compile, Options, Tester};
use sheaf_syntax::render::render;

/// The reference page of the book.
const REFERENCE: &str = include_str!("../../../docs/reference.md");

/// The failing examples of an entry.
fn failures(entry: &Entry) -> Vec<String> {
    let text: String = entry.examples.iter().map(|e| format!("{} ;=> {}\n", e.code, e.result)).collect();
    let mut interp = Interp::new(Box::new(World::default()), None, sheaf_lang::eval::Options::default());
    let options = Options { tolerance: 1e-5, interpreted: true, compiled: Compile::Never, batch: BATCH };
    let mut tester = Tester::new(&mut interp, options);
    tester.file(&format!("the documentation of {}", entry.name), &text, false);
    let reports = tester.finish();
    reports.iter().flat_map(|report| &report.failures).map(|d| render(&interp.sources, d, false)).collect()
}

#[test]
fn every_example_gives_what_it_says() {
    let run = || {
        let entries = docs::entries();
        let wrong: Vec<String> = entries.iter().flat_map(failures).collect();
        assert!(entries.iter().any(|e| !e.examples.is_empty()), "examples are found");
        assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    assert!(thread.expect("a thread").join().is_ok(), "see above");
}

#[test]
fn every_name_has_help_and_an_example() {
    let lacking =
        |entry: &&Entry| entry.help.is_empty() || entry.examples.is_empty() || entry.signature.is_empty();
    let entries = docs::entries();
    let names: Vec<&str> = entries.iter().filter(lacking).map(|entry| entry.name.as_str()).collect();
    assert!(names.is_empty(), "{} names without help or an example: {}", names.len(), names.join(" "));
}

#[test]
fn the_reference_page_is_up_to_date() {
    let page = docs::markdown(&docs::entries());
    let differs = page.lines().zip(REFERENCE.lines()).position(|(a, b)| a != b);
    assert!(
        page == REFERENCE,
        "docs/reference.md is not up to date, from line {} on; write it anew:\n    cargo run -p sheaf -- doc --markdown > docs/reference.md",
        differs.unwrap_or(0) + 1
    );
}

#[test]
fn text_is_escaped_for_markdown() {
    let entry = Entry {
        name: "f".into(),
        section: "section".into(),
        module: None,
        signature: "(f x)".into(),
        help: "x * y_1 of `[a]`".into(),
        examples: Vec::new(),
    };
    let page = docs::markdown(&[entry]);
    assert!(
        page.ends_with("\n## Section\n\n### `f`\n\n```clojure\n(f x)\n```\n\nx \\* y\\_1 of \\`\\[a\\]\\`\n"),
        "{page}"
    );
}
