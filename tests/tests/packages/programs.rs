//! Compiled programs of packages: an author compiles once, and machines without a compiler run them.

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message as _;
use sheaf_tests::Sandbox;

use crate::cache_web::{Fault, Files, Web};
use crate::servers::{Server, words};
use crate::world::{World, project_files};

/// A typed step, its example and its test.
const FILES: [(&str, &str); 4] = [
    (
        "Sheaf.toml",
        "[package]\nname = \"stepper\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n",
    ),
    (
        "src/lib.shf",
        "(defn loss [w x y] (mean (square (- (@ x w) y))))\n\
         (defn step [(w f32 [64 8]) (x f32 [32 64]) (y f32 [32 8])]\n  (- w (* 0.1 ((grad loss) w x y))))\n",
    ),
    (
        "examples/fit.shf",
        "(use stepper)\n(print (shape (step (zeros '[64 8]) (ones '[32 64]) (ones '[32 8]))))\n",
    ),
    (
        "tests/step.shf",
        "(use stepper)\n(shape (step (zeros '[64 8]) (ones '[32 64]) (ones '[32 8]))) ;=> '[64 8]\n",
    ),
];

/// Calls the step from interpreted code.
const PROGRAM: &str = "(use stepper)\n(def x (ones '[32 64]))\n(def w (zeros '[64 8]))\n\
    (def v (step (step w x (ones '[32 8])) x (ones '[32 8])))\n(print (mean v))\n";

/// `sheaf cache serve`.
fn cache_server() -> Server {
    Server::start(|folder, port| {
        let (data, listen) = (folder.join("data"), format!("127.0.0.1:{port}"));
        words([&sheaf_tests::sheaf(), &"cache", &"serve", &"--folder", &data, &"--listen", &listen])
    })
}

/// Publishes the package `stepper` with its programs, compiled for the remote, and these options; the author's key. `None`
/// without a compiler, after printing that.
fn published(world: &World, remote: &str, options: &[&str]) -> Option<String> {
    let author = Sandbox::with_compiler()?;
    for (name, text) in FILES {
        author.write(&format!("stepper/{name}"), text);
    }
    world.push(&author.path("stepper"), "stepper", &["v1.0.0"]);
    let publish = [&["publish", "--programs", remote], options].concat();
    let unsigned = world.author(&author, &publish).at("stepper").run();
    assert_eq!(unsigned.code, Some(1), "{unsigned}");
    assert!(unsigned.stderr.contains("sheaf cache key new"), "{unsigned}");
    let key = author.run(&["cache", "key", "new", "ada"]);
    let published = world.author(&author, &publish).at("stepper").run();
    assert_eq!(published.code, Some(0), "{published}");
    Some(key.stdout.trim().to_owned())
}

/// A machine without a compiler, whose project has the package and calls its step from interpreted code.
fn user(world: &World, key: &str, remote: &str) -> Sandbox {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "stepper"]).at("demo").run();
    let trust = format!("sheaf cache key trust {key} --from {remote}");
    assert!(added.code == Some(0) && added.stdout.contains(&trust), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    user
}

/// A run that must not compile.
const STRICT: [&str; 4] = ["run", "--jit", "always", "--strict"];

#[test]
fn a_package_comes_compiled_for_a_machine_without_a_compiler() {
    let world = World::new();
    let server = cache_server();
    let remote = format!("http://127.0.0.1:{}", server.port);
    let options: &[&str] = if cfg!(target_arch = "x86_64") {
        &["--device", "cpu", "--cpu", "x86-64-v3"]
    } else {
        &["--device", "cpu"]
    };
    let Some(key) = published(&world, &remote, options) else { return };
    let keeper = Sandbox::new();
    let line = std::fs::read_to_string(world.checkout(&keeper).join("st/ep/stepper")).expect("a line");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["programs"], serde_json::json!({ "remote": remote, "devices": ["cpu"] }));

    let user_one = user(&world, &key, &remote);
    let run = |user: &Sandbox, options: &[&str]| user.sheaf(&[&STRICT, options].concat()).at("demo").run();
    // The cache is not asked before the user trusts the key.
    let before = run(&user_one, &[]);
    assert_eq!(before.code, Some(1), "{before}");
    // As `sheaf add` prints it.
    let trusted = user_one.sheaf(&["cache", "key", "trust", &key, "--from", &remote]).at("demo").run();
    assert_eq!(trusted.code, Some(0), "{trusted}");
    let explained = run(&user_one, &["--explain"]);
    assert!(explained.stderr.contains("  compiled, 2 calls\n"), "{explained}");
    assert_eq!(explained.compiled_nothing(), "0.010000021\n");
    // The package's example, as the store has it, as a main program.
    let sources = user_one.home().join("cache/sources");
    let example = Sandbox::files(&sources).into_iter().find(|name| name.ends_with("examples/fit.shf"));
    user_one
        .write("demo/fit.shf", std::fs::read(sources.join(example.expect("an example"))).expect("a file"));
    let example = run(&user_one, &["fit.shf", "--explain"]);
    assert!(example.stderr.contains("  compiled, 1 call\n"), "{example}");
    assert_eq!(example.compiled_nothing(), "[64 8]\n");

    // Trust in the key wherever it signs.
    let user_two = user(&world, &key, &remote);
    let trusted = user_two.sheaf(&["cache", "key", "trust", &key]).at("demo").run();
    assert_eq!(trusted.code, Some(0), "{trusted}");
    assert_eq!(run(&user_two, &[]).compiled_nothing(), "0.010000021\n");
    // From then on without the server too.
    drop(server);
    for user in [&user_one, &user_two] {
        assert_eq!(run(user, &["--offline"]).silent(), "0.010000021\n");
    }
}

