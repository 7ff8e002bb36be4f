//! Commands without a network, and with a lock that must stay.

use std::fs;

use sheaf_tests::Sandbox;

use crate::world::{Trap, World, git, project_files};

/// Commands that need the dependencies of a project, each with what its options follow.
const COMMANDS: [&[&str]; 8] = [
    &["run", "--no-jit"],
    &["build"],
    &["check"],
    &["test", "--no-jit"],
    &["expand", "src/main.shf"],
    &["doc", "maths"],
    &["cache", "pull"],
    &["install"],
];

/// A project with these dependencies.
fn project(user: &Sandbox, name: &str, dependencies: &str) {
    user.write(
        &format!("{name}/Sheaf.toml"),
        format!("[package]\nname = \"demo\"\n\n[dependencies]\n{dependencies}\n"),
    );
    user.write(&format!("{name}/src/main.shf"), "(use maths)\n(print version)\n");
    user.write(&format!("{name}/tests/t.shf"), "(use maths)\n(+ version 0) ;=> 0\n");
}

/// Regression: all but `run`, `test` and `install` resolved over the network whatever they were told.
#[test]
fn without_a_network_no_command_makes_a_connection() {
    let trap = Trap::new();
    let index = format!("git://{}/index.git", trap.host());
    let user = Sandbox::new();
    for (name, dependency) in [
        ("registry", "maths = \"1\"".to_owned()),
        ("copy", "maths = \"1\"".to_owned()),
        ("git", format!("maths = {{ git = \"http://{}/maths.git\" }}", trap.host())),
    ] {
        let index =
            if name == "copy" { format!("sparse+http://{}/index", trap.host()) } else { index.clone() };
        project(&user, name, &dependency);
        for command in COMMANDS {
            for option in ["--offline", "--frozen"] {
                let arguments = [command, &[option]].concat();
                let refused = user.sheaf(&arguments).env("SHEAF_REGISTRY", &index).at(name).run();
                assert_eq!(refused.code, Some(1), "{refused}");
                assert!(refused.stderr.contains("--offline"), "{refused}");
                assert_eq!(trap.count(), 0, "{refused}");
            }
            let told = user.sheaf(command).env("SHEAF_REGISTRY", &index).env("SHEAF_OFFLINE", "1").at(name);
            assert_eq!((told.run().code, trap.count()), (Some(1), 0), "{command:?}");
        }
        assert_eq!(project_files(&user, name).len(), 1, "no lock is written");
    }
    let asked = user.sheaf(&["check"]).env("SHEAF_REGISTRY", &index).at("registry").run();
    assert!(asked.code == Some(1) && trap.count() > 0, "{asked}");
}

#[test]
fn a_lock_that_would_change_stops_each_command_that_is_told_so() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = Sandbox::new();
    project(&user, "demo", "maths = \"1\"");
    let run = |arguments: &[&str]| world.sheaf(&user, arguments).at("demo").run();
    for command in COMMANDS {
        let before = project_files(&user, "demo");
        let refused = run(&[command, &["--locked"]].concat());
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("--locked forbids to change it: + maths 1.0.0"), "{refused}");
        assert_eq!(project_files(&user, "demo"), before);
    }
    assert_eq!(run(&["install"]).code, Some(0));
    for command in COMMANDS.iter().filter(|command| !["build", "cache"].contains(&command[0])) {
        for option in ["--locked", "--frozen", "--offline"] {
            let done = run(&[command, &[option][..]].concat());
            assert_eq!(done.code, Some(0), "{done}");
        }
    }
}

