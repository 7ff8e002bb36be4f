//! A process killed at any moment of an installation leaves nothing that breaks the next one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_toolchain::locate_release;

use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child};

/// Number of installations to kill before they are complete.
const KILLS: usize = 12;

/// A server slow enough to be interrupted.
fn slow_mirror(wheel: &Wheel) -> Server {
    let bytes = wheel.bytes.clone();
    Server::start(move |request| {
        let slow = Response::range(request, &bytes).slowly(100_000, Duration::from_millis(2));
        if request.path.ends_with(NAME) { slow } else { Response::not_found() }
    })
}

/// Starts an installation, kills it after `steps` lines of its progress and `pause`, and returns its number of lines.
fn run(wheel: &Wheel, home: &Path, place: &str, steps: usize, pause: Duration) -> usize {
    let arguments = [
        vec!["install".to_owned(), home.display().to_string(), place.to_owned()],
        wheel.arguments().to_vec(),
    ];
    let arguments = arguments.concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = child(&arguments).stdout(Stdio::piped()).spawn().expect("a child");
    // Kept open until the end, or the child would fail before it is killed.
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let count = lines.by_ref().take(steps).count();
    std::thread::sleep(pause);
    // It may have ended already.
    let _ = child.kill();
    child.wait().expect("its end");
    count
}

#[test]
fn a_killed_installation_is_completed_by_the_next() {
    let wheel = Wheel::new(4_000_000);
    let server = slow_mirror(&wheel);
    let whole = tempfile::tempdir().expect("a folder");
    let steps = run(&wheel, whole.path(), &server.url(), usize::MAX, Duration::ZERO);
    assert_installed(&wheel, whole.path());

    let home = tempfile::tempdir().expect("a folder");
    // Steps from the first to beyond the last, each with a random pause; the seed is in the message.
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64;
    let mut state = seed;
    let mut random = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut interrupted = 0;
    // Some kills come too late.
    for number in 0..10 * KILLS {
        if interrupted == KILLS {
            break;
        }
        // The last lines are unpacking and the move into place, which get as many kills as the long download.
        let late = number % 2 == 1;
        let after = if late { steps - random(10) as usize } else { random(steps as u64) as usize };
        let pause = Duration::from_micros(random(4_000));
        run(&wheel, home.path(), &server.url(), after, pause);
        let context = format!("seed {seed}, killed after {after} of {steps} steps and {pause:?}");
        match locate_release(&wheel.release(), home.path()) {
            None => interrupted += 1,
            Some(toolchain) => {
                let library = fs::read(&toolchain.library).expect("a library");
                assert!(library == wheel.library, "an installation that looks complete is not: {context}");
                fs::remove_dir_all(toolchain.folder).expect("a folder");
            }
        }
    }
    assert_eq!(interrupted, KILLS, "all others were complete before they were killed (seed {seed})");
    let steps = run(&wheel, home.path(), &server.url(), usize::MAX, Duration::ZERO);
    assert!(steps > 0);
    assert_installed(&wheel, home.path());
}
