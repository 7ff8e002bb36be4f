//! Static copies of registries on http servers.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sheaf_registry::index::{HttpFiles, IndexFiles};

use crate::site::{CONFIG, Site, message, plain};
use crate::web::{Reply, Web};

const A: &str = r#"{"name":"bb","range":"^1"},{"name":"cc","range":"^1"}"#;

/// `aa`, which needs `bb` and `cc`; other packages do not exist. Confirms entity tags.
fn registry() -> Web {
    Web::new(|request| {
        if request.tag.as_deref() == Some("\"one\"") {
            return Reply::Status(304);
        }
        match &*request.path {
            "/index/config.toml" => Reply::Body(CONFIG.into(), "\"one\""),
            "/index/2/aa" => Reply::Body(plain("aa", "1.0.0", A) + &plain("aa", "1.1.0", A), "\"one\""),
            "/index/2/bb" => Reply::Body(plain("bb", "1.0.0", r#"{"name":"cc","range":"^1"}"#), "\"one\""),
            "/index/2/cc" => Reply::Body(plain("cc", "1.0.0", ""), "\"one\""),
            _ => Reply::Status(404),
        }
    })
}

fn address(web: &Web) -> String {
    format!("sparse+http://{}/index", web.host())
}

const ALL: [&str; 4] = ["/index/2/aa", "/index/2/bb", "/index/2/cc", "/index/config.toml"];

#[test]
fn a_resolution_asks_once_for_each_package_and_then_only_whether_it_has_changed() {
    let web = registry();
    let mut site = Site::new("aa = \"1\"", &address(&web));
    let first = site.lock().unwrap().lock;
    let requests = web.requests();
    assert!(requests.iter().all(|request| request.tag.is_none() && request.authorization.is_none()));
    let mut paths: Vec<_> = requests.iter().map(|request| &*request.path).collect();
    paths.sort_unstable();
    assert_eq!(paths, ALL);
    assert_eq!(first.packages[0].version.to_string(), "1.1.0");

    assert_eq!(site.lock().unwrap().lock, first, "from the copies, which the server confirms");
    let requests = web.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.tag.as_deref() == Some("\"one\"")), "{requests:?}");

    site.offline = true;
    let text = message(site.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @"Sheaf.toml:6 asks for aa ^1, but 1.0.0 and 1.1.0 are not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch them; run the command once with a network");
    site.pretend_sources();
    assert_eq!(site.lock().unwrap().lock, first);
    assert_eq!(web.requests(), []);
}

#[test]
fn a_file_that_is_not_found_is_no_package() {
    let web = registry();
    let site = Site::new("dd = \"1\"", &address(&web));
    let text = message(site.lock());
    assert!(text.contains("dd"), "{text}");
    assert_eq!(web.paths(), ["/index/2/dd", "/index/config.toml"]);
    let elsewhere = Site::new("aa = \"1\"", &format!("sparse+http://{}/other", web.host()));
    let text = message(elsewhere.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @"the versions of aa (registry+sparse+http://HOST/other) cannot be read: sparse+http://HOST/other is no registry of Sheaf: it has no config.toml; check the address under [registries]");
}

#[test]
fn a_redirect_to_another_host_carries_no_credentials() {
    let target = registry();
    let to = target.host();
    let web = Web::new(move |request| Reply::Redirect(format!("http://{to}{}", request.path)));
    let mut site = Site::new("aa = \"1\"", &address(&web));
    site.log_in(&web.host());
    site.log_in(&target.host());
    site.named.insert(web.host());
    assert_eq!(site.packages().len(), 3);
    assert!(web.requests().iter().all(|request| request.authorization.as_deref() == Some("Bearer secret")));
    let requests = target.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.authorization.is_none()), "{requests:?}");
}

#[test]
fn redirects_without_end_are_an_error() {
    let web = Web::new(|request| Reply::Redirect(format!("{}x", request.path)));
    let site = Site::new("aa = \"1\"", &address(&web));
    let text = message(site.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @"the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: it redirects more than 5 times, at last to 127.0.0.1; check the address and the network, or use --offline");
    assert_eq!(web.requests().len(), 6);
}

