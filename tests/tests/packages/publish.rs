//! `sheaf publish`: refusals that leave the registry as it is, and publishers that meet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use regex::Regex;
use sheaf_tests::Sandbox;

use crate::world::{World, git, project_files};

const MANIFEST: &str =
    "[package]\nname = \"maths\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n";

/// An author with a package that could be published, once it is pushed.
fn author(manifest: &str) -> Sandbox {
    let author = Sandbox::new();
    author.write("p/Sheaf.toml", manifest);
    author.write("p/src/lib.shf", "(defn twice [x] (* 2 x))\n");
    author.write("p/tests/t.shf", "(use maths)\n(twice 2) ;=> 4\n");
    author
}

/// The commit of the registry.
fn state(world: &World) -> String {
    git(&world.bare("index"), &["rev-parse", "main"])
}

#[test]
fn what_users_could_not_use_is_refused_and_the_registry_stays() {
    let world = World::new();
    world.publish("other", "1.0.0", "", "");
    let before = state(&world);
    let commit = Regex::new("[0-9a-f]{40}").expect("a pattern");
    let refused = |author: &Sandbox, arguments: &[&str]| {
        let refused = world.author(author, &[&["publish"], arguments].concat()).at("p").run();
        assert_eq!(refused.code, Some(1), "{refused}");
        assert_eq!(state(&world), before, "{refused}");
        commit.replace_all(&world.neutral(&refused), "COMMIT").into_owned()
    };
    let without = |key: &str| {
        let lines = MANIFEST.lines().filter(|line| !line.starts_with(key));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let mut all = String::new();
    for key in ["name", "version", "license", "description"] {
        let author = author(&without(key));
        world.push(&author.path("p"), "maths", &["v1.0.0"]);
        all += &refused(&author, &["--no-test"]);
    }
    insta::assert_snapshot!(all, @r#"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [package] in Sheaf.toml has no `name`
       = help: add name = "my-package"

    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [package] in Sheaf.toml has no `version`
       = help: add version = "0.1.0"

    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [package] in Sheaf.toml has no `license`
       = help: add license = "Apache-2.0"

    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [package] in Sheaf.toml has no `description`
       = help: add description = "one sentence about the package"
    "#);

    let wrong = author(MANIFEST);
    wrong.write("p/tests/t.shf", "(use maths)\n(twice 2) ;=> 5\n");
    world.push(&wrong.path("p"), "maths", &["v1.0.0"]);
    insta::assert_snapshot!(refused(&wrong, &[]), @"
    $ sheaf publish
    exit code 1
    standard output:
      no errors; checked 3 files: 2 functions, 3 calls
      1 example in 1 file: 0 passed, 1 failed
    standard error:
      error: this gives another value
        ┌─ tests/t.shf:2:11
        │
      2 │ (twice 2) ;=> 5
        │ --------- ^^^^^ expected here
        │
        = expected 5
          found    4

      error: `sheaf test --no-jit` fails
       = help: correct what is said above; --no-test publishes all the same
    ");

    let untagged = author(MANIFEST);
    world.push(&untagged.path("p"), "untagged", &[]);
    insta::assert_snapshot!(refused(&untagged, &["--no-test"]), @"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: no tag of 1.0.0 names the commit COMMIT that is checked out
       = help: run `git tag v1.0.0 && git push origin v1.0.0` on the commit of this version
    ");
    git(&untagged.path("p"), &["tag", "v1.0.0"]);
    insta::assert_snapshot!(refused(&untagged, &["--no-test"]), @"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: the tag v1.0.0 is here, and not at git://[address]/untagged.git, where users fetch it
       = help: push it: `git push origin v1.0.0`
    ");
    // A tag that others get with another commit.
    world.push(&untagged.path("p"), "untagged", &[]);
    untagged.write("p/src/lib.shf", "(defn twice [x] (+ x x))\n");
    git(&untagged.path("p"), &["commit", "--quiet", "--all", "-m", "change"]);
    git(&untagged.path("p"), &["tag", "--force", "v1.0.0"]);
    insta::assert_snapshot!(refused(&untagged, &["--no-test"]), @"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: at git://[address]/untagged.git the tag v1.0.0 names COMMIT, and here COMMIT
       = help: push the tag: `git push origin v1.0.0`; a pushed tag stays as it is, so a change needs another version
    ");

    let mut all = String::new();
    for dependency in ["other = { path = \"../other\" }", "other = { git = \"https://git.example/other\" }"] {
        let dependent = author(&format!("{MANIFEST}\n[dependencies]\n{dependency}\n"));
        world.push(&dependent.path("p"), "maths", &["v1.0.0"]);
        all += &refused(&dependent, &["--no-test"]);
    }
    insta::assert_snapshot!(all, @"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [work]/p/Sheaf.toml:8:1: other is not in a registry, where users of this package could get it
       = help: publish it too, and give its version, which may stand beside `path`

    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: [work]/p/Sheaf.toml:8:1: other is not in a registry, where users of this package could get it
       = help: publish it too, and give its version, which may stand beside `path`
    ");

    let alone = author(MANIFEST);
    git(&alone.path("p"), &["init", "--quiet"]);
    git(&alone.path("p"), &["add", "--all"]);
    git(&alone.path("p"), &["commit", "--quiet", "-m", "first"]);
    git(&alone.path("p"), &["tag", "v1.0.0"]);
    insta::assert_snapshot!(refused(&alone, &["--no-test"]), @"
    $ sheaf publish --no-test
    exit code 1
    standard error:
      error: others cannot fetch this package: its repository has no address
       = help: add `repository` to [package], or `git remote add origin ADDRESS`
    ");
}

#[test]
fn a_version_is_published_once_and_tried_without_a_trace() {
    let world = World::new();
    let author =
        author(&format!("{MANIFEST}\n[dependencies]\nother = {{ path = \"../other\", version = \"1\" }}\n"));
    author.write("other/Sheaf.toml", "[package]\nname = \"other\"\nversion = \"1.2.0\"\n");
    author.write("other/src/lib.shf", "");
    world.publish("other", "1.2.0", "", "");
    world.push(&author.path("p"), "maths", &["v1.0.0"]);
    let publish =
        |arguments: &[&str]| world.author(&author, &[&["publish"], arguments].concat()).at("p").run();

    let (before, files) = (state(&world), Sandbox::files(&author.path("p")));
    let tried = publish(&["--dry-run"]);
    assert_eq!(tried.code, Some(0), "{tried}");
    let line = tried.stdout.lines().find(|line| line.starts_with('{')).expect("a line of the index");
    let entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!((&entry["name"], &entry["version"]), (&"maths".into(), &"1.0.0".into()));
    assert_eq!(entry["dependencies"], serde_json::json!([{ "name": "other", "range": "^1" }]));
    assert!(tried.stdout.ends_with("nothing is published, as --dry-run says\n"), "{tried}");
    assert_eq!(state(&world), before);
    let lock = files.iter().any(|name| name == "Sheaf.lock");
    let after = Sandbox::files(&author.path("p"));
    // The lock of its own dependencies is no trace of the publication.
    let kept = |name: &&String| lock || *name != "Sheaf.lock";
    assert!(after.iter().filter(kept).eq(files.iter()), "{after:?}");

    let published = publish(&[]);
    assert_eq!(published.code, Some(0), "{published}");
    assert_ne!(state(&world), before);
    let before = state(&world);
    let again = publish(&[]);
    assert_eq!(again.code, Some(1), "{again}");
    assert!(
        again.stderr.contains("maths 1.0.0 is published already") && again.stderr.contains("raise `version`"),
        "{again}"
    );
    assert_eq!(state(&world), before);
    // A user gets it, with the dependency from the registry.
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "maths"]).at("demo").run();
    assert!(added.stdout.contains("+ other 1.2.0"), "{added}");
}

/// The registry's server lets no push through before both are under way, so one of them comes too late.
#[test]
fn two_publishers_at_a_time_both_end_in_the_registry() {
    let world = World::new();
    let authors = ["maths", "plots"].map(|name| {
        let author = author(&MANIFEST.replace("maths", name));
        world.push(&author.path("p"), name, &["v1.0.0"]);
        author
    });
    let log = world.bare("index").join("pushes");
    let hook = world.bare("index").join("hooks/pre-receive");
    let script = format!(
        "#!/bin/sh\necho push >> '{0}'\nfor i in $(seq 600); do [ $(wc -l < '{0}') -ge 2 ] && exit 0; sleep 0.05; done\n",
        log.display()
    );
    fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
    fs::write(&hook, script).expect("a hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a hook");
    let publish = |author: &Sandbox| {
        let published = world.author(author, &["publish", "--no-test"]).at("p").run();
        assert_eq!(published.code, Some(0), "{published}");
    };
    let [first, second] = &authors;
    thread::scope(|scope| {
        scope.spawn(|| publish(first));
        publish(second);
    });
    let pushes = fs::read_to_string(log).expect("a log").lines().count();
    assert!(pushes >= 3, "{pushes} pushes: one was tried again");
    for name in ["ma/th/maths", "pl/ot/plots"] {
        let line = git(&world.bare("index"), &["show", &format!("main:{name}")]);
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_folder_is_a_registry_too() {
    let world = World::new();
    let author = author(MANIFEST);
    world.push(&author.path("p"), "maths", &["v1.0.0"]);
    author.run(&["registry", "init", "index", "--name", "team"]).silent();
    let index = author.path("index").display().to_string();
    let publish = |options: &[&str]| {
        let arguments = [&["publish", "--no-test"], options].concat();
        author.sheaf(&arguments).env("SHEAF_REGISTRY", &index).at("p").run()
    };
    let before = Sandbox::files(&author.path("index"));
    assert_eq!(publish(&["--dry-run"]).code, Some(0));
    assert_eq!(Sandbox::files(&author.path("index")), before);
    let published = publish(&[]);
    assert_eq!(published.code, Some(0), "{published}");
    let line = fs::read_to_string(author.path("index/ma/th/maths")).expect("a line");
    let again = publish(&[]);
    assert!(again.code == Some(1) && again.stderr.contains("is published already"), "{again}");
    assert_eq!(fs::read_to_string(author.path("index/ma/th/maths")).expect("a line"), line);
    author.sheaf(&["registry", "check"]).at("index").run().silent();

    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = user.sheaf(&["add", "maths"]).env("SHEAF_REGISTRY", &index).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    user.write("demo/src/main.shf", "(use maths)\n(print (twice 4))\n");
    let files = project_files(&user, "demo");
    assert_eq!(
        user.sheaf(&["run", "--no-jit", "--frozen"]).env("SHEAF_REGISTRY", &index).at("demo").run().silent(),
        "8\n"
    );
    assert_eq!(project_files(&user, "demo"), files);
    // A static copy only follows its registry.
    let copy =
        author.sheaf(&["publish", "--no-test"]).env("SHEAF_REGISTRY", "sparse+http://127.0.0.1:1/index");
    let refused = copy.at("p").run();
    assert!(refused.code == Some(1) && refused.stderr.contains("is a static copy"), "{refused}");
}