/// The keeper of a cache cannot put a program there.
#[test]
fn a_claim_without_its_signature_is_not_used() {
    let world = World::new();
    let web = Web::start(Files::new(), Fault::None);
    let remote = web.remote().address;
    let Some(key) = published(&world, &remote, &[]) else { return };
    let signed = web.files().clone();
    for (path, bytes) in web.files().iter_mut().filter(|(path, _)| path.starts_with("/ac/")) {
        let mut result = ActionResult::decode(&bytes[..]).expect("a result");
        let end = result.stdout_raw.iter().position(|byte| *byte == b'\n').expect("a claim");
        assert!(end + 1 < result.stdout_raw.len(), "{path} has a signature");
        result.stdout_raw.truncate(end + 1);
        *bytes = result.encode_to_vec();
    }
    let user = user(&world, &key, &remote);
    assert_eq!(
        user.sheaf(&["cache", "key", "trust", &key, "--from", &remote]).at("demo").run().code,
        Some(0)
    );
    let run = || user.sheaf(&STRICT).at("demo").run();
    let refused = run();
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
    assert!(refused.stderr.contains("has a program for step, but nobody signed it"), "{refused}");
    assert!(!user.path("demo/__sheaf__").exists());
    *web.files() = signed;
    assert_eq!(run().compiled_nothing(), "0.010000021\n");
}

#[test]
fn a_key_trusted_elsewhere_and_another_key_count_nothing() {
    let world = World::new();
    let server = cache_server();
    let remote = format!("http://127.0.0.1:{}", server.port);
    let Some(key) = published(&world, &remote, &["--no-test"]) else { return };
    let other = Sandbox::new().run(&["cache", "key", "new", "eve"]).stdout.trim().to_owned();
    for (trusted, from) in [(&key, "http://127.0.0.1:1"), (&other, remote.as_str())] {
        let user = user(&world, &key, &remote);
        assert_eq!(user.run(&["cache", "key", "trust", trusted, "--from", from]).code, Some(0));
        let run = user.sheaf(&STRICT).at("demo").run();
        assert_eq!(run.code, Some(1), "{run}");
        assert!(!user.path("demo/__sheaf__").exists(), "{run}");
    }
}

/// The keeper of a registry cannot change what an author signed.
#[test]
fn a_changed_line_of_a_signed_version_is_refused() {
    let world = World::new();
    let author = Sandbox::new();
    for (name, text) in FILES {
        author.write(&format!("stepper/{name}"), text);
    }
    world.push(&author.path("stepper"), "stepper", &["v1.0.0"]);
    assert_eq!(author.run(&["cache", "key", "new", "ada"]).code, Some(0));
    assert_eq!(world.author(&author, &["publish", "--no-test"]).at("stepper").run().code, Some(0));
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    let line = checkout.join("st/ep/stepper");
    let text = std::fs::read_to_string(&line).expect("the line");
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let add = || world.sheaf(&user, &["add", "stepper"]).at("demo").run();
    std::fs::write(&line, text.replace("\"MIT\"", "\"Apache-2.0\"")).expect("a file");
    world.push(&checkout, "index", &[]);
    let (before, refused) = (project_files(&user, "demo"), add());
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("is not what ada:"), "{refused}");
    assert_eq!(project_files(&user, "demo"), before);
    std::fs::write(&line, text).expect("a file");
    world.push(&checkout, "index", &[]);
    assert_eq!(add().code, Some(0));
    let lock = std::fs::read_to_string(user.path("demo/Sheaf.lock")).expect("a lock");
    assert!(lock.contains("signer = \"ada:"), "{lock}");
}
