//! Versions: side by side, updates, yanks, conflicts.

use sheaf_tests::Sandbox;

use crate::world::{World, git, project_files};

/// A project with these dependencies and this program.
fn project(dependencies: &str, program: &str) -> Sandbox {
    let user = Sandbox::new();
    user.write("demo/Sheaf.toml", format!("[package]\nname = \"demo\"\n\n[dependencies]\n{dependencies}\n"));
    user.write("demo/src/main.shf", program);
    user
}

#[test]
fn two_versions_stand_side_by_side() {
    let world = World::new();
    world.publish("maths", "1.4.0", "", "(defn name [] \"maths one\")\n");
    world.publish("maths", "2.0.0", "", "(defn name [] \"maths two\")\n");
    world.publish("plots", "0.1.0", "maths = \"1\"", "(use maths :as m)\n(defn below [] (m/name))\n");
    let user =
        project("maths = \"2\"\nplots = \"0.1\"", "(use maths)\n(use plots)\n(print (name) (below))\n");
    let run = world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "maths two maths one\n"), "{run}");
    let tree = user.sheaf(&["tree"]).at("demo").run().silent();
    assert_eq!(tree, "demo\n├── maths 2.0.0\n└── plots 0.1.0\n    └── maths 1.4.0\n");
    let why = user.sheaf(&["tree", "--why", "maths"]).at("demo").run().silent();
    assert_eq!(why, "demo needs maths 2.0.0\ndemo needs plots 0.1.0 needs maths 1.4.0\n");
    let duplicates = user.sheaf(&["tree", "--duplicates"]).at("demo").run().silent();
    assert_eq!(duplicates, "maths 1.4.0, for plots 0.1.0\nmaths 2.0.0, for the project\n");
}

#[test]
fn a_mirror_serves_in_place_of_its_registry() {
    let (world, mut away) = (World::new(), World::new());
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = project("maths = \"1\"", "(use maths)\n(print version)\n");
    let registry = away.address("index");
    let run = || user.sheaf(&["run", "--no-jit"]).env("SHEAF_REGISTRY", &registry).at("demo").run();
    let mirrors = format!(
        "[mirrors]\n\"{registry}\" = [\"git://127.0.0.1:1/none.git\", \"{}\"]\n",
        world.address("index")
    );
    away.cut();
    assert_eq!(run().code, Some(1), "nobody is there");
    std::fs::write(user.home().join("config.toml"), mirrors).unwrap();
    let served = run();
    assert_eq!((served.code, served.stdout.as_str()), (Some(0), "0\n"), "{served}");
    assert!(served.stderr.contains("the mirror git://127.0.0.1:1/none.git of "), "{served}");
    let lock = std::fs::read_to_string(user.path("demo/Sheaf.lock")).unwrap();
    assert!(lock.contains(&format!("source = \"registry+{registry}\"")), "{lock}");
}

