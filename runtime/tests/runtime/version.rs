//! The reported version against the source that is built.

use std::path::PathBuf;
use std::process::Command;

use sheaf_runtime::Runtime;

#[test]
fn the_version_is_that_of_the_source_that_is_linked_in() {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let about = String::from_utf8(output.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Packages for other platforms have not been downloaded.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let carrier = packages.iter().find(|package| package["name"] == "eerie-sys").unwrap();
    let manifest = PathBuf::from(carrier["manifest_path"].as_str().unwrap());

    let version = std::fs::read(manifest.with_file_name("iree").join("runtime/version.json")).unwrap();
    let version: serde_json::Value = serde_json::from_slice(&version).unwrap();
    // The source says "3.13.0.dev": the release, before packaging appends its date.
    let version = version["package-version"].as_str().unwrap();
    assert_eq!(version.strip_suffix(".dev").unwrap_or(version), Runtime::version());
}
