//! Registries and servers that mean harm, or fail.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use sheaf_registry::git::Address;
use sheaf_registry::index::package_path;
use sheaf_registry::store::SourceStore;
use sheaf_registry::tree::TreeHash;

use crate::fixture::{GO, Origin, Place};
use crate::servers::Daemon;
use crate::site::{Site, line, message, plain, write};
use crate::web::{Reply, Web};

/// A package in the repository of `place`, tagged `v1`; its commit and tree.
fn package(place: &Place) -> (String, String) {
    place.origin.write("Sheaf.toml", "[package]\nname = \"aa\"\nversion = \"1.0.0\"\n");
    let commit = place.origin.commit_file("src/lib.shf", "(def x 1)\n".repeat(1000));
    place.origin.git(&["tag", "--force", "v1"]);
    let aside = SourceStore::new(place.path("aside"));
    let hash = aside.insert(&place.origin.open(commit), None, None, &GO).unwrap().hash;
    (commit.to_string(), hash.to_string())
}

/// A registry whose package `aa` is in the repository of `place`, at an address of its own.
fn with_package(place: &Place, repository: &str) -> Site {
    let (commit, tree) = package(place);
    let site = Site::new("aa = \"1\"", &place.path("index").to_string_lossy());
    write(&place.path("index"), &[("aa", line("aa", "1.0.0", repository, &commit, &tree, ""))]);
    site
}

#[test]
fn a_host_that_only_an_index_names_gets_no_credentials() {
    let web = Web::new(|_| Reply::Status(401));
    let place = Place::new();
    let repository = format!("http://{}/aa", web.host());
    let mut site = with_package(&place, &repository);
    site.log_in(&web.host());
    let address = Address::parse(&repository).unwrap();
    assert!(site.access().git_options(&address).credentials.is_none());
    let text = message(site.install()).replace(&web.host(), "HOST");
    insta::assert_snapshot!(text, @"aa 1.0.0: http://HOST/aa wants a user name and a password or token; run `sheaf login HOST`");
    let requests = web.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.authorization.is_none()));
    assert!(site.stored().is_empty());

    // Nor does another index that an index names.
    let other = format!(r#"{{"name":"bb","range":"^1","registry":"sparse+http://{}/index"}}"#, web.host());
    write(&place.path("index"), &[("aa", plain("aa", "1.0.0", &other))]);
    fs::remove_file(site.project().lock_file()).unwrap();
    let text = message(site.lock());
    assert!(text.contains("401 Unauthorized"), "{text}");
    let requests = web.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.authorization.is_none()));

    // The host that the user names gets them: the same request, and the same credentials.
    site.named.insert(web.host());
    assert!(site.access().git_options(&address).credentials.is_some());
    message(site.lock());
    assert!(web.requests().iter().all(|request| request.authorization.as_deref() == Some("Bearer secret")));
}

#[test]
fn a_package_of_one_registry_is_never_taken_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let address = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let needs = r#"{"name":"internal","range":"^1"}"#;
    write(
        &folder.path().join("team"),
        &[("lib", plain("lib", "1.0.0", needs)), ("internal", plain("internal", "1.0.0", ""))],
    );
    // Public, newer, and of the same name.
    write(
        &folder.path().join("open"),
        &[("internal", plain("internal", "1.99.0", "")), ("lib", plain("lib", "1.99.0", ""))],
    );
    let mut site = Site::new("lib = { version = \"1\", registry = \"team\" }", &address("open"));
    site.indexes.insert("team".into(), address("team"));
    let neutral = |site: &Site| {
        let packages = site.packages().into_iter();
        packages.map(|package| package.replace(&*folder.path().to_string_lossy(), "~")).collect::<Vec<_>>()
    };
    assert_eq!(neutral(&site), ["internal 1.0.0 registry+~/team", "lib 1.0.0 registry+~/team"]);

    // The other way round, and both at once.
    site.depend("internal = \"1\"");
    assert_eq!(neutral(&site), ["internal 1.99.0 registry+~/open"]);
    site.depend("internal = \"1\"\nlib = { version = \"1\", registry = \"team\" }");
    assert_eq!(
        neutral(&site),
        ["internal 1.99.0 registry+~/open", "internal 1.0.0 registry+~/team", "lib 1.0.0 registry+~/team"]
    );

    // A package that the team withdraws is missing, not replaced.
    site.depend("lib = { version = \"1\", registry = \"team\" }");
    fs::remove_file(folder.path().join("team").join(package_path("internal").unwrap())).unwrap();
    let text = message(site.lock()).replace(&*folder.path().to_string_lossy(), "~");
    insta::assert_snapshot!(text, @"
    the dependencies of `demo` have no common solution:
      lib 1.0.0 needs internal ^1, but registry+~/team has no such package
      Sheaf.toml:6 asks for lib ^1 (1.0.0)
    correct the name or the registry, or change Sheaf.toml:6
    ");
    // As is one that the default registry does not have.
    site.depend("lib = \"1\"\nother = \"1\"");
    write(&folder.path().join("team"), &[("other", plain("other", "1.0.0", ""))]);
    let text = message(site.lock()).replace(&*folder.path().to_string_lossy(), "~");
    insta::assert_snapshot!(text, @"Sheaf.toml:7 asks for other ^1, but registry+~/open has no such package; correct the name or the registry");
}

