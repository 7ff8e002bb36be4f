//! A package with a dependency, as build systems build it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Sandbox;
use crate::release::done;

/// Writes the package `xor-net` into the folder `net`: the XOR example with a dependency, which is in a git repository of its own in
/// the folder `scaling`. It has `Sheaf.lock`, and its calls are recorded in `shapes.json`.
pub fn with_dependency(sandbox: &Sandbox) {
    sandbox.write("scaling/Sheaf.toml", "[package]\nname = \"scaling\"\nversion = \"0.1.0\"\n");
    sandbox.write("scaling/src/lib.shf", "(defn scaled [x] (* 3 x))\n");
    commit(&sandbox.path("scaling"));
    let example = sandbox.example("xor/train.shf");
    let source = fs::read_to_string(sandbox.path(&example)).expect("the example");
    let source = source.replace("(use optim)", "(use optim)\n(use scaling)");
    let scaled = source.replace("(sgd-step p grads lr)", "(sgd-step p grads (scaled (/ lr 3)))");
    assert_ne!(scaled, source);
    sandbox.write("net/src/main.shf", scaled);
    let manifest = format!(
        "[package]\nname = \"xor-net\"\nversion = \"0.1.0\"\n\n[dependencies]\nscaling = {{ git = \"file://{}\" }}\n",
        sandbox.path("scaling").display()
    );
    sandbox.write("net/Sheaf.toml", manifest);
    let recorded = sandbox.sheaf(&["run", "--jit", "always", "--record", "shapes.json"]).at("net").run();
    recorded.compiled();
    fs::remove_dir_all(sandbox.path("net/__sheaf__")).expect("a folder");
}

/// Makes a git repository of a folder, or a further commit.
pub fn commit(folder: &Path) {
    let git = |arguments: &[&str]| {
        done(Command::new("git").args(arguments).current_dir(folder));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["-c", "user.name=Ada", "-c", "user.email=ada@example", "commit", "--quiet", "--message=state"]);
}

/// Changes the hash of the first package of a lock.
pub fn change_hash(sandbox: &Sandbox, lock: &str) {
    let text = fs::read_to_string(sandbox.path(lock)).expect("a lock");
    let start = text.find("sha256-").expect("a hash") + "sha256-".len();
    let other = if text[start..].starts_with('A') { "B" } else { "A" };
    sandbox.write(lock, format!("{}{other}{}", &text[..start], &text[start + 1..]));
}
