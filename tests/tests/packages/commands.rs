//! Commands about packages: archives, audits, bills of materials, documentation, yanks.

use serde_json::Value;
use sheaf_tests::Sandbox;

use crate::world::{World, project_files};

/// A user whose project `demo` depends on `attention-lib`.
fn user(world: &World) -> Sandbox {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let added = world.sheaf(&user, &["add", "attention-lib"]).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    user.write(
        "demo/src/main.shf",
        "(use attention-lib)\n(print (shape (repeat-heads (zeros '[2 5 4]) 3)))\n",
    );
    user
}

#[test]
fn archives_serve_a_machine_without_a_network() {
    let mut world = World::with_packages();
    let user = user(&world);
    let packed = world.sheaf(&user, &["vendor"]).at("demo").run();
    assert_eq!(packed.code, Some(0), "{packed}");
    world.cut();
    let archive = "demo/vendor/attention-lib-0.1.0.tar.gz";
    let bytes = std::fs::read(user.path(archive)).expect("an archive");
    let device = |archive_bytes: &[u8]| {
        let device = Sandbox::new();
        for name in ["Sheaf.toml", "Sheaf.lock", "src/main.shf"] {
            device.write(
                &format!("demo/{name}"),
                std::fs::read(user.path(&format!("demo/{name}"))).expect("a file"),
            );
        }
        device.write(archive, archive_bytes);
        let run = device.sheaf(&["run", "--no-jit", "--offline"]).at("demo").run();
        (device, run)
    };
    assert_eq!(device(&bytes).1.silent(), "[6 5 4]\n");
    // The same again: reproducible.
    let again = user.sheaf(&["vendor", "--offline"]).at("demo").run();
    assert_eq!(
        (again.code, std::fs::read(user.path(archive)).expect("an archive")),
        (Some(0), bytes.clone())
    );
    let mut altered = bytes;
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    let (device, refused) = device(&altered);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("sheaf vendor"), "{refused}");
    let store = device.home().join("cache/sources");
    let names: Vec<_> = std::fs::read_dir(store).expect("a store").flatten().map(|e| e.file_name()).collect();
    assert!(names.iter().all(|name| name == "lock" || name == "staging"), "{names:?}");
}

#[test]
fn an_audit_finds_what_was_withdrawn_or_changed() {
    let world = World::with_packages();
    let user = user(&world);
    let audit = || world.sheaf(&user, &["audit"]).at("demo").run();
    assert_eq!(audit().stdout, "nothing is known against 1 package\n");
    let yank = |arguments: &[&str]| {
        let keeper = Sandbox::new();
        let arguments = [&["yank", "attention-lib", "0.1.0"], arguments].concat();
        let run = world.author(&keeper, &arguments).run();
        assert_eq!(run.code, Some(0), "{run}");
    };
    yank(&["--reason", "wrong mask"]);
    let found = audit();
    assert!(found.code == Some(1) && found.stderr.contains("yanked: wrong mask"), "{found}");
    // Projects that have locked it keep it; others do not get it.
    assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "[6 5 4]\n");
    let other = Sandbox::new();
    other.run(&["new", "demo"]).silent();
    let before = project_files(&other, "demo");
    let refused = world.sheaf(&other, &["add", "attention-lib"]).at("demo").run();
    assert!(refused.code == Some(1) && refused.stderr.contains("yanked"), "{refused}");
    assert_eq!(project_files(&other, "demo"), before);
    yank(&["--undo"]);
    assert_eq!(audit().code, Some(0));
    let store = user.home().join("cache/sources");
    let entry = std::fs::read_dir(store).expect("a store").flatten().find(|e| e.file_name().len() == 64);
    let file = entry.expect("an entry").path().join("tree/src/lib.shf");
    std::fs::remove_file(&file).expect("a file");
    std::fs::write(&file, "(print 1)\n").expect("a file");
    let damaged = audit();
    assert!(
        damaged.code == Some(1) && damaged.stderr.contains("changed after they were verified"),
        "{damaged}"
    );
}

#[test]
fn an_audit_says_which_tags_have_moved() {
    let world = World::new();
    let (author, user) = (Sandbox::new(), Sandbox::new());
    author.run(&["new", "lib"]).silent();
    world.push(&author.path("lib"), "lib", &["v1"]);
    user.run(&["new", "demo"]).silent();
    let source = ["add", "lib", "--git", &world.address("lib"), "--tag", "v1"];
    let added = world.sheaf(&user, &source).at("demo").run();
    assert_eq!(added.code, Some(0), "{added}");
    let audit = || world.sheaf(&user, &["audit"]).at("demo").run();
    assert_eq!(audit().stdout, "nothing is known against 1 package\n");
    author.write("lib/src/main.shf", "(print :changed)\n");
    world.push(&author.path("lib"), "lib", &["v1"]);
    let found = audit();
    assert!(found.code == Some(1) && found.stderr.contains("its tag moved from commit"), "{found}");
}

#[test]
fn a_bill_of_materials_names_every_package_with_digest_and_licence() {
    let world = World::with_packages();
    let user = user(&world);
    let written = user.sheaf(&["sbom", "--output", "bom.json"]).at("demo").run();
    assert_eq!(written.silent(), "");
    let text = std::fs::read_to_string(user.path("demo/bom.json")).expect("a file");
    assert_eq!(user.sheaf(&["sbom"]).at("demo").run().silent(), text);
    let bom: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&Value::from("CycloneDX"), &Value::from("1.6")));
    let component = &bom["components"][0];
    assert_eq!(component["name"], "attention-lib");
    assert_eq!(component["purl"], "pkg:generic/attention-lib@0.1.0");
    assert_eq!(component["licenses"][0]["expression"], "Apache-2.0");
    assert_eq!(component["hashes"][0]["content"].as_str().map(str::len), Some(64));
    assert_eq!(bom["dependencies"][0]["dependsOn"][0], component["bom-ref"]);
}

