//! Workspaces: several packages with one `Sheaf.lock` and shared dependencies.

use sheaf_tests::Sandbox;

use crate::world::{World, project_files};

/// A workspace of `app`, which uses `packages/maths` beside it and a shared dependency.
fn workspace(world: &World) -> Sandbox {
    world.publish("units", "1.2.0", "", "(def metre 1)\n");
    world.publish("checks", "0.1.0", "", "(def tolerance 0.5)\n");
    let user = Sandbox::new();
    user.write(
        "Sheaf.toml",
        format!(
            "[workspace]\nmembers = [\"app\", \"packages/*\"]\nexclude = [\"packages/old\"]\n\n[workspace.dependencies]\n\
             units = \"1\"\nmaths = {{ path = \"packages/maths\" }}\n\n[registries]\ndefault = \"{}\"\n",
            world.address("index")
        ),
    );
    user.write(
        "app/Sheaf.toml",
        "[package]\nname = \"app\"\n\n[dependencies]\nunits = { workspace = true }\nmaths = { workspace = true }\n",
    );
    user.write("app/src/main.shf", "(use maths)\n(use units)\n(print (+ metre (twice 4)))\n");
    user.write(
        "packages/maths/Sheaf.toml",
        "[package]\nname = \"maths\"\nversion = \"0.3.0\"\n\n[dependencies]\nunits = { workspace = true }\n\n\
         [dev-dependencies]\nchecks = \"0.1\"\n",
    );
    user.write(
        "packages/maths/src/lib.shf",
        "(use units)\n(defn twice \"(twice 2) ;=> 4\" [x] (* 2 metre x))\n",
    );
    user.write("packages/maths/tests/t.shf", "(use maths)\n(use checks)\n(+ tolerance (twice 1)) ;=> 2.5\n");
    user.write(
        "packages/old/Sheaf.toml",
        "[package]\nname = \"old\"\n\n[dependencies]\nno-such-package = \"1\"\n",
    );
    user
}

#[test]
fn members_share_a_lock_and_dependencies() {
    let mut world = World::new();
    let user = workspace(&world);
    let run = |folder: &str, arguments: &[&str]| user.sheaf(arguments).at(folder).run();
    let first = run("app", &["run", "--no-jit"]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "9\n"), "{first}");
    assert!(!user.path("app/Sheaf.lock").exists());
    let lock = std::fs::read_to_string(user.path("Sheaf.lock")).expect("a lock");
    assert_eq!(lock.matches("name = \"units\"").count(), 1, "{lock}");
    // Development dependencies of another member are locked as well.
    assert!(lock.contains("\"checks 0.1.0\""), "{lock}");
    assert!(
        lock.contains("\"./app: app 0.0.0\"") && lock.contains("\"./packages/maths: maths 0.3.0\""),
        "{lock}"
    );
    world.cut();
    let tested = run("packages/maths", &["test", "--no-jit", "--frozen"]);
    assert_eq!(tested.code, Some(0), "{tested}");
    for folder in ["app", "packages/maths", "."] {
        assert_eq!(run(folder, &["install", "--frozen"]).code, Some(0), "{folder}");
    }
    let tree = |folder: &str, arguments: &[&str]| run(folder, &[&["tree"], arguments].concat()).silent();
    assert_eq!(
        tree("app", &[]),
        "app\n├── maths 0.3.0\n│   ├── checks 0.1.0\n│   └── units 1.2.0\n└── units 1.2.0\n"
    );
    assert_eq!(tree("app", &["--why", "checks"]), "app needs maths 0.3.0 needs checks 0.1.0\n");
    assert_eq!(tree("packages/maths", &[]), "maths\n├── checks 0.1.0\n└── units 1.2.0\n");
    // A member sees its own dependencies alone.
    user.write("app/src/main.shf", "(use checks)\n(print tolerance)\n");
    let refused = run("app", &["run", "--no-jit"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("cannot use checks"), "{refused}");
}

