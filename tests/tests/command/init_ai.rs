//! `sheaf init-ai`.

use std::fs;
use std::path::Path;
use std::process::Command;

use sheaf_tests::{Sandbox, skip};

/// Maximum tokens of the context: it is read with every question.
const LIMIT: usize = 6_000;

/// The number of tokens that a run says it wrote, and its output without the number.
#[track_caller]
fn said(output: &str) -> (usize, String) {
    let (before, after) = output.split_once("about ").expect("a number of tokens");
    let (number, after) = after.split_once(' ').expect("a number");
    (number.parse().expect("a number"), format!("{before}about N {after}"))
}

#[test]
fn each_assistant_has_its_file() {
    for (arguments, file) in [
        (&["init-ai"][..], "sheaf-context.md"),
        (&["init-ai", "--for", "claude"], "CLAUDE.md"),
        (&["init-ai", "--for", "cursor"], ".cursor/rules/sheaf.mdc"),
        (&["init-ai", "--for", "copilot"], ".github/copilot-instructions.md"),
    ] {
        let sandbox = Sandbox::new();
        let (_, line) = said(&sandbox.run(arguments).silent());
        assert_eq!(line, format!("wrote {file}: the language in about N tokens of GPT-4\n"));
        assert_eq!(Sandbox::files(&sandbox.path("")), [file]);
        let text = fs::read_to_string(sandbox.path(file)).expect("a text");
        assert!(text.contains("\n# Sheaf\n") && text.contains("einsum"), "{text}");
        assert_eq!(text.starts_with("---\ndescription:"), file.contains("cursor"), "{text}");
        let (_, line) = said(&sandbox.run(arguments).silent());
        assert_eq!(line, format!("kept {file}: the language in about N tokens of GPT-4\n"));
        assert_eq!(fs::read_to_string(sandbox.path(file)).expect("a text"), text);
    }
}

#[test]
fn what_else_is_in_the_file_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("CLAUDE.md", "# Our rules\n\nTests first.\n");
    let claude = ["init-ai", "--for", "claude"];
    assert!(sandbox.run(&claude).silent().starts_with("updated CLAUDE.md"));
    let text = fs::read_to_string(sandbox.path("CLAUDE.md")).expect("a text");
    assert!(text.starts_with("# Our rules\n\nTests first.\n\n<!-- sheaf init-ai: begin"), "{text}");
    // An older section, with something behind it.
    let older = text.replace("# Sheaf\n", "# An older Sheaf\n") + "\nAnd be brief.\n";
    sandbox.write("CLAUDE.md", &older);
    assert!(sandbox.run(&claude).silent().starts_with("updated CLAUDE.md"));
    let after = fs::read_to_string(sandbox.path("CLAUDE.md")).expect("a text");
    assert_eq!(after, text + "\nAnd be brief.\n");
}

#[test]
#[cfg(unix)]
fn a_link_stays_one() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "Ours.\n");
    std::os::unix::fs::symlink("AGENTS.md", sandbox.path("CLAUDE.md")).expect("a link");
    assert!(sandbox.run(&["init-ai", "--for", "claude"]).silent().starts_with("updated CLAUDE.md"));
    assert!(fs::symlink_metadata(sandbox.path("CLAUDE.md")).expect("a file").is_symlink());
    assert!(fs::read_to_string(sandbox.path("AGENTS.md")).expect("a text").starts_with("Ours.\n"));
}

#[test]
fn files_that_it_cannot_update_stay_as_they_are() {
    let sandbox = Sandbox::new();
    for (name, content) in [
        ("no-end", &b"<!-- sheaf init-ai: begin. -->\nno end\n"[..]),
        ("turned", b"<!-- sheaf init-ai: end -->\n<!-- sheaf init-ai: begin -->"),
        ("no-text", b"\xff\xfe"),
    ] {
        sandbox.write("sheaf-context.md", content);
        let output = sandbox.run(&["init-ai"]);
        insta::assert_snapshot!(name, output);
        assert_eq!(fs::read(sandbox.path("sheaf-context.md")).expect("a file"), content, "{name}");
    }
    fs::create_dir(sandbox.path("CLAUDE.md")).expect("a folder");
    insta::assert_snapshot!("a-folder", sandbox.run(&["init-ai", "--for", "claude"]));
    insta::assert_snapshot!("unknown-assistant", sandbox.run(&["init-ai", "--for", "nobody"]));
}

#[test]
fn every_example_in_it_runs() {
    let sandbox = Sandbox::new();
    let _ = sandbox.run(&["init-ai"]).silent();
    let text = fs::read_to_string(sandbox.path("sheaf-context.md")).expect("a text");
    let blocks: Vec<&str> =
        text.split("```clojure\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 7, "{} blocks", blocks.len());
    sandbox.write("examples.shf", blocks.concat());
    let output = sandbox.run(&["test", "--no-jit", "examples.shf"]);
    assert_eq!(output.code, Some(0), "{output}");
    let marked = blocks.concat().matches(";=>").count();
    assert!(output.stdout.contains(&format!("{marked} passed, 0 failed")), "{marked} are stated\n{output}");
    assert!(marked > 50, "{marked}");
}

#[test]
fn its_size_is_what_it_says_and_within_the_limit() {
    let sandbox = Sandbox::new();
    let (estimate, _) = said(&sandbox.run(&["init-ai"]).silent());
    assert!(estimate < LIMIT, "about {estimate} tokens");
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("benches/tokens");
    if !benches.join("cl100k_base.tiktoken").exists() {
        return skip("there are no ranks: run scripts/fetch-gpt4-ranks");
    }
    let text = fs::read_to_string(sandbox.path("sheaf-context.md")).expect("a text");
    let section = text.split_once("-->\n").expect("a mark").1.rsplit_once("<!--").expect("a mark").0;
    sandbox.write("section.md", section);
    let counted = Command::new("python3")
        .arg(benches.join("cl100k.py"))
        .arg(sandbox.path("section.md"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let counted = counted.expect("Python starts");
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    let tokens: usize = String::from_utf8_lossy(&counted.stdout).trim().parse().expect("a number");
    println!("{tokens} tokens, estimated as {estimate}");
    assert!(tokens < LIMIT, "{tokens} tokens");
    assert!(estimate.abs_diff(tokens) * 20 < tokens, "{tokens} tokens, estimated as {estimate}");
}
