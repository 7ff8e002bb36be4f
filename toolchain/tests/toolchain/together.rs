//! Concurrent and repeated installations, and installations over damaged ones.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use sheaf_toolchain::locate_release;

use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child, install};

#[test]
fn two_processes_install_once() {
    let wheel = Wheel::new(100_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        let slow = Response::range(request, &bytes).slowly(5_000, Duration::from_millis(10));
        if request.path.ends_with(NAME) { slow } else { Response::not_found() }
    });
    let home = tempfile::tempdir().expect("a folder");
    let arguments = [
        vec!["install".to_owned(), home.path().display().to_string(), server.url()],
        wheel.arguments().to_vec(),
    ];
    let arguments = arguments.concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let start = || child(&arguments).stdout(Stdio::piped()).spawn().expect("a child");
    let children = [start(), start()];
    let said = children.map(|child| {
        let output = child.wait_with_output().expect("a child");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    assert_installed(&wheel, home.path());
    assert_eq!(server.paths().iter().filter(|path| path.ends_with(NAME)).count(), 1, "fetched once");
    assert_eq!(said.iter().filter(|said| said.contains("Download")).count(), 1);
    assert!(said.iter().any(|said| said.starts_with("waiting\ninstalled")), "{said:?}");
}

#[test]
fn a_complete_installation_is_left_alone() {
    let wheel = Wheel::new(10_000);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(NAME), &wheel.bytes).expect("a wheel");
    let home = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let first = install(&wheel, home.path(), &place).expect("installed");
    drop(folder);
    assert_eq!(install(&wheel, home.path(), &place).expect("still there"), first);
}

#[test]
fn a_broken_installation_is_not_trusted_and_is_replaced() {
    let wheel = Wheel::new(10_000);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(NAME), &wheel.bytes).expect("a wheel");
    let place = folder.path().display().to_string();
    let home = tempfile::tempdir().expect("a folder");
    let toolchain = install(&wheel, home.path(), &place).expect("installed");
    let spoil: [&dyn Fn(); 5] = [
        &|| fs::remove_file(toolchain.folder.join("complete")).expect("a marker"),
        &|| fs::write(toolchain.folder.join("complete"), "another").expect("a marker"),
        &|| fs::write(&toolchain.library, "short").expect("a library"),
        &|| fs::remove_file(&toolchain.linker).expect("a linker"),
        &|| fs::remove_dir_all(&toolchain.folder).expect("a folder"),
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        spoil();
        assert_eq!(locate_release(&wheel.release(), home.path()), None, "spoilt in way {number}");
        install(&wheel, home.path(), &place).expect("installed");
        assert_installed(&wheel, home.path());
    }
}

#[test]
fn another_version_stays_beside() {
    let wheel = Wheel::new(10_000);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(NAME), &wheel.bytes).expect("a wheel");
    let home = tempfile::tempdir().expect("a folder");
    let other = home.path().join("toolchains/iree-compiler-0.0.0-linux-x86_64/libIREECompiler.so");
    let leftover = home.path().join("toolchains/.staging-old/content/libIREECompiler.so");
    for file in [&other, &leftover] {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, "library").expect("a file");
    }
    install(&wheel, home.path(), &folder.path().display().to_string()).expect("installed");
    assert!(other.is_file() && !leftover.exists());
}