#[test]
fn a_lock_holds_until_it_is_updated() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = project("maths = \"1\"", "(use maths)\n(print version)\n");
    let run = || world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert_eq!(run().stdout, "0\n");
    world.publish("maths", "1.1.0", "", "(def version 1)\n");
    world.publish("maths", "2.0.0", "", "(def version 2)\n");
    assert_eq!(run().silent(), "0\n");
    let outdated = world.sheaf(&user, &["outdated"]).at("demo").run();
    let row: Vec<&str> = outdated.stdout.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row, ["maths", "1.0.0", "1.1.0", "2.0.0"], "{outdated}");
    let update = |arguments: &[&str]| world.sheaf(&user, &[&["update"], arguments].concat()).at("demo").run();
    assert!(update(&["--dry-run"]).stdout.starts_with("~ maths 1.0.0 -> 1.1.0\n"));
    assert_eq!(run().silent(), "0\n");
    assert_eq!(update(&[]).stdout, "~ maths 1.0.0 -> 1.1.0\n");
    assert_eq!(run().silent(), "1\n");
    assert_eq!(update(&["maths", "--precise", "1.0.0"]).stdout, "~ maths 1.1.0 -> 1.0.0\n");
    let unknown = update(&["math"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean maths?"), "{unknown}");
    // Another requirement in Sheaf.toml is answered, unless that is forbidden.
    user.write("demo/Sheaf.toml", "[package]\nname = \"demo\"\n\n[dependencies]\nmaths = \"2\"\n");
    let before = project_files(&user, "demo");
    let locked = world.sheaf(&user, &["run", "--no-jit", "--locked"]).at("demo").run();
    assert!(locked.code == Some(1) && locked.stderr.contains("maths 1.0.0 -> 2.0.0"), "{locked}");
    assert_eq!(project_files(&user, "demo"), before);
    assert_eq!(run().stdout, "2\n");
}

#[test]
fn the_lowest_versions_are_taken_on_request() {
    let world = World::new();
    world.publish("units", "0.3.0", "", "(def metre 0)\n");
    world.publish("units", "0.3.4", "", "(def metre 4)\n");
    world.publish("maths", "1.0.0", "units = \"0.3\"", "(use units :as u)\n(def version (str 0 u/metre))\n");
    world.publish("maths", "1.1.0", "units = \"0.3\"", "(use units :as u)\n(def version (str 1 u/metre))\n");
    let program = "(use maths)\n(print version)\n";
    for (command, requirement, found) in [
        ("install", "maths = \"1\"", "00\n"),
        ("update", "maths = \"1\"", "00\n"),
        ("install", "maths = \"1.1\"", "10\n"),
    ] {
        let user = project(requirement, program);
        let run = |arguments: &[&str]| world.sheaf(&user, arguments).at("demo").run();
        assert_eq!(run(&["install"]).code, Some(0));
        assert_eq!(run(&["run", "--no-jit"]).silent(), "14\n");
        if command == "install" {
            // A lock that answers is taken as it is.
            std::fs::remove_file(user.path("demo/Sheaf.lock")).unwrap();
        }
        let minimal = run(&[command, "--minimal-versions"]);
        assert_eq!(minimal.code, Some(0), "{minimal}");
        assert_eq!(run(&["run", "--no-jit", "--locked"]).silent(), found);
    }
}

/// Sets the time of publication of a version in the registry.
fn date(world: &World, file: &str, version: &str, time: &str) {
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    let path = checkout.join(file);
    let text = std::fs::read_to_string(&path).expect("lines");
    let lines = text.lines().map(|line| {
        let mut entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if entry["version"] == version {
            entry["published"] = time.into();
        }
        format!("{entry}\n")
    });
    std::fs::write(&path, lines.collect::<String>()).expect("a file");
    world.push(&checkout, "index", &[]);
}

#[test]
fn new_versions_are_passed_over_on_request() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    world.publish("maths", "1.1.0", "", "(def version 1)\n");
    date(&world, "ma/th/maths", "1.0.0", "2020-01-01T00:00:00Z");
    let program = "(use maths)\n(print version)\n";
    let table = "\n[resolver]\nexclude-newer = \"7 days\"\n";

    let user = project(&format!("maths = \"1\"\n{table}"), program);
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().stdout, "0\n");
    let added = project(table, "");
    let run = world.sheaf(&added, &["add", "maths"]).at("demo").run();
    assert!(run.code == Some(0) && run.stdout.contains("+ maths 1.0.0"), "{run}");
    let variable = project("maths = \"1\"", program);
    let run = |arguments: &[&str], newer: &str| {
        world.sheaf(&variable, arguments).env("SHEAF_EXCLUDE_NEWER", newer).at("demo").run()
    };
    assert_eq!(run(&["run", "--no-jit"], "2020-06-01T00:00:00Z").stdout, "0\n");
    // The environment counts before the file, and what is locked stays.
    assert_eq!(run(&["update"], "").stdout, "~ maths 1.0.0 -> 1.1.0\n");
    assert_eq!(run(&["run", "--no-jit"], "2020-06-01T00:00:00Z").silent(), "1\n");
    let before = project_files(&variable, "demo");
    let refused = |user: &Sandbox, arguments: &[&str], newer: &str| {
        let before = project_files(user, "demo");
        let refused = world.sheaf(user, arguments).env("SHEAF_EXCLUDE_NEWER", newer).at("demo").run();
        assert_eq!(refused.code, Some(1), "{refused}");
        assert_eq!(project_files(user, "demo"), before);
        let time = regex::Regex::new(r"20[2-9]\d-\d\d-\d\dT[\d:.]+Z").unwrap();
        time.replace_all(&world.neutral(&refused), "TIME").into_owned()
    };
    insta::assert_snapshot!(refused(&variable, &["update"], "2019-01-01T00:00:00Z"), @"
    $ sheaf update
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: Sheaf.toml:5 asks for maths ^1, but 1.0.0 and 1.1.0 were published after 2019-01-01T00:00:00Z (`exclude-newer`), 1.0.0 on TIME
       = help: choose a later `exclude-newer`
    ");
    let new = project(&format!("maths = \"1.1\"\n{table}"), program);
    insta::assert_snapshot!(refused(&new, &["run"], ""), @"
    $ sheaf run
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: Sheaf.toml:5 asks for maths ^1.1, but 1.1.0 was published on TIME, after TIME (`exclude-newer`)
       = help: ask for maths ^1.0.0, or choose a later `exclude-newer`
    ");
    insta::assert_snapshot!(refused(&new, &["install"], "soon"), @r#"
    $ sheaf install
    exit code 1
    standard error:
      error: the environment variable SHEAF_EXCLUDE_NEWER is `soon`, but it must be an age such as "7 days", or a time such as "TIME"; correct or unset it
    "#);
    assert_eq!(project_files(&variable, "demo"), before);
}

#[test]
fn a_pre_release_is_for_those_who_name_it() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 1)\n");
    world.publish("maths", "2.0.0-beta.1", "", "(def version 2)\n");
    world.publish("plots", "0.1.0", "maths = \">=1\"", "");
    let program = "(use maths)\n(print version)\n";
    for (requirement, found) in [
        ("maths = \"*\"", "1\n"),
        ("maths = \">=1\"\nplots = \"0.1\"", "1\n"),
        ("maths = \"2.0.0-beta\"", "2\n"),
        ("maths = \">=2.0.0-alpha, <3\"", "2\n"),
    ] {
        let user = project(requirement, program);
        let run = world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), found), "{requirement}: {run}");
    }
    let user = project("", program);
    let added = world.sheaf(&user, &["add", "maths"]).at("demo").run();
    assert!(added.stdout.contains("+ maths 1.0.0"), "{added}");
    let refused = world.sheaf(&project("maths = \"2\"", ""), &["install"]).at("demo").run();
    insta::assert_snapshot!(world.neutral(&refused), @"
    $ sheaf install
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: Sheaf.toml:5 asks for maths ^2, but there are only pre-releases: 2.0.0-beta.1
       = help: ask for maths ^2.0.0-beta.1
    ");
}

