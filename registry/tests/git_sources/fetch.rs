//! Fetches over the network.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheaf_registry::git::{Address, Credentials, GitError, Options, Progress, Repository, Want};

use crate::fixture::{GO, Origin, Place, branch, fetch, git_command, tag};
use crate::http_backend;
use crate::servers::{self, Daemon};

/// Bytes that do not compress.
fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// An origin with 50 commits of noise before its head, and a repository of each server to fetch it.
fn served(place: &Place, address: Address) -> Repository {
    Repository::new(place.path("bare"), address, Options::default())
}

fn with_history(place: &Place) {
    for seed in 0..20 {
        place.origin.commit_file("noise", noise(20_000, seed));
    }
    place.origin.write("kept", noise(50_000, 99));
    place.origin.commit_file("noise", "quiet");
}

/// Fetches are shallow, and later ones bring little; both over one kind of server.
fn shallow_and_incremental(place: &Place, repository: &Repository) {
    with_history(place);
    let head = place.origin.git(&["rev-parse", "HEAD"]);
    let (first, bytes) = fetch(repository, &branch("main")).unwrap();
    assert_eq!(first.to_string(), head);
    assert!((50_000..60_000).contains(&bytes), "only the head's files: {bytes}");
    let commit = repository.commit(first).unwrap().unwrap();
    assert_eq!(commit.blob("noise", 100).unwrap().as_deref(), Some(&b"quiet"[..]));

    let (again, bytes) = fetch(repository, &branch("main")).unwrap();
    assert_eq!((again, bytes), (first, 0), "nothing moved");

    let second = place.origin.commit_file("more", "text");
    let (found, bytes) = fetch(repository, &branch("main")).unwrap();
    assert_eq!(found, second);
    assert!((1..2_000).contains(&bytes), "only what is new: {bytes}");
    assert_eq!(repository.last(&branch("main")).unwrap(), Some(second));
    let files = repository.commit(second).unwrap().unwrap().files("", 10).unwrap();
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["kept", "more", "noise"]);
    assert!(!place.path("bare/git/kept").exists(), "there is no working tree");
}

#[test]
fn over_git_fetches_are_shallow_and_incremental() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    shallow_and_incremental(&place, &served(&place, daemon.address("origin")));
}

#[test]
fn over_smart_http_fetches_are_shallow_and_incremental() {
    let place = Place::new();
    let address =
        Address::parse(&format!("http://{}/origin/.git", http_backend::http(&place.path("")))).unwrap();
    shallow_and_incremental(&place, &served(&place, address));
}

#[test]
#[cfg(unix)]
fn over_ssh_fetches_are_shallow_and_incremental() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    // Runs the command here, instead of an ssh that needs a server: the last two arguments are what a server would run.
    let ssh = place.path("ssh");
    let script = "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec sh -c \"$1 $2\"\n";
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let address = Address::parse(&format!("ssh://git.example{}", place.path("origin").display())).unwrap();
    let options = Options { ssh_command: Some(ssh.to_str().unwrap().into()), ..Options::default() };
    shallow_and_incremental(&place, &Repository::new(place.path("bare"), address, options));
}

#[test]
fn every_kind_of_reference_is_fetched() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let repository = served(&place, daemon.address("origin"));
    let first = place.origin.commit_file("a", "1");
    place.origin.git(&["tag", "light"]);
    place.origin.git(&["tag", "-m", "with a message", "heavy"]);
    place.origin.git(&["branch", "topic/a"]);
    let second = place.origin.commit_file("a", "2");
    for (want, commit) in [
        (Want::Head, second),
        (tag("light"), first),
        (tag("heavy"), first),
        (branch("topic/a"), first),
        (branch("main"), second),
        (Want::Commit(first.to_string()), first),
    ] {
        let alone =
            Repository::new(place.path(&commit.to_string()), daemon.address("origin"), Options::default());
        for repository in [&repository, &alone] {
            assert_eq!(fetch(repository, &want).unwrap().0, commit, "{want:?}");
            assert_eq!(fetch(repository, &want).unwrap(), (commit, 0), "{want:?}");
            assert_eq!(repository.last(&want).unwrap(), Some(commit), "{want:?}");
        }
    }
    // A branch in the place of a folder of branches.
    place.origin.git(&["branch", "-D", "topic/a"]);
    place.origin.git(&["branch", "topic"]);
    assert_eq!(fetch(&repository, &branch("topic")).unwrap().0, second);
}

