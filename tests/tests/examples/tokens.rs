//! `benches/tokens`: the examples in tokens of GPT-4.

use std::path::Path;
use std::process::Command;

use sheaf_tests::skip;

/// Maximum tokens of GPT-2, its training and its sampling: the figure that Sheaf 2 published.
const GPT2: usize = 1_908;

#[test]
fn the_page_of_benchmarks_has_the_tokens_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above");
    if !root.join("benches/tokens/cl100k_base.tiktoken").exists() {
        return skip("there are no ranks: run scripts/fetch-gpt4-ranks");
    }
    let counted = Command::new("python3")
        .arg(root.join("benches/tokens/count.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    let table = String::from_utf8(counted.stdout).expect("a text");
    println!("{table}");
    let page = std::fs::read_to_string(root.join("docs/benchmarks.md")).expect("a page");
    assert!(page.contains(&table), "docs/benchmarks.md is not up to date; count.py gives\n{table}");
    let gpt2 = table.lines().find(|line| line.starts_with("| GPT-2")).expect("a line of GPT-2");
    let tokens: usize =
        gpt2.split('|').nth(2).and_then(|n| n.trim().replace(',', "").parse().ok()).expect("a number");
    assert!(tokens <= GPT2, "{gpt2}");
}
