//! Settings that a project's file requests, before and after the user's consent; and those it never gets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use sheaf_tests::Output;

use crate::entries::pushed;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, SQUARES, warnings, writer};
use crate::shared::{bucket, folder, taken};
use crate::web::{Fault, Files, Request, Web};

/// [`RUN_SQUARES`] with `--strict`.
const STRICT: [&str; 4] = ["squares.shf", "--jit", "always", "--strict"];

/// A clone of a project that requests this remote and the writers' key.
fn clone(address: &str) -> Machine {
    let machine = Machine::bare().squares();
    machine.sandbox.write("Sheaf.toml", manifest(address, &writer().public().to_string()));
    machine
}

fn manifest(address: &str, key: &str) -> String {
    format!("[cache]\nremote = [\"{address}\"]\ntrusted-keys = [\"{key}\"]\n")
}

/// Number of reports, on standard error, of the settings that a project requests.
fn passed_over(output: &Output) -> usize {
    output.stderr.matches("`trusted-keys` and `remote` in ").count()
}

/// Regression: a cloned project's keys and remote ran its own native code silently.
#[test]
fn a_clone_runs_no_code_of_its_own_choice_until_it_is_trusted() {
    let Some(files) = pushed() else { return };
    let web = Web::start(files.clone(), Fault::None);
    let machine = clone(&web.remote().address);
    let output = machine.run(&STRICT);
    assert_eq!((output.code, web.requests()), (Some(1), Vec::new()), "{output}");
    // Once as a warning, and in the consequent error.
    assert_eq!(passed_over(&output), 2, "{output}");
    let output = machine.run(&RUN_SQUARES);
    assert_eq!((output.code, passed_over(&output), web.requests().len()), (Some(0), 1, 0), "{output}");
    assert!(!machine.sandbox.path("__sheaf__").exists(), "{output}");

    // Without a terminal to ask, nothing is trusted.
    let output = machine.run(&["trust"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("nobody_can_be_asked", output);
    assert_eq!(passed_over(&machine.run(&RUN_SQUARES)), 1);

    insta::assert_snapshot!("trusted", machine.run(&["trust", "--yes"]));
    assert_eq!(machine.run(&["trust"]).code, Some(0), "nothing is asked twice");
    assert_eq!(taken(machine.run(&STRICT)), FOURTEEN);
    assert!(!web.requests().is_empty());
    let list: Value =
        serde_json::from_str(&machine.run(&["trust", "--list", "--json"]).silent()).expect("JSON");
    assert_eq!(list[0]["trusted"][0]["settings"]["remote"][0], web.remote().address.as_str(), "{list}");
    assert!(machine.run(&["trust", "--list"]).silent().contains("cache.remote http://"));

    // A changed file is another request, and the changes are shown.
    let other = Remote::at("https://cache.example").address;
    machine.sandbox.write("Sheaf.toml", manifest(&other, &writer().public().to_string()));
    assert_eq!(passed_over(&machine.run(&RUN_SQUARES)), 1);
    let asked = machine.run(&["trust"]);
    assert!(asked.stdout.contains("+ cache.remote https://cache.example\n"), "{asked}");
    assert!(asked.stdout.contains(&format!("- cache.remote {}\n", web.remote().address)), "{asked}");
    machine.sandbox.write("Sheaf.toml", manifest(&web.remote().address, &writer().public().to_string()));
    assert_eq!(passed_over(&machine.run(&RUN_SQUARES)), 0, "the first content again");

    assert_eq!(machine.run(&["trust", "--revoke"]).code, Some(0));
    assert_eq!(machine.run(&["trust", "--revoke"]).code, Some(1));
    assert_eq!(passed_over(&machine.run(&RUN_SQUARES)), 1);
}

/// A job of a protected branch trusts its checkout; one of a pull request sets its own settings.
#[test]
fn recipes_for_ci() {
    let Some(files) = pushed() else { return };
    let web = Web::start(files.clone(), Fault::None);
    let protected = clone(&web.remote().address).env("SHEAF_TRUST_PROJECT", "1");
    assert_eq!(taken(protected.run(&STRICT)), FOURTEEN);
    let pull_request = Machine::reading(&web.remote()).squares();
    pull_request.sandbox.write("Sheaf.toml", manifest("http://127.0.0.1:1", "mallory:00"));
    assert_eq!(taken(pull_request.run(&STRICT)), FOURTEEN);
    let wrong = clone("http://127.0.0.1:1").env("SHEAF_TRUST_PROJECT", "please").run(&RUN_SQUARES);
    assert_eq!(wrong.code, Some(1), "{wrong}");
}

/// Trust grants no credentials: a server that only a project names is contacted anonymously.
#[test]
fn a_projects_remote_gets_no_credentials() {
    let Some(files) = pushed() else { return };
    let web = Web::start(files.clone(), Fault::None);
    let machine = clone(&web.remote().address).env("SHEAF_CACHE_TOKEN", "the-token");
    machine.sandbox.write("netrc", "machine 127.0.0.1 login me password secret\n");
    let helper = machine.sandbox.path("helper");
    machine
        .sandbox
        .write("helper", "#!/bin/sh\ntouch started\necho '{\"headers\":{\"Authorization\":[\"secret\"]}}'\n");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    let netrc = machine.sandbox.path("netrc").display().to_string();
    let machine = machine.env("NETRC", netrc).env("SHEAF_TRUST_PROJECT", "1");
    let helped = machine.sheaf(&STRICT).env("SHEAF_CACHE_CREDENTIAL_HELPER", helper.display().to_string());
    assert_eq!(taken(helped.run()), FOURTEEN);
    assert!(!web.requests().is_empty() && !machine.sandbox.path("started").exists());
    assert!(web.requests().iter().all(|request| request.credentials.is_empty()), "{:?}", web.requests());

    // If the user names it: exactly that address, and no other port.
    let again = |remote: &str| {
        let _ = fs::remove_dir_all(machine.sandbox.path("__sheaf__"));
        fs::remove_dir_all(machine.sandbox.home().join("cache")).expect("removed");
        fs::write(machine.sandbox.home().join("config.toml"), format!("[cache]\nremote = [\"{remote}\"]\n"))
            .expect("a file");
        let before = web.requests().len();
        assert_eq!(taken(machine.run(&STRICT)), FOURTEEN);
        web.requests().split_off(before).into_iter().any(|request| !request.credentials.is_empty())
    };
    assert!(!again("http://127.0.0.1:1"));
    assert!(again(&web.remote().address));
}

/// The same for a bucket: neither a signature nor the session token, whatever the environment.
#[test]
fn a_projects_bucket_gets_no_signature() {
    let web = Web::start(Files::new(), Fault::None);
    let secrets = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "session"),
        ("AWS_REGION", "us-east-1"),
    ];
    let machine =
        secrets.into_iter().fold(clone("s3://theirs/x"), |machine, (name, value)| machine.env(name, value));
    let machine = machine.env("AWS_ENDPOINT_URL", web.remote().address).env("SHEAF_TRUST_PROJECT", "1");
    let output = machine.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    let asked = web.requests();
    assert!(!asked.is_empty() && asked.iter().all(|request| request.credentials.is_empty()), "{asked:?}");
    let output = machine.sheaf(&RUN_SQUARES).env("SHEAF_CACHE_REMOTE", "s3://theirs/x").run();
    assert_eq!(output.code, Some(0), "{output}");
    let signed = web.requests().split_off(asked.len());
    assert!(signed.iter().any(|request| request.credentials.contains(&"session".to_owned())), "{signed:?}");
    // A real store answers an anonymous request as such.
    let Some((_server, remote)) = bucket() else { return };
    let anonymous = remote
        .environment
        .iter()
        .fold(clone(&remote.address), |machine, (name, value)| machine.env(name, value));
    let output = anonymous.env("SHEAF_TRUST_PROJECT", "1").run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
}

