//! The way of a new user: a project, a package, a second machine, no network.

use sheaf_tests::Sandbox;

use crate::world::World;

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

/// Published, added, run and locked over smart http.
#[test]
fn the_same_over_smart_http() {
    let world = World::over_http(None).fill();
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "attention-lib"]).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    user.write("demo/src/main.shf", PROGRAM);
    assert_eq!(user.sheaf(&["run", "--no-jit", "--offline"]).at("demo").run().silent(), "[4 3 5]\n");
    world.publish("later", "0.1.0", "attention-lib = \"0.1\"", "(use attention-lib)\n");
    let found = world.sheaf(&user, &["search", "later"]).at("demo").run();
    assert!(found.code == Some(0) && found.stdout.contains("later"), "{found}");
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
