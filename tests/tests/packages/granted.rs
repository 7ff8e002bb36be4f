//! Hostile packages: each thing that a package may not decide for its users, whatever it brings along.

use std::fs;

use sheaf_tests::Sandbox;

use crate::cache_web::{Fault, Files, Web};
use crate::world::{Trap, World};

/// A package that asks for everything, with a function that pays to compile.
fn greedy(author: &Sandbox, world: &World, trap: &str, helper: &str) {
    let index = world.registry();
    author.write(
        "p/Sheaf.toml",
        format!(
            "[package]\nname = \"greedy\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n\n\
             [cache]\nremote = [\"http://{trap}/\"]\ntrusted-keys = [\"ed25519:abc\"]\ncredential-helper = \"{helper}\"\n\
             max-size = \"1 B\"\nexecutor = \"grpc://{trap}\"\n\n\
             [toolchain]\niree = \"3.12.0\"\nindex = \"http://{trap}/simple\"\nmirrors = [\"http://{trap}/\"]\n\n\
             [registries]\ndefault = \"http://{trap}/\"\nteam = \"{index}\"\n"
        ),
    );
    author.write("p/src/lib.shf", LIBRARY);
}

const LIBRARY: &str = "(defn f \"(f [1 2 3]) ;=> [2 6 12]\" [(x f32 [3])] (* x (+ x 1)))\n";

const PROGRAM: &str = "(use greedy)\n(print (f [1 2 3]))\n";

/// A project with the package, by a registry or by its git repository.
fn user(world: &World, from_registry: bool) -> Sandbox {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let git = world.address("greedy");
    let add: &[&str] = if from_registry { &["add", "greedy"] } else { &["add", "greedy", "--git", &git] };
    let added = world.sheaf(&user, add).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    user
}

#[test]
fn a_package_gets_nothing_by_its_manifest() {
    let (world, trap) = (World::new(), Trap::new());
    for from_registry in [false, true] {
        let author = Sandbox::new();
        let marker = author.path("helper-ran");
        greedy(&author, &world, &trap.host(), &format!("touch {}", marker.display()));
        world.push(&author.path("p"), "greedy", &["v1.0.0"]);
        if from_registry {
            let publish = ["publish", "--no-test", "--registry", "team"];
            let published = world.author(&author, &publish).at("p").run();
            assert_eq!(published.code, Some(0), "{published}");
        }
        let before = trap.count();
        let user = user(&world, from_registry);
        let run = |arguments: &[&str]| user.sheaf(arguments).at("demo").run();
        // Without a compiler: a cache, a cluster or a mirror would be asked.
        let compiled = run(&["run", "--jit", "always"]);
        assert_eq!((compiled.code, compiled.stdout.as_str()), (Some(0), "[ 2.  6. 12.]\n"), "{compiled}");
        for command in [
            &["run", "--jit", "always", "--strict"][..],
            &["build"],
            &["cache", "pull"],
            &["toolchain", "install"],
            &["cache", "push"],
        ] {
            let refused = run(command);
            assert_eq!(refused.code, Some(1), "{refused}");
            assert!(!refused.stderr.contains("3.12.0"), "{refused}");
        }
        let keys = run(&["cache", "key", "list"]).silent();
        assert!(keys.contains("no other key is trusted"), "{keys}");
        assert_eq!(trap.count(), before, "its servers are not asked");
        assert!(!marker.exists(), "its credential helper does not run");
        assert!(!user.path("demo/__sheaf__").exists());
    }
}

/// Native code that comes along with the sources of a package.
#[test]
fn programs_in_the_sources_of_a_package_are_not_used() {
    let Some(author) = Sandbox::with_compiler() else { return };
    let world = World::new();
    greedy(&author, &world, "127.0.0.1:1", "true");
    // Without its requests, which its own author would have to trust.
    let manifest = fs::read_to_string(author.path("p/Sheaf.toml")).expect("a manifest");
    let (package, _) = manifest.split_once("[cache]").expect("its requests");
    author.write("p/Sheaf.toml", package);
    author.write("p/src/main.shf", "(use greedy)\n(print (f [1 2 3]))\n");
    let built = author.sheaf(&["build", "src/lib.shf"]).at("p").run();
    assert_eq!(built.code, Some(0), "{built}");
    assert_eq!(author.sheaf(&["run", "--jit", "always", "--strict"]).at("p").run().stdout, "[ 2.  6. 12.]\n");
    world.push(&author.path("p"), "greedy", &["v1.0.0"]);
    let published = world.author(&author, &["publish", "--no-test"]).at("p").run();
    assert_eq!(published.code, Some(0), "{published}");
    for from_registry in [false, true] {
        let user = user(&world, from_registry);
        let sources = Sandbox::files(&user.home().join("cache/sources"));
        assert!(sources.iter().any(|name| name.ends_with("/__sheaf__/f.cpu.vmfb")), "{sources:?}");
        let refused = user.sheaf(&["run", "--jit", "always", "--strict"]).at("demo").run();
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
        assert!(refused.stderr.contains("there is no compiler, and --strict forbids"), "{refused}");
        assert!(!user.path("demo/__sheaf__").exists());
        // Beside the user's own sources they would count: it is the place that makes the difference.
        let entry =
            sources.iter().find_map(|name| name.strip_suffix("/__sheaf__/manifest.json")).expect("it");
        let folder = user.home().join("cache/sources").join(entry).join("__sheaf__");
        for name in Sandbox::files(&folder) {
            user.write(&format!("demo/__sheaf__/{name}"), fs::read(folder.join(&name)).expect("a file"));
        }
        let own = user.sheaf(&["run", "--jit", "always", "--strict"]).at("demo").run();
        assert_eq!(own.silent(), "[ 2.  6. 12.]\n");
    }
}

/// A dependency's `trusted-keys` trust no one, even in what its author signed and sent.
#[test]
fn a_key_that_only_a_dependency_trusts_opens_nothing() {
    let Some(author) = Sandbox::with_compiler() else { return };
    let world = World::new();
    let web = Web::start(Files::new(), Fault::None);
    let remote = web.remote().address;
    let key = author.run(&["cache", "key", "new", "ada"]).stdout.trim().to_owned();
    author.write(
        "p/Sheaf.toml",
        format!(
            "[package]\nname = \"greedy\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n\n\
             [cache]\nremote = [\"{remote}\"]\ntrusted-keys = [\"{key}\", \"{key}@{remote}\"]\n"
        ),
    );
    author.write("p/src/lib.shf", LIBRARY);
    world.push(&author.path("p"), "greedy", &["v1.0.0"]);
    let published = world.author(&author, &["publish", "--no-test", "--programs", &remote]).at("p").run();
    assert_eq!(published.code, Some(0), "{published}");
    assert!(web.files().keys().any(|path| path.starts_with("/ac/")), "its programs are there");
    let before = web.requests().len();
    let user = user(&world, true);
    let run = |options: &[&str]| {
        user.sheaf(&[&["run", "--jit", "always", "--strict"], options].concat()).at("demo").run()
    };
    let refused = run(&[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
    assert_eq!(web.requests().len(), before, "the remote is not asked");
    // Asked by the user's own wish, it has nothing that counts.
    let refused = run(&["--cache-remote", &remote, "--read-only"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
    assert!(refused.stderr.contains("who is not trusted"), "{refused}");
    assert!(web.requests().len() > before);
    assert_eq!(user.run(&["cache", "key", "trust", &key]).code, Some(0));
    assert_eq!(run(&[]).compiled_nothing(), "[ 2.  6. 12.]\n");
}
