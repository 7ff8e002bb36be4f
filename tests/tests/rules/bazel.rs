//! The rules for Bazel: a workspace of the examples, built by a real Bazel in its sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use sheaf_tests::package::{change_hash, with_dependency};
use sheaf_tests::release::{COMPILER, Release, SHEAF, done};
use sheaf_tests::{Sandbox, sample, skip};
use tempfile::TempDir;

use crate::servers;

/// The rules and the stand-ins for what Bazel would fetch.
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/bazel");
const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bazel");

/// A release to build with; `None` without Bazel.
fn release() -> Option<Arc<Release>> {
    servers::tool("SHEAF_TEST_BAZEL", "", "bazel")?;
    Release::shared()
}

/// The examples of the workspace: in `make nightly` the digits too, which have a library, data and a bundle.
fn examples() -> Vec<&'static str> {
    sample(["xor", "digits"], 2).collect()
}

/// A checkout with a Bazel server of its own.
struct Workspace {
    sandbox: Sandbox,
    state: TempDir,
}

impl Workspace {
    /// A checkout of the examples.
    fn checkout(release: &Release) -> Workspace {
        let sandbox = Sandbox::new();
        for example in examples() {
            sandbox.example_folder(example);
            let _ = fs::remove_dir_all(sandbox.path(example).join("__sheaf__"));
        }
        let files: Vec<String> = examples().iter().map(|name| format!("//{name}:shapes.json")).collect();
        Workspace::new(release, sandbox, "", &format!(r#"sheaf_shapes(name = "shapes", files = {files:?})"#))
    }

    /// A workspace in a sandbox, with further attributes of the toolchain and further lines of the file WORKSPACE.
    fn new(release: &Release, sandbox: Sandbox, toolchain: &str, lines: &str) -> Workspace {
        let (sheaf, sheaf_digest) = release.file(SHEAF);
        let (compiler, compiler_digest) = release.file(COMPILER);
        sandbox.write(
            "WORKSPACE",
            format!(
                r#"workspace(name = "examples")
local_repository(name = "rules_sheaf", path = "{RULES}")
load("@rules_sheaf//sheaf:repositories.bzl", "sheaf_packages", "sheaf_register_toolchains", "sheaf_shapes")
sheaf_register_toolchains(
    sheaf = {{"linux-x86_64": "file://{}"}},
    sha256 = {{"linux-x86_64": "{sheaf_digest}"}},
    strip_prefix = "sheaf-1",
    compiler = {{"linux-x86_64": "file://{}"}},
    compiler_sha256 = {{"linux-x86_64": "{compiler_digest}"}},
    {toolchain}
)
{lines}
"#,
                sheaf.display(),
                compiler.display()
            ),
        );
        Workspace { sandbox, state: tempfile::tempdir().expect("a folder") }
    }

    fn bazel(&self, command: &str, options: &[&str]) -> Command {
        let bazel = servers::tool("SHEAF_TEST_BAZEL", "", "bazel").expect("asked before");
        let mut bazel = Command::new(bazel);
        bazel
            .arg(format!("--output_user_root={}", self.state.path().display()))
            .arg(command)
            .current_dir(self.sandbox.path(""))
            .env("HOME", self.sandbox.home());
        if command != "shutdown" {
            // Debian's own settings make a sandbox of any failed action stay, and talk.
            bazel.args(["--nosandbox_debug", "--color=no", "--curses=no"]);
            for (name, folder) in [
                ("rules_cc", "rules_cc"),
                ("rules_java", "rules_java"),
                ("remote_coverage_tools", "coverage"),
            ] {
                bazel.arg(format!("--override_repository={name}={STAND_INS}/{folder}"));
            }
        }
        bazel.args(options);
        bazel
    }

    fn run(&self, command: &str, options: &[&str]) -> Output {
        let output = self.bazel(command, options).output().expect("bazel starts");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        output
    }

    /// Actions that a build executes: each mnemonic, with true if the result came from the remote cache.
    fn executed(&self, command: &str, options: &[&str]) -> Vec<(String, bool)> {
        let log = self.state.path().join("actions.json");
        let option = format!("--execution_log_json_file={}", log.display());
        self.run(command, &[&[option.as_str()], options].concat());
        let log = fs::read_to_string(log).expect("a log");
        let actions = serde_json::Deserializer::from_str(&log).into_iter::<Value>();
        actions
            .map(|action| {
                let action = action.expect("JSON");
                let name = action["mnemonic"].as_str().unwrap_or_default().to_owned();
                (name, action["remoteCacheHit"].as_bool().unwrap_or_default())
            })
            .collect()
    }

    fn output(&self, path: &str) -> PathBuf {
        self.sandbox.path("bazel-bin").join(path)
    }

    /// Replaces a text in a source file.
    fn edit(&self, path: &str, from: &str, to: &str) {
        let source = fs::read_to_string(self.sandbox.path(path)).expect("a source");
        assert!(source.contains(from), "{source}");
        self.sandbox.write(path, source.replace(from, to));
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = self.bazel("shutdown", &[]).output();
        // Bazel makes outputs read-only, and folders of them cannot be emptied then.
        let _ = Command::new("chmod").args(["-R", "u+w"]).arg(self.state.path()).output();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Number of executed actions of a kind; those of the remote cache are not executed.
fn count(actions: &[(String, bool)], mnemonic: &str) -> usize {
    actions.iter().filter(|(name, cached)| name == mnemonic && !cached).count()
}

/// Number of calls in the shapes file of an example.
fn calls(example: &str) -> usize {
    let path = Path::new(STAND_INS).join("../../examples").join(example).join("shapes.json");
    let shapes: Value = serde_json::from_str(&fs::read_to_string(path).expect("shapes")).expect("JSON");
    shapes["calls"].as_array().expect("calls").len()
}

#[test]
fn the_examples_are_built_tested_and_cached() {
    let Some(release) = release() else { return };
    let Some(cache) = servers::nginx() else { return };
    let remote = format!("--remote_cache=http://127.0.0.1:{}/cache", cache.port);
    let first = Workspace::checkout(&release);
    let has_digits = first.sandbox.path("digits").is_dir();
    if has_digits && !first.sandbox.path("digits/digits.csv").is_file() {
        skip("there are no digits: scripts/fetch-digits");
        return;
    }
    let built = first.executed("test", &[&remote, "--test_output=errors", "//..."]);
    // One action for each call: the binary and the test of each program, and the functions of XOR for a GPU.
    let xor = calls("xor");
    let compiled: usize = examples().iter().map(|example| 2 * calls(example)).sum();
    assert_eq!(count(&built, "SheafCompile"), compiled + xor);
    assert_eq!(count(&built, "SheafLower"), 2 * examples().len() + 1);
    // A test is one action or two: its log may be converted by another.
    assert!(count(&built, "TestRunner") >= examples().len());
    let query = text(&first.run("aquery", &["mnemonic(SheafCompile, //xor:train)"]).stdout);
    assert_eq!(query.matches("Mnemonic: SheafCompile").count(), xor, "{query}");

    // Nothing is compiled in a second checkout.
    let second = Workspace::checkout(&release);
    let built = second.executed("build", &[&remote, "//..."]);
    assert_eq!(built.iter().filter(|(_, cached)| !cached).count(), 0, "{built:?}");
    assert!(built.iter().any(|(name, cached)| name == "SheafCompile" && *cached), "{built:?}");
    let run = text(&second.run("run", &[&remote, "//xor:train"]).stdout);
    assert!(run.contains("[1. 1.] -> 0.0"), "{run}");

    // A change of one function is a compilation of that function, and a moved line is none.
    second.edit("xor/train.shf", "(defn train-step", "; moved\n\n(defn train-step");
    let built = second.executed("build", &["--nofetch", "//xor:train"]);
    assert_eq!((count(&built, "SheafLower"), count(&built, "SheafCompile")), (1, 0), "{built:?}");
    second.edit("xor/train.shf", "(sgd-step p grads lr)", "(sgd-step p grads (* 2 lr))");
    let built = second.executed("build", &["--nofetch", "//xor:train"]);
    assert_eq!((count(&built, "SheafLower"), count(&built, "SheafCompile")), (1, 1), "{built:?}");

    // The bundle is one like any other.
    if has_digits {
        let bundle = first.output("digits/bundle.tar.gz").display().to_string();
        let verified = first.sandbox.run(&["bundle", "verify", &bundle]);
        assert!(verified.stdout.contains("files as train linux-x86_64 lists them"), "{verified:?}");
    }

    // A run uses what Bazel compiled.
    let user = Sandbox::new();
    user.example("xor/train.shf");
    for name in Sandbox::files(&first.output("xor/train.sheaf")) {
        let file = fs::read(first.output("xor/train.sheaf").join(&name)).expect("a file");
        user.write(&format!("xor/__sheaf__/{name}"), file);
    }
    let run = user.run(&["xor/train.shf", "--offline", "--strict", "--jit", "always"]).compiled_nothing();
    assert!(run.contains("[1. 1.] -> 0.0"), "{run}");
}

#[test]
fn packages_come_from_the_lock_and_programs_from_a_store() {
    let Some(release) = release() else { return };
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    with_dependency(&sandbox);
    sandbox.write(
        "net/BUILD.bazel",
        r#"load("@rules_sheaf//sheaf:defs.bzl", "sheaf_test")
load("@shapes//:calls.bzl", "CALLS")
exports_files(["Sheaf.toml", "Sheaf.lock"])
sheaf_test(
    name = "train_test",
    size = "small",
    srcs = ["Sheaf.toml", "Sheaf.lock"],
    calls = CALLS["//net:shapes.json"],
    frozen_shapes = True,
    main = "src/main.shf",
    packages = ["@net_packages//:packages"],
    shapes = "shapes.json",
)
"#,
    );
    // `sheaf build` has compiled all but one of the functions.
    let build = ["build", "--shapes", "shapes.json", "--cpu", "x86-64-v3", "src/main.shf"];
    sandbox.sheaf(&[&build[..], &["forward", "init-params"]].concat()).at("net").run().compiled();
    fs::remove_dir_all(sandbox.path("net/__sheaf__")).expect("a folder");
    let store = sandbox.home().join("cache");
    let lines = r#"sheaf_shapes(name = "shapes", files = ["//net:shapes.json"])
sheaf_packages(name = "net_packages", lock = "//net:Sheaf.lock", manifest = "//net:Sheaf.toml")"#;
    // A mirror has the files by their names; a wrong one is passed over.
    let (archive, _) = release.file(SHEAF);
    let mirror = archive.parent().expect("a folder").display();
    let toolchain = format!(
        "store = \"{}\",\n    mirrors = [\"file:///nowhere-at-all\", \"file://{mirror}\"],",
        store.display()
    );
    let workspace = Workspace::new(&release, sandbox, &toolchain, lines);
    let addresses = fs::read_to_string(workspace.sandbox.path("WORKSPACE")).expect("written");
    let elsewhere =
        addresses.replace(&format!("\"file://{}\"}}", archive.display()), "\"file:///absent/sheaf.tar\"}");
    assert_ne!(elsewhere, addresses);
    workspace.sandbox.write("WORKSPACE", elsewhere);
    let before = Sandbox::files(&store.join("claims-v1")).len();
    let writable = format!("--sandbox_writable_path={}", store.display());
    workspace.run("test", &[&writable, "--test_output=errors", "//..."]);
    assert_eq!(Sandbox::files(&store.join("claims-v1")).len(), before + 1);
    // And what Bazel has compiled, `sheaf build` has.
    workspace.sandbox.sheaf(&build).at("net").run().compiled_nothing();

    change_hash(&workspace.sandbox, "net/Sheaf.lock");
    let output = workspace.bazel("build", &["//..."]).output().expect("bazel starts");
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && said.contains("the packages of //net:Sheaf.lock cannot be fetched"),
        "{said}"
    );
}

/// Files below a folder that Bazel reads.
fn files(folder: &Path) -> Vec<PathBuf> {
    let is_read = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        is_extension(path) || ["BUILD.bazel", "MODULE.bazel", "WORKSPACE"].iter().any(|known| name == *known)
    };
    Sandbox::files(folder).into_iter().map(|name| folder.join(name)).filter(is_read).collect()
}

fn is_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "bzl")
}

