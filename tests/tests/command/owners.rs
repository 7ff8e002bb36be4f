//! Files of other users are ignored. Only root can change owners, so without it most of this is skipped; the unit tests
//! of `project` cover every owner.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use sheaf_tests::{Sandbox, skip};

use super::{FOURTEEN, RUN_SQUARES, compiled_squares};

/// Another user.
const MALLORY: u32 = 4242;

/// Changes the owner of a file, or a folder and its contents. False, after a message, if that is impossible.
fn give_away(path: &Path) -> bool {
    let inside = Sandbox::files(path);
    let all = std::iter::once(path.to_owned()).chain(inside.iter().map(|name| path.join(name)));
    for path in all {
        if let Err(error) = chown(&path, Some(MALLORY), None) {
            skip(&format!("files cannot be given away here: {error}"));
            return false;
        }
    }
    true
}

/// Regression: in a world-writable folder such as `/tmp`, another user's compiled program ran.
#[test]
fn planted_programs_do_not_run() {
    let Some(there) = compiled_squares() else { return };
    let sandbox = Sandbox::new();
    sandbox.copy_from(&there);
    fs::remove_dir_all(sandbox.home().join("cache")).expect("removed");
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN, "it runs while it is the user's");
    let _ = fs::remove_dir_all(sandbox.home().join("cache"));
    let folder = sandbox.path("__sheaf__");
    if !give_away(&folder) {
        return;
    }
    let strict = [&RUN_SQUARES[..], &["--strict"]].concat();
    let output = sandbox.run(&strict);
    assert_eq!(output.code, Some(1), "{output}");
    let line = format!("{} belongs to user {MALLORY} and is passed over: if you trust ", folder.display());
    // The warning, and the error that follows from it.
    assert_eq!(output.stderr.matches(&line).count(), 2, "{output}");
    // Without a compiler it is interpreted, and nothing is written there either.
    let output = sandbox.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert!(
        Sandbox::files(&folder).iter().all(|name| name != ".lock" || there.path("__sheaf__/.lock").exists())
    );

    let work = sandbox.path("").canonicalize().expect("a path").display().to_string();
    for (variable, value) in
        [("SHEAF_SAFE_DIRECTORIES", work.as_str()), ("SHEAF_SAFE_DIRECTORIES", "*"), ("SUDO_UID", "4242")]
    {
        assert_eq!(
            sandbox.sheaf(&strict).env(variable, value).run().silent(),
            FOURTEEN,
            "{variable}={value}"
        );
    }
    fs::write(sandbox.home().join("config.toml"), format!("safe-directories = [\"{work}\"]\n"))
        .expect("a file");
    assert_eq!(sandbox.run(&strict).silent(), FOURTEEN);
    fs::remove_file(sandbox.home().join("config.toml")).expect("removed");
    // The manifest counts: one planted in the user's own folder is not read.
    chown(&folder, Some(0), None).expect("the user's again");
    let output = sandbox.run(&strict);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains("manifest.json belongs to user 4242 and is passed over"), "{output}");
}

#[test]
fn a_folder_of_programs_that_is_a_link_is_passed_over() {
    let Some(sandbox) = compiled_squares() else { return };
    let (folder, elsewhere) = (sandbox.path("__sheaf__"), sandbox.path("elsewhere"));
    fs::rename(&folder, &elsewhere).expect("moved");
    symlink("elsewhere", &folder).expect("a link");
    let before = Sandbox::files(&elsewhere);
    let output = sandbox.run(&[&RUN_SQUARES[..], &["--recompile"]].concat());
    assert_eq!(
        output.stderr.matches("__sheaf__ is a link and is passed over: make it a folder").count(),
        1,
        "{output}"
    );
    assert_eq!(output.compiled(), FOURTEEN);
    assert_eq!(Sandbox::files(&elsewhere), before);
    let named =
        sandbox.sheaf(&RUN_SQUARES).env("SHEAF_SAFE_DIRECTORIES", sandbox.path("").display().to_string());
    assert_eq!(named.run().silent(), FOURTEEN);
}

