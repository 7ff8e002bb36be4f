//! `sheaf toolchain` end to end.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use sheaf_tests::{Sandbox, Server};

/// Writes a package into a sandbox.
fn package(sandbox: &Sandbox, manifest: &str) {
    sandbox.write("Sheaf.toml", manifest);
    sandbox.write("src/main.shf", "(print 1)\n");
}

/// The JSON output of a run.
fn json(output: &sheaf_tests::Output) -> Value {
    assert_eq!(output.code, Some(0), "{output}");
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[test]
fn help_of_each_action_has_an_example() {
    let sandbox = Sandbox::new();
    for action in ["list", "install", "remove", "which", "verify", "pin", "update", "bundle"] {
        let help = sandbox.run(&["toolchain", action, "--help"]).silent();
        assert!(help.contains(&format!("  sheaf toolchain {action}")), "{help}");
    }
    assert_eq!(sandbox.run(&["toolchain"]).code, Some(2));
}

#[test]
fn the_list_says_what_there_is_and_what_is_used() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["toolchain", "list"]));
    package(&sandbox, "[toolchain]\niree = \"3.12.0\"\n");
    let list = json(&sandbox.run(&["toolchain", "list", "--json"]));
    let releases = list["releases"].as_array().expect("releases");
    assert!(releases.len() >= 6);
    for release in releases {
        assert_eq!(release["chosen"], release["version"] == "3.12.0", "{release}");
        assert_eq!(release["installed"], false);
        assert_eq!(release["sha256"].as_str().map(str::len), Some(64));
    }
    assert_eq!(Sandbox::files(&sandbox.home()), [""; 0], "listing makes nothing");
}

#[test]
fn wrong_usage() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["toolchain", "pin", "3.0"]));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "install", "latest"]));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "pin", "3.13.0"]));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "which"]));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "remove", "3.13.0"]));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "install", "--offline"]));
}

#[test]
fn a_pin_is_written_into_both_files_and_nothing_else_is_touched() {
    let sandbox = Sandbox::new();
    package(&sandbox, "# mine\n[package]\nname = \"p\" # so\n");
    sandbox.write("Sheaf.lock", "[[package]]\nname = \"vision\"\n");
    insta::assert_snapshot!(sandbox.run(&["toolchain", "pin", "3.12.0", "--offline"]));
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).expect("a file");
    assert_eq!(
        read("Sheaf.toml"),
        "# mine\n[package]\nname = \"p\" # so\n\n[toolchain]\niree = \"3.12.0\"\n"
    );
    let lock = read("Sheaf.lock");
    assert!(lock.starts_with("[[package]]\nname = \"vision\"\n"), "{lock}");
    for platform in ["linux-x86_64", "linux-aarch64", "macos-universal", "windows-x86_64"] {
        assert_eq!(lock.matches(&format!("{platform} = {{ name = ")).count(), 1, "{lock}");
    }
    // A release that cannot run here changes nothing.
    insta::assert_snapshot!(sandbox.run(&["toolchain", "pin", "3.9.0"]));
    assert_eq!(read("Sheaf.lock"), lock);
    assert_eq!(json(&sandbox.run(&["toolchain", "list", "--json"]))["releases"][1]["chosen"], true);
    // A manual edit that contradicts the lock is reported, and the suggested fix works.
    sandbox.write("Sheaf.toml", read("Sheaf.toml").replace("3.12.0", "3.13.0"));
    insta::assert_snapshot!(sandbox.run(&["toolchain", "which"]));
    let list = sandbox.run(&["toolchain", "list"]);
    assert_eq!(list.code, Some(0), "{list}");
    assert!(list.stderr.starts_with("warning: Sheaf.toml wants the compiler 3.13.0"), "{list}");
    assert_eq!(sandbox.run(&["toolchain", "pin", "3.13.0", "--offline"]).code, Some(0));
    assert_eq!(json(&sandbox.run(&["toolchain", "list", "--json"]))["releases"][0]["chosen"], true);
}

#[test]
fn what_is_not_installed_is_said_for_tools_too() {
    let sandbox = Sandbox::new();
    let verified = sandbox.run(&["toolchain", "verify", "--json"]);
    assert_eq!((verified.code, verified.stderr.as_str()), (Some(1), ""), "{verified}");
    let report: Value = serde_json::from_str(&verified.stdout).expect("JSON");
    assert_eq!([&report["installed"], &report["intact"]], [false, false], "{report}");
    let verified = sandbox.run(&["toolchain", "verify"]);
    assert!(verified.stderr.contains("is not installed"), "{verified}");
}

#[test]
fn an_update_goes_to_the_newest_that_runs() {
    let sandbox = Sandbox::new();
    package(&sandbox, "[toolchain]\niree = \"3.12.0\" # old\n");
    assert_eq!(
        sandbox.run(&["toolchain", "update", "--offline"]).silent(),
        "this package uses the compiler 3.13.0\n"
    );
    let manifest = fs::read_to_string(sandbox.path("Sheaf.toml")).expect("a file");
    assert_eq!(manifest, "[toolchain]\niree = \"3.13.0\" # old\n");
    let lock = fs::read(sandbox.path("Sheaf.lock")).expect("a file");
    assert_eq!(sandbox.run(&["toolchain", "update", "--offline"]).code, Some(0));
    assert_eq!(fs::read(sandbox.path("Sheaf.lock")).expect("a file"), lock);
    // A modified lock is not used.
    let text = String::from_utf8(lock).expect("text");
    let (before, after) = text.split_once("sha256 = \"").expect("a hash");
    sandbox.write("Sheaf.lock", format!("{before}sha256 = \"{}{}", "0".repeat(64), &after[64..]));
    let output = sandbox.run(&["toolchain", "install", "--offline"]);
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(output);
}

