//! Files of other users among those that decide what a program uses: a lock, and the manifest of a package in a folder.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use sheaf_tests::{Sandbox, skip};

use crate::world::{World, project_files};

/// Another user.
const MALLORY: u32 = 4242;

/// Changes the owner of a file. False, after a message, if that is impossible: only root can.
fn give_away(path: &Path) -> bool {
    let given = chown(path, Some(MALLORY), None);
    given.map_err(|error| skip(&format!("files cannot be given away here: {error}"))).is_ok()
}

/// A lock decides which sources run.
#[test]
fn a_lock_of_another_user_is_refused() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 0)\n");
    let user = Sandbox::new();
    user.write("demo/Sheaf.toml", "[package]\nname = \"demo\"\n\n[dependencies]\nmaths = \"1\"\n");
    user.write("demo/src/main.shf", "(use maths)\n(print version)\n");
    let run = |arguments: &[&str]| world.sheaf(&user, arguments).at("demo").run();
    assert_eq!(run(&["run", "--no-jit"]).stdout, "0\n");
    let lock = user.path("demo/Sheaf.lock");
    if !give_away(&lock) {
        return;
    }
    let before = project_files(&user, "demo");
    for command in [
        &["run", "--no-jit"][..],
        &["check"],
        &["install"],
        &["add", "maths@1"],
        &["update"],
        &["tree"],
        &["vendor"],
        &["audit"],
        &["sbom"],
    ] {
        let refused = run(command);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
        assert!(
            refused.stderr.contains("Sheaf.lock belongs to user 4242")
                && refused.stderr.contains("safe-directories"),
            "{refused}"
        );
        assert_eq!(project_files(&user, "demo"), before);
    }
    let work = user.path("demo").canonicalize().expect("a path").display().to_string();
    let told = world.sheaf(&user, &["run", "--no-jit"]).env("SHEAF_SAFE_DIRECTORIES", work).at("demo").run();
    assert_eq!(told.silent(), "0\n");
}

/// A manifest decides what else is fetched.
#[test]
fn a_package_in_a_folder_of_another_user_is_refused() {
    let user = Sandbox::new();
    user.write(
        "demo/Sheaf.toml",
        "[package]\nname = \"demo\"\n\n[dependencies]\nmaths = { path = \"../maths\" }\n",
    );
    user.write("demo/src/main.shf", "(use maths)\n(print version)\n");
    user.write("maths/Sheaf.toml", "[package]\nname = \"maths\"\nversion = \"1.0.0\"\n");
    user.write("maths/src/lib.shf", "(def version 1)\n");
    if !give_away(&user.path("maths/Sheaf.toml")) {
        return;
    }
    let run = |arguments: &[&str]| user.sheaf(arguments).at("demo").run();
    let refused = |arguments: &[&str]| {
        let before = project_files(&user, "demo");
        let refused = run(arguments);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
        assert!(
            refused.stderr.contains("maths/Sheaf.toml belongs to user 4242")
                && refused.stderr.contains("safe-directories"),
            "{refused}"
        );
        assert_eq!(project_files(&user, "demo"), before);
    };
    refused(&["run", "--no-jit"]);
    refused(&["install"]);
    chown(user.path("maths/Sheaf.toml"), Some(0), None).expect("the user's again");
    assert_eq!(run(&["run", "--no-jit"]).stdout, "1\n");
    // A lock that answered before makes no difference.
    assert!(give_away(&user.path("maths/Sheaf.toml")));
    refused(&["run", "--no-jit"]);
    fs::write(user.path("demo/Sheaf.toml"), "[package]\nname = \"demo\"\n").expect("a file");
    refused(&["add", "maths", "--path", "../maths"]);
    let work = user.path("maths").canonicalize().expect("a path").display().to_string();
    let told =
        user.sheaf(&["add", "maths", "--path", "../maths"]).env("SHEAF_SAFE_DIRECTORIES", &work).at("demo");
    assert_eq!(told.run().code, Some(0));
    let told = user.sheaf(&["run", "--no-jit"]).env("SHEAF_SAFE_DIRECTORIES", &work).at("demo").run();
    assert_eq!(told.silent(), "1\n");
}
