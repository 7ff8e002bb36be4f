//! Failed installations: each case has its message, leaves nothing behind, and the next attempt works.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sheaf_toolchain::{InstallError, Limits, Settings, install_release};
use tempfile::TempDir;

use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, install, installed, settings, skipped};

/// Fails to install from `place`, returns the message with paths and addresses replaced, and then checks that a good
/// place still works.
pub(crate) fn failure(wheel: &Wheel, place: &str) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let error = install(wheel, home.path(), place).expect_err("a failure");
    assert_eq!(installed(home.path()), [""; 0], "something was left");
    recovers(home.path());
    neutral(&said(&error), place, home.path())
}

/// The whole message: location, cause and remedy.
fn said(error: &InstallError) -> String {
    format!("{error}\nhelp: {}", error.remedy())
}

/// A good wheel installs into this home.
fn recovers(home: &Path) {
    let wheel = Wheel::new(5_000);
    let folder = folder_with(&wheel.bytes);
    install(&wheel, home, &folder.path().display().to_string()).expect("installed");
    assert_installed(&wheel, home);
}

pub(crate) fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(NAME), bytes).expect("a wheel");
    folder
}

fn neutral(message: &str, place: &str, home: &Path) -> String {
    let message = message.replace(place, "[place]").replace(&home.display().to_string(), "[home]");
    // The staging folder's name has a random suffix.
    match message.split_once(".staging-") {
        Some((before, after)) => {
            format!("{before}.staging-X{}", after.trim_start_matches(char::is_alphanumeric))
        }
        None => message,
    }
}