/// The real compiler from an index: its page when the package is pinned, only the file when it is installed.
#[test]
fn a_locked_installation_from_an_index_takes_one_request() {
    let Some(wheel) = sheaf_tests::wheel() else { return };
    let server = Server::mirror(&wheel, Duration::ZERO);
    let index = format!("{}/simple", server.url());
    let sandbox = Sandbox::new();
    package(&sandbox, "");
    let from = |arguments: &[&str]| sandbox.sheaf(arguments).env("SHEAF_TOOLCHAIN_INDEX", &index).run();
    assert_eq!(from(&["toolchain", "pin", "3.13.0"]).silent().lines().count(), 1);
    assert_eq!(server.requests(), ["/simple/iree-base-compiler/"]);
    let lock = fs::read_to_string(sandbox.path("Sheaf.lock")).expect("a file");
    let file = format!("{}/{}", server.url(), wheel.file_name().expect("a name").display());
    assert!(
        lock.ends_with(&format!("[toolchain.addresses]\nindex = \"{index}\"\nlinux-x86_64 = \"{file}\"\n")),
        "{lock}"
    );

    // Offline, the known release stays.
    assert_eq!(from(&["toolchain", "pin", "3.13.0", "--offline"]).code, Some(0));
    let unanswered = sandbox.run(&["toolchain", "pin", "3.13.0"]);
    assert_eq!(unanswered.code, Some(0));
    insta::assert_snapshot!(unanswered);
    assert_eq!(fs::read_to_string(sandbox.path("Sheaf.lock")).expect("a file"), lock);

    // A run installs it like `sheaf toolchain install`.
    sandbox.write("src/main.shf", "(defn f [x] (* x 2.0))\n(print (f (ones [2])))\n");
    let run = from(&["run", "--jit", "always"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(server.requests()[1..], [format!("/{}", wheel.file_name().expect("a name").display())]);
    // The known release is of no use for another one.
    assert_eq!(from(&["toolchain", "pin", "3.12.0", "--offline"]).code, Some(0));
    assert!(!fs::read_to_string(sandbox.path("Sheaf.lock")).expect("a file").contains("addresses"));
}

/// The real compiler: from a mirror with one request; verified; bundled, and installed from the bundle on another
/// machine.
#[test]
#[ignore = "long: make nightly runs it"]
fn a_compiler_is_installed_verified_bundled_and_removed() {
    let Some(wheel) = sheaf_tests::wheel() else { return };
    let sandbox = Sandbox::new();
    package(&sandbox, "");
    assert_eq!(sandbox.run(&["toolchain", "update", "--offline"]).code, Some(0));
    let server = Server::mirror(&wheel, Duration::ZERO);
    let from_mirror =
        |arguments: &[&str]| sandbox.sheaf(arguments).env("SHEAF_TOOLCHAIN_MIRROR", server.url()).run();
    let installed = from_mirror(&["toolchain", "install"]);
    assert_eq!(installed.code, Some(0), "{installed}");
    assert_eq!(server.requests(), [format!("/{}", wheel.file_name().expect("a name").display())]);
    assert_eq!(from_mirror(&["toolchain", "install"]).code, Some(0));
    assert_eq!(server.requests().len(), 1, "installed, it asks nobody");

    // It is a working compiler.
    let which = json(&sandbox.run(&["toolchain", "which", "--json"]));
    let program = which["program"].as_str().expect("a path");
    let version = Command::new(program).arg("--version").output().expect("iree-compile");
    assert!(String::from_utf8_lossy(&version.stdout).contains("3.13.0"), "{version:?}");
    assert_eq!(json(&sandbox.run(&["toolchain", "verify", "--json"]))["intact"], true);

    let bundle = sandbox.run(&["toolchain", "bundle", "-o", "compiler.tar.gz"]);
    assert_eq!(bundle.code, Some(0), "{bundle}");
    let other = Sandbox::new();
    let bundle = sandbox.path("compiler.tar.gz").display().to_string();
    let installed = other.run(&["toolchain", "install", &bundle, "--offline"]);
    assert_eq!(installed.code, Some(0), "{installed}");
    assert_eq!(json(&other.run(&["toolchain", "verify", "--json"]))["intact"], true);

    // Changes one byte of the library.
    let library =
        json(&other.run(&["toolchain", "which", "--json"]))["library"].as_str().expect("a path").to_owned();
    let mut bytes = fs::read(&library).expect("a library");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&library, bytes).expect("a library");
    let verified = other.run(&["toolchain", "verify"]);
    assert_eq!(verified.code, Some(1));
    insta::assert_snapshot!(verified);
    fs::write(&library, "cut short").expect("a library");
    let verified = other.run(&["toolchain", "verify", "--json"]);
    assert_eq!(verified.code, Some(1), "{verified}");
    let report: Value = serde_json::from_str(&verified.stdout).expect("JSON");
    assert_eq!([&report["installed"], &report["intact"]], [true, false], "{report}");
    assert_eq!(report["differences"].as_array().map(Vec::len), Some(1), "{report}");

    assert_eq!(sandbox.run(&["toolchain", "remove", "3.13.0"]).silent(), "the compiler 3.13.0: removed\n");
    assert_eq!(Sandbox::files(&sandbox.home().join("data")), ["toolchains/.lock"]);
}
