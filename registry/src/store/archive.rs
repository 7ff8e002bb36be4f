//! Packages as archives: `NAME-VERSION.tar.gz`, in the order of their paths, without times and owners, so that the same
//! tree is the same bytes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::export::{create, link};
use super::{SourceStore, StoreError, stamp};
use crate::store::staging::Staging;
use crate::tree::{self, Limits, Rules, Siblings, TARGET, TreeError, TreeHash};

/// Maximum length of a path or a link's target in an archive, in bytes.
const LONGEST: u64 = 4096;

/// Time of all files of an archive, in seconds since 1970: the smallest that every tar program takes.
const TIME: u64 = 1;

/// Failure to unpack an archive.
enum Unusable {
    /// Its tree breaks a rule.
    Tree(TreeError),
    /// It is no archive of a package.
    Cause(String),
}

impl From<TreeError> for Unusable {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Cause(error.to_string())
    }
}

impl SourceStore {
    /// Writes the tree `hash` to a file; `None` if it is not in the store.
    pub fn pack(&self, hash: &TreeHash, file: &Path) -> Result<Option<()>, StoreError> {
        let Some(tree) = self.verify(hash)? else { return Ok(None) };
        let write = || {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let staged = tempfile::Builder::new().make_in(folder, |path| File::create_new(path))?;
            let gzip = GzEncoder::new(BufWriter::new(staged.as_file()), Compression::best());
            let mut archive = tar::Builder::new(gzip);
            pack_folder(&mut archive, &tree, "")?;
            archive.into_inner()?.finish()?.flush()?;
            staged.as_file().sync_all()?;
            staged.persist(file).map_err(|error| error.error)?;
            Ok(())
        };
        write().map(Some).map_err(|source| StoreError::Folder { path: file.into(), source })
    }

    /// Inserts the tree `expected` from an archive. Nothing is inserted if its tree breaks a rule, or has another hash.
    pub fn insert_archive(&self, file: &Path, expected: &TreeHash) -> Result<(), StoreError> {
        let failed = |source| StoreError::Folder { path: self.folder.clone(), source };
        let staging = Staging::new(&self.folder).map_err(failed)?;
        let staged = staging.entry();
        let tree = staged.join("tree");
        fs::create_dir_all(&tree).map_err(failed)?;
        let refused = |cause| StoreError::Archive { path: file.into(), cause };
        unpack(file, &tree, self.limits).map_err(|error| match error {
            Unusable::Tree(error) => refused(error.to_string()),
            Unusable::Cause(cause) => refused(format!("{cause}; run `sheaf vendor` again")),
        })?;
        let stamped = stamp::of(&tree).map_err(failed)?;
        let found = tree::hash(&tree).map_err(failed)?;
        if found != *expected {
            let cause = TreeError::Hash { expected: *expected, found };
            return Err(refused(format!(
                "{cause}: it was altered, or is of another version; run `sheaf vendor` again"
            )));
        }
        fs::write(staged.join("stamp"), stamped).map_err(failed)?;
        self.publish(&staged, expected).map(drop)
    }
}

