//! Mirrors: one request for an installation, whatever else could be asked.

use std::fs;
use std::path::Path;

use sheaf_toolchain::{InstallError, Setting, Settings, install_release};
use tempfile::TempDir;

use crate::failures::folder_with;
use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child, settings};

/// Settings with these mirrors, and an index that is nobody's.
fn with_mirrors(mirrors: &[&str]) -> Settings {
    let mirrors =
        mirrors.iter().map(|value| Setting { value: (*value).to_owned(), origin: "the test".to_owned() });
    Settings { mirrors: mirrors.collect(), ..settings("/nowhere") }
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn a_mirror_is_asked_exactly_once() {
    let wheel = Wheel::new(10_000);
    let server = Server::mirror(NAME, wheel.bytes.clone());
    let home = home();
    let settings = with_mirrors(&[&server.url()]);
    install_release(&wheel.release(), home.path(), &settings, &()).expect("installed");
    assert_installed(&wheel, home.path());
    assert_eq!(server.paths(), [format!("/{NAME}")], "the wheel and nothing else");
    // Installed, it asks nobody.
    install_release(&wheel.release(), home.path(), &settings, &()).expect("still there");
    assert_eq!(server.paths().len(), 1);
}

#[test]
fn mirrors_are_asked_in_their_order_until_one_has_it() {
    let wheel = Wheel::new(10_000);
    let empty = Server::start(|_| Response::not_found());
    let broken = Server::start(|_| Response::new(403, "not for you"));
    let good = Server::mirror(NAME, wheel.bytes.clone());
    let unused = Server::mirror(NAME, wheel.bytes.clone());
    let home = home();
    let mirrors = [empty.url(), broken.url(), good.url(), unused.url()];
    let mirrors: Vec<&str> = mirrors.iter().map(String::as_str).collect();
    install_release(&wheel.release(), home.path(), &with_mirrors(&mirrors), &()).expect("installed");
    assert_installed(&wheel, home.path());
    assert_eq!([&empty, &broken, &good, &unused].map(|server| server.paths().len()), [1, 1, 1, 0]);
}

#[test]
fn folders_serve_as_mirrors_and_the_index_as_the_last_resort() {
    let wheel = Wheel::new(10_000);
    let folder = folder_with(&wheel.bytes);
    let address = format!("file://{}", folder.path().display());
    for mirror in [address, folder.path().display().to_string()] {
        let home = home();
        install_release(&wheel.release(), home.path(), &with_mirrors(&[&mirror]), &()).expect("installed");
        assert_installed(&wheel, home.path());
    }
    let home = home();
    let empty = Server::start(|_| Response::not_found());
    let index = settings(&folder.path().display().to_string());
    let both = Settings { mirrors: with_mirrors(&[&empty.url()]).mirrors, ..index };
    install_release(&wheel.release(), home.path(), &both, &()).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn a_mirror_with_another_file_is_not_believed() {
    let wheel = Wheel::new(10_000);
    let server = Server::mirror(NAME, Wheel::new(10_001).bytes);
    let home = home();
    let settings = with_mirrors(&[&server.url()]);
    let error = install_release(&wheel.release(), home.path(), &settings, &()).expect_err("another file");
    assert!(matches!(error, InstallError::Checksum { .. }), "{error}");
}

#[test]
fn offline_only_folders_are_looked_at() {
    let wheel = Wheel::new(10_000);
    let server = Server::mirror(NAME, wheel.bytes.clone());
    let offline = |mirrors: &[&str]| Settings {
        offline: true,
        index: Some(Setting { value: server.url(), origin: "the test".to_owned() }),
        ..with_mirrors(mirrors)
    };
    let home = home();
    let error = install_release(&wheel.release(), home.path(), &offline(&[&server.url(), "/nowhere"]), &());
    let error = error.expect_err("no network");
    insta::assert_snapshot!(format!("{error}\nhelp: {}", error.remedy()), @r"
    iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl may not be fetched without the network; looked at
    /nowhere/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    /nowhere/iree-base-compiler/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl
    help: allow the network once, or name a folder that has the file in SHEAF_TOOLCHAIN_MIRROR, or install a bundle of another machine: `sheaf toolchain install FILE.tar.gz`
    ");
    assert_eq!(server.paths(), [""; 0]);
    let folder = folder_with(&wheel.bytes);
    let place = folder.path().display().to_string();
    install_release(&wheel.release(), home.path(), &offline(&[&place]), &()).expect("installed");
    assert_installed(&wheel, home.path());
    assert_eq!(server.paths(), [""; 0]);
}

/// Installs in another process with these variables, and tells whether it did and what it said.
fn in_child(wheel: &Wheel, home: &Path, place: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let arguments = [
        vec!["install".to_owned(), home.display().to_string(), place.to_owned()],
        wheel.arguments().to_vec(),
    ];
    let arguments = arguments.concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = child(&arguments);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "NETRC"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().expect("a child");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_netrc_file_gives_the_password_and_nobody_shows_it() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        if request.header("authorization") != "Basic bWU6c2VjcmV0" {
            Response::new(401, "")
        } else if request.path.ends_with('/') {
            Response::not_found()
        } else {
            Response::range(request, &bytes)
        }
    });
    let folder = home();
    let netrc = folder.path().join("netrc");
    let install = |password: &str| {
        fs::write(&netrc, format!("machine 127.0.0.1 login me password {password}\n")).expect("a file");
        let home = home();
        let (done, said) =
            in_child(&wheel, home.path(), &server.url(), &[("NETRC", &netrc.display().to_string())]);
        if done {
            assert_installed(&wheel, home.path());
        }
        (done, said)
    };
    assert_eq!(install("secret"), (true, String::new()));
    let (done, said) = install("wrong-word");
    assert!(!done && said.contains("401") && !said.contains("wrong-word"), "{said}");
}

#[test]
fn a_proxy_is_used() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    // To a proxy the whole address is the path.
    let proxy = Server::start(move |request| match request.path.as_str() {
        path if path == format!("http://mirror.invalid/{NAME}") => Response::range(request, &bytes),
        _ => Response::not_found(),
    });
    let home = home();
    let (done, said) =
        in_child(&wheel, home.path(), "http://mirror.invalid", &[("http_proxy", &proxy.url())]);
    assert!(done, "{said}");
    assert_installed(&wheel, home.path());
}
