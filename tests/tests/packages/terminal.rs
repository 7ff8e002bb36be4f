//! Progress of fetches on a terminal.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rexpect::process::WaitStatus;
use rexpect::session::spawn_command;
use sheaf_tests::Sandbox;

use crate::world::{World, proxy};

/// Timeout for expected output, in milliseconds.
const TIMEOUT: u64 = 60_000;

#[test]
fn a_fetch_shows_what_is_under_way() {
    let world = World::new();
    let through = proxy(world.port(), &Arc::new(AtomicUsize::new(usize::MAX)), Duration::from_millis(600));
    let author = Sandbox::new();
    author.write(
        "p/Sheaf.toml",
        format!(
            "[package]\nname = \"maths\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\ndescription = \"A test\"\n\
             repository = \"git://{through}/maths.git\"\n"
        ),
    );
    author.write("p/src/lib.shf", "(def version 0)\n");
    world.push(&author.path("p"), "maths", &["v1.0.0"]);
    assert_eq!(world.author(&author, &["publish", "--no-test"]).at("p").run().code, Some(0));
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    let index = format!("git://{through}/index.git");
    let add =
        user.sheaf(&["add", "maths"]).env("SHEAF_REGISTRY", &index).env("TERM", "xterm").env("NO_COLOR", "");
    let mut command = add.at("demo").command();
    command.stdin(std::process::Stdio::inherit());
    let mut session = spawn_command(command, Some(TIMEOUT)).expect("a terminal");
    session.exp_string(&format!("updating {index}")).expect("the index");
    session.exp_string("fetching maths").expect("the package");
    // The time of the spinner goes on.
    session.exp_regex("fetching maths [0-9]+s").expect("a time");
    session.exp_string("+ maths 1.0.0").expect("the end");
    session.exp_eof().expect("the end");
    let status = session.process().wait().expect("a status");
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
    // Elsewhere there is a line for each.
    let other = Sandbox::new();
    other.run(&["new", "demo"]).silent();
    let added = other.sheaf(&["add", "maths"]).env("SHEAF_REGISTRY", &index).at("demo").run();
    assert_eq!(added.stderr, format!("updating {index}\nfetching maths\n"), "{added}");
}