/// Regression: `cache push` in a clone sent the programs of all projects to the clone's remote.
#[test]
fn a_push_sends_what_belongs_to_the_project() {
    let (_folder, remote) = folder();
    let Some(machine) = Machine::writing(&Remote::at("")) else { return };
    let machine = machine.push_squares();
    let private = SQUARES.replace("sum-of-squares", "private").replace("(* x x)", "(exp x)");
    machine.sandbox.write("other/private.shf", private);
    let _ = machine.run(&["other/private.shf", "--jit", "always"]).compiled();
    let machine = machine.env("SHEAF_CACHE_REMOTE", remote.address.as_str());
    assert_eq!(machine.run(&["cache", "push"]).silent(), "sent 1 program\n");
    machine.sandbox.write("empty/Sheaf.toml", "");
    let mut elsewhere = machine.sheaf(&["cache", "push"]).command();
    let output = elsewhere.current_dir(machine.sandbox.path("empty")).output().expect("sheaf starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sent 0 programs\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("`--all`"));
    assert_eq!(machine.run(&["cache", "push", "--all"]).silent(), "sent 2 programs\n");
}

/// Regression: a project's limit emptied the user's store.
#[test]
fn a_project_does_not_size_the_users_store() {
    let Some(machine) = Machine::writing(&Remote::at("")) else { return };
    machine.sandbox.write("Sheaf.toml", "[cache]\nmax-size = \"1 B\"\n");
    let machine = machine.squares();
    let output = machine.run(&RUN_SQUARES);
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert!(output.stderr.contains("`cache.max-size` in "), "{output}");
    assert_eq!(output.compiled(), FOURTEEN);
    let collected = machine.run(&["cache", "gc"]);
    assert!(collected.stdout.starts_with("removed 0 programs"), "{collected}");
    let own = machine.sheaf(&["cache", "gc"]).env("SHEAF_CACHE_MAX_SIZE", "1 B").run();
    assert!(own.stdout.starts_with("removed 1 program,"), "{own}");
}

/// Mirrors of the compiler need consent like remotes, and get no password of the netrc file either.
#[test]
fn a_projects_mirror_gets_no_password() {
    let web = Web::start(Files::new(), Fault::None);
    let machine = Machine::bare();
    let address = web.remote().address;
    machine.sandbox.write("Sheaf.toml", format!("[toolchain]\nmirrors = [\"{address}\"]\n"));
    machine.sandbox.write("netrc", "machine 127.0.0.1 login me password secret\n");
    let netrc = machine.sandbox.path("netrc").display().to_string();
    let machine = machine.env("NETRC", netrc);
    let install = |name: &str, value: &str| {
        let before = web.requests().len();
        // It has no compiler.
        assert_eq!(machine.sheaf(&["toolchain", "install"]).env(name, value).run().code, Some(1));
        web.requests().split_off(before)
    };
    let are_anonymous = |requests: &[Request]| requests.iter().all(|request| request.credentials.is_empty());
    assert_eq!(install("SHEAF_TRUST_PROJECT", "0"), []);
    let trusted = install("SHEAF_TRUST_PROJECT", "1");
    assert!(!trusted.is_empty() && are_anonymous(&trusted), "{trusted:?}");
    let named = install("SHEAF_TOOLCHAIN_MIRROR", &address);
    assert!(!named.is_empty() && !are_anonymous(&named), "{named:?}");
}

#[test]
fn help_has_an_example() {
    assert!(Machine::bare().run(&["trust", "--help"]).silent().contains("  sheaf trust --list"));
}