#[test]
fn not_on_the_index() {
    let server = Server::start(|request| {
        if request.path.ends_with('/') {
            Response::html("<a href='x.whl'>x</a>".into())
        } else {
            Response::not_found()
        }
    });
    insta::assert_snapshot!(failure(&Wheel::new(1), &server.url()), @r"
    iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl was not found; looked at
    [place]/iree-base-compiler/
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    help: set SHEAF_TOOLCHAIN_INDEX to a package index or a folder that has the file
    ");
}

#[test]
fn not_in_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    insta::assert_snapshot!(failure(&Wheel::new(1), &folder.path().display().to_string()), @r"
    iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl was not found; looked at
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    [place]/iree-base-compiler/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    help: set SHEAF_TOOLCHAIN_INDEX to a package index or a folder that has the file
    ");
}

#[test]
fn listed_but_gone() {
    let server = Server::start(|request| {
        if request.path.ends_with('/') {
            Response::html(format!("<a href='/x/{NAME}'>x</a>"))
        } else {
            Response::new(410, "")
        }
    });
    insta::assert_snapshot!(failure(&Wheel::new(1), &server.url()), @r"
    iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl was not found; looked at
    [place]/x/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    help: set SHEAF_TOOLCHAIN_INDEX to a package index or a folder that has the file
    ");
}

#[test]
fn nobody_listens() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let wheel = Wheel::new(1);
    insta::assert_snapshot!(failure(&wheel, &address), @r"
    [place]/iree-base-compiler/ cannot be reached: Connection refused (os error 111)
    help: check the network, the proxy (HTTPS_PROXY) and the certificates (SSL_CERT_FILE), or set SHEAF_TOOLCHAIN_INDEX to a mirror or a folder
    ");
    let home = tempfile::tempdir().expect("a folder");
    assert!(install(&wheel, home.path(), &address).expect_err("no server").is_network());
}

#[test]
fn a_name_that_no_server_has() {
    // Reserved: never resolves.
    let message = failure(&Wheel::new(1), "http://sheaf.invalid/simple");
    assert!(message.starts_with("[place]/iree-base-compiler/ cannot be reached: "), "{message}");
}

#[test]
fn a_page_that_is_not_what_it_claims() {
    let server = Server::start(|_| Response::json("<html>".into()));
    insta::assert_snapshot!(failure(&Wheel::new(1), &server.url()), @r"
    [place]/iree-base-compiler/ is not a package index: expected value at line 1 column 1
    help: check the address in SHEAF_TOOLCHAIN_INDEX or in pip's configuration
    ");
}

#[test]
fn a_server_with_an_error() {
    let server = Server::start(|request| {
        if request.path.ends_with('/') { Response::not_found() } else { Response::new(503, "later") }
    });
    insta::assert_snapshot!(failure(&Wheel::new(1), &server.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl answered 503 Service Unavailable
    help: the server is busy or out of order: run it again, or set SHEAF_TOOLCHAIN_INDEX to another index
    ");
    assert_eq!(server.paths().len(), 4, "the page once, the file as often as is allowed");
}

#[test]
fn another_file_under_the_name() {
    let wheel = Wheel::new(10_000);
    let mut other = wheel.bytes.clone();
    other[5_000] ^= 1;
    let server = Server::mirror(NAME, other.clone());
    insta::assert_snapshot!(failure(&wheel, &server.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl is not the compiler that Sheaf expects, and is not installed: its SHA-256 is
    a45aa6b5dc735a18bb04bbdad817a59c0fe954047f93d92611a2fce5c72aa8f3 (10670 bytes) instead of
    a904c51975c0f7d5926cf7eb5a9f9e1eaf7a0576a6025ab799024116fe7bc776 (10670 bytes)
    help: the file was damaged or replaced there: set the test to another index or folder
    ");
    let folder = folder_with(&other);
    insta::assert_snapshot!(failure(&wheel, &folder.path().display().to_string()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl is not the compiler that Sheaf expects, and is not installed: its SHA-256 is
    a45aa6b5dc735a18bb04bbdad817a59c0fe954047f93d92611a2fce5c72aa8f3 (10670 bytes) instead of
    a904c51975c0f7d5926cf7eb5a9f9e1eaf7a0576a6025ab799024116fe7bc776 (10670 bytes)
    help: the file was damaged or replaced there: set the test to another index or folder
    ");
}

#[test]
fn a_shorter_and_a_longer_file_under_the_name() {
    let wheel = Wheel::new(10_000);
    let shorter = Server::mirror(NAME, wheel.bytes[..9_000].to_vec());
    insta::assert_snapshot!(failure(&wheel, &shorter.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl is not the compiler that Sheaf expects, and is not installed: its SHA-256 is
    19197bcb4b991ae485e2ad4a05eb8dc990caf06cc43957c4c497b7d4b7a8aeba (9000 bytes) instead of
    a904c51975c0f7d5926cf7eb5a9f9e1eaf7a0576a6025ab799024116fe7bc776 (10670 bytes)
    help: the file was damaged or replaced there: set the test to another index or folder
    ");
    let longer = Server::mirror(NAME, [wheel.bytes.clone(), vec![0]].concat());
    insta::assert_snapshot!(failure(&wheel, &longer.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl is not the compiler that Sheaf expects, and is not installed: its SHA-256 is
    ec2830567b9595f88e6ddbf3b441cd654f824a10358f61662a364dd4f7ba59c8 (10671 bytes) instead of
    a904c51975c0f7d5926cf7eb5a9f9e1eaf7a0576a6025ab799024116fe7bc776 (10670 bytes)
    help: the file was damaged or replaced there: set the test to another index or folder
    ");
}

#[test]
fn a_folder_with_a_file_of_another_size_or_none() {
    let wheel = Wheel::new(10_000);
    let folder = folder_with(&wheel.bytes[..9_000]);
    insta::assert_snapshot!(failure(&wheel, &folder.path().display().to_string()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl is not the compiler that Sheaf expects, and is not installed: it has 9000 bytes instead of 10670
    help: the file was damaged or replaced there: set the test to another index or folder
    ");
    fs::remove_file(folder.path().join(NAME)).expect("a wheel");
    fs::create_dir(folder.path().join(NAME)).expect("a folder");
    insta::assert_snapshot!(failure(&wheel, &folder.path().display().to_string()), @r"
    cannot read [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl: it is no file
    help: make it readable, or set SHEAF_TOOLCHAIN_INDEX to another place
    ");
}

#[test]
fn a_page_and_a_file_that_come_at_last() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        // The test settings' number of attempts, for each of the two.
        match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Response::new(429, "slowly"),
            1 | 3 => Response::none(),
            2 => Response::html(format!("<a href='/x/{NAME}'>x</a>")),
            4 => Response::new(503, "not now"),
            _ => Response::range(request, &bytes),
        }
    });
    let home = tempfile::tempdir().expect("a folder");
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_installed(&wheel, home.path());
    let (page, file) = ("/iree-base-compiler/", format!("/x/{NAME}"));
    assert_eq!(server.paths(), [page, page, page, &file, &file, &file]);
}

#[test]
fn a_transfer_that_always_breaks_off() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    // Ignores ranges.
    let server = Server::start(move |request| {
        if request.path.ends_with('/') {
            Response::not_found()
        } else {
            Response::ok(bytes.clone()).cut(4_000)
        }
    });
    insta::assert_snapshot!(failure(&wheel, &server.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl: the download broke off after 4000 of 10670 bytes: end of file before message length reached
    help: run the command again
    ");
    assert_eq!(server.paths().len(), 4, "the page once, the file as often as is allowed");
}

#[test]
fn a_transfer_that_ends_without_saying_so() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        let whole = Response::ok(bytes.clone()).unannounced();
        if request.path.ends_with('/') { Response::not_found() } else { whole.cut(4_000) }
    });
    insta::assert_snapshot!(failure(&wheel, &server.url()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl: the download broke off after 4000 of 10670 bytes: the connection ended
    help: run the command again
    ");
}

#[test]
fn a_transfer_that_stalls() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        let part = Response::ok(bytes.clone()).cut(4_000).hanging(Duration::from_secs(3));
        if request.path.ends_with('/') { Response::not_found() } else { part }
    });
    let home = tempfile::tempdir().expect("a folder");
    let limits = Limits { stall: Duration::from_millis(100), attempts: 2, ..settings("").limits };
    let settings = Settings { limits, ..settings(&server.url()) };
    let error = install_release(&wheel.release(), home.path(), &settings, &()).expect_err("a stall");
    insta::assert_snapshot!(neutral(&said(&error), &server.url(), home.path()), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl: the download broke off after 4000 of 10670 bytes: operation timed out
    help: run the command again
    ");
    recovers(home.path());
}

#[test]
fn a_transfer_that_breaks_off_goes_on_where_it_was() {
    let wheel = Wheel::new(200_000);
    let bytes = wheel.bytes.clone();
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        if request.path.ends_with('/') {
            return Response::not_found();
        }
        let response = Response::range(request, &bytes);
        match tries.fetch_add(1, Ordering::SeqCst) {
            0 => response.cut(70_000),
            1 => Response::new(500, "not now"),
            _ => response,
        }
    });
    let home = tempfile::tempdir().expect("a folder");
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_installed(&wheel, home.path());
    let ranges: Vec<_> = server.requests().iter().map(|request| request.header("range").to_owned()).collect();
    assert_eq!(ranges, ["", "", "bytes=70000-", "bytes=70000-"]);
}

/// Installs in a process prepared by the shell `script`, with the home in its first argument.
fn under(script: &str, wheel: &Wheel, home: &Path, place: &Path) -> Result<String, String> {
    let child = env!("CARGO_BIN_EXE_toolchain-child");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script} && exec \"$0\" install \"$@\""), child]).arg(home).arg(place);
    let output = command.args(wheel.arguments()).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

#[test]
fn a_full_disk() {
    let home = tempfile::tempdir().expect("a folder");
    // A file system of its own, in a mount namespace that ends with the process.
    let works =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none"]).arg(home.path()).output();
    if !works.is_ok_and(|output| output.status.success()) {
        skipped("this system allows no mount namespace, so no disk of a known size");
        return;
    }
    let script = |size: &str| {
        format!(
            "exec unshare -rm sh -c 'mount -t tmpfs -o size={size} none \"$1\" && exec \"$0\" install \"$@\"' \"$0\" \"$@\""
        )
    };
    let wheel = Wheel::new(300_000);
    let folder = folder_with(&wheel.bytes);
    let message = |size| {
        let message = under(&script(size), &wheel, home.path(), folder.path()).expect_err("a full disk");
        neutral(&message, "[place]", home.path())
    };
    // Too small for the wheel; enough for the wheel, too small for its content.
    insta::assert_snapshot!(message("100k"), @"[home]/toolchains/.partial-8978a5a8600d62b9 could not be written: No space left on device (os error 28)");
    insta::assert_snapshot!(message("400k"), @"[home]/toolchains/.staging-X/content/libIREECompiler.so could not be written: No space left on device (os error 28)");
    under(&script("2m"), &wheel, home.path(), folder.path()).expect("installed");
}

#[test]
fn a_limit_on_the_size_of_files() {
    let home = tempfile::tempdir().expect("a folder");
    let wheel = Wheel::new(300_000);
    let folder = folder_with(&wheel.bytes);
    // The unit is 512 bytes, in some shells 1024. Without the trap a signal would end the process.
    let message =
        under("trap '' XFSZ; ulimit -f 100", &wheel, home.path(), folder.path()).expect_err("a limit");
    insta::assert_snapshot!(neutral(&message, "[place]", home.path()), @"[home]/toolchains/.partial-8978a5a8600d62b9 could not be written: File too large (os error 27)");
    assert_eq!(installed(home.path()), [""; 0]);
    recovers(home.path());
}

#[test]
fn a_folder_that_may_not_be_written() {
    let home = Path::new("/sys/sheaf");
    if !Path::new("/sys/kernel").is_dir() {
        skipped("no /sys on this system, the one folder that not even root may write");
        return;
    }
    let error = install(&Wheel::new(1), home, "/nowhere").expect_err("no permission");
    assert!(matches!(error, InstallError::Permission { .. }), "{error:?}");
    let InstallError::Permission { path, .. } = error else { return };
    let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    insta::assert_snapshot!(said(&InstallError::Permission { path, source }), @r"
    /sys/sheaf/toolchains may not be written: permission denied
    help: make it writable, or set SHEAF_HOME to a folder that is
    ");
}

#[test]
fn a_home_that_is_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    fs::write(&home, "a file").expect("a file");
    let error = install(&Wheel::new(1), &home, "/nowhere").expect_err("no folder");
    insta::assert_snapshot!(neutral(&said(&error), "/nowhere", &home), @r"
    cannot make the folder [home]/toolchains: Not a directory (os error 20)
    help: check that disk and folder, or set SHEAF_HOME to another folder
    ");
}

#[test]
fn a_machine_without_a_compiler() {
    insta::assert_snapshot!(said(&InstallError::UnsupportedPlatform { system: "freebsd", processor: "riscv64" }), @r"
    there is no IREE compiler for freebsd on riscv64
    help: compile on Linux, macOS or Windows, and run the compiled program here
    ");
}