/// Regression: the newest version of the index was chosen, and then could not be fetched.
#[test]
fn without_a_network_versions_are_chosen_that_are_here() {
    let mut world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    world.publish("plots", "0.1.0", "maths = \"1\"", "(use maths :as m)\n(defn below [] m/version)\n");
    let user = Sandbox::new();
    project(&user, "first", "plots = \"0.1\"\nmaths = \"1\"");
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("first").run().stdout, "0\n");
    world.publish("maths", "1.1.0", "", "(def version 1)\n");
    world.publish("plots", "0.1.1", "maths = \"1.1\"", "(use maths :as m)\n(defn below [] m/version)\n");
    world.publish("other", "1.0.0", "", "");
    let outdated = world.sheaf(&user, &["outdated"]).at("first").run();
    assert!(outdated.stdout.contains("1.1.0"), "the index here has the new version\n{outdated}");
    world.cut();

    let run = |project: &str, arguments: &[&str]| world.sheaf(&user, arguments).at(project).run();
    user.run(&["new", "demo"]).silent();
    let added = run("demo", &["add", "maths", "plots", "--offline"]);
    assert_eq!(added.code, Some(0), "{added}");
    insta::assert_snapshot!(world.neutral(&added), @"
    $ sheaf add maths plots --offline
    exit code 0
    standard output:
      + maths 1.0.0
      + plots 0.1.0
      maths 1.0.0 (MIT, 0.1 kB): A test
      plots 0.1.0 (MIT, 0.2 kB): A test
    standard error:
      warning: maths 1.0.0 is the newest on this machine, and the registry has 1.1.0, which --offline forbids to fetch

      warning: plots 0.1.0 is the newest on this machine, and the registry has 0.1.1, which --offline forbids to fetch
    ");
    let manifest = fs::read_to_string(user.path("demo/Sheaf.toml")).expect("a manifest");
    assert!(manifest.contains("maths = \"1.0.0\"\nplots = \"0.1.0\""), "{manifest}");
    user.write("demo/src/main.shf", "(use maths)\n(use plots)\n(print version (below))\n");
    assert_eq!(run("demo", &["run", "--no-jit", "--offline"]).silent(), "0 0\n");
    // Without a lock as well, and `update` keeps what is here.
    project(&user, "second", "maths = \"1\"\nplots = \"*\"");
    assert_eq!(run("second", &["run", "--no-jit", "--offline"]).stdout, "0\n");
    let updated = run("first", &["update", "--offline"]);
    assert_eq!(updated.stdout, "every package is as new as Sheaf.toml allows\n", "{updated}");

    let before = project_files(&user, "demo");
    let refused = |arguments: &[&str]| {
        let refused = run("demo", arguments);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert_eq!(project_files(&user, "demo"), before);
        world.neutral(&refused)
    };
    insta::assert_snapshot!(refused(&["add", "maths@1.1", "--offline"]), @"
    $ sheaf add maths@1.1 --offline
    exit code 1
    standard error:
      error: the newest maths that matches ^1.1 is 1.1.0, but --offline or SHEAF_OFFLINE forbids to fetch it, and this machine has only 1.0.0
       = help: run the command once with a network
    ");
    insta::assert_snapshot!(refused(&["add", "other", "--offline"]), @"
    $ sheaf add other --offline
    exit code 1
    standard error:
      error: the newest other is 1.0.0, but --offline or SHEAF_OFFLINE forbids to fetch it, and this machine has no version
       = help: run the command once with a network
    ");
    insta::assert_snapshot!(refused(&["update", "maths", "--precise", "1.1.0", "--offline"]), @"
    $ sheaf update maths --precise 1.1.0 --offline
    exit code 1
    standard error:
      error: Sheaf.toml:7 asks for maths ^1.0.0, but 1.1.0 is not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch it
       = help: run the command once with a network
    ");
}

/// An archive beside the lock counts as here.
#[test]
fn without_a_network_archives_are_taken() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = Sandbox::new();
    project(&user, "demo", "maths = \"1\"");
    assert_eq!(world.sheaf(&user, &["vendor"]).at("demo").run().code, Some(0));
    world.publish("maths", "1.1.0", "", "(def version 1)\n");
    let other = Sandbox::new();
    project(&other, "demo", "maths = \"1\"");
    let archive = "demo/vendor/maths-1.0.0.tar.gz";
    other.write(archive, fs::read(user.path(archive)).expect("an archive"));
    git(&other.path(""), &["clone", "--quiet", world.bare("index").to_str().expect("text"), "index"]);
    let index = other.path("index").display().to_string();
    let run = other.sheaf(&["run", "--no-jit", "--offline"]).env("SHEAF_REGISTRY", index).at("demo").run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "0\n"), "{run}");
}