#[test]
fn an_addition_to_a_member_changes_its_manifest_and_the_lock_of_all() {
    let world = World::new();
    let user = workspace(&world);
    let run = |folder: &str, arguments: &[&str]| world.sheaf(&user, arguments).at(folder).run();
    assert_eq!(run("app", &["install"]).code, Some(0));
    let added = run("app", &["add", "checks"]);
    assert_eq!(added.code, Some(0), "{added}");
    let manifest = std::fs::read_to_string(user.path("app/Sheaf.toml")).expect("a manifest");
    assert!(
        manifest.contains("checks = \"0.1.0\"") && manifest.contains("units = { workspace = true }"),
        "{manifest}"
    );
    user.write("app/src/main.shf", "(use checks)\n(print tolerance)\n");
    assert_eq!(run("app", &["run", "--no-jit", "--locked"]).stdout, "0.5\n");
    assert_eq!(run("app", &["remove", "checks"]).code, Some(0));
    assert_eq!(run("packages/maths", &["test", "--no-jit", "--locked"]).code, Some(0));
}

#[test]
fn mistakes_name_their_line() {
    let world = World::new();
    let user = workspace(&world);
    assert_eq!(world.sheaf(&user, &["install"]).at("app").run().code, Some(0));
    let before = project_files(&user, ".");
    let root = std::fs::read_to_string(user.path("Sheaf.toml")).expect("a manifest");
    let mut all = String::new();
    let mut refused = |folder: &str| {
        let run = user.sheaf(&["install"]).at(folder).run();
        assert_eq!(run.code, Some(1), "{run}");
        all += &run.stderr.replace(&*user.path("").to_string_lossy(), "~/");
        assert_eq!(project_files(&user, ".")[1], before[1]);
    };
    for (from, to) in [
        ("packages/*", "packages/maths\", \"packages/none"),
        ("packages/*", "../elsewhere"),
        ("packages/*", "packages/m*"),
        ("units = \"1\"", "unit = \"1\""),
        ("units = \"1\"", "units = { workspace = true }"),
    ] {
        user.write("Sheaf.toml", root.replace(from, to));
        refused("app");
    }
    user.write("Sheaf.toml", &root);
    user.write("packages/other/Sheaf.toml", "[package]\nname = \"maths\"\n");
    refused("app");
    user.write("packages/other/Sheaf.toml", "[package]\n");
    refused("app");
    user.write(
        "packages/other/Sheaf.toml",
        "[package]\nname = \"other\"\n[dependencies]\nunits = { workspace = true, version = \"1\" }\n",
    );
    refused("packages/other");
    user.write(
        "packages/old/Sheaf.toml",
        "[package]\nname = \"old\"\n[dependencies]\nunits = { workspace = true }\n",
    );
    refused("packages/old");
    insta::assert_snapshot!(all, @r#"
    error: ~/Sheaf.toml:2:37: packages/none has no Sheaf.toml; make the package with `sheaf new`, or remove it here
     2 | members = ["app", "packages/maths", "packages/none"]
       |                                     ^^^^^^^^^^^^^^^

    error: ~/Sheaf.toml:2:19: `workspace.members[1]` is "../elsewhere", but it must be a folder inside the workspace, such as "packages/vision" or "packages/*"
     2 | members = ["app", "../elsewhere"]
       |                   ^^^^^^^^^^^^^^

    error: ~/Sheaf.toml:2:19: `workspace.members[1]` is "packages/m*", but it must be a folder inside the workspace, such as "packages/vision" or "packages/*"
     2 | members = ["app", "packages/m*"]
       |                   ^^^^^^^^^^^^^

    error: ~/app/Sheaf.toml:5:1: the workspace shares no dependency units; did you mean unit?; add it under [workspace.dependencies]
     5 | units = { workspace = true }
       | ^^^^^

    error: ~/Sheaf.toml:6:1: a shared dependency has an origin of its own; give its `version`, `git` or `path`
     6 | units = { workspace = true }
       | ^^^^^

    error: ~/Sheaf.toml:2:19: packages/maths and packages/other are both called maths; give one of them another name
     2 | members = ["app", "packages/*"]
       |                   ^^^^^^^^^^^^

    error: ~/Sheaf.toml:2:19: the package in packages/other has no name; add `name` to its [package]
     2 | members = ["app", "packages/*"]
       |                   ^^^^^^^^^^^^

    error: ~/packages/other/Sheaf.toml:4:1: units comes from the workspace, and has a `version` too; keep one of both
     4 | units = { workspace = true, version = "1" }
       | ^^^^^

    error: ~/packages/old/Sheaf.toml:4:1: units is to come from a workspace, and this package is in none; give its `version`, or list the package among the members of a [workspace]
     4 | units = { workspace = true }
       | ^^^^^
    "#);
}