#[test]
fn buildifier_has_nothing_to_say() {
    let Some(buildifier) =
        servers::tool("SHEAF_TEST_BUILDIFIER", "buildifier-8.2.1/node_modules/.bin/buildifier", "buildifier")
    else {
        return;
    };
    let examples = Path::new(STAND_INS).join("../../examples");
    let mut all = files(Path::new(RULES));
    for folder in [Path::new(STAND_INS), &examples.join("xor"), &examples.join("digits")] {
        all.extend(files(folder));
    }
    assert!(all.len() > 10, "{all:?}");
    done(Command::new(buildifier).args(["-mode=check", "-lint=warn"]).args(all));
}

#[test]
fn every_attribute_is_in_the_reference() {
    let book = fs::read_to_string(Path::new(STAND_INS).join("../../docs/bazel.md")).expect("the page");
    let attribute = regex::Regex::new(r#"(?m)^\s+"?(\w+)"?\s*[=:] attr\."#).expect("a pattern");
    let mut count = 0;
    // The toolchain's own rule is not for users, and the extension's attributes are those of the repositories.
    let is_public = |file: &&PathBuf| {
        is_extension(file) && !file.ends_with("toolchain.bzl") && !file.ends_with("extensions.bzl")
    };
    for file in files(Path::new(RULES)).iter().filter(is_public) {
        let text = fs::read_to_string(file).expect("a file");
        for found in attribute.captures_iter(&text) {
            assert!(book.contains(&format!("| `{}` |", &found[1])), "docs/bazel.md lacks `{}`", &found[1]);
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
