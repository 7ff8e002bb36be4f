//! Who is let in, by what is neither in the address nor in `SHEAF_CACHE_TOKEN`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sheaf_cache::Digest;

use crate::faults::guarded;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote};
use crate::shared::taken;

#[test]
fn netrc_and_credential_helper() {
    let line = |role: &str, token: &str| format!("{role} {} {role}r\n", Digest::of(token.as_bytes()));
    let server = guarded(&[line("write", "the-write-token"), line("read", "the-read-token")].concat());
    let remote = Remote::at(format!("http://127.0.0.1:{}", server.port));
    let Some(a) = Machine::writing(&remote) else { return };
    let helper = a.world.path("helper");
    a.world.write(
        "helper",
        "#!/bin/sh\nread -r asked\necho '{\"headers\":{\"Authorization\":[\"Bearer the-write-token\"]}}'\n",
    );
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a program");
    let a = a.env("SHEAF_CACHE_CREDENTIAL_HELPER", helper.display().to_string());
    let _ = a.push_squares();

    let b = Machine::reading(&remote).squares();
    b.world.write("netrc", "machine 127.0.0.1 login anybody password the-read-token\n");
    let netrc = b.world.path("netrc").display().to_string();
    let b = b.env("NETRC", netrc);
    assert_eq!(taken(b.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
}
