//! Compiled programs of packages: an author compiles once, and machines without a compiler run them.

use sheaf_tests::Sandbox;

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

#[test]
fn a_package_comes_compiled_for_a_machine_without_a_compiler() {
    let Some(author) = Sandbox::with_compiler() else { return };
    let world = World::new();
    let server = cache_server();
    let remote = format!("http://127.0.0.1:{}", server.port);
    for (name, text) in FILES {
        author.write(&format!("stepper/{name}"), text);
    }
    world.push(&author.path("stepper"), "stepper", &["v1.0.0"]);
    let publish = ["publish", "--programs", &remote];
    let unsigned = world.author(&author, &publish).at("stepper").run();
    assert_eq!(unsigned.code, Some(1), "{unsigned}");
    assert!(unsigned.stderr.contains("sheaf cache key new"), "{unsigned}");
    let key = author.run(&["cache", "key", "new", "ada"]);
    let key = key.stdout.trim().to_owned();
    let published = world.author(&author, &publish).at("stepper").run();
    assert_eq!(published.code, Some(0), "{published}");

    // Another machine, without a compiler.
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "stepper"]).at("demo").run();
    let trust = format!("sheaf cache key trust {key} --from {remote}");
    assert!(added.code == Some(0) && added.stdout.contains(&trust), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    let run = |options: &[&str]| user.sheaf(&[&["run"], options].concat()).at("demo").run();
    // Nobody is asked before the user trusts the key.
    let before = run(&["--jit", "always", "--strict"]);
    assert_eq!(before.code, Some(1), "{before}");
    let words: Vec<&str> = trust.split(' ').skip(1).collect();
    let trusted = user.sheaf(&words).at("demo").run();
    assert_eq!(trusted.code, Some(0), "{trusted}");
    let explained = run(&["--jit", "always", "--strict", "--explain"]);
    assert!(explained.stderr.contains("  compiled, 2 calls\n"), "{explained}");
    assert_eq!(explained.compiled_nothing(), "0.010000021\n");
    // From then on without the server too.
    drop(server);
    let offline = run(&["--jit", "always", "--strict", "--offline"]);
    assert_eq!(offline.silent(), "0.010000021\n");
}

#[test]
fn a_key_trusted_elsewhere_and_another_key_count_nothing() {
    let Some(author) = Sandbox::with_compiler() else { return };
    let world = World::new();
    let server = cache_server();
    let remote = format!("http://127.0.0.1:{}", server.port);
    for (name, text) in FILES {
        author.write(&format!("stepper/{name}"), text);
    }
    world.push(&author.path("stepper"), "stepper", &["v1.0.0"]);
    let key = author.run(&["cache", "key", "new", "ada"]).stdout.trim().to_owned();
    let other = Sandbox::new().run(&["cache", "key", "new", "eve"]).stdout.trim().to_owned();
    let published =
        world.author(&author, &["publish", "--no-test", "--programs", &remote]).at("stepper").run();
    assert_eq!(published.code, Some(0), "{published}");
    for (key, from) in [(&key, "http://127.0.0.1:1"), (&other, remote.as_str())] {
        let user = Sandbox::new();
        user.run(&["new", "demo"]).silent();
        assert_eq!(user.run(&["cache", "key", "trust", key, "--from", from]).code, Some(0));
        let added = world.sheaf(&user, &["add", "stepper"]).at("demo").run();
        assert_eq!(added.code, Some(0), "{added}");
        user.write("demo/src/main.shf", PROGRAM);
        let run = user.sheaf(&["run", "--jit", "always", "--strict"]).at("demo").run();
        assert_eq!(run.code, Some(1), "{run}");
        assert!(!user.path("demo/__sheaf__").exists(), "{run}");
    }
}

/// Whoever keeps the registry cannot change what an author signed.
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
