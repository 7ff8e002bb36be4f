//! Repositories of this machine, read in place.

use std::fs;

use sheaf_registry::git::{Address, GitError, Options, Repository, Want};

use crate::fixture::{GO, Place, branch, fetch, git_command, tag};

#[test]
fn a_repository_of_this_machine_is_read_in_place() {
    let place = Place::new();
    let first = place.origin.commit_file("src/lib.shf", "(def x 1)\n");
    place.origin.git(&["tag", "-m", "one", "v1"]);
    let second = place.origin.commit_file("src/lib.shf", "(def x 2)\n");
    place.origin.git(&["pack-refs", "--all"]);
    place.origin.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    for text in [
        place.path("origin").display().to_string(),
        format!("file://{}", place.path("origin").display()),
        place.path("bare").display().to_string(),
    ] {
        let copy = place.path("copy");
        let repository = Repository::new(&copy, Address::parse(&text).unwrap(), Options::default());
        for (want, commit) in [
            (Want::Head, second),
            (tag("v1"), first),
            (branch("main"), second),
            (Want::Commit(first.to_string()), first),
        ] {
            assert_eq!(fetch(&repository, &want).unwrap(), (commit, 0), "{text} {want:?}");
            assert_eq!(repository.last(&want).unwrap(), Some(commit), "{text} {want:?}");
        }
        let commit = repository.commit(first).unwrap().unwrap();
        assert_eq!(commit.blob("src/lib.shf", 100).unwrap().as_deref(), Some(&b"(def x 1)\n"[..]));
        assert!(!copy.exists(), "nothing is copied");
    }
}

#[test]
fn errors_of_repositories_of_this_machine_name_them() {
    let place = Place::new();
    let message = |address: &str, want: &Want| {
        let address = Address::parse(&place.path(address).display().to_string()).unwrap();
        let repository = Repository::new(place.path("copy"), address, Options::default());
        place.neutral(fetch(&repository, want).unwrap_err())
    };
    insta::assert_snapshot!(message("nowhere", &Want::Head), @"there is no git repository at ~/nowhere: there is no such folder; check the address, and that you may read it");
    insta::assert_snapshot!(message("origin", &Want::Head), @"~/origin has no commit yet; check the name");
    place.origin.commit_file("a", "1");
    fs::create_dir(place.path("plain")).unwrap();
    insta::assert_snapshot!(message("plain", &Want::Head), @r#"there is no git repository at ~/plain: "~/plain" does not appear to be a git repository: Missing HEAD at ".git/HEAD"; check the address, and that you may read it"#);
    place.origin.git(&["tag", "v1.0"]);
    insta::assert_snapshot!(message("origin", &tag("1.0")), @"~/origin has no tag `1.0`; did you mean `v1.0`?");
    insta::assert_snapshot!(message("origin", &branch("../../x")), @"~/origin has no branch `../../x`; check the name");
    let absent = "0123456789012345678901234567890123456789";
    insta::assert_snapshot!(message("origin", &Want::Commit(absent.into())), @"~/origin does not give commit 0123456789012345678901234567890123456789: it is not in the repository; its history may have been rewritten: ask its author, or run `sheaf update` to take another commit");
}

/// A repository whose configuration, hooks and attributes name programs: none is run.
#[test]
#[cfg(unix)]
fn programs_that_a_repository_names_are_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let marker = place.path("marker");
    let commit = place.origin.commit_file("a.txt", "1");
    place.origin.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    let script = place.path("evil");
    fs::write(&script, format!("#!/bin/sh\necho ran >> {}\ncat\n", marker.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let latest = place.origin.commit();
    let evil = script.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.gitProxy",
        "core.editor",
        "core.pager",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "uploadpack.packObjectsHook",
        "credential.helper",
        "core.alternateRefsCommand",
        "core.askPass",
    ] {
        place.origin.git(&["config", key, evil]);
    }
    for hook in ["post-checkout", "post-update", "pre-receive", "reference-transaction", "post-index-change"]
    {
        fs::copy(&script, place.path("origin/.git/hooks").join(hook)).unwrap();
    }
    fs::copy(&script, place.path("fsmonitor")).unwrap();
    let before = fs::read_to_string(&marker).unwrap_or_default();
    let repository = place.origin.repository();
    for (want, id) in [(Want::Head, latest), (Want::Commit(commit.to_string()), commit)] {
        assert_eq!(fetch(&repository, &want).unwrap().0, id);
        let found = repository.commit(id).unwrap().unwrap();
        let inserted = place.store.insert(&found, None, None, &GO).unwrap();
        assert_eq!(fs::read(inserted.path.join("a.txt")).unwrap(), b"1", "without a filter");
    }
    assert_eq!(fs::read_to_string(&marker).unwrap_or_default(), before);
    // The trap works: git itself runs it.
    git_command(&place.path("origin")).args(["status"]).output().unwrap();
    assert_ne!(fs::read_to_string(&marker).unwrap_or_default(), before);
}

#[test]
fn missing_objects_are_damage() {
    let place = Place::new();
    let commit = place.origin.commit_file("a", "some contents");
    let id = place.origin.git(&["rev-parse", "HEAD:a"]);
    fs::remove_file(place.path("origin/.git/objects").join(&id[..2]).join(&id[2..])).unwrap();
    let open = place.origin.open(commit);
    assert!(matches!(open.blob("a", 100), Err(GitError::Damaged { .. })));
    let error = place.store.insert(&open, None, None, &GO).unwrap_err();
    assert!(place.neutral(error).contains("the repository in ~/origin/.git is damaged"));
    assert_eq!(place.listing(), [""; 0]);
}
