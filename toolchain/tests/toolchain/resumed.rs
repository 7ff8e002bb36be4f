//! Downloads resumed by a later process.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sheaf_toolchain::{InstallError, Settings, install_release};
use tempfile::TempDir;

use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child, install, partial, settings};

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A mirror that breaks off after this many bytes of each answer.
fn breaking(wheel: &Wheel, after: usize) -> Server {
    let bytes = wheel.bytes.clone();
    Server::start(move |request| {
        if request.path.ends_with(NAME) {
            Response::range(request, &bytes).cut(after)
        } else {
            Response::not_found()
        }
    })
}

/// A working mirror, and the ranges that were requested.
fn whole(wheel: &Wheel) -> Server {
    let bytes = wheel.bytes.clone();
    Server::start(move |request| {
        if request.path.ends_with(NAME) { Response::range(request, &bytes) } else { Response::not_found() }
    })
}

fn ranges(server: &Server) -> Vec<String> {
    let asked = server.requests().into_iter().filter(|request| request.path.ends_with(NAME));
    asked.map(|request| request.header("range").to_owned()).collect()
}

/// A home with a partial download.
fn broken_off(wheel: &Wheel) -> TempDir {
    let home = home();
    install(wheel, home.path(), &breaking(wheel, 20_000).url()).expect_err("it breaks off");
    // Three attempts, as in the test settings.
    assert_eq!(size(&partial(home.path()).expect("a part")), 60_000);
    home
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").len()
}

#[test]
fn what_a_broken_network_left_is_not_fetched_again() {
    let wheel = Wheel::new(100_000);
    let home = broken_off(&wheel);
    let server = whole(&wheel);
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_eq!(ranges(&server), ["bytes=60000-"]);
    assert_installed(&wheel, home.path());
}

#[test]
fn a_process_killed_in_a_download_leaves_what_it_has_to_the_next() {
    let wheel = Wheel::new(1_000_000);
    let bytes = wheel.bytes.clone();
    let slow = Server::start(move |request| {
        let slow = Response::range(request, &bytes).slowly(100_000, Duration::from_millis(500));
        if request.path.ends_with(NAME) { slow } else { Response::not_found() }
    });
    let home = home();
    let arguments = [
        vec!["install".to_owned(), home.path().display().to_string(), slow.url()],
        wheel.arguments().to_vec(),
    ]
    .concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = child(&arguments).stdout(Stdio::null()).spawn().expect("a child");
    let at_least = |size: u64| move |path: std::path::PathBuf| self::size(&path) >= size;
    for _ in 0..600 {
        let there = home.path().join("toolchains").is_dir();
        if there && partial(home.path()).is_some_and(at_least(100_000)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("a running process");
    child.wait().expect("its end");
    let left = size(&partial(home.path()).expect("a part"));
    assert!((100_000..wheel.bytes.len() as u64).contains(&left), "{left}");
    let server = whole(&wheel);
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_eq!(ranges(&server), [format!("bytes={left}-")]);
    assert_installed(&wheel, home.path());
}

#[test]
fn a_damaged_part_costs_a_second_download_and_no_more() {
    let wheel = Wheel::new(100_000);
    for spoil in [
        |part: &mut Vec<u8>| part[30_000] ^= 1,
        |part: &mut Vec<u8>| part.resize(1_000_000, 7),
        // As long as the whole, so that nothing is left to download.
        |part: &mut Vec<u8>| part.resize(Wheel::new(100_000).bytes.len(), 7),
    ] {
        let home = broken_off(&wheel);
        let path = partial(home.path()).expect("a part");
        let mut part = fs::read(&path).expect("a part");
        spoil(&mut part);
        fs::write(&path, part).expect("a part");
        let server = whole(&wheel);
        install(&wheel, home.path(), &server.url()).expect("installed");
        assert_eq!(ranges(&server).last().map(String::as_str), Some(""), "from the beginning");
        assert!(ranges(&server).len() <= 2);
        assert_installed(&wheel, home.path());
    }
}

#[test]
fn a_server_without_ranges_sends_all_of_it() {
    let wheel = Wheel::new(100_000);
    let home = broken_off(&wheel);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        if request.path.ends_with(NAME) { Response::ok(bytes.clone()) } else { Response::not_found() }
    });
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_eq!(ranges(&server), ["bytes=60000-"]);
    assert_installed(&wheel, home.path());
}

#[test]
fn what_was_left_of_another_release_is_cleared_away() {
    let wheel = Wheel::new(100_000);
    let home = broken_off(&Wheel::new(100_001));
    install(&wheel, home.path(), &whole(&wheel).url()).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn what_was_left_survives_failures_that_say_nothing_of_it() {
    let wheel = Wheel::new(100_000);
    let home = broken_off(&wheel);
    let nowhere = settings("/nowhere");
    let short = crate::failures::folder_with(&wheel.bytes[..9_000]);
    let offline = Settings { offline: true, ..settings("http://127.0.0.1:1") };
    for (settings, fits) in [
        (nowhere, (|error| matches!(error, InstallError::NotFound { .. })) as fn(&InstallError) -> bool),
        (settings("ftp://wheels"), |error| matches!(error, InstallError::BadSetting { .. })),
        (settings(&short.path().display().to_string()), |error| {
            matches!(error, InstallError::Checksum { .. })
        }),
        (offline, |error| matches!(error, InstallError::Offline { .. })),
    ] {
        let error = install_release(&wheel.release(), home.path(), &settings, &()).expect_err("a failure");
        assert!(fits(&error), "{error:?}");
        assert_eq!(size(&partial(home.path()).expect("a part")), 60_000, "{error}");
    }
    let server = whole(&wheel);
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_eq!(ranges(&server), ["bytes=60000-"]);
}
