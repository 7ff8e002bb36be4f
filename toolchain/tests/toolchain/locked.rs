//! Mirrors: one request for an installation, whatever other sources are configured.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use sheaf_toolchain::{InstallError, Progress, Setting, Settings, install_release};
use tempfile::TempDir;

use crate::failures::folder_with;
use crate::server::{Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child, partial, settings};

/// Settings with these mirrors, and an unreachable index.
fn with_mirrors(mirrors: &[&str]) -> Settings {
    let mirrors =
        mirrors.iter().map(|value| Setting { value: (*value).to_owned(), origin: "the test".to_owned() });
    Settings { mirrors: mirrors.collect(), ..settings("/nowhere") }
}

pub(crate) fn home() -> TempDir {
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
    // An existing installation makes no requests.
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

/// Collects the warnings of an installation.
#[derive(Default)]
pub(crate) struct Warnings(RefCell<Vec<String>>);

impl Warnings {
    pub(crate) fn into_inner(self) -> Vec<String> {
        self.0.into_inner()
    }
}

impl Progress for Warnings {
    fn warning(&self, message: &str) {
        self.0.borrow_mut().push(message.to_owned());
    }
}

#[test]
fn after_a_mirror_with_a_wrong_file_the_others_are_asked() {
    let wheel = Wheel::new(10_000);
    let login = Server::start(|_| Response::html("<form>who are you?</form>".into()));
    let short = folder_with(&wheel.bytes[..9_000]);
    let directory = home();
    fs::create_dir(directory.path().join(NAME)).expect("a folder");
    let mut spoilt = wheel.bytes.clone();
    spoilt[5_000] ^= 1;
    let damaged = folder_with(&spoilt);
    let good = Server::mirror(NAME, wheel.bytes.clone());
    let paths = [&short, &directory, &damaged].map(|folder| folder.path().display().to_string());
    let places = [&[login.url()], &paths[..]].concat();
    let mirrors: Vec<&str> = places.iter().map(String::as_str).collect();
    let home = home();
    let settings = Settings { index: settings(&good.url()).index, ..with_mirrors(&mirrors) };
    let warnings = Warnings::default();
    install_release(&wheel.release(), home.path(), &settings, &warnings).expect("installed");
    assert_installed(&wheel, home.path());
    let warnings = warnings.into_inner();
    assert_eq!(warnings.len(), mirrors.len(), "{warnings:?}");
    for (warning, mirror) in warnings.iter().zip(&mirrors) {
        assert!(warning.contains(mirror) && warning.ends_with("; asking the next place"), "{warning}");
    }

    // If no source has the right one, the first is reported.
    let home = self::home();
    let error = install_release(&wheel.release(), home.path(), &with_mirrors(&mirrors), &());
    let error = error.expect_err("wrong files");
    assert!(error.to_string().starts_with(&login.url()), "{error}");
    assert_eq!(
        error.remedy(),
        "the file was damaged or replaced there: set the test to another mirror or folder"
    );
    assert_eq!(partial(home.path()), None);
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

/// Installs in another process with these variables; returns its success and its output.
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
fn a_netrc_password_goes_to_its_own_host_and_not_in_the_clear() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        assert_eq!(request.header("authorization"), "", "{}", request.path);
        if request.path.ends_with(NAME) { Response::range(request, &bytes) } else { Response::not_found() }
    });
    let folder = home();
    let netrc = folder.path().join("netrc");
    let variables = [
        ("NETRC", netrc.display().to_string()),
        ("http_proxy", server.url()),
        ("no_proxy", "127.0.0.1".into()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let url = server.url();
    for (text, place, warnings) in [
        ("default login me password secret\n", url.as_str(), 0),
        ("machine mirror.invalid login me password secret\n", "http://mirror.invalid", 0),
        ("machine 127.0.0.1 login me password secret wrong\n", &url, 1),
    ] {
        fs::write(&netrc, text).expect("a file");
        let home = home();
        let (done, said) = in_child(&wheel, home.path(), place, &variables);
        assert!(done, "{said}");
        assert_installed(&wheel, home.path());
        assert_eq!(said.matches("no password is taken from it").count(), warnings, "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn a_proxy_is_used() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    // A proxy gets the whole address as the path.
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
