//! Mirrors of registries.

use std::fs;

use crate::servers;
use crate::site::{CONFIG, Site, message, plain, write};
use crate::web::{Reply, Web};

/// An address where no server is.
fn nowhere() -> String {
    format!("sparse+http://127.0.0.1:{}/index", servers::free_port())
}

fn mirror() -> Web {
    Web::new(|request| match &*request.path {
        "/copy/config.toml" => Reply::Body(CONFIG.into(), ""),
        "/copy/2/aa" => Reply::Body(plain("aa", "1.0.0", ""), ""),
        _ => Reply::Status(404),
    })
}

#[test]
fn a_mirror_stands_for_an_index_and_the_lock_keeps_the_address() {
    let (web, index) = (mirror(), nowhere());
    let mut site = Site::new("aa = \"1\"", &index);
    let copy = format!("sparse+http://{}/copy", web.host());
    site.mirrors.insert(index.clone(), vec![copy]);
    assert_eq!(site.packages(), [format!("aa 1.0.0 registry+{index}")]);
    assert_eq!(web.paths(), ["/copy/2/aa", "/copy/config.toml"]);
    site.offline = true;
    site.pretend_sources();
    assert_eq!(site.packages(), [format!("aa 1.0.0 registry+{index}")]);
    // For this index and no other.
    site.offline = false;
    let other = nowhere();
    site.indexes.insert("default".into(), other.clone());
    assert!(message(site.lock()).contains(&other));
    assert_eq!(web.paths(), [""; 0]);
}

#[test]
fn mirrors_are_asked_in_order_and_the_index_last() {
    let web = mirror();
    let mut site = Site::new("aa = \"1\"", "");
    let (first, folder) = (nowhere(), site.path("copy"));
    let folder_address = folder.to_string_lossy().into_owned();
    let index = format!("sparse+http://{}/copy", web.host());
    site.indexes.insert("default".into(), index.clone());
    site.mirrors.insert(index.clone(), vec![first, folder_address]);
    assert_eq!(site.packages(), [format!("aa 1.0.0 registry+{index}")]);
    assert_eq!(web.paths(), ["/copy/2/aa", "/copy/config.toml"]);
    write(&folder, &[("aa", plain("aa", "1.2.0", ""))]);
    assert_eq!(site.packages(), [format!("aa 1.2.0 registry+{index}")]);
    assert_eq!(web.paths(), [""; 0]);
    fs::write(folder.join("2/aa"), "{").unwrap();
    let text = message(site.lock()).replace(&web.host(), "HOST");
    let text = text.replace(&*folder.to_string_lossy(), "COPY");
    insta::assert_snapshot!(text, @"the versions of aa (registry+sparse+http://HOST/copy) cannot be read: the registry sparse+http://HOST/copy (mirror COPY) has a line about aa that cannot be used: line 1: EOF while parsing an object, at column 1");
}

#[test]
fn a_mirror_gets_its_own_credentials_and_no_others() {
    let (web, index) = (mirror(), nowhere());
    let mut site = Site::new("aa = \"1\"", &index);
    site.mirrors.insert(index.clone(), vec![format!("sparse+http://{}/copy", web.host())]);
    let original = index.trim_start_matches("sparse+http://").trim_end_matches("/index").to_owned();
    site.log_in(&original);
    site.named.insert(original);
    site.lock().unwrap();
    assert!(web.requests().iter().all(|request| request.authorization.is_none()));
    site.log_in(&web.host());
    site.lock().unwrap();
    assert!(web.requests().iter().all(|request| request.authorization.as_deref() == Some("Bearer secret")));
}