#[test]
fn a_commit_that_no_reference_names_is_fetched() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let first = place.origin.commit_file("a", "1");
    let second = place.origin.commit_file("a", "2");
    let repository = served(&place, daemon.address("origin"));
    repository.fetch_locked(&branch("main"), first, &GO, |_| ()).unwrap();
    assert!(repository.commit(first).unwrap().is_some());
    // No request: the server is gone.
    drop(daemon);
    repository.fetch_locked(&branch("main"), first, &GO, |_| ()).unwrap();
    repository.fetch_locked(&tag("v1"), second, &GO, |_| ()).unwrap();
}

#[test]
fn moved_tags_and_rewritten_histories_are_errors() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let first = place.origin.commit_file("a", "1");
    place.origin.git(&["tag", "v1"]);
    let second = place.origin.commit_file("a", "2");
    place.origin.git(&["tag", "--force", "v1"]);
    let neutral = |error: GitError| {
        let text = error.to_string().replace(daemon.address("origin").as_str(), "ORIGIN");
        text.replace(&first.to_string(), "FIRST").replace(&second.to_string(), "SECOND")
    };
    let repository = served(&place, daemon.address("origin"));
    let error = repository.fetch_locked(&tag("v1"), first, &GO, |_| ()).unwrap_err();
    insta::assert_snapshot!(neutral(error), @"tag `v1` of ORIGIN moved from commit FIRST to SECOND; ask its author why, and run `sheaf update` only if you want the new commit");

    place.origin.git(&["update-ref", "-d", "refs/tags/v1"]);
    place.origin.git(&["commit", "--quiet", "--amend", "-m", "another"]);
    place.origin.git(&["reflog", "expire", "--expire=now", "--all"]);
    place.origin.git(&["gc", "--quiet", "--prune=now"]);
    let fresh = Repository::new(place.path("fresh"), daemon.address("origin"), Options::default());
    let error = fresh.fetch_locked(&branch("main"), second, &GO, |_| ()).unwrap_err();
    insta::assert_snapshot!(neutral(error), @"ORIGIN does not give commit SECOND: Could not decode server reply: Failed to read from line reader: upload-pack: not our ref SECOND; its history may have been rewritten: ask its author, or run `sheaf update` to take another commit");
    let error = fresh.fetch_locked(&tag("v1"), second, &GO, |_| ()).unwrap_err();
    insta::assert_snapshot!(neutral(error), @"ORIGIN does not give commit SECOND: Could not decode server reply: Failed to read from line reader: upload-pack: not our ref SECOND; its history may have been rewritten: ask its author, or run `sheaf update` to take another commit");
}

#[test]
fn references_that_do_not_exist_have_near_names() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let repository = served(&place, daemon.address("origin"));
    let message = |want: &Want| {
        let error = fetch(&repository, want).unwrap_err().to_string();
        error.replace(daemon.address("origin").as_str(), "ORIGIN")
    };
    insta::assert_snapshot!(message(&Want::Head), @"ORIGIN has no commit yet; check the name");
    place.origin.commit_file("a", "1");
    for name in ["v1.2.0", "v1.2.1", "v1.20", "v1.21", "other"] {
        place.origin.git(&["tag", name]);
    }
    insta::assert_snapshot!(message(&tag("v1.2")), @"ORIGIN has no tag `v1.2`; did you mean `v1.20`, `v1.21`, `v1.2.0`?");
    insta::assert_snapshot!(message(&branch("mian")), @"ORIGIN has no branch `mian`; did you mean `main`?");
    insta::assert_snapshot!(message(&branch("x\u{1b}[2J/../y")), @r#"ORIGIN has no branch `x\u{1b}[2J/../y`; check the name"#);
    let blob = place.origin.blob(b"x");
    place.origin.git(&["tag", "blob", &blob]);
    let error = message(&tag("blob"));
    assert!(error.contains("leads to no commit"), "{error}");
    insta::assert_snapshot!(message(&Want::Commit("12ab".into())), @"`12ab` is not a commit of ORIGIN: write all 40 hexadecimal digits");
    insta::assert_snapshot!(message(&Want::Commit("0123456789012345678901234567890123456789".into())), @"ORIGIN does not give commit 0123456789012345678901234567890123456789: Could not decode server reply: Failed to read from line reader: upload-pack: not our ref 0123456789012345678901234567890123456789; its history may have been rewritten: ask its author, or run `sheaf update` to take another commit");
}

