//! The crates of the product depend on each other as `docs/architecture.md` draws it, in one direction.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// From above to below: a crate uses crates after it only.
const LAYERS: [&str; 19] = [
    "sheaf",
    "sheaf-rt",
    "sheaf-cache-server",
    "sheaf-engine",
    "sheaf-cache",
    "sheaf-bundle",
    "sheaf-loader",
    "sheaf-artifacts",
    "sheaf-plot",
    "sheaf-observe",
    "sheaf-lang",
    "sheaf-graph",
    "sheaf-syntax",
    "sheaf-registry",
    "sheaf-project",
    "sheaf-runtime",
    "sheaf-toolchain",
    "sheaf-target",
    "sheaf-foundation",
];

#[test]
fn dependencies_go_downwards_and_are_drawn() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let product = dependencies.iter().filter(|d| d["kind"].is_null()).filter_map(|d| d["name"].as_str());
        uses.insert(name, product.filter(|name| LAYERS.contains(name)).collect());
    }
    let mut drawn = String::new();
    for (above, name) in LAYERS.iter().enumerate() {
        let mut below = uses[name].clone();
        below.sort_unstable();
        // A dependency stands again with the features of a system.
        below.dedup();
        let upwards = below.iter().find(|used| !LAYERS[above + 1..].contains(used));
        assert_eq!(upwards, None, "{name} uses a crate that stands above it");
        let line = format!("{name:18} -> {}", below.join(" "));
        drawn += &format!("{}\n", line.trim_end());
    }
    let text = include_str!("../../docs/architecture.md");
    assert!(text.contains(&drawn), "docs/architecture.md should have:\n{drawn}");
}