/// `Sheaf.toml` decides the program that `sheaf run` runs, and the sources of programs.
#[test]
fn planted_projects_do_not_count() {
    let sandbox = Sandbox::new();
    sandbox.write("Sheaf.toml", "[package]\nmain = \"theirs.shf\"\n");
    sandbox.write("Sheaf.lock", "[toolchain]\niree = \"3.8.0\"\n");
    sandbox.write("theirs.shf", "(print \"theirs\")\n");
    assert_eq!(sandbox.run(&["run", "--no-jit"]).silent(), "theirs\n");
    let file = sandbox.path("Sheaf.toml");
    if !give_away(&file) {
        return;
    }
    let output = sandbox.run(&["run", "--no-jit"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("planted_project", output);
    for command in
        [&["fmt", "--check"][..], &["repl", "--no-jit"], &["cache", "key", "list"], &["toolchain", "list"]]
    {
        let output = sandbox.run(command);
        assert!(output.stderr.contains("Sheaf.toml belongs to user 4242"), "{output}");
    }
    assert!(sandbox.run(&["trust", "--yes"]).stderr.contains("there is no Sheaf.toml"));
    // The user's link to it is ignored as well.
    fs::create_dir(sandbox.path("mine")).expect("a folder");
    symlink(&file, sandbox.path("mine/Sheaf.toml")).expect("a link");
    sandbox.write("mine/a.shf", "(print 1)\n");
    let output = sandbox.run(&["mine/a.shf"]);
    assert_eq!(output.stderr.matches("belongs to user 4242").count(), 2, "{output}");

    // The lock file is checked separately.
    chown(&file, Some(0), None).expect("the user's again");
    assert!(give_away(&sandbox.path("Sheaf.lock")));
    let output = sandbox.run(&["toolchain", "list"]);
    assert!(output.stderr.contains("Sheaf.lock belongs to user 4242"), "{output}");
    let pinned = sandbox.run(&["toolchain", "pin", "3.13.0", "--offline"]);
    assert_eq!(pinned.code, Some(1), "{pinned}");
    assert_eq!(
        fs::read_to_string(sandbox.path("Sheaf.lock")).expect("a file"),
        "[toolchain]\niree = \"3.8.0\"\n"
    );
}

/// Its files start programs and decide who is trusted.
#[test]
fn a_home_of_somebody_else_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", "(print 1)\n");
    fs::write(sandbox.home().join("config.toml"), "").expect("a file");
    if !give_away(&sandbox.home().join("config.toml")) {
        return;
    }
    let output = sandbox.run(&["a.shf"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
    assert!(output.stderr.contains("config.toml belongs to user 4242"), "{output}");
    let told = sandbox.sheaf(&["a.shf"]).env("SHEAF_SAFE_DIRECTORIES", sandbox.home().display().to_string());
    assert_eq!(told.run().silent(), "1\n");
}

/// Regression: a CI recipe put `SHEAF_HOME` into the checkout, where a pull request's `config.toml` starts a program.
#[test]
fn a_home_inside_the_project_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("Sheaf.toml", "");
    sandbox.write("a.shf", "(print 1)\n");
    sandbox.write(
        ".sheaf-home/config.toml",
        "[cache]\nremote = [\"https://127.0.0.1:1\"]\ncredential-helper = \"touch started\"\n",
    );
    let home = sandbox.path(".sheaf-home").display().to_string();
    for command in
        [&["a.shf", "--jit", "always"][..], &["cache", "why", "f"], &["toolchain", "list"], &["trust"]]
    {
        let output = sandbox.sheaf(command).env("SHEAF_HOME", home.as_str()).run();
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
        assert!(output.stderr.contains("is inside the project"), "{output}");
        assert!(!sandbox.path("started").exists(), "{output}");
    }
    let told = sandbox
        .sheaf(&["a.shf"])
        .env("SHEAF_HOME", home.as_str())
        .env("SHEAF_SAFE_DIRECTORIES", sandbox.path("").display().to_string());
    assert_eq!(told.run().stdout, "1\n");
}