#[test]
fn servers_that_do_not_answer_are_errors() {
    let place = Place::new();
    fs::create_dir_all(place.path("empty")).unwrap();
    let daemon = Daemon::new(&place.path(""));
    let web = http_backend::http(&place.path(""));
    let message = |address: &str| {
        // Only the silent ones are to exceed it, also on a busy machine.
        let is_silent = address.ends_with("/silent");
        let stall = if is_silent { Duration::from_millis(600) } else { Duration::from_secs(30) };
        let options = Options {
            stall,
            ssh_command: Some(
                "sh -c 'echo \"git@x: Permission denied (publickey).\" >&2; exit 255' ssh".into(),
            ),
            ..Options::default()
        };
        let bare = place.path(&Address::parse(address).unwrap().cache_name());
        let repository = Repository::new(&bare, Address::parse(address).unwrap(), options);
        let error = fetch(&repository, &Want::Head).unwrap_err().to_string();
        let error = error.replace(address, "ADDRESS").replace(&web.to_string(), "WEB");
        error.replace(&web.port().to_string(), "PORT")
    };
    let closed = servers::free_port();
    insta::assert_snapshot!(message(&format!("git://127.0.0.1:{closed}/a")), @"ADDRESS cannot be reached: Connection refused (os error 111); check the address and the network, or use `--offline`");
    insta::assert_snapshot!(message(&format!("http://127.0.0.1:{closed}/a")).replace(&closed.to_string(), "PORT"), @"ADDRESS cannot be reached: Connection refused (os error 111); check the address and the network, or use `--offline`");
    insta::assert_snapshot!(message("https://no-such-host.invalid/a"), @"ADDRESS cannot be reached: failed to lookup address information: Name or service not known; check the address and the network, or use `--offline`");
    insta::assert_snapshot!(message(daemon.address("nothing").as_str()), @"there is no git repository at ADDRESS: access denied or repository not exported: /nothing; check the address, and that you may read it");
    insta::assert_snapshot!(message(&format!("http://{web}/nothing")), @"there is no git repository at ADDRESS: the server answers that nothing is there; check the address, and that you may read it");
    insta::assert_snapshot!(message(&format!("http://{web}/private/a")), @"ADDRESS wants a user name and a password or token; run `sheaf login WEB`");
    insta::assert_snapshot!(message(&format!("git://{}/silent", servers::silent())), @"ADDRESS has sent nothing for 0 seconds; run the command again, or use `--offline`");
    insta::assert_snapshot!(message(&format!("http://{}/silent", servers::silent())), @"ADDRESS has sent nothing for 0 seconds; run the command again, or use `--offline`");
    #[cfg(unix)]
    insta::assert_snapshot!(message("ssh://git@git.example/a"), @"ADDRESS refuses access: the ssh server accepts none of the keys that `ssh` offers; check that `ssh git.example` lets you in: the same keys are used here");
}

#[test]
fn credentials_are_not_sent_in_clear_text_nor_printed() {
    let place = Place::new();
    let web = http_backend::http(&place.path(""));
    let address = Address::parse(&format!("http://{web}/private/a")).unwrap();
    let credentials = Some(Credentials { user: "me".into(), password: "secret".into() });
    let options = Options { credentials, ..Options::default() };
    assert!(!format!("{options:?}").contains("secret"));
    let error = fetch(&Repository::new(place.path("bare"), address, options), &Want::Head).unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&web.to_string(), "WEB"), @"http://WEB/private/a refuses access: passwords are not sent without encryption; use an https address");
}

