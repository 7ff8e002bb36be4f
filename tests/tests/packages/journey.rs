//! The way of a new user: a project, a package, a second machine, no network.

use sheaf_tests::Sandbox;

use crate::world::{World, project_files};

const PROGRAM: &str = "(use attention-lib)\n\
    (print (shape (first (grouped-query-attention (ones '[4 3 2]) (ones '[2 3 2]) (ones '[2 3 5])))))\n";

#[test]
fn new_add_run_and_then_without_a_network() {
    let mut world = World::with_packages();
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "attention-lib"]).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    assert!(added.stdout.contains("attention-lib 0.1.0 (Apache-2.0, "), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    let run = |sandbox: &Sandbox, options: &[&str]| {
        let arguments = [&["run", "--no-jit"], options].concat();
        sandbox.sheaf(&arguments).env("SHEAF_REGISTRY", world.address("index")).at("demo").run()
    };
    assert_eq!(run(&user, &[]).silent(), "[4 3 5]\n");

    // A second machine has the project alone.
    let other = Sandbox::new();
    for name in ["Sheaf.toml", "Sheaf.lock", "src/main.shf"] {
        other.write(&format!("demo/{name}"), std::fs::read(user.path(&format!("demo/{name}"))).unwrap());
    }
    let fetched = run(&other, &["--locked"]);
    assert_eq!((fetched.code, fetched.stdout.as_str()), (Some(0), "[4 3 5]\n"), "{fetched}");

    world.cut();
    for sandbox in [&user, &other] {
        for options in [&["--offline"][..], &["--frozen"], &["--locked"], &[]] {
            let run = sandbox.sheaf(&[&["run", "--no-jit"], options].concat()).at("demo").run();
            assert_eq!(run.silent(), "[4 3 5]\n");
        }
        assert_eq!(sandbox.sheaf(&["check"]).at("demo").run().code, Some(0));
        let tree = sandbox.sheaf(&["tree"]).at("demo").run().silent();
        assert_eq!(tree, "demo\n└── attention-lib 0.1.0\n");
    }
    let third = Sandbox::new();
    third.write("demo/Sheaf.toml", std::fs::read(user.path("demo/Sheaf.toml")).unwrap());
    third.write("demo/Sheaf.lock", std::fs::read(user.path("demo/Sheaf.lock")).unwrap());
    third.write("demo/src/main.shf", PROGRAM);
    let refused = third.sheaf(&["run", "--offline"]).at("demo").run();
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("--offline"), "{refused}");
}

/// A new user adds a package and runs it; a second machine gets the project, and a library that is published meanwhile; then all
/// servers go, and everything that needs no more works on both. Programs are compiled on a `second` machine with a compiler.
fn journey(mut world: World, second: &Sandbox, compiles: bool) {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "attention-lib"]).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "[4 3 5]\n");

    for name in ["Sheaf.toml", "Sheaf.lock", "src/main.shf"] {
        second.write(
            &format!("demo/{name}"),
            std::fs::read(user.path(&format!("demo/{name}"))).expect("a file"),
        );
    }
    let before = project_files(second, "demo");
    let locked = world.sheaf(second, &["run", "--no-jit", "--locked"]).at("demo").run();
    assert_eq!((locked.code, locked.stdout.as_str()), (Some(0), "[4 3 5]\n"), "{locked}");
    assert_eq!(project_files(second, "demo"), before);

    world.publish(
        "later",
        "0.1.0",
        "attention-lib = \"0.1\"",
        "(use attention-lib)\n(defn thrice \"(shape (thrice (zeros '[1 2 2]))) ;=> '[3 2 2]\" [k] (repeat-heads k 3))\n",
    );
    let added = world.sheaf(second, &["add", "later"]).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    assert!(added.stdout.contains("+ later 0.1.0"), "{added}");
    let typed = "(defn double [(x f32 [4])] (* 2 x))\n";
    second.write(
        "demo/src/main.shf",
        format!("{PROGRAM}(use later)\n{typed}(print (shape (thrice (ones '[1 2 4]))))\n"),
    );
    second.write("demo/tests/t.shf", "(use later)\n(shape (thrice (ones '[2 2 4]))) ;=> '[6 2 4]\n");
    let run = world.sheaf(second, &["run", "--no-jit"]).at("demo").run();
    assert_eq!(run.silent(), "[4 3 5]\n[3 2 4]\n");

    world.cut();
    assert_eq!(world.sheaf(&user, &["run", "--no-jit"]).at("demo").run().silent(), "[4 3 5]\n");
    let mut commands: Vec<&[&str]> = vec![
        &["run", "--no-jit"],
        &["run", "--no-jit", "--offline"],
        &["run", "--no-jit", "--frozen"],
        &["test", "--no-jit"],
        &["test", "--no-jit", "--frozen"],
        &["doc", "later", "thrice"],
        &["doc", "later", "--frozen"],
        &["check"],
        &["check", "--frozen"],
        &["expand", "src/main.shf", "--frozen"],
        &["install", "--frozen"],
        &["tree"],
    ];
    if compiles {
        commands.extend([&["build"][..], &["build", "--frozen"], &["test", "--frozen"]]);
    }
    let before = project_files(second, "demo");
    for command in commands {
        let done = world.sheaf(second, command).at("demo").run();
        assert_eq!(done.code, Some(0), "{done}");
    }
    assert_eq!(project_files(second, "demo"), before);
    // The servers are gone.
    let refused = world.sheaf(&user, &["add", "later"]).at("demo").run();
    assert_eq!(refused.code, Some(1), "{refused}");
}

