//! Bad input and hostile packages: a message, and nothing changed.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sheaf_tests::Sandbox;

use crate::world::{World, git, project_files, proxy};

/// A project that has installed `maths` 1.0.0.
fn installed(world: &World) -> Sandbox {
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = Sandbox::new();
    user.write("demo/Sheaf.toml", "[package]\nname = \"demo\"\n\n[dependencies]\nmaths = \"1\"\n");
    user.write("demo/src/main.shf", "(use maths)\n(print version)\n");
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().stdout, "0\n");
    user
}

/// Forgets what was fetched.
fn forget(user: &Sandbox) {
    fs::remove_dir_all(user.home().join("cache")).expect("a cache");
}

#[test]
fn a_moved_tag_stops_with_the_tag_and_both_commits() {
    let world = World::new();
    let user = installed(&world);
    let author = Sandbox::new();
    git(&author.path(""), &["clone", "--quiet", world.bare("maths").to_str().unwrap(), "p"]);
    author.write("p/src/lib.shf", "(def version 666)\n");
    world.push(&author.path("p"), "maths", &["v1.0.0"]);
    let before = project_files(&user, "demo");
    // Packages that are here already are not asked for again.
    assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "0\n");
    forget(&user);
    let refused = world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert!(refused.code == Some(1) && refused.stdout.is_empty(), "{refused}");
    let moved = git(&author.path("p"), &["rev-parse", "HEAD"]);
    assert!(refused.stderr.contains("v1.0.0") && refused.stderr.contains(&moved), "{refused}");
    assert_eq!(project_files(&user, "demo"), before);
}

#[test]
fn another_tree_than_the_locked_one_is_refused() {
    let world = World::new();
    let user = installed(&world);
    forget(&user);
    let lock = fs::read_to_string(user.path("demo/Sheaf.lock")).unwrap();
    let start = lock.find("sha256-").unwrap() + "sha256-".len();
    let other = format!("{}{}{}", &lock[..start], "AAAA", &lock[start + 4..]);
    user.write("demo/Sheaf.lock", &other);
    let refused = world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert!(refused.code == Some(1) && refused.stdout.is_empty(), "{refused}");
    assert!(refused.stderr.contains("maths 1.0.0"), "{refused}");
    assert_eq!(fs::read_to_string(user.path("demo/Sheaf.lock")).unwrap(), other);
}

#[test]
fn a_registry_that_changes_a_published_version_is_refused() {
    let world = World::new();
    let user = installed(&world);
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    let path = "index/ma/th/maths";
    let line = fs::read_to_string(keeper.path(path)).unwrap();
    let start = line.find("sha256-").unwrap() + "sha256-".len();
    keeper.write(path, format!("{}{}{}", &line[..start], "AAAA", &line[start + 4..]));
    world.push(&checkout, "index", &[]);
    let before = project_files(&user, "demo");
    let update = world.sheaf(&user, &["update"]).at("demo").run();
    assert!(update.code == Some(1) && update.stderr.contains("has changed maths 1.0.0"), "{update}");
    assert_eq!(project_files(&user, "demo"), before);
}

#[test]
fn sources_that_change_in_the_store_are_not_run() {
    let world = World::new();
    let user = installed(&world);
    let sources = user.home().join("cache/sources");
    let file = Sandbox::files(&sources).into_iter().find(|name| name.ends_with("src/lib.shf")).unwrap();
    let path = sources.join(file);
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs::set_permissions(&path, permissions).unwrap();
    fs::write(&path, "(def version 666)\n").unwrap();
    let run = world.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert!(!run.stdout.contains("666"), "{run}");
    // It is fetched anew, since the network is there.
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().stdout, "0\n");
}

#[test]
fn a_corrupt_line_of_an_index_concerns_its_package_alone() {
    let world = World::new();
    let user = installed(&world);
    world.publish("plots", "1.0.0", "", "(def plot 1)\n");
    let keeper = Sandbox::new();
    let checkout = world.checkout(&keeper);
    keeper.write("index/ma/th/maths", "{ \"name\": \"maths\", \n");
    world.push(&checkout, "index", &[]);
    let added = world.sheaf(&user, &["add", "plots"]).at("demo").run();
    assert_eq!(added.code, Some(0), "the locked version of maths needs no index\n{added}");
    let before = project_files(&user, "demo");
    let update = world.sheaf(&user, &["update"]).at("demo").run();
    assert!(update.code == Some(1) && update.stderr.contains("a line about maths"), "{update}");
    assert_eq!(project_files(&user, "demo"), before);
}