#[test]
fn a_fetch_is_interrupted_even_while_the_server_is_silent() {
    let place = Place::new();
    for scheme in ["git", "http"] {
        let address = Address::parse(&format!("{scheme}://{}/a", servers::silent())).unwrap();
        let repository = Repository::new(place.path(scheme), address, Options::default());
        let interrupt = AtomicBool::new(false);
        let begun = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                interrupt.store(true, Ordering::Relaxed);
            });
            let error = repository.fetch(&Want::Head, &interrupt, |_| ()).unwrap_err();
            assert!(matches!(error, GitError::Interrupted { .. }), "{error}");
        });
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_transfer_has_a_limit() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    place.origin.commit_file("noise", noise(20_000_000, 1));
    let options = Options { limit: 100_000, ..Options::default() };
    let repository = Repository::new(place.path("bare"), daemon.address("origin"), options);
    let result = fetch(&repository, &Want::Head);
    let error = result.unwrap_err().to_string().replace(daemon.address("origin").as_str(), "ORIGIN");
    insta::assert_snapshot!(error, @"ORIGIN has sent more than 100000 bytes for one commit; it is no repository of packages");
}

#[test]
fn leftovers_of_a_killed_process_do_not_block() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let repository = served(&place, daemon.address("origin"));
    place.origin.commit_file("a", "1");
    fetch(&repository, &Want::Head).unwrap();
    let bare = place.path("bare/git");
    let reference = fs::read_dir(bare.join("refs/sheaf")).unwrap().next().unwrap().unwrap().path();
    let leftovers = [
        bare.join("shallow.lock"),
        bare.join("packed-refs.lock"),
        reference.with_extension("lock"),
        bare.join("objects/pack/.tmpAbCdEf"),
    ];
    leftovers.iter().for_each(|path| fs::write(path, "").unwrap());
    fs::create_dir(place.path("bare/new-abc")).unwrap();
    let second = place.origin.commit_file("a", "2");
    assert_eq!(fetch(&repository, &Want::Head).unwrap().0, second);
    leftovers.iter().for_each(|path| assert!(!path.exists(), "{}", path.display()));
    assert!(!place.path("bare/new-abc").exists());

    // A bare repository that is not one.
    fs::remove_file(bare.join("HEAD")).unwrap();
    assert_eq!(repository.last(&Want::Head).unwrap(), None);
    assert_eq!(fetch(&repository, &Want::Head).unwrap().0, second);
}

#[test]
fn many_fetches_do_not_leave_many_packs() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let repository = served(&place, daemon.address("origin"));
    let mut stream = String::new();
    for index in 0..55 {
        stream += "commit refs/heads/main\ncommitter A <a@a.example> 1700000000 +0000\ndata 1\nx\n";
        stream += &format!(
            "M 644 inline a\ndata <<E\n{index}\nE\n\nreset refs/tags/v{index}\nfrom refs/heads/main\n\n"
        );
    }
    place.origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    for index in 0..55 {
        let (commit, bytes) = fetch(&repository, &tag(&format!("v{index}"))).unwrap();
        assert!(bytes > 0);
        let read = repository.commit(commit).unwrap().unwrap().blob("a", 10).unwrap().unwrap();
        assert_eq!(read, format!("{index}\n").as_bytes());
    }
    let packs = fs::read_dir(place.path("bare/git/objects/pack")).unwrap();
    let packs = packs.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack"));
    assert!(packs.count() < 10);
    assert_eq!(fs::read_dir(place.path("bare")).unwrap().count(), 2, "the repository and its lock");
}

#[test]
fn parallel_fetches_of_one_repository_wait_for_each_other() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    let commits: Vec<_> = (0..8)
        .map(|index| {
            let commit = place.origin.commit_file("a", index.to_string());
            place.origin.git(&["tag", &format!("v{index}")]);
            commit
        })
        .collect();
    thread::scope(|scope| {
        for (index, commit) in commits.iter().enumerate() {
            let repository = served(&place, daemon.address("origin"));
            scope.spawn(move || {
                assert_eq!(fetch(&repository, &tag(&format!("v{index}"))).unwrap().0, *commit);
            });
        }
    });
    let status = git_command(&place.path("bare/git")).args(["fsck", "--full"]).output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}

#[test]
fn a_process_that_keeps_the_lock_is_waited_for_only_so_long() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    place.origin.commit_file("a", "1");
    let options = Options { patience: Duration::from_millis(100), ..Options::default() };
    let repository = Repository::new(place.path("bare"), daemon.address("origin"), options);
    fetch(&repository, &Want::Head).unwrap();
    let lock = fs::File::open(place.path("bare/lock")).unwrap();
    lock.lock().unwrap();
    let mut waited = false;
    let error = repository.fetch(&Want::Head, &GO, |progress| waited |= progress == Progress::Waiting);
    assert!(waited);
    let error = error.unwrap_err().to_string().replace(daemon.address("origin").as_str(), "ORIGIN");
    insta::assert_snapshot!(error, @"another process has been fetching ORIGIN for 0 seconds; wait for it, or end it");
    drop(lock);
    fetch(&repository, &Want::Head).unwrap();
}

