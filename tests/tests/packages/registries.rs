//! Care of a registry: what its CI refuses in a change.

use std::fs;

use regex::Regex;
use sheaf_tests::Sandbox;

use crate::world::{World, git};

/// A keeper's checkout of a registry that has `maths` 1.0.0 and has got 1.1.0 since; the commit of before.
fn keeper(world: &World) -> (Sandbox, String) {
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let base = git(&world.bare("index"), &["rev-parse", "main"]);
    world.publish("maths", "1.1.0", "", "(def version 1)\n");
    let keeper = Sandbox::new();
    world.checkout(&keeper);
    (keeper, base)
}

#[test]
fn new_versions_are_fetched_and_compared_on_request() {
    let mut world = World::new();
    let (keeper, base) = keeper(&world);
    let file = keeper.path("index/ma/th/maths");
    let check = |options: &[&str]| {
        let arguments = [&["registry", "check", "--base", &base], options].concat();
        keeper.sheaf(&arguments).at("index").run()
    };
    let fetched = check(&["--fetch"]);
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert_eq!(fetched.stderr, "fetching maths\n", "the new version alone");
    assert!(!keeper.home().join("cache").exists(), "the keeper's own store is another");

    let text = fs::read_to_string(&file).expect("a file");
    let (old, new) = text.split_once('\n').expect("two lines");
    let part = |key: &str, line: &str| {
        let start = line.find(&format!("\"{key}\":\"")).expect("a key") + key.len() + 4;
        line[start..].split('"').next().expect("a value").to_owned()
    };
    let digits = Regex::new("[0-9a-f]{40}|sha256-[A-Za-z0-9+/=]+").expect("a pattern");
    let refused = |file: &str, line: &str| {
        keeper.write(&format!("index/{file}"), line);
        assert_eq!(check(&[]).code, Some(0), "it can be read");
        let refused = check(&["--fetch"]);
        assert_eq!(refused.code, Some(1), "{refused}");
        digits.replace_all(&world.neutral(&refused).replace(&base[..], "BASE"), "DIGITS").into_owned()
    };
    let altered = |from: &str, to: &str| format!("{old}\n{}", new.replace(from, to));
    let tree = part("tree", new);
    insta::assert_snapshot!(refused("ma/th/maths", &altered(&tree, &part("tree", old))), @"
    $ sheaf registry check --base BASE --fetch
    exit code 1
    standard error:
      fetching maths
      error: ma/th/maths: maths 1.1.0: the sources of git://[address]/maths.git changed: commit DIGITS has the tree hash DIGITS, but DIGITS was expected; a registry or a lock file names other sources than its author published: tell them, and do not use either
    ");
    insta::assert_snapshot!(refused("ma/th/maths", &altered(&part("commit", new), &part("commit", old))), @"
    $ sheaf registry check --base BASE --fetch
    exit code 1
    standard error:
      fetching maths
      error: ma/th/maths: maths 1.1.0: tag `v1.1.0` of git://[address]/maths.git moved from commit DIGITS to DIGITS; ask its author why, and run `sheaf update` only if you want the new commit
    ");
    keeper.write("index/ma/th/maths", &text);
    let other = new.replace("\"maths\"", "\"plots\"").replace("\"1.1.0\"", "\"3.0.0\"");
    insta::assert_snapshot!(refused("pl/ot/plots", &other), @"
    $ sheaf registry check --base BASE --fetch
    exit code 1
    standard error:
      fetching maths
      error: pl/ot/plots: plots 3.0.0: its Sheaf.toml is that of maths 1.1.0
    ");
    fs::remove_file(keeper.path("index/pl/ot/plots")).expect("a file");
    world.cut();
    assert_eq!(check(&["--fetch"]).code, Some(1));
    check(&[]).silent();
    let alone = keeper.sheaf(&["registry", "check", "--fetch"]).at("index").run();
    assert_eq!(alone.code, Some(2), "{alone}");
}

#[test]
fn a_new_package_is_not_called_like_another() {
    let world = World::new();
    world.publish("attention-lib", "1.0.0", "", "");
    let keeper = Sandbox::new();
    world.checkout(&keeper);
    let line = fs::read_to_string(keeper.path("index/at/te/attention-lib")).expect("a line");
    let check =
        |options: &[&str]| keeper.sheaf(&[&["registry", "check"], options].concat()).at("index").run();
    keeper.write("index/at/te/attention_lib", line.replace("attention-lib\"", "attention_lib\""));
    let refused = check(&["--base", "HEAD"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    insta::assert_snapshot!(refused.stderr, @"error: at/te/attention_lib: attention_lib is new, and differs from attention-lib by - and _ alone: users would take one for the other; give it another name");
    // Names that are there already stay.
    check(&[]).silent();
    git(&keeper.path("index"), &["add", "--all"]);
    git(&keeper.path("index"), &["commit", "--quiet", "-m", "both"]);
    check(&["--base", "HEAD"]).silent();
    keeper.write("index/Ma/th/Maths", &line);
    let refused = check(&["--json"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    insta::assert_snapshot!(refused.stdout, @r#"
    [
      {
        "file": "Ma/th/Maths",
        "problem": "packages have names of small letters; call it maths, if that is free"
      }
    ]
    "#);
}
