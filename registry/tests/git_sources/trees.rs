//! Hashes of trees, compared with a writer of NAR files of its own.

use std::fs;
use std::path::Path;

use base64::Engine;
use sha2::{Digest, Sha256};
use sheaf_registry::tree::{self, Limits, TreeHash};

/// A NAR as its definition says: strings with their length in eight bytes, padded to eight.
fn nar(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, b"nix-archive-1");
    node(&mut out, path);
    out
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
    out.resize(out.len().next_multiple_of(8), 0);
}

fn strings(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| string(out, text.as_bytes()));
}

fn node(out: &mut Vec<u8>, path: &Path) {
    let metadata = fs::symlink_metadata(path).unwrap();
    strings(out, &["(", "type"]);
    if metadata.is_symlink() {
        strings(out, &["symlink", "target", fs::read_link(path).unwrap().to_str().unwrap()]);
    } else if metadata.is_dir() {
        strings(out, &["directory"]);
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        for name in names {
            strings(out, &["entry", "(", "name", name.to_str().unwrap(), "node"]);
            node(out, &path.join(name));
            strings(out, &[")"]);
        }
    } else {
        strings(out, &["regular"]);
        if is_executable(&metadata) {
            strings(out, &["executable", ""]);
        }
        strings(out, &["contents"]);
        string(out, &fs::read(path).unwrap());
    }
    strings(out, &[")"]);
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

fn reference(path: &Path) -> String {
    let digest = Sha256::digest(nar(path));
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// A folder with files of all lengths around the padding and the buffer, executables, links and folders.
#[cfg(unix)]
fn sample(root: &Path) {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for length in [0, 1, 7, 8, 9, 65_535, 65_536, 65_537, 300_000] {
        fs::write(root.join(format!("file-{length}")), vec![b'x'; length]).unwrap();
    }
    fs::create_dir_all(root.join("été/a/b")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("été/a.b"), "sorted before the folder's files").unwrap();
    fs::write(root.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("été/a", root.join("link")).unwrap();
    symlink("a".repeat(1000), root.join("n".repeat(255))).unwrap();
}

#[test]
#[cfg(unix)]
fn the_hash_is_that_of_the_nar() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(tree::hash(folder.path()).unwrap().to_string(), reference(folder.path()));
    sample(folder.path());
    let hash = tree::hash(folder.path()).unwrap();
    assert_eq!(hash.to_string(), reference(folder.path()));
    assert_eq!(hash.to_string().parse::<TreeHash>().unwrap(), hash);
    assert_eq!(TreeHash::from_hex(&hash.hex()), Some(hash));
}

#[test]
fn the_hash_of_known_folders_stays() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(tree::hash(folder.path()).unwrap(), @"sha256-pQpattmS9VmO3ZIQUFn66az8GSmB4IvYhTTCFn6SUmo=");
    fs::write(folder.path().join("hello"), "hello\n").unwrap();
    insta::assert_snapshot!(tree::hash(folder.path()).unwrap(), @"sha256-8rZj4G7p7f80xdR6Es9zkss4jol73O52CI0Xc1P5/t0=");
}

#[test]
fn texts_that_are_no_hash_are_refused() {
    for text in ["", "sha256-", "sha256-AAAA", "sha512-AAAA", &"a".repeat(64), "sha256-\u{1b}"] {
        let error = text.parse::<TreeHash>().unwrap_err().to_string();
        assert!(error.contains("is no tree hash") && !error.contains('\u{1b}'), "{error}");
    }
    for text in ["", "..", &"A".repeat(64), &"g".repeat(64), &"a".repeat(63)] {
        assert_eq!(TreeHash::from_hex(text), None);
    }
}

#[test]
#[cfg(unix)]
fn the_rules_hold_for_folders_too() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    sample(root);
    let summary = tree::check(root, &Limits::default()).unwrap();
    assert_eq!(summary.entries, 17);
    assert!(summary.bytes > 496_000);
    let refused = |make: &dyn Fn(&Path), limits: Limits| {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        tree::check(folder.path(), &limits).unwrap_err().to_string()
    };
    let limits = Limits::default();
    let write = |path: &Path, name: &str| {
        fs::write(path.join(name), "version https://git-lfs.github.com/spec/v1").unwrap();
    };
    let all = [
        refused(&|path| symlink("../x", path.join("a")).unwrap(), limits),
        refused(&|path| write(path, "weights"), limits),
        refused(&|path| fs::create_dir(path.join(".git")).unwrap(), limits),
        refused(&|path| ["a", "A"].iter().for_each(|name| fs::create_dir(path.join(name)).unwrap()), limits),
        refused(&|path| fs::create_dir_all(path.join("a/b/c")).unwrap(), Limits { depth: 1, ..limits }),
        refused(&|path| fs::create_dir_all(path.join("a/b/c")).unwrap(), Limits { entries: 2, ..limits }),
        refused(&|path| write(path, "a"), Limits { bytes: 41, ..limits }),
        refused(&|path| drop(std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap()), limits),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    the link `a` -> `../x` leads out of the package; the package's author must replace it by the file itself
    `weights` is a pointer of Git LFS instead of the file itself; the package's author must commit the file without LFS, or have programs download it
    the name `.git` means git's own folder; the package's author must rename it
    `A` and `a` are one file on some systems; the package's author must rename one
    more than 1 folders inside one another at `a/b/c`; the package's author must leave out what programs do not need
    more than 2 files and folders at `a/b`; the package's author must leave out what programs do not need
    more than 41 bytes of files at `a`; the package's author must leave out what programs do not need
    `socket` is neither a file, a folder nor a link; remove it
    ");
}