#[test]
fn what_cannot_be_reached_or_is_not_there_is_said() {
    let mut world = World::new();
    let user = installed(&world);
    let before = project_files(&user, "demo");
    let message = |arguments: &[&str]| {
        let output = world.sheaf(&user, arguments).at("demo").run();
        assert_eq!(output.code, Some(1), "{output}");
        world.neutral(&output)
    };
    insta::assert_snapshot!(message(&["add", "math"]), @"
    $ sheaf add math
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: the registry git://[address]/index.git has no package math
       = help: did you mean maths?
    ");
    insta::assert_snapshot!(message(&["add", "maths@9"]), @"
    $ sheaf add maths@9
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: no version of maths matches 9
       = help: the registry has 1.0.0
    ");
    insta::assert_snapshot!(message(&["add", "../x"]), @"
    $ sheaf add ../x
    exit code 1
    standard error:
      error: `../x` is no name for a package: it has `.`; small letters, digits, - and _ make one, a letter first
       = help: a package is named as in `sheaf add attention-lib`; --path takes a folder
    ");
    insta::assert_snapshot!(message(&["add", "nn", "--git", "git://127.0.0.1:1/x"]), @"
    $ sheaf add nn --git git://[address]/x
    exit code 1
    standard error:
      error: nn is a module of the standard library
       = help: a package is named as in `sheaf add attention-lib`; --path takes a folder
    ");
    insta::assert_snapshot!(message(&["add", "other", "--registry", "nowhere"]), @r#"
    $ sheaf add other --registry nowhere
    exit code 1
    standard error:
      error: there is no address for the registry `nowhere`
       = help: name it in Sheaf.toml, [registries] default = "https://registry.example/index", or take a package from --git or --path
    "#);
    insta::assert_snapshot!(message(&["add", "other", "--path", "../other"]), @"
    $ sheaf add other --path ../other
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: the versions of other (path+../other) cannot be read: path+../other has no package other
       = help: [work]/demo/../other/Sheaf.toml does not exist
    ");
    insta::assert_snapshot!(message(&["add", "other", "--git", "ext::sh -c touch% /tmp/x"]), @"
    $ sheaf add other --git ext::sh -c touch% /tmp/x
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: the versions of other (git+ext::sh -c touch% /tmp/x) cannot be read: `ext::sh -c touch% /tmp/x` is not the address of a git repository here: git's remote helpers are programs, which are not run
       = help: use an https, http, ssh, git or file address, or an absolute path
    ");
    insta::assert_snapshot!(message(&["remove", "math"]), @"
    $ sheaf remove math
    exit code 1
    standard error:
      error: math is not a dependency of this package
       = help: did you mean maths?
    ");
    world.cut();
    let unreachable = user.sheaf(&["update"]).env("SHEAF_REGISTRY", world.address("index")).at("demo").run();
    insta::assert_snapshot!(world.neutral(&unreachable), @"
    $ sheaf update
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: the versions of maths (registry+git://[address]/index.git) cannot be read: git://[address]/index.git cannot be reached: Connection refused (os error 111)
       = help: check the address and the network, or use `--offline`
    ");
    assert_eq!(project_files(&user, "demo"), before);
}

/// A name in two registries: each dependency comes from the registry that its dependent means.
#[test]
fn a_package_of_another_registry_never_takes_the_place_of_one() {
    let (team, public) = (World::new(), World::new());
    team.publish("maths", "1.0.0", "", "(def origin \"team\")\n");
    team.publish("inner", "1.0.0", "maths = \"1\"", "(use maths :as m)\n(defn from [] m/origin)\n");
    public.publish("maths", "1.9.0", "", "(def origin \"public\")\n");
    public.publish("inner", "1.9.0", "", "(defn from [] \"public\")\n");
    let user = Sandbox::new();
    user.write(
        "demo/Sheaf.toml",
        format!(
            "[package]\nname = \"demo\"\n\n[registries]\nteam = \"{}\"\n\n[dependencies]\nmaths = \"1\"\n\
             inner = {{ version = \"1\", registry = \"team\" }}\n",
            team.address("index")
        ),
    );
    user.write("demo/src/main.shf", "(use maths)\n(use inner)\n(print origin (from))\n");
    let run = public.sheaf(&user, &["run", "--no-jit"]).at("demo").run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "public team\n"), "{run}");
    let lock = fs::read_to_string(user.path("demo/Sheaf.lock")).unwrap();
    for (package, version, registry) in
        [("inner", "1.0.0", &team), ("maths", "1.9.0", &public), ("maths", "1.0.0", &team)]
    {
        let block = format!(
            "name = \"{package}\"\nversion = \"{version}\"\nsource = \"registry+{}\"",
            registry.address("index")
        );
        assert!(lock.contains(&block), "{block}\nin\n{lock}");
    }
    // Without the default registry the name is not looked for in the other.
    user.write(
        "other/Sheaf.toml",
        format!("[registries]\nteam = \"{}\"\n[dependencies]\nmaths = \"1\"\n", team.address("index")),
    );
    let refused = user.sheaf(&["install"]).at("other").run();
    assert!(refused.code == Some(1) && !user.path("other/Sheaf.lock").exists(), "{refused}");
}

#[test]
fn a_server_that_vanishes_while_it_sends_leaves_no_trace() {
    let world = World::new();
    let limit = Arc::new(AtomicUsize::new(usize::MAX));
    let through = proxy(world.port(), &limit, Duration::ZERO);
    let author = Sandbox::new();
    author.write(
        "big/Sheaf.toml",
        format!(
            "[package]\nname = \"big\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n\
             repository = \"git://{through}/big.git\"\n"
        ),
    );
    author.write("big/src/lib.shf", "(def width 1)\n");
    // Digits that do not compress to nothing.
    let noise: String =
        (0_u64..60_000).map(|i| format!("{:x} ", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20)).collect();
    author.write("big/noise.txt", noise);
    world.push(&author.path("big"), "big", &["v1.0.0"]);
    let published = world.author(&author, &["publish", "--no-test"]).at("big").run();
    assert_eq!(published.code, Some(0), "{published}");
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let before = project_files(&user, "demo");
    let add = || world.sheaf(&user, &["add", "big"]).at("demo").run();
    limit.store(40_000, Ordering::SeqCst);
    let refused = add();
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(
        refused.stderr.contains("big 1.0.0") && refused.stderr.contains(&through.to_string()),
        "{refused}"
    );
    assert_eq!(project_files(&user, "demo"), before);
    let entries = fs::read_dir(user.home().join("cache/sources")).into_iter().flatten().flatten();
    assert!(entries.map(|entry| entry.file_name()).all(|name| name == "lock" || name == "staging"));
    limit.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(add().code, Some(0));
}

/// Mistakes of a manifest; no file of the project changes.
#[test]
fn a_manifest_that_cannot_be_met_is_refused() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    world.publish("plots", "1.0.0", "maths = \"1\"", "");
    world.publish("aa", "1.0.0", "bb = \"1\"", "(use bb)\n");
    world.publish("bb", "1.0.0", "cc = \"1\"", "(use cc)\n");
    world.publish("cc", "1.0.0", "aa = \"1\"", "(use aa)\n");
    let user = Sandbox::new();
    let package = |folder: &str, name: &str, dependencies: &str| {
        let text = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n\n{dependencies}\n");
        user.write(&format!("{folder}/Sheaf.toml"), text);
        user.write(&format!("{folder}/src/lib.shf"), "");
    };
    user.write("demo/src/main.shf", "(print 1)\n");
    package("x", "xx", "[dependencies]\nyy = { path = \"../y\" }");
    package("y", "yy", "[dependencies]\nxx = { path = \"../x\" }");
    let refused = |dependencies: &str, arguments: &[&str]| {
        package("demo", "demo", dependencies);
        let before = project_files(&user, "demo");
        let refused = world.sheaf(&user, arguments).at("demo").run();
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
        assert_eq!(project_files(&user, "demo"), before);
        world.neutral(&refused)
    };
    let mut ranges = String::new();
    for command in [&["run"][..], &["install"], &["add", "plots"]] {
        ranges += &refused("[dependencies]\nmaths = \">2, <1\"", command);
    }
    insta::assert_snapshot!(ranges, @r#"
    $ sheaf run
    exit code 1
    standard error:
      error: [work]/demo/Sheaf.toml:6:9: no version can match ">2, <1"; its lower bound must be below its upper bound
       6 | maths = ">2, <1"
         |         ^^^^^^^^

    $ sheaf install
    exit code 1
    standard error:
      error: [work]/demo/Sheaf.toml:6:9: no version can match ">2, <1"; its lower bound must be below its upper bound
       6 | maths = ">2, <1"
         |         ^^^^^^^^

    $ sheaf add plots
    exit code 1
    standard error:
      error: [work]/demo/Sheaf.toml:6:9: no version can match ">2, <1"; its lower bound must be below its upper bound
       6 | maths = ">2, <1"
         |         ^^^^^^^^
    "#);
    let mut cycles = String::new();
    for (dependencies, command) in [
        ("[dependencies]\naa = \"1\"", &["run"][..]),
        ("", &["add", "aa"]),
        ("[dependencies]\nxx = { path = \"../x\" }", &["run"]),
        ("", &["add", "xx", "--path", "../x"]),
    ] {
        cycles += &refused(dependencies, command);
    }
    insta::assert_snapshot!(cycles, @"
    $ sheaf run
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: packages need each other in a cycle, which `use` cannot follow:
        aa 1.0.0 needs bb ^1
        bb 1.0.0 needs cc ^1
        cc 1.0.0 needs aa ^1
        Sheaf.toml:6 asks for aa ^1
      ask for versions without this cycle, or for a package that has the common part

    $ sheaf add aa
    exit code 1
    standard error:
      updating git://[address]/index.git
      error: packages need each other in a cycle, which `use` cannot follow:
        aa 1.0.0 needs bb ^1
        bb 1.0.0 needs cc ^1
        cc 1.0.0 needs aa ^1
        Sheaf.toml:6 asks for aa ^1.0.0
      ask for versions without this cycle, or for a package that has the common part

    $ sheaf run
    exit code 1
    standard error:
      error: packages need each other in a cycle, which `use` cannot follow:
        xx 0.1.0 needs yy *
        yy 0.1.0 needs xx *
        Sheaf.toml:6 asks for xx *
      ask for versions without this cycle, or for a package that has the common part

    $ sheaf add xx --path ../x
    exit code 1
    standard error:
      error: packages need each other in a cycle, which `use` cannot follow:
        xx 0.1.0 needs yy *
        yy 0.1.0 needs xx *
        Sheaf.toml:6 asks for xx *
      ask for versions without this cycle, or for a package that has the common part
    ");
}

/// A key that is not known is a warning, since a newer Sheaf may know it; with a suggestion.
#[test]
fn a_typo_in_a_manifest_is_told_with_the_right_word() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = Sandbox::new();
    let manifest = "[package]\nname = \"demo\"\n\n[dependncies]\nmaths = \"1\"\n";
    user.write("demo/Sheaf.toml", manifest);
    user.write("demo/src/main.shf", "(use maths)\n(print version)\n");
    let run = |arguments: &[&str]| world.sheaf(&user, arguments).at("demo").run();
    for arguments in [&["run", "--no-jit"][..], &["check"], &["add", "maths@7"]] {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(
            refused.stderr.contains("Sheaf.toml:4:2: `dependncies` is not known here and does nothing; did you mean `dependencies`?"),
            "{refused}"
        );
        assert_eq!(project_files(&user, "demo"), [("Sheaf.toml".to_owned(), manifest.to_owned())]);
    }
    let added = run(&["add", "maths"]);
    assert!(added.code == Some(0) && added.stderr.contains("did you mean `dependencies`?"), "{added}");
    let text = fs::read_to_string(user.path("demo/Sheaf.toml")).unwrap();
    assert!(text.starts_with(manifest) && text.contains("[dependencies]\nmaths = \"1.0.0\"\n"), "{text}");
}