/// Appends what is in a folder of a verified tree, sorted by name.
fn pack_folder(archive: &mut tar::Builder<impl Write>, folder: &Path, path: &str) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let separator = if path.is_empty() { "" } else { "/" };
        let path = format!("{path}{separator}{}", name.to_string_lossy());
        let metadata = fs::symlink_metadata(entry.path())?;
        let mut header = Header::new_gnu();
        header.set_mtime(TIME);
        header.set_size(0);
        if metadata.is_dir() {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            archive.append_data(&mut header, format!("{path}/"), io::empty())?;
            pack_folder(archive, &entry.path(), &path)?;
        } else if metadata.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            archive.append_link(&mut header, &path, fs::read_link(entry.path())?)?;
        } else {
            header.set_mode(if is_executable(&metadata) { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            archive.append_data(&mut header, &path, File::open(entry.path())?)?;
        }
    }
    Ok(())
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

/// Unpacks an archive into an empty folder. Links come last, so that no file is written through one.
fn unpack(file: &Path, folder: &Path, limits: Limits) -> Result<(), Unusable> {
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(File::open(file)?)));
    let mut rules = Rules::new(limits);
    let mut folders: HashMap<String, Siblings> = HashMap::from([(String::new(), Siblings::default())]);
    let mut links = Vec::new();
    let (mut long_name, mut long_target) = (None, None);
    // Raw: names of any length would be read whole.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::GNULongName | EntryType::GNULongLink) {
            let mut text = Vec::new();
            (&mut entry).take(LONGEST).read_to_end(&mut text)?;
            if entry.size() > LONGEST {
                return Err(Unusable::Cause(format!("a name in it has more than {LONGEST} bytes")));
            }
            while text.pop_if(|byte| *byte == 0).is_some() {}
            *(if kind == EntryType::GNULongName { &mut long_name } else { &mut long_target }) = Some(text);
            continue;
        }
        let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let target = long_target.take();
        let name =
            String::from_utf8(name).map_err(|_| Unusable::Cause("a name in it is not UTF-8".into()))?;
        let (parent, last) = match name.trim_end_matches('/').rsplit_once('/') {
            Some((parent, last)) => (parent, last),
            None => ("", name.trim_end_matches('/')),
        };
        let Some(siblings) = folders.get_mut(parent) else {
            return Err(Unusable::Cause(format!("{name:?} stands in no folder of it")));
        };
        let path = rules.enter(parent, last.as_bytes(), kind.is_symlink(), siblings)?;
        let there = folder.join(&path);
        match kind {
            EntryType::Directory => {
                fs::create_dir(&there)?;
                folders.insert(path, Siblings::default());
            }
            EntryType::Symlink => {
                let target = match target {
                    Some(target) => target,
                    None => entry.link_name_bytes().unwrap_or_default().into_owned(),
                };
                let target = rules.link(&path, &target[..target.len().min(TARGET + 1)])?.to_owned();
                links.push((there, target));
            }
            EntryType::Regular => {
                rules.size(&path, entry.size())?;
                let is_program = entry.header().mode()? & 0o100 != 0;
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents)?;
                Rules::contents(&path, &contents)?;
                create(&there, is_program)?.write_all(&contents)?;
            }
            _ => return Err(TreeError::Kind { path }.into()),
        }
    }
    rules.finish()?;
    links.iter().try_for_each(|(path, target)| link(target, path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in a folder, and an archive beside it of these entries.
    fn archive(entries: &[(&str, EntryType, &[u8])]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar.gz");
        let mut builder =
            tar::Builder::new(GzEncoder::new(File::create(&file).unwrap(), Compression::fast()));
        for (name, kind, contents) in entries {
            let mut header = Header::new_gnu();
            // By hand: the crate refuses hostile names.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            let is_link = kind.is_symlink();
            if is_link {
                header.as_gnu_mut().unwrap().linkname[..contents.len()].copy_from_slice(contents);
            }
            let contents: &[u8] = if is_link { b"" } else { contents };
            header.set_size(contents.len() as u64);
            header.set_cksum();
            builder.append(&header, contents).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
        (folder, file)
    }

    fn refusal(entries: &[(&str, EntryType, &[u8])]) -> String {
        let (folder, file) = archive(entries);
        let limits = Limits { entries: 10, bytes: 4000, file: 3000, depth: 2 };
        let store = SourceStore::new(folder.path().join("store")).with_limits(limits);
        let expected: TreeHash = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".parse().unwrap();
        let error = store.insert_archive(&file, &expected).unwrap_err().to_string();
        let left: Vec<_> = fs::read_dir(folder.path().join("store")).unwrap().flatten().collect();
        assert!(left.iter().all(|e| e.file_name() == "staging" || e.file_name() == "lock"), "{left:?}");
        assert_eq!(fs::read_dir(folder.path().join("store/staging")).unwrap().count(), 0);
        error.replace(&*folder.path().to_string_lossy(), "~")
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn a_tree_survives_its_archive_and_archives_are_reproducible() {
        let deep = "a-folder-with-a-rather-long-name/".repeat(4);
        let long = format!("{deep}{}", "x".repeat(90));
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join(&deep)).unwrap();
        fs::write(tree.join(&long), "deep").unwrap();
        fs::write(tree.join("run.sh"), "#!/bin/sh\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(tree.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::symlink(&long, tree.join("link")).unwrap();
        }
        let hash = tree::hash(&tree).unwrap();
        let entry = folder.path().join("one").join(hash.hex());
        fs::create_dir_all(&entry).unwrap();
        fs::rename(&tree, entry.join("tree")).unwrap();
        let (one, two) =
            (SourceStore::new(folder.path().join("one")), SourceStore::new(folder.path().join("two")));
        let file = |name: &str| folder.path().join(name);
        one.pack(&hash, &file("a.tar.gz")).unwrap().unwrap();
        two.insert_archive(&file("a.tar.gz"), &hash).unwrap();
        assert!(two.verify(&hash).unwrap().is_some());
        two.pack(&hash, &file("b.tar.gz")).unwrap().unwrap();
        assert_eq!(fs::read(file("a.tar.gz")).unwrap(), fs::read(file("b.tar.gz")).unwrap());
        let other: TreeHash = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".parse().unwrap();
        assert!(two.pack(&other, &file("c.tar.gz")).unwrap().is_none());
    }

    #[test]
    fn altered_and_hostile_archives_are_refused() {
        let big = vec![0; 3001];
        let half = vec![0; 2100];
        let many: Vec<(String, EntryType, &[u8])> =
            (0..11).map(|i| (format!("f{i}"), FILE, &b""[..])).collect();
        let many: Vec<_> = many.iter().map(|(name, kind, bytes)| (name.as_str(), *kind, *bytes)).collect();
        let all = [
            refusal(&[("lib.shf", FILE, b"(print 1)")]),
            refusal(&[("../lib.shf", FILE, b"")]),
            refusal(&[("..", FILE, b"")]),
            refusal(&[("/etc/passwd", FILE, b"")]),
            refusal(&[("A", FILE, b""), ("a", FILE, b"")]),
            refusal(&[("a", EntryType::Symlink, b"/etc")]),
            refusal(&[("a", EntryType::Symlink, b"b"), ("a/x", FILE, b"")]),
            refusal(&[("a", EntryType::Symlink, b"../x")]),
            refusal(&[("a", EntryType::Fifo, b"")]),
            refusal(&[("a", EntryType::Link, b"")]),
            refusal(&[("big", FILE, &big)]),
            refusal(&[("a", FILE, &half), ("b", FILE, &half)]),
            refusal(&many),
            refusal(&[("a", EntryType::GNULongName, &[b'x'; 5000])]),
        ];
        insta::assert_snapshot!(all.join("\n"), @r#"
        ~/a.tar.gz: the tree's hash is sha256-1Ap1NFYIELQiV/UFcNxCM3BTCSNCpGD9dOKYH6Wtsvw=, but sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= was expected: it was altered, or is of another version; run `sheaf vendor` again
        ~/a.tar.gz: "../lib.shf" stands in no folder of it; run `sheaf vendor` again
        ~/a.tar.gz: the name `..` means another folder; the package's author must rename it
        ~/a.tar.gz: "/etc/passwd" stands in no folder of it; run `sheaf vendor` again
        ~/a.tar.gz: `A` and `a` are one file on some systems; the package's author must rename one
        ~/a.tar.gz: the link `a` -> `/etc` is absolute; the package's author must replace it by the file itself
        ~/a.tar.gz: "a/x" stands in no folder of it; run `sheaf vendor` again
        ~/a.tar.gz: the link `a` -> `../x` leads out of the package; the package's author must replace it by the file itself
        ~/a.tar.gz: `a` is neither a file, a folder nor a link; remove it
        ~/a.tar.gz: `a` is neither a file, a folder nor a link; remove it
        ~/a.tar.gz: a file of 3001 bytes, more than 3000 bytes, at `big`; the package's author must leave out what programs do not need
        ~/a.tar.gz: more than 4000 bytes of files at `b`; the package's author must leave out what programs do not need
        ~/a.tar.gz: more than 10 files and folders at `f10`; the package's author must leave out what programs do not need
        ~/a.tar.gz: a name in it has more than 4096 bytes; run `sheaf vendor` again
        "#);
        let (folder, file) = archive(&[("lib.shf", FILE, b"(print 1)")]);
        let bytes = fs::read(&file).unwrap();
        let expected: TreeHash = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".parse().unwrap();
        let store = SourceStore::new(folder.path().join("store"));
        for length in 0..bytes.len() {
            fs::write(&file, &bytes[..length]).unwrap();
            assert!(store.insert_archive(&file, &expected).is_err(), "{length}");
        }
    }
}
