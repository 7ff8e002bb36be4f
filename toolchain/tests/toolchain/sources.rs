//! The sources of wheels.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::server::{Request, Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, child, install, skipped};

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// An index whose page is given by `page` and whose files are at other paths.
fn index(wheel: &Wheel, page: fn(&Request) -> Response) -> Server {
    let bytes = wheel.bytes.clone();
    Server::start(move |request| match request.path.as_str() {
        "/simple/iree-base-compiler/" => page(request),
        path if path == format!("/files/{NAME}") => Response::range(request, &bytes),
        _ => Response::not_found(),
    })
}

#[test]
fn an_index_that_speaks_json() {
    let wheel = Wheel::new(10_000);
    let server = index(&wheel, |request| {
        assert!(request.header("accept").starts_with("application/vnd.pypi.simple.v1+json"));
        Response::json(format!(
            r#"{{"files":[{{"filename":"{NAME}","url":"../../files/{NAME}","hashes":{{}}}}]}}"#
        ))
    });
    let home = home();
    install(&wheel, home.path(), &format!("{}/simple", server.url())).expect("installed");
    assert_installed(&wheel, home.path());
    assert_eq!(server.paths(), ["/simple/iree-base-compiler/", &format!("/files/{NAME}")]);
}

#[test]
fn an_index_that_speaks_html() {
    let wheel = Wheel::new(10_000);
    let server = index(&wheel, |_| {
        Response::html(format!("<a href='other.whl'>other</a><a href='/files/{NAME}#sha256=00'>it</a>"))
    });
    let home = home();
    install(&wheel, home.path(), &format!("{}/simple/", server.url())).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn a_page_that_moved() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        "/simple/iree-base-compiler/" => Response::new(301, "").header("Location", "/pages/compiler/"),
        "/pages/compiler/" => Response::html(format!("<a href='{NAME}'>relative to the new place</a>")),
        path if path == format!("/pages/compiler/{NAME}") => Response::range(request, &bytes),
        _ => Response::not_found(),
    });
    let home = home();
    install(&wheel, home.path(), &format!("{}/simple", server.url())).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn a_plain_mirror() {
    let wheel = Wheel::new(10_000);
    let server = Server::mirror(NAME, wheel.bytes.clone());
    let home = home();
    install(&wheel, home.path(), &server.url()).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn a_mirror_that_forbids_what_is_not_there() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        if request.path.ends_with(NAME) { Response::range(request, &bytes) } else { Response::new(403, "") }
    });
    let home = home();
    install(&wheel, home.path(), &format!("{}/store", server.url())).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn credentials_go_to_the_index_and_are_not_shown() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| {
        if request.header("authorization") != "Basic bWU6c2VjcmV0" {
            Response::new(401, "")
        } else if request.path.ends_with('/') {
            Response::html(format!("<a href='/{NAME}'>it</a>"))
        } else {
            Response::range(request, &bytes)
        }
    });
    let home = home();
    let place = |user: &str| format!("{}/simple", server.url().replace("//", &format!("//{user}@")));
    let refused = install(&wheel, home.path(), &place("me:wrong")).expect_err("refused").to_string();
    insta::assert_snapshot!(refused.replace(&server.url(), "[server]"), @"[server]/simple/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl answered 401 Unauthorized");
    install(&wheel, home.path(), &place("me:secret")).expect("installed");
    assert_installed(&wheel, home.path());
}

#[test]
fn folders_in_all_their_forms() {
    let wheel = Wheel::new(10_000);
    let place = home();
    let flat = place.path().join("flat wheels");
    let laid_out = place.path().join("index/iree-base-compiler");
    for folder in [&flat, &laid_out] {
        fs::create_dir_all(folder).expect("a folder");
        fs::write(folder.join(NAME), &wheel.bytes).expect("a wheel");
    }
    let address = format!("file://{}", flat.display()).replace(' ', "%20");
    let text = |path: &Path| path.display().to_string();
    for value in [text(&flat), text(&flat.join(NAME)), text(&place.path().join("index")), address] {
        let home = home();
        install(&wheel, home.path(), &value).expect("installed");
        assert_installed(&wheel, home.path());
    }
}

/// Installs in another process, which uses the machine's pip under these variables.
fn with_pip(wheel: &Wheel, home: &Path, variables: &[(&str, &str)]) -> Option<(bool, String)> {
    if !child_has_pip() {
        skipped("no pip on this machine");
        return None;
    }
    let home = home.display().to_string();
    let release = wheel.arguments();
    let arguments: Vec<&str> =
        ["install", &home, ""].into_iter().chain(release.iter().map(String::as_str)).collect();
    let mut command = child(&arguments);
    for name in ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"] {
        command.env_remove(name);
    }
    let output = command
        .env("PIP_CONFIG_FILE", "/dev/null")
        .envs(variables.iter().copied())
        .output()
        .expect("a child");
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn child_has_pip() -> bool {
    std::process::Command::new("python3")
        .args(["-m", "pip", "--version"])
        .output()
        .is_ok_and(|it| it.status.success())
}

#[test]
fn what_pip_is_configured_with() {
    let wheel = Wheel::new(10_000);
    let server = Server::mirror(NAME, wheel.bytes.clone());
    let home = home();
    let Some((ok, said)) = with_pip(&wheel, home.path(), &[("PIP_INDEX_URL", &server.url())]) else { return };
    assert!(ok, "{said}");
    assert_installed(&wheel, home.path());
}

#[test]
fn pips_folders_without_an_index() {
    let wheel = Wheel::new(10_000);
    let (home, folder) = (home(), home());
    fs::write(folder.path().join(NAME), &wheel.bytes).expect("a wheel");
    let links = format!("/nowhere {}", folder.path().display());
    let variables = [("PIP_FIND_LINKS", links.as_str()), ("PIP_NO_INDEX", "1")];
    let Some((ok, said)) = with_pip(&wheel, home.path(), &variables) else { return };
    assert!(ok, "{said}");
    assert_installed(&wheel, home.path());
}

#[test]
fn pip_told_to_use_nothing() {
    let wheel = Wheel::new(10_000);
    let Some((ok, said)) = with_pip(&wheel, home().path(), &[("PIP_NO_INDEX", "1")]) else { return };
    assert!(!ok);
    insta::assert_snapshot!(said.trim(), @"cannot fetch iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl: no package index is known, neither to Sheaf nor to pip");
}
