//! Authentication by means other than the address and `SHEAF_CACHE_TOKEN`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sheaf_foundation::Digest;

use crate::faults::guarded;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, warnings};
use crate::shared::{folder, taken};

#[test]
fn netrc_and_credential_helper() {
    let line = |role: &str, token: &str| format!("{role} {} {role}r\n", Digest::of(token.as_bytes()));
    let server = guarded(&[line("write", "the-write-token"), line("read", "the-read-token")].concat());
    let remote = Remote::at(format!("http://127.0.0.1:{}", server.port));
    let Some(a) = Machine::writing(&remote) else { return };
    let helper = a.sandbox.path("helper");
    a.sandbox.write(
        "helper",
        "#!/bin/sh\nread -r asked\necho '{\"headers\":{\"Authorization\":[\"Bearer the-write-token\"]}}'\n",
    );
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    let a = a.env("SHEAF_CACHE_CREDENTIAL_HELPER", helper.display().to_string());
    let _ = a.push_squares();

    let b = Machine::reading(&remote).squares();
    b.sandbox.write("netrc", "machine 127.0.0.1 login anybody password the-read-token\n");
    let netrc = b.sandbox.path("netrc").display().to_string();
    let b = b.env("NETRC", netrc);
    assert_eq!(taken(b.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
}

/// A project's file starts no program, and sends no compilations anywhere: a checkout is not an executed program.
#[test]
fn a_project_names_no_helper_and_no_cluster() {
    let machine = Machine::bare().squares();
    machine.sandbox.write("helper", "#!/bin/sh\ntouch started\necho '{}'\n");
    let helper = machine.sandbox.path("helper");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    machine.sandbox.write(
        "Sheaf.toml",
        "[cache]\nremote = [\"http://127.0.0.1:1\"]\ncredential-helper = \"./helper\"\nexecutor = \"grpc://127.0.0.1:1\"\n",
    );
    assert_eq!(machine.run(&["trust", "--yes"]).code, Some(0));
    for arguments in [&["cache", "why", "sum-of-squares"][..], &RUN_SQUARES] {
        let output = machine.run(arguments);
        for name in ["credential-helper", "executor"] {
            assert!(output.stderr.contains(&format!("warning: `cache.{name}` in ")), "{output}");
        }
        assert!(!machine.sandbox.path("started").exists(), "{output}");
    }
}

/// A helper with an expired login: one warning, and the run continues. A folder needs no token.
#[test]
fn credentials_that_are_not_there_break_nothing() {
    let (_folder, shared) = folder();
    let Some(a) = Machine::writing(&shared) else { return };
    let a = a.env("SHEAF_CACHE_TOKEN", "a-token\n").push_squares();
    let remotes = format!("http://127.0.0.1:1,{}", shared.address);
    let b = Machine::reading(&Remote::at(remotes)).env("SHEAF_CACHE_CREDENTIAL_HELPER", "false").squares();
    let output = b.run(&[&RUN_SQUARES[..], &["--strict"]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert!(
        output.stderr.contains("the credential helper false gives nothing for http://127.0.0.1:1/"),
        "{output}"
    );
    let Some(c) = Machine::compiling(&Remote::at("")) else { return };
    let c =
        c.env("SHEAF_REMOTE_EXECUTOR", "grpc://127.0.0.1:1").env("SHEAF_CACHE_CREDENTIAL_HELPER", "false");
    let output = c.squares().run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert!(output.stderr.contains("this machine compiles instead"), "{output}");
    drop(a);
}