#[test]
fn the_documentation_of_a_dependency() {
    let world = World::with_packages();
    let user = user(&world);
    let doc = |arguments: &[&str]| user.sheaf(&[&["doc"], arguments].concat()).at("demo").run();
    let whole = doc(&["attention-lib"]).silent();
    assert!(whole.contains("grouped-query-attention") && whole.contains("alibi-bias"), "{whole}");
    let one = doc(&["attention-lib", "alibi-bias"]).silent();
    assert!(one.contains("alibi-bias") && !one.contains("grouped-query"), "{one}");
    let module = doc(&["attention-lib/masks"]).silent();
    assert!(module.contains("alibi-bias") && !module.contains("(grouped-query-attention q"), "{module}");
    assert_eq!(doc(&["no-such-lib"]).code, Some(1));
    assert!(doc(&["softmax"]).silent().contains("softmax"));
}

/// Each example runs in its package, and as a program of a user who has added the package.
#[test]
fn the_examples_of_the_packages_run() {
    let world = World::with_packages();
    let author = Sandbox::new();
    author.example_folder("packages");
    for (package, example, lines) in [
        ("attention-lib", "shapes.shf", ["grouped", "windowed", "linear"].as_slice()),
        ("optim-extra", "valley.shf", &["last"]),
    ] {
        let run = world.sheaf(&author, &["run", "--no-jit", &format!("examples/{example}")]);
        let there = run.at(&format!("packages/{package}")).run();
        assert_eq!(there.code, Some(0), "{there}");
        let starts: Vec<_> = there.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(starts, lines, "{there}");
        let user = Sandbox::new();
        user.run(&["new", "demo"]).silent();
        assert_eq!(world.sheaf(&user, &["add", package]).at("demo").run().code, Some(0));
        let sources = user.home().join("cache/sources");
        let path = Sandbox::files(&sources).into_iter().find(|path| path.ends_with(example)).expect("it");
        user.write("demo/src/main.shf", std::fs::read(sources.join(path)).expect("a file"));
        assert_eq!(user.sheaf(&["run", "--no-jit", "--frozen"]).at("demo").run().silent(), there.stdout);
    }
}

#[test]
fn compiled_programs_are_removed_and_nothing_that_a_link_leads_to() {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let clean = |arguments: &[&str], folder: &str| {
        let done = user.sheaf(&[&["clean"], arguments].concat()).at(folder).run();
        assert_eq!(done.code, Some(0), "{done}");
        done.silent().replace(&*user.path("").to_string_lossy(), "~/")
    };
    insta::assert_snapshot!(clean(&[], "demo"), @"nothing to remove: there is no ~/demo/__sheaf__");
    for (arguments, folder) in [(&[][..], "demo"), (&[], "demo/src"), (&["demo"], "."), (&["demo/src"], ".")]
    {
        user.write("demo/__sheaf__/manifest.json", "{}");
        user.write("demo/__sheaf__/f.cpu.vmfb", "x");
        assert!(clean(arguments, folder).starts_with("removed ~/demo/__sheaf__; "));
        assert!(!user.path("demo/__sheaf__").exists());
    }
    let kept = ["demo/Sheaf.toml", "demo/src/main.shf"];
    assert!(kept.iter().all(|name| user.path(name).exists()));
    user.write("elsewhere/manifest.json", "{}");
    std::os::unix::fs::symlink(user.path("elsewhere"), user.path("demo/__sheaf__")).expect("a link");
    assert!(clean(&[], "demo").starts_with("removed ~/demo/__sheaf__; "));
    assert!(user.path("elsewhere/manifest.json").exists());
    assert!(std::fs::symlink_metadata(user.path("demo/__sheaf__")).is_err(), "the link is gone");
    // A file in its place, and a link inside.
    user.write("demo/__sheaf__", "x");
    clean(&[], "demo");
    user.write("demo/__sheaf__/x", "x");
    std::os::unix::fs::symlink(user.path("elsewhere"), user.path("demo/__sheaf__/link")).expect("a link");
    clean(&[], "demo");
    assert!(user.path("elsewhere/manifest.json").exists() && !user.path("demo/__sheaf__").exists());
}

#[test]
fn commands_at_once_change_a_project_one_after_the_other() {
    let user = Sandbox::new();
    for name in ["demo", "one", "two"] {
        user.run(&["new", name]).silent();
    }
    let add = |name: &str| {
        let added = user.sheaf(&["add", name, "--path", &format!("../{name}")]).at("demo").run();
        assert_eq!(added.code, Some(0), "{added}");
    };
    for _ in 0..8 {
        std::thread::scope(|scope| {
            for thread in ["one", "two"].map(|name| scope.spawn(move || add(name))) {
                thread.join().expect("an end");
            }
        });
        let manifest = std::fs::read_to_string(user.path("demo/Sheaf.toml")).expect("a manifest");
        assert!(manifest.contains("\none = ") && manifest.contains("\ntwo = "), "{manifest}");
        let locked = user.sheaf(&["run", "--locked", "--no-jit"]).at("demo").run();
        assert_eq!(locked.code, Some(0), "{locked}");
        let removed = user.sheaf(&["remove", "one", "two"]).at("demo").run();
        assert_eq!(removed.code, Some(0), "{removed}");
    }
}
