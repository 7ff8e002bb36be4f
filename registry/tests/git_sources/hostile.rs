//! Trees that a package cannot have.

use std::fs;
use std::time::{Duration, Instant};

use sheaf_registry::git::{Options, Repository, Want};
use sheaf_registry::store::SourceStore;
use sheaf_registry::tree::Limits;

use crate::fixture::{GO, Place, fetch};
use crate::servers::Daemon;

const FILE: &str = "100644";
const LINK: &str = "120000";
const TREE: &str = "40000";

#[test]
fn names_that_are_one_file_on_some_systems_are_refused() {
    let place = Place::new();
    let blob = place.origin.blob(b"x");
    let folder = place.origin.tree(&[(FILE, b"x", &blob)]);
    let refusal = |entries: &[(&str, &[u8])]| {
        let entries: Vec<_> = entries
            .iter()
            .map(|(mode, name)| (*mode, *name, if *mode == TREE { &*folder } else { &*blob }))
            .collect();
        place.refusal(&place.origin.tree(&entries))
    };
    let all = [
        refusal(&[(FILE, b"README"), (FILE, b"readme")]),
        refusal(&[(FILE, "\u{e9}".as_bytes()), (FILE, "e\u{301}".as_bytes())]),
        refusal(&[(TREE, b"Src"), (TREE, b"src")]),
        // The link is where the folder goes.
        refusal(&[(LINK, b"a"), (TREE, b"A")]),
        // Malformed: twice the same name.
        refusal(&[(LINK, b"a"), (TREE, b"a")]),
        refusal(&[(FILE, "stra\u{df}e".as_bytes()), (FILE, b"STRASSE")]),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    ~/origin, commit COMMIT: `README` and `readme` are one file on some systems; the package's author must rename one
    ~/origin, commit COMMIT: `é` and `e\u{301}` are one file on some systems; the package's author must rename one
    ~/origin, commit COMMIT: `Src` and `src` are one file on some systems; the package's author must rename one
    ~/origin, commit COMMIT: `a` and `A` are one file on some systems; the package's author must rename one
    ~/origin, commit COMMIT: `a` and `a` are one file on some systems; the package's author must rename one
    ~/origin, commit COMMIT: `straße` and `STRASSE` are one file on some systems; the package's author must rename one
    "#);
}

#[test]
fn names_that_mean_something_else_are_refused() {
    let place = Place::new();
    let blob = place.origin.blob(b"[core]\n");
    let folder = place.origin.tree(&[(FILE, b"config", &blob)]);
    let mut all = String::new();
    for name in [
        &b".."[..],
        b".",
        b".git",
        b".GIT",
        b"git~1",
        b"/etc",
        b"a/b",
        b"..\\x",
        b"c:x",
        b"NUL",
        b"con.shf",
        b"a.",
        b"a ",
        b"\x1b[2J",
        b"\xff\xfe",
        b".g\xe2\x80\x8cit",
    ] {
        for (mode, id) in [(TREE, &folder), (FILE, &blob)] {
            let tree = place.origin.tree(&[(mode, name, id)]);
            let message = place.refusal(&tree);
            if mode == FILE {
                all += &format!("{}\n", message.rsplit_once(": ").unwrap().1);
            }
            // Below another folder too.
            assert!(
                place.refusal(&place.origin.tree(&[(TREE, b"sub", &tree)])).contains("sub/"),
                "{message}"
            );
        }
    }
    insta::assert_snapshot!(all, @r#"
    the name `..` means another folder; the package's author must rename it
    the name `.` means another folder; the package's author must rename it
    the name `.git` means git's own folder; the package's author must rename it
    the name `.GIT` means git's own folder; the package's author must rename it
    the name `git~1` means git's own folder; the package's author must rename it
    the name `/etc` has a separator of paths; the package's author must rename it
    the name `a/b` has a separator of paths; the package's author must rename it
    the name `..\\x` has a separator of paths; the package's author must rename it
    the name `c:x` has a character that Windows does not allow there; the package's author must rename it
    the name `NUL` means a device on Windows; the package's author must rename it
    the name `con.shf` means a device on Windows; the package's author must rename it
    the name `a.` has a character that Windows does not allow there; the package's author must rename it
    the name `a ` has a character that Windows does not allow there; the package's author must rename it
    the name `\u{1b}[2J` has a control character; the package's author must rename it
    the name `��` is not UTF-8; the package's author must rename it
    the name `.g\u{200c}it` has an invisible character, which some file systems ignore; the package's author must rename it
    "#);
    assert!(!place.path("etc").exists());
}

#[test]
fn links_out_of_the_tree_are_refused() {
    let place = Place::new();
    let link = |target: &str| place.origin.blob(target.as_bytes());
    let mut all = String::new();
    let (absolute, up, deep, hop, back) =
        (link("/etc/passwd"), link(".."), link("../../secret"), link("up/../../secret"), link("a/../.."));
    let sub = place.origin.tree(&[(LINK, b"up", &up)]);
    let trees = [
        vec![(LINK, &b"a"[..], &absolute)],
        vec![(LINK, b"a", &up)],
        vec![(LINK, b"a", &deep)],
        // Through another link, which is inside by itself.
        vec![(LINK, b"a", &hop), (TREE, b"up", &sub)],
        vec![(TREE, b"a", &sub), (LINK, b"b", &back)],
    ];
    for entries in trees {
        let entries: Vec<_> = entries.iter().map(|(mode, name, id)| (*mode, *name, id.as_str())).collect();
        all += &place.refusal(&place.origin.tree(&entries));
        all += "\n";
    }
    let circle = link("a");
    all += &place.refusal(&place.origin.tree(&[(LINK, b"a", &circle)]));
    insta::assert_snapshot!(all, @"
    ~/origin, commit COMMIT: the link `a` -> `/etc/passwd` is absolute; the package's author must replace it by the file itself
    ~/origin, commit COMMIT: the link `a` -> `..` leads out of the package; the package's author must replace it by the file itself
    ~/origin, commit COMMIT: the link `a` -> `../../secret` leads out of the package; the package's author must replace it by the file itself
    ~/origin, commit COMMIT: the link `a` -> `up/../../secret` leads out of the package; the package's author must replace it by the file itself
    ~/origin, commit COMMIT: the link `b` -> `a/../..` leads out of the package; the package's author must replace it by the file itself
    ~/origin, commit COMMIT: the link `a` -> `a` leads through too many other links, or in a circle; the package's author must replace it by the file itself
    ");
}

#[test]
fn submodules_and_lfs_pointers_are_refused() {
    let place = Place::new();
    let commit = place.origin.commit_file("a", "1").to_string();
    let module = place.origin.tree(&[("160000", b"vendored", &commit)]);
    insta::assert_snapshot!(place.refusal(&module), @"~/origin, commit COMMIT: `vendored` is a git submodule, which is not fetched; the package's author must copy its files into the package or make it a dependency");
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    let blob = place.origin.blob(pointer);
    let weights = place.origin.tree(&[(FILE, b"weights.safetensors", &blob)]);
    let tree = place.origin.tree(&[(TREE, b"data", &weights)]);
    insta::assert_snapshot!(place.refusal(&tree), @"~/origin, commit COMMIT: `data/weights.safetensors` is a pointer of Git LFS instead of the file itself; the package's author must commit the file without LFS, or have programs download it");
}

/// A few kilobytes of trees that unfold to 10^20 files, fetched from a server.
#[test]
fn a_tree_that_unfolds_without_end_is_refused() {
    let place = Place::new();
    let blob = place.origin.blob(&[0; 1000]);
    let names: Vec<_> = (0..10).map(|index| format!("f{index}")).collect();
    let level = |mode: &str, id: &str| {
        let entries: Vec<_> = names.iter().map(|name| (mode, name.as_bytes(), id)).collect();
        place.origin.tree(&entries)
    };
    let mut tree = level(FILE, &blob);
    for _ in 0..19 {
        tree = level(TREE, &tree);
    }
    let begun = Instant::now();
    insta::assert_snapshot!(place.refusal(&tree), @"~/origin, commit COMMIT: more than 20000 files and folders at `f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f0/f1/f7/f9/f8/f6`; the package's author must leave out what programs do not need");

    let daemon = Daemon::new(&place.path(""));
    let repository = Repository::new(place.path("bare"), daemon.address("origin"), Options::default());
    let (id, bytes) = fetch(&repository, &Want::Head).unwrap();
    assert!(bytes < 10_000);
    let commit = repository.commit(id).unwrap().unwrap();
    let error = place.store.insert(&commit, None, None, &GO).unwrap_err().to_string();
    assert!(error.contains("more than 20000 files and folders"), "{error}");
    assert!(commit.files("", 1_000).is_err());

    // Folders alone, without a file in them.
    let mut empty = place.origin.tree(&[]);
    for _ in 0..19 {
        empty = level(TREE, &empty);
    }
    assert!(place.refusal(&empty).contains("more than 20000 files and folders"));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn sizes_have_limits() {
    let mut place = Place::new();
    place.store = SourceStore::new(place.path("sources")).with_limits(Limits {
        entries: 5,
        bytes: 3 << 20,
        file: 2 << 20,
        depth: 3,
    });
    let large = place.origin.blob(&vec![7; 2_500_000]);
    let tree = place.origin.tree(&[(FILE, b"weights.bin", &large)]);
    insta::assert_snapshot!(place.refusal(&tree), @"~/origin, commit COMMIT: a file of 2500000 bytes, more than 2 MiB, at `weights.bin`; the package's author must leave out what programs do not need");
    let half = place.origin.blob(&vec![7; 1_600_000]);
    let tree = place.origin.tree(&[(FILE, b"a", &half), (FILE, b"b", &half)]);
    insta::assert_snapshot!(place.refusal(&tree), @"~/origin, commit COMMIT: more than 3 MiB of files at `b`; the package's author must leave out what programs do not need");
    let small = place.origin.blob(b"x");
    let entries: Vec<_> = (0..6).map(|index| format!("f{index}")).collect();
    let entries: Vec<_> = entries.iter().map(|name| (FILE, name.as_bytes(), &*small)).collect();
    insta::assert_snapshot!(place.refusal(&place.origin.tree(&entries)), @"~/origin, commit COMMIT: more than 5 files and folders at `f5`; the package's author must leave out what programs do not need");
    let mut tree = place.origin.tree(&[(FILE, b"x", &small)]);
    for _ in 0..4 {
        tree = place.origin.tree(&[(TREE, b"d", &tree)]);
    }
    insta::assert_snapshot!(place.refusal(&tree), @"~/origin, commit COMMIT: more than 3 folders inside one another at `d/d/d/d/x`; the package's author must leave out what programs do not need");
    // Compressed a thousand times, and never unpacked.
    let bomb = place.origin.blob(&vec![0; 64 << 20]);
    let tree = place.origin.tree(&[(FILE, b"zeros", &bomb)]);
    assert!(place.refusal(&tree).contains("a file of 64 MiB, more than 2 MiB,"));
    let target = place.origin.blob(&[b'a'; 5000]);
    insta::assert_snapshot!(place.refusal(&place.origin.tree(&[(LINK, b"l", &target)])), @"~/origin, commit COMMIT: an object of 5000 bytes, more than 1024, at `l`; the package's author must leave out what programs do not need");
    assert!(fs::read_dir(place.path("sources")).is_ok());
}