/// A relay to a `git daemon` that dies after it has passed on `bytes` of what the daemon sends, for one connection.
fn dying(daemon: &Daemon, bytes: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = daemon.address("").to_string();
    let target = target.trim_start_matches("git://").trim_end_matches('/').to_owned();
    thread::spawn(move || {
        let Ok((mut client, _)) = listener.accept() else { return };
        drop(listener);
        let server = TcpStream::connect(target).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut Read::take(&server, bytes), &mut client);
        let _ = client.shutdown(std::net::Shutdown::Both);
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
    address
}

#[test]
fn a_server_that_dies_in_a_transfer_leaves_store_and_lock_as_they_were() {
    let place = Place::new();
    place.origin.write("src/noise", "0123456789abcdef".repeat(20_000));
    let daemon = Daemon::new(&place.path(""));
    let mut told = Vec::new();
    // In the greeting, the list of references, and the pack.
    for bytes in [20, 180, 320, 700] {
        let relay = dying(&daemon, bytes);
        let site = with_package(&place, &format!("git://{relay}/origin"));
        let outcome = site.lock().unwrap();
        outcome.lock.write(&site.project().lock_file()).unwrap();
        let before = fs::read(site.project().lock_file()).unwrap();
        let text = message(site.install()).replace(&relay.to_string(), "HOST");
        assert!(text.starts_with("aa 1.0.0: git://HOST/origin cannot be "), "{bytes}: {text}");
        assert!(
            text.contains("run the command again") || text.contains("check the address"),
            "{bytes}: {text}"
        );
        assert_eq!(fs::read(site.project().lock_file()).unwrap(), before);
        assert!(site.stored().is_empty());
        told.push(text);
        // Nothing that the next run trips over.
        let index = fs::read_to_string(place.path("index/2/aa")).unwrap();
        let address = daemon.address("origin").to_string();
        fs::write(place.path("index/2/aa"), index.replace(&format!("git://{relay}/origin"), &address))
            .unwrap();
        fs::remove_file(site.project().lock_file()).unwrap();
        site.install().unwrap();
        assert_eq!(site.stored().len(), 1);
    }
    // The registry itself.
    let site = Site::new("aa = \"1\"", &format!("git://{}/origin", dying(&daemon, 320)));
    let text = message(site.lock());
    assert!(text.contains("run the command again"), "{text}");
    assert!(!site.project().lock_file().exists());
}

#[test]
fn a_moved_tag_and_a_rewritten_history_are_refused_by_an_install() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let site = with_package(&place, daemon.address("origin").as_str());
    let first = place.origin.git(&["rev-parse", "HEAD"]);
    let outcome = site.lock().unwrap();
    outcome.lock.write(&site.project().lock_file()).unwrap();
    let second = place.origin.commit_file("src/lib.shf", "(def x 2)\n");
    place.origin.git(&["tag", "--force", "v1"]);
    let neutral = |text: String| {
        let text = text.replace(daemon.address("origin").as_str(), "ORIGIN");
        text.replace(&first, "FIRST").replace(&second.to_string(), "SECOND")
    };
    insta::assert_snapshot!(neutral(message(site.install())), @"aa 1.0.0: tag `v1` of ORIGIN moved from commit FIRST to SECOND; ask its author why, and run `sheaf update` only if you want the new commit");
    place.origin.git(&["update-ref", "-d", "refs/tags/v1"]);
    place.origin.git(&["update-ref", "refs/heads/main", &second.to_string()]);
    place.origin.git(&["checkout", "--quiet", "--orphan", "new"]);
    place.origin.git(&["branch", "-D", "main"]);
    place.origin.commit_file("src/lib.shf", "(def x 3)\n");
    place.origin.git(&["branch", "-m", "main"]);
    place.origin.git(&["reflog", "expire", "--expire=now", "--all"]);
    place.origin.git(&["gc", "--quiet", "--prune=now"]);
    fs::remove_dir_all(site.path("registries")).unwrap();
    insta::assert_snapshot!(neutral(message(site.install())), @"aa 1.0.0: ORIGIN does not give commit FIRST: Could not decode server reply: Failed to read from line reader: upload-pack: not our ref FIRST; its history may have been rewritten: ask its author, or run `sheaf update` to take another commit");
    assert!(site.stored().is_empty());
}