#[test]
fn a_server_that_stalls_or_stops_in_a_file_changes_nothing() {
    for stalls in [false, true] {
        let web = Web::new(move |request| match &*request.path {
            "/index/config.toml" => Reply::Body(CONFIG.into(), ""),
            _ if stalls => Reply::Stall(plain("aa", "1.0.0", "")),
            _ => Reply::Half(plain("aa", "1.0.0", "")),
        });
        let folder = tempfile::tempdir().unwrap();
        let url = format!("http://{}/index", web.host()).parse().unwrap();
        let files = HttpFiles::new(url, folder.path().join("copies"), None, false).unwrap();
        let files = files.with_patience(Duration::from_millis(700));
        files.read("config.toml").unwrap();
        let count = || fs::read_dir(folder.path().join("copies")).unwrap().count();
        assert_eq!(count(), 1);
        let begun = Instant::now();
        files.prefetch(&["2/aa".into()]);
        let error = files.read("2/aa").unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(3));
        let said = if stalls { "operation timed out" } else { "end of file before message length reached" };
        assert_eq!(error.cause, said);
        assert_eq!(error.remedy, "check the address and the network, or use --offline");
        assert_eq!(count(), 1, "the part that came is not kept");
        assert_eq!(web.paths(), ["/index/2/aa", "/index/config.toml"], "a failure is not tried twice");
    }
    let web = Web::new(|request| match &*request.path {
        "/index/config.toml" => Reply::Body(CONFIG.into(), ""),
        _ => Reply::Half(plain("aa", "1.0.0", "")),
    });
    let site = Site::new("aa = \"1\"", &address(&web));
    let text = message(site.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @"the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: end of file before message length reached; check the address and the network, or use --offline");
    assert!(!site.project().lock_file().exists());
}

#[test]
fn damaged_contents_are_not_used_and_read_anew() {
    let runs = Arc::new(AtomicUsize::new(0));
    let run = Arc::clone(&runs);
    let web = Web::new(move |request| match &*request.path {
        "/index/config.toml" => Reply::Body(CONFIG.into(), ""),
        _ if request.tag.is_some() => Reply::Status(304),
        _ if run.load(Ordering::SeqCst) == 0 => Reply::Body("{\"name\":\"a\u{0}".into(), "\"one\""),
        _ => Reply::Body(plain("aa", "1.0.0", ""), "\"one\""),
    });
    let site = Site::new("aa = \"1\"", &address(&web));
    let text = message(site.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @r"the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index has a line about aa that cannot be used: line 1: control character (\u0000-\u001F) found while parsing a string, at column 10");
    runs.store(1, Ordering::SeqCst);
    assert_eq!(site.packages().len(), 1, "the server is not asked to confirm what is damaged");

    // Copies that change on the disk.
    let (copies, mut damaged) = (site.path("registries"), 0);
    for folder in fs::read_dir(&copies).unwrap().flatten().filter(|entry| entry.file_name() != "git") {
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            let bytes = fs::read(file.path()).unwrap();
            fs::write(file.path(), &bytes[..bytes.len() - 5]).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 2);
    web.requests();
    assert_eq!(site.packages().len(), 1);
    assert!(web.requests().iter().all(|request| request.tag.is_none()));
}

#[test]
fn servers_that_refuse_or_fail_are_named_with_a_remedy() {
    let status = Arc::new(Mutex::new(0));
    let answer = Arc::clone(&status);
    let web = Web::new(move |_| Reply::Status(*answer.lock().unwrap()));
    let mut site = Site::new("aa = \"1\"", &address(&web));
    let mut all = String::new();
    for code in [401, 403, 404, 500, 304, 206] {
        *status.lock().unwrap() = code;
        all += &message(site.lock()).replace(&web.host(), "HOST");
        all += "\n";
    }
    site.offline = true;
    all += &message(site.lock()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(all, @"
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: the server answers 401 Unauthorized; run `sheaf login HOST` with a token that may read it
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: the server answers 403 Forbidden; run `sheaf login HOST` with a token that may read it
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: sparse+http://HOST/index is no registry of Sheaf: it has no config.toml; check the address under [registries]
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: the server answers 500 Internal Server Error for config.toml; try again later
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: the server answers 304 Not Modified for config.toml; try again later
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: the server answers 206 Partial Content for config.toml; try again later
    the versions of aa (registry+sparse+http://HOST/index) cannot be read: the registry sparse+http://HOST/index cannot be read: it was not read before, and --offline or SHEAF_OFFLINE forbids to ask it; run the command once with a network
    ");
}
