//! An index with cached file addresses: one request for an installation, as from a mirror.

use std::collections::BTreeMap;
use std::path::Path;

use sheaf_toolchain::{InstallError, Listing, Setting, Settings, install_release};

use crate::locked::{Warnings, home};
use crate::server::{Request, Response, Server};
use crate::wheel::{NAME, Wheel};
use crate::{assert_installed, settings};

const PAGE: &str = "/simple/iree-base-compiler/";

/// An index whose page links to `href`, with other responses given by `files`.
fn index(href: String, files: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static) -> Server {
    Server::start(move |request| match request.path.as_str() {
        PAGE => Response::html(format!("<a href='{href}'>it</a>")),
        _ => files(request).unwrap_or_else(Response::not_found),
    })
}

/// An index that has this wheel.
fn index_of(wheel: &Wheel) -> Server {
    let bytes = wheel.bytes.clone();
    index(format!("../../files/{NAME}#sha256=00"), move |request| {
        (request.path == format!("/files/{NAME}")).then(|| Response::range(request, &bytes))
    })
}

fn simple(server: &Server) -> String {
    format!("{}/simple", server.url())
}

/// The listing of the index.
fn listing(wheel: &Wheel, index: &str) -> Option<Listing> {
    Listing::ask(&[wheel.release()], &settings(index), &()).expect("an answer")
}

/// A listing with the wheel at `file` on `index`.
fn listed(index: &str, file: &str) -> Listing {
    Listing { index: index.to_owned(), files: [("linux-x86_64".to_owned(), file.to_owned())].into() }
}

/// Installs from `index` with a listing; returns the warnings.
fn install(wheel: &Wheel, index: &str, listing: Listing) -> Vec<String> {
    let home = home();
    let warnings = Warnings::default();
    let settings = Settings { listing: Some(listing), ..settings(index) };
    install_release(&wheel.release(), home.path(), &settings, &warnings).expect("installed");
    assert_installed(wheel, home.path());
    warnings.into_inner()
}

#[test]
fn an_index_whose_answer_is_known_is_asked_exactly_once() {
    let wheel = Wheel::new(10_000);
    let server = index_of(&wheel);
    let known = listing(&wheel, &simple(&server)).expect("a listing");
    assert_eq!(known, listed(&simple(&server), &format!("{}/files/{NAME}", server.url())));
    assert_eq!(server.paths(), [PAGE]);
    // A final slash does not make another index.
    for index in [simple(&server), format!("{}/", simple(&server))] {
        let before = server.paths().len();
        assert_eq!(install(&wheel, &index, known.clone()), [""; 0]);
        assert_eq!(server.paths()[before..], [format!("/files/{NAME}")], "the wheel and nothing else");
    }
}

#[test]
fn a_file_that_has_moved_is_looked_for_on_the_page() {
    let wheel = Wheel::new(10_000);
    let server = index_of(&wheel);
    let moved = listed(&simple(&server), &format!("{}/old/{NAME}", server.url()));
    assert_eq!(install(&wheel, &simple(&server), moved), [""; 0]);
    assert_eq!(server.paths(), [&format!("/old/{NAME}"), PAGE, &format!("/files/{NAME}")]);
}

#[test]
fn another_file_is_not_believed() {
    let wheel = Wheel::new(10_000);
    let server = index_of(&wheel);
    let other = Server::mirror(NAME, Wheel::new(10_001).bytes);
    let warnings =
        install(&wheel, &simple(&server), listed(&simple(&server), &format!("{}/{NAME}", other.url())));
    assert_eq!(other.paths().len(), 1);
    assert!(matches!(&warnings[..], [warning] if warning.contains(&other.url())), "{warnings:?}");
}

#[test]
fn what_is_known_of_another_index_or_release_is_not_used() {
    let wheel = Wheel::new(10_000);
    let (server, other) = (index_of(&wheel), index_of(&wheel));
    let elsewhere = format!("{}/files/{NAME}", other.url());
    let of_another_release = format!("{}/files/{}", server.url(), NAME.replace("0.0.1", "0.0.2"));
    let file = format!("file:///files/{NAME}");
    for known in [
        listed(&simple(&other), &elsewhere),
        listed(&simple(&server), &of_another_release),
        listed(&simple(&server), &file),
        listed(&simple(&server), "https://:99/x"),
        Listing { index: simple(&server), files: BTreeMap::new() },
    ] {
        let before = server.paths().len();
        assert_eq!(install(&wheel, &simple(&server), known), [""; 0]);
        assert_eq!(server.paths()[before..], [PAGE, &format!("/files/{NAME}")]);
    }
    assert_eq!(other.paths(), [""; 0]);
}

#[test]
fn a_password_is_sent_and_not_written_down() {
    let wheel = Wheel::new(10_000);
    let bytes = wheel.bytes.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        _ if request.header("authorization") != "Basic bWU6c2VjcmV0" => Response::new(401, ""),
        PAGE => Response::html(format!("<a href='/{NAME}'>it</a>")),
        _ => Response::range(request, &bytes),
    });
    let index = simple(&server).replace("http://", "http://me:secret@");
    let known = listing(&wheel, &index).expect("a listing");
    assert_eq!(known, listed(&simple(&server), &format!("{}/{NAME}", server.url())));
    assert_eq!(install(&wheel, &index, known), [""; 0]);
    assert_eq!(server.paths(), [PAGE, &format!("/{NAME}")]);
}

#[test]
fn what_is_for_one_time_or_not_there_is_not_written_down() {
    let wheel = Wheel::new(10_000);
    let signed = index(format!("/files/{NAME}?token=secret"), |_| None);
    assert_eq!(listing(&wheel, &simple(&signed)), None);
    let others = index("/files/other.whl".to_owned(), |_| None);
    assert_eq!(listing(&wheel, &simple(&others)), None);
    let empty = Server::start(|_| Response::not_found());
    assert_eq!(listing(&wheel, &simple(&empty)), None);
}

#[test]
fn nobody_is_asked_where_nobody_would_be() {
    let wheel = Wheel::new(10_000);
    let server = index_of(&wheel);
    let index = settings(&simple(&server));
    let mirror = Setting { value: server.url(), origin: "the test".to_owned() };
    for settings in [
        Settings { offline: true, ..index.clone() },
        Settings { mirrors: vec![mirror], ..index },
        settings(&Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string()),
    ] {
        assert_eq!(Listing::ask(&[wheel.release()], &settings, &()).expect("no question"), None);
    }
    assert_eq!(server.paths(), [""; 0]);
}

#[test]
fn an_index_that_is_out_of_order_is_an_error() {
    let wheel = Wheel::new(10_000);
    let broken = Server::start(|_| Response::json("{\"files\": [".into()));
    let error = Listing::ask(&[wheel.release()], &settings(&simple(&broken)), &()).expect_err("no page");
    assert!(matches!(error, InstallError::BadIndex { .. }), "{error}");
}