#[test]
fn a_tree_that_a_registry_changes_is_refused() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let site = with_package(&place, daemon.address("origin").as_str());
    site.install().unwrap();
    let before = fs::read(site.project().lock_file()).unwrap();
    let commit = place.origin.git(&["rev-parse", "HEAD"]);
    let stored = site.stored();
    let tree = TreeHash::from_hex(&stored[0]).unwrap().to_string();
    let file = place.path("index/2/aa");
    let other = TreeHash::from_hex(&"b".repeat(64)).unwrap().to_string();
    let changed = fs::read_to_string(&file).unwrap().replace(&tree, &other);
    fs::write(&file, &changed).unwrap();
    // A lock that answers is taken as it is.
    site.install().unwrap();
    assert_eq!(fs::read(site.project().lock_file()).unwrap(), before);
    // A resolution sees the change.
    fs::write(&file, changed + &line("aa", "0.9.0", "x", &commit, &tree, "")).unwrap();
    write(&place.path("index"), &[("bb", plain("bb", "1.0.0", ""))]);
    site.depend("aa = \"1\"\nbb = \"1\"");
    let text = place.neutral(message(site.install())).replace(&tree, "TREE").replace(&other, "OTHER");
    insta::assert_snapshot!(text, @"registry+~/index has changed aa 1.0.0: its tree was TREE, and is OTHER; a published version never changes: ask who keeps the registry, or accept the new tree by removing the package from Sheaf.lock");
    assert_eq!(fs::read(site.project().lock_file()).unwrap(), before);
    // As does a machine that has neither lock nor sources.
    let new = Site::new("aa = \"1\"", &place.path("index").to_string_lossy());
    let text =
        message(new.install()).replace(&tree, "TREE").replace(&commit, "COMMIT").replace(&other, "OTHER");
    let text = text.replace(daemon.address("origin").as_str(), "ORIGIN");
    insta::assert_snapshot!(text, @"aa 1.0.0: the sources of ORIGIN changed: commit COMMIT has the tree hash TREE, but OTHER was expected; a registry or a lock file names other sources than its author published: tell them, and do not use either");
    assert!(new.stored().is_empty());
}

#[test]
fn a_lock_without_a_valid_tree_hash_fetches_nothing() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let site = with_package(&place, daemon.address("origin").as_str());
    let outcome = site.lock().unwrap();
    // Of the right length, but no base64 of 32 bytes.
    for tree in [Some(format!("sha256-{}=", "B".repeat(43))), None] {
        let mut lock = outcome.lock.clone();
        lock.packages[0].tree = tree;
        lock.write(&site.project().lock_file()).unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(message(site.install()), @"Sheaf.lock has no valid tree hash of aa 1.0.0, so its sources cannot be verified; restore the file, or remove the package's block and run `sheaf install`"); }
        assert!(site.stored().is_empty());
    }
    // Nor is there one in a registry.
    let index = fs::read_to_string(place.path("index/2/aa")).unwrap();
    let tree = outcome.lock.packages[0].tree.as_deref().unwrap();
    fs::write(place.path("index/2/aa"), index.replace(tree, &format!("sha256-{}=", "B".repeat(43)))).unwrap();
    fs::remove_file(site.project().lock_file()).unwrap();
    assert!(message(site.lock()).contains("is not a tree hash"));
}

#[test]
fn many_files_of_one_blob_are_counted_as_they_unpack() {
    let mut place = Place::new();
    let limits = sheaf_registry::tree::Limits { bytes: 1 << 20, ..Default::default() };
    place.store = SourceStore::new(place.path("sources")).with_limits(limits);
    let blob = place.origin.blob(&vec![b' '; 60_000]);
    let names: Vec<_> = (0..1000).map(|number| format!("f{number:04}")).collect();
    let entries: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), &*blob)).collect();
    let text = place.refusal(&place.origin.tree(&entries));
    insta::assert_snapshot!(text, @"~/origin, commit COMMIT: more than 1 MiB of files at `f0017`; the package's author must leave out what programs do not need");
}

#[test]
fn a_repository_of_hostile_trees_installs_nothing() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let site = with_package(&place, daemon.address("origin").as_str());
    let blob = place.origin.blob(b"x");
    let outside = place.origin.blob(b"../../outside");
    let origin: &Origin = &place.origin;
    let mut all = String::new();
    for tree in [
        origin.tree(&[("100644", b"README", &blob), ("100644", b"readme", &blob)]),
        origin.tree(&[("100644", "\u{e9}".as_bytes(), &blob), ("100644", "e\u{301}".as_bytes(), &blob)]),
        origin.tree(&[("120000", b"link", &outside)]),
    ] {
        let commit = origin.commit_tree(&tree).to_string();
        origin.git(&["tag", "--force", "v1", &commit]);
        let hash = TreeHash::from_hex(&"b".repeat(64)).unwrap().to_string();
        let text = line("aa", "1.0.0", daemon.address("origin").as_str(), &commit, &hash, "");
        fs::write(place.path("index/2/aa"), text).unwrap();
        let _ = fs::remove_file(site.project().lock_file());
        let text = message(site.install()).replace(&commit, "COMMIT");
        all += &text.replace(daemon.address("origin").as_str(), "ORIGIN");
        all += "\n";
        assert!(site.stored().is_empty());
    }
    insta::assert_snapshot!(all, @r#"
    aa 1.0.0: ORIGIN, commit COMMIT: `README` and `readme` are one file on some systems; the package's author must rename one
    aa 1.0.0: ORIGIN, commit COMMIT: `é` and `e\u{301}` are one file on some systems; the package's author must rename one
    aa 1.0.0: ORIGIN, commit COMMIT: the link `link` -> `../../outside` leads out of the package; the package's author must replace it by the file itself
    "#);
}