#[test]
fn the_same_over_smart_http() {
    let compiler = Sandbox::with_compiler();
    let compiles = compiler.is_some();
    journey(World::over_http(None).fill(), &compiler.unwrap_or_default(), compiles);
}

#[test]
fn the_same_over_ssh() {
    let Some(world) = World::over_ssh() else { return };
    journey(world.fill(), &Sandbox::new(), false);
}

#[test]
fn the_same_with_a_static_copy_of_the_registry() {
    journey(World::with_static_copy().fill(), &Sandbox::new(), false);
}

#[test]
fn a_package_in_a_git_repository_and_one_in_a_folder() {
    let world = World::with_packages();
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    user.write("maths/Sheaf.toml", "[package]\nname = \"maths\"\nversion = \"0.2.0\"\n");
    user.write("maths/src/lib.shf", "(defn twice [x] (* 2 x))\n");
    let git = world.address("optim-extra");
    for arguments in [
        &["add", "optim-extra", "--git", &git, "--tag", "v0.1.0"][..],
        &["add", "maths", "--path", "../maths"],
    ] {
        let added = user.sheaf(arguments).at("demo").run();
        assert_eq!(added.code, Some(0), "{added}");
    }
    user.write(
        "demo/src/main.shf",
        "(use optim-extra)\n(use maths)\n(print (twice (ema-step [0 0] [1 2] 0.5)))\n",
    );
    assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "[1. 2.]\n");
    // The folder is as it is now.
    user.write("maths/src/lib.shf", "(defn twice [x] (* 20 x))\n");
    assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "[10. 20.]\n");
    let removed = user.sheaf(&["remove", "maths", "optim-extra"]).at("demo").run();
    assert_eq!(removed.code, Some(0), "{removed}");
    let lock = std::fs::read_to_string(user.path("demo/Sheaf.lock")).unwrap();
    assert!(!lock.contains("[[package]]"), "{lock}");
    let run = user.sheaf(&["run", "--no-jit"]).at("demo").run();
    assert!(
        run.stderr.contains("cannot use optim-extra") && run.stderr.contains("sheaf add optim-extra"),
        "{run}"
    );
}

#[test]
fn a_typed_function_of_a_package_is_compiled_once_for_all_projects() {
    let Some(user) = Sandbox::with_compiler() else { return };
    let world = World::new();
    world.publish(
        "scaled",
        "1.0.0",
        "",
        "(defn scaled [x] (reduce (fn [h i] (tanh (* 1.5 h))) x (range 40)))\n",
    );
    let program = "(use scaled)\n(print (shape (scaled (ones '[300 300]))))\n";
    for (project, first) in [("one", true), ("two", false)] {
        user.run(&["new", project]).silent();
        let added = world.sheaf(&user, &["add", "scaled"]).at(project).run();
        assert_eq!(added.code, Some(0), "{added}");
        user.write(&format!("{project}/src/main.shf"), program);
        let run = user.sheaf(&["run", "--jit", "always"]).at(project).run();
        let output = if first { run.compiled() } else { run.compiled_nothing() };
        assert_eq!(output, "[300 300]\n");
    }
}