#[test]
fn an_index_of_many_files_is_read_without_a_checkout() {
    let place = Place::new();
    let daemon = Daemon::new(&place.path(""));
    // By fast-import: quicker than files.
    let mut stream =
        "commit refs/heads/main\ncommitter A <a@a.example> 1700000000 +0000\ndata 1\nx\n".to_owned();
    for index in 0..10_000 {
        let name = format!("{:02x}/{:02x}/package-{index}", index % 256, index / 256);
        let line = format!("{{\"version\":\"1.0.{index}\"}}\n");
        stream += &format!("M 644 inline {name}\ndata {}\n{line}\n", line.len());
    }
    place.origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let repository = served(&place, daemon.address("origin"));
    let (id, _) = fetch(&repository, &branch("main")).unwrap();
    let commit = repository.commit(id).unwrap().unwrap();
    let begun = Instant::now();
    let files = commit.files("", 50_000).unwrap();
    assert_eq!(files.len(), 10_000);
    let bytes: usize = files.iter().map(|file| commit.read(file, 100).unwrap().len()).sum();
    assert!(bytes > 200_000);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    eprintln!("read of 10,000 files: {:?}", begun.elapsed());
    assert_eq!(commit.files("ff", 100).unwrap().len(), 39);
    assert!(commit.files("none", 100).unwrap().is_empty());
    assert!(matches!(commit.files("", 9_000), Err(GitError::LargeFile { .. })));
    assert!(commit.blob("00/01/package-256", 100).unwrap().unwrap().starts_with(b"{\"version\":\"1.0.256\""));
    for absent in ["", "00", "00/", "00/01/package-257", "/00/01/package-256", "../x", "00/01/package-256/x"]
    {
        assert_eq!(commit.blob(absent, 100).unwrap(), None, "{absent:?}");
    }

    // Ten new versions bring little.
    let mut stream =
        "commit refs/heads/main\ncommitter A <a@a.example> 1700000001 +0000\ndata 1\nx\n".to_owned();
    stream += "from refs/heads/main^0\n";
    for index in 0..10 {
        stream += &format!("M 644 inline {index:02x}/00/package-{index}\ndata 2\n1\n\n");
    }
    place.origin.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let begun = Instant::now();
    let (id, bytes) = fetch(&repository, &branch("main")).unwrap();
    eprintln!("update of the index by 10 files, {bytes} bytes: {:?}", begun.elapsed());
    assert!(bytes < 30_000, "{bytes}");
    let latest = repository.commit(id).unwrap().unwrap();
    assert_eq!(latest.blob("09/00/package-9", 10).unwrap().as_deref(), Some(&b"1\n"[..]));
    assert!(latest.blob("00/01/package-256", 100).unwrap().is_some());
    let error = commit.blob("00/01/package-256", 3).unwrap_err().to_string();
    assert!(error.contains("has 22 bytes, but at most 3 are read"), "{error}");
}

#[test]
fn a_server_of_another_object_format_is_an_error() {
    let place = Place::new();
    let other = Origin { folder: place.path("other") };
    fs::create_dir_all(&other.folder).unwrap();
    other.git(&["init", "--quiet", "--object-format=sha256"]);
    other.write("a", "1");
    other.git(&["add", "--all"]);
    other.git(&["commit", "--quiet", "-m", "x"]);
    let daemon = Daemon::new(&place.path(""));
    let error = fetch(&served(&place, daemon.address("other")), &Want::Head).unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(daemon.address("other").as_str(), "ORIGIN"), @"ORIGIN cannot be fetched: Failed to list references on the remote: Could not decode object ID: A hash sized 64 hexadecimal characters is invalid; run the command again, and check that it is a git repository");
    let error = fetch(&other.repository(), &Want::Head).unwrap_err();
    insta::assert_snapshot!(place.neutral(error), @r#"there is no git repository at ~/other: Repository configuration could not be loaded: Object format is not enabled in this build, input="sha256", key="extensions.objectFormat"; check the address, and that you may read it"#);
}