#[test]
fn a_yanked_version_is_kept_if_locked_and_refused_anew() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = project("maths = \"1\"", "(use maths)\n(print version)\n");
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().stdout, "0\n");
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    keeper
        .sheaf(&["registry", "yank", "maths", "1.0.0", "--reason", "wrong sign"])
        .at("index")
        .run()
        .silent();
    keeper.sheaf(&["registry", "check", "--base", "HEAD"]).at("index").run().silent();
    world.push(&checkout, "index", &[]);
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().silent(), "0\n");
    let outdated = world.sheaf(&user, &["outdated"]).at("demo").run();
    assert!(outdated.stdout.contains("yanked: wrong sign"), "{outdated}");
    let fresh = project("maths = \"1\"", "");
    let refused = world.sheaf(&fresh, &["install"]).at("demo").run();
    insta::assert_snapshot!(world.neutral(&refused), @"
    $ sheaf install
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: Sheaf.toml:5 asks for maths ^1, but 1.0.0 is yanked: wrong sign
       = help: change Sheaf.toml:5
    ");
    assert_eq!(project_files(&fresh, "demo").len(), 1);
}

#[test]
fn a_conflict_ends_at_the_users_lines() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "");
    world.publish("maths", "1.5.0", "", "");
    world.publish("plots", "0.1.0", "maths = \"~1.0\"", "");
    let user = project("maths = \"1.5\"\nplots = \"0.1\"", "");
    let refused = world.sheaf(&user, &["install"]).at("demo").run();
    insta::assert_snapshot!(world.neutral(&refused), @"
    $ sheaf install
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: the dependencies of `demo` have no common solution:
        plots 0.1.0 needs maths ~1.0 (1.0.0)
        Sheaf.toml:5 asks for maths ^1.5 (1.5.0)
        Sheaf.toml:6 asks for plots ^0.1 (0.1.0)
      only one version of maths 1.x can be used
       = help: change Sheaf.toml:5 or Sheaf.toml:6
    ");
    assert_eq!(project_files(&user, "demo").len(), 1);
    // An addition that has no solution changes nothing.
    let other = project("maths = \"1.5\"", "");
    assert_eq!(world.sheaf(&other, &["install"]).at("demo").run().code, Some(0));
    let before = project_files(&other, "demo");
    let added = world.sheaf(&other, &["add", "plots"]).at("demo").run();
    assert_eq!(added.code, Some(1), "{added}");
    assert_eq!(project_files(&other, "demo"), before);
}

#[test]
fn the_check_of_a_registry_protects_its_users() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "");
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    let path = "index/ma/th/maths";
    let line = std::fs::read_to_string(keeper.path(path)).unwrap();
    keeper.write(path, line.replace("1.0.0\"", "1.0.1\""));
    let refused = keeper.sheaf(&["registry", "check", "--base", "HEAD"]).at("index").run();
    assert!(refused.code == Some(1) && refused.stderr.contains("maths 1.0.0 is gone"), "{refused}");
    git(&checkout, &["checkout", "--quiet", "."]);
    keeper.sheaf(&["registry", "check", "--base", "HEAD"]).at("index").run().silent();
}
