//! The packages of `Sheaf.lock`: the exact versions of a resolution, by digest.
//!
//! ```toml
//! version = 1
//! dependencies = [
//!     "attention-lib 1.2.0",
//! ]
//!
//! [[package]]
//! name = "attention-lib"
//! version = "1.2.0"
//! source = "registry+https://registry.example/index"
//! repository = "https://git.example/attention-lib"
//! ref = "refs/tags/v1.2.0"
//! commit = "3f786850e387550fdab836ed7e6dc881de23001b"
//! tree = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
//! published = "2026-01-02T03:04:05Z"
//! signer = "ada:3ccd..."
//! programs = "https://cache.example"
//! dependencies = [
//!     "maths 2.0.1",
//!     "older: maths 1.4.0",
//! ]
//! ```
//!
//! Sorted, a line for each fact, without digests over the whole: changes of two branches merge. `tree` is the NAR hash of the
//! package's folder, as Nix computes it. A dependency is the package and its version, after the name that its dependent has
//! for it if that is another, and before its source if two packages are called alike.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use jiff::Timestamp;
use semver::Version;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::edit::EditError;
use crate::error::FileError;
use crate::lock::{FORMAT, edit_lock, known_format};
use crate::name::package_name;
use crate::project::Project;
use crate::source::Source;
use crate::spanned_toml::{self, Document, Found, Text};
use sheaf_foundation::Owners;

/// Maximum size of the file, in bytes.
const LARGEST: usize = 64 << 20;

/// The packages of a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackagesLock {
    /// The project's own dependencies.
    pub roots: Vec<LockedEdge>,
    /// All packages, sorted.
    pub packages: Vec<LockedPackage>,
}

/// A package of a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its origin.
    pub source: Source,
    /// The address of the git repository of a registry's package.
    pub repository: Option<String>,
    /// The ref that it is fetched by.
    pub reference: Option<String>,
    /// The commit.
    pub commit: Option<String>,
    /// The folder in the repository; `None` for its root.
    pub folder: Option<String>,
    /// The NAR hash of its files, as `sha256-` and base64.
    pub tree: Option<String>,
    /// Time of its publication.
    pub published: Option<Timestamp>,
    /// The key that its author signed the version with.
    pub signer: Option<String>,
    /// The remote cache that the author names for its compiled programs.
    pub programs: Option<String>,
    /// Its dependencies.
    pub dependencies: Vec<LockedEdge>,
}

/// A dependency in a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedEdge {
    /// The name that the dependent has for it.
    pub name: String,
    /// The package.
    pub package: String,
    /// Its version.
    pub version: Version,
    /// Its origin.
    pub source: Source,
}

/// A difference between two locks, in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A package that was not there.
    Added(String, Version),
    /// A package that is gone.
    Removed(String, Version),
    /// The only version of a package.
    Moved(String, Version, Version),
    /// The same version with another record.
    Altered(String, Version),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(name, version) => write!(f, "+ {name} {version}"),
            Self::Removed(name, version) => write!(f, "- {name} {version}"),
            Self::Moved(name, from, to) => write!(f, "~ {name} {from} -> {to}"),
            Self::Altered(name, version) => write!(f, "~ {name} {version}, from elsewhere"),
        }
    }
}

impl LockedEdge {
    /// True if this is the package.
    pub fn names(&self, package: &LockedPackage) -> bool {
        self.package == package.name && self.version == package.version && self.source == package.source
    }

    fn text(&self, all: &[LockedPackage]) -> String {
        let local = if self.name == self.package { String::new() } else { format!("{}: ", self.name) };
        let alike =
            all.iter().filter(|other| other.name == self.package && other.version == self.version).count();
        let source = if alike > 1 { format!(" ({})", self.source) } else { String::new() };
        format!("{local}{} {}{source}", self.package, self.version)
    }
}

impl LockedPackage {
    /// A package of which nothing else is known.
    pub fn new(name: String, version: Version, source: Source) -> Self {
        let (repository, reference, commit, folder, tree, published, signer, programs) = Default::default();
        let dependencies = Vec::new();
        Self {
            name,
            version,
            source,
            repository,
            reference,
            commit,
            folder,
            tree,
            published,
            signer,
            programs,
            dependencies,
        }
    }
}

const KEYS: &[&str] = &[
    "name",
    "version",
    "source",
    "repository",
    "ref",
    "commit",
    "folder",
    "tree",
    "published",
    "signer",
    "programs",
    "dependencies",
];

/// Remedy for a broken lock.
const ANEW: &str = "restore the file, or remove it and run `sheaf install`";

impl PackagesLock {
    /// The dependencies of a project. The lock of a workspace has those of its members, each of which is a package of it.
    #[must_use]
    pub fn dependencies_of(&self, project: &Project) -> &[LockedEdge] {
        let Some(workspace) = &project.workspace else { return &self.roots };
        let own = Source::Path { folder: workspace.member.clone() };
        self.packages.iter().find(|package| package.source == own).map_or(&[], |own| &own.dependencies)
    }

    /// Reads the packages of the file at `path`, if one of the `owners` owns it.
    pub fn read(path: &Path, owners: &Owners) -> Result<Found<Self>, FileError> {
        spanned_toml::read_owned(path, owners)?.and(|text| Self::parse(path, &text))
    }

    /// Reads the packages in `text`, the contents of `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let refused = |offset: usize, cause: String, remedy| FileError::Refused {
            location: crate::location::SourceLocation::new(path, text, offset..offset + 7).into(),
            cause,
            remedy,
        };
        if text.len() > LARGEST {
            return Err(refused(
                0,
                format!("the file has {} bytes, and {LARGEST} are the most", text.len()),
                ANEW,
            ));
        }
        let conflict =
            text.match_indices("<<<<<<< ").find(|(at, _)| *at == 0 || text.as_bytes()[at - 1] == b'\n');
        if let Some((at, _)) = conflict {
            let remedy = "take one side of the file (`git checkout --ours Sheaf.lock`) and run `sheaf install`, which adds the rest";
            return Err(refused(at, "two branches have changed this part".into(), remedy));
        }
        let document = Document::parse(path, text)?;
        let root = document.root(&["version", "dependencies", "package", "toolchain"]);
        known_format(&root)?;
        let mut packages = Vec::new();
        let mut edges = Vec::new();
        for table in root.tables("package", KEYS)? {
            let (name, version) = (table.required("name", ANEW)?, table.required("version", ANEW)?);
            package_name(&name.value).map_err(|error| name.refused(error.to_string(), ANEW))?;
            let source = table.required("source", ANEW)?;
            let mut package = LockedPackage::new(
                name.value.clone(),
                version.value.parse().map_err(|_| version.wrong("a version, such as \"1.2.0\""))?,
                source
                    .value
                    .parse()
                    .map_err(|_| source.wrong("an origin, such as \"registry+https://...\""))?,
            );
            let text = |key| Ok::<_, FileError>(table.string(key)?.map(|text| text.value));
            package.repository = text("repository")?;
            package.reference = text("ref")?;
            package.folder = text("folder")?;
            package.signer = text("signer")?;
            package.programs = text("programs")?;
            let is_hex =
                |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
            package.commit = checked(table.string("commit")?, is_hex, "a commit: 40 hexadecimal digits")?;
            let is_hash = |text: &str| text.strip_prefix("sha256-").is_some_and(|digits| digits.len() == 44);
            package.tree =
                checked(table.string("tree")?, is_hash, "a hash: sha256- and 44 characters of base64")?;
            let published = table.string("published")?;
            let time = |text: Text<'_, '_>| text.value.parse().map_err(|_| text.wrong("a point in time"));
            package.published = published.map(time).transpose()?;
            if packages.iter().any(|other: &LockedPackage| {
                other.name == package.name
                    && other.version == package.version
                    && other.source == package.source
            }) {
                return Err(
                    name.refused(format!("{} {} is there twice", package.name, package.version), ANEW)
                );
            }
            packages.push(package);
            edges.push(table.texts("dependencies")?.unwrap_or_default());
        }
        let mut by_name: HashMap<&str, Vec<&LockedPackage>> = HashMap::new();
        packages.iter().for_each(|package| by_name.entry(&package.name).or_default().push(package));
        let edge = |text: &Text<'_, '_>| {
            let found = read_edge(&text.value, &by_name);
            found.ok_or_else(|| text.wrong("a package of this file and its version, such as \"maths 1.2.0\""))
        };
        let read = |texts: &[Text<'_, '_>]| texts.iter().map(edge).collect::<Result<Vec<_>, _>>();
        let roots = read(&root.texts("dependencies")?.unwrap_or_default())?;
        let edges = edges.iter().map(|texts| read(texts)).collect::<Result<Vec<_>, _>>()?;
        for (package, edges) in packages.iter_mut().zip(edges) {
            package.dependencies = edges;
        }
        Ok(Self { roots, packages }.sorted())
    }

    /// Writes the packages into the file at `path`, creating it if needed. Other sections are kept as they are.
    pub fn write(&self, path: &Path) -> Result<(), EditError> {
        let sorted = self.clone().sorted();
        edit_lock(path, |document| sorted.put(document))
    }

    fn put(&self, document: &mut DocumentMut) {
        if document.is_empty() {
            document.decor_mut().set_prefix("# Written by Sheaf; keep it under version control.\n\n");
        }
        // In its place: comments above belong to the key.
        document["version"] = value(FORMAT);
        put_edges(document.as_table_mut(), &self.roots, &self.packages);
        let mut blocks = ArrayOfTables::new();
        for package in &self.packages {
            let mut table = Table::new();
            let mut put = |key: &str, text: Option<&str>| {
                if let Some(text) = text {
                    table.insert(key, value(text));
                }
            };
            put("name", Some(&package.name));
            put("version", Some(&package.version.to_string()));
            put("source", Some(&package.source.to_string()));
            put("repository", package.repository.as_deref());
            put("ref", package.reference.as_deref());
            put("commit", package.commit.as_deref());
            put("folder", package.folder.as_deref());
            put("tree", package.tree.as_deref());
            put("published", package.published.map(|time| time.to_string()).as_deref());
            put("signer", package.signer.as_deref());
            put("programs", package.programs.as_deref());
            put_edges(&mut table, &package.dependencies, &self.packages);
            blocks.push(table);
        }
        document.remove("package");
        if !blocks.is_empty() {
            document.insert("package", Item::ArrayOfTables(blocks));
        }
    }

    fn sorted(mut self) -> Self {
        self.roots.sort();
        self.packages.iter_mut().for_each(|package| package.dependencies.sort());
        self.packages.sort();
        self
    }

    /// The changes from this lock to another, by name.
    pub fn difference(&self, other: &Self) -> Vec<Change> {
        let same = |a: &LockedPackage, b: &LockedPackage| a.name == b.name && a.version == b.version;
        let gone = |from: &Self, to: &Self| -> Vec<(String, Version)> {
            let absent = |package: &&LockedPackage| !to.packages.iter().any(|other| same(package, other));
            from.packages.iter().filter(absent).map(|p| (p.name.clone(), p.version.clone())).collect()
        };
        let (mut removed, added) = (gone(self, other), gone(other, self));
        let mut changes = Vec::new();
        for (name, version) in added {
            let count = |list: &Self| list.packages.iter().filter(|package| package.name == name).count();
            let before = removed.iter().position(|(old, _)| *old == name);
            match before.filter(|_| count(self) == 1 && count(other) == 1) {
                Some(before) => {
                    let (_, from) = removed.swap_remove(before);
                    changes.push((name.clone(), Change::Moved(name, from, version)));
                }
                None => changes.push((name.clone(), Change::Added(name, version))),
            }
        }
        changes.extend(
            removed.into_iter().map(|(name, version)| (name.clone(), Change::Removed(name, version))),
        );
        for package in &other.packages {
            let record = |package: &LockedPackage| (package.source.clone(), package.tree.clone());
            let mut before = self.packages.iter().filter(|old| same(old, package)).peekable();
            let altered = before.peek().is_some() && before.all(|old| record(old) != record(package));
            if altered {
                let change = Change::Altered(package.name.clone(), package.version.clone());
                changes.push((package.name.clone(), change));
            }
        }
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

fn checked(
    text: Option<Text<'_, '_>>,
    is_right: impl Fn(&str) -> bool,
    expected: &'static str,
) -> Result<Option<String>, FileError> {
    match text {
        Some(text) if !is_right(&text.value) => Err(text.wrong(expected)),
        text => Ok(text.map(|text| text.value)),
    }
}

fn put_edges(table: &mut Table, edges: &[LockedEdge], all: &[LockedPackage]) {
    if edges.is_empty() {
        table.remove("dependencies");
        return;
    }
    let mut list = Array::new();
    for edge in edges {
        list.push_formatted(toml_edit::Value::from(edge.text(all)).decorated("\n    ", ""));
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
    table.insert("dependencies", value(list));
}

/// A dependency by its text: `[name: ]package version[ (source)]`.
fn read_edge(text: &str, all: &HashMap<&str, Vec<&LockedPackage>>) -> Option<LockedEdge> {
    let (name, rest) = text.split_once(": ").map_or((None, text), |(name, rest)| (Some(name), rest));
    let (rest, source) = match rest.split_once(" (") {
        Some((rest, source)) => (rest, Some(source.strip_suffix(')')?)),
        None => (rest, None),
    };
    let (package, version) = rest.split_once(' ')?;
    let version: Version = version.parse().ok()?;
    let is_it = |other: &&&LockedPackage| {
        other.version == version && source.is_none_or(|source| other.source.to_string() == source)
    };
    let found = all.get(package)?.iter().find(is_it)?;
    let name = name.unwrap_or(package).to_owned();
    // A member of a workspace is named by its folder.
    if !name.starts_with("./") {
        package_name(&name).ok()?;
    }
    Some(LockedEdge { name, package: package.into(), version, source: found.source.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

    fn lock() -> PackagesLock {
        let index = Source::Registry { index: "https://registry.example/index".into() };
        let package = |name: &str, version: &str, source: &Source| LockedPackage {
            repository: Some(format!("https://git.example/{name}")),
            reference: Some(format!("refs/tags/v{version}")),
            commit: Some("3f786850e387550fdab836ed7e6dc881de23001b".into()),
            tree: Some(HASH.into()),
            published: "2026-01-02T03:04:05Z".parse().ok(),
            signer: Some("ada:3ccd".into()),
            programs: Some("https://cache.example".into()),
            ..LockedPackage::new(name.into(), version.parse().unwrap(), source.clone())
        };
        let edge = |name: &str, package: &LockedPackage| LockedEdge {
            name: name.into(),
            package: package.name.clone(),
            version: package.version.clone(),
            source: package.source.clone(),
        };
        let (old, new) = (package("maths", "1.4.0", &index), package("maths", "2.0.1", &index));
        let other = LockedPackage::new(
            "maths".into(),
            "2.0.1".parse().unwrap(),
            Source::Path { folder: "../maths".into() },
        );
        let mut attention = package("attention-lib", "1.2.0", &index);
        attention.dependencies = vec![edge("maths", &new), edge("older", &old)];
        let roots = vec![edge("attention-lib", &attention), edge("maths", &other)];
        PackagesLock { roots, packages: vec![old, attention, new, other] }.sorted()
    }

    fn parse(text: &str) -> Result<PackagesLock, FileError> {
        PackagesLock::parse(Path::new("/p/Sheaf.lock"), text)
    }

    #[test]
    fn what_is_written_is_read_beside_other_sections() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Sheaf.lock");
        std::fs::write(&path, "# mine\n\n[toolchain] # pinned\niree = \"3.13.0\"\n").unwrap();
        lock().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(parse(&text).unwrap(), lock());
        assert!(text.contains("[toolchain] # pinned\niree = \"3.13.0\"\n"), "{text}");
        let remark = "# Written by Sheaf; keep it under version control.\n\n";
        let second = folder.path().join("second.lock");
        for _ in 0..2 {
            lock().write(&second).unwrap();
            assert!(std::fs::read_to_string(&second).unwrap().starts_with(remark), "it stays");
        }
        PackagesLock::default().write(&path).unwrap();
        assert_eq!(parse(&std::fs::read_to_string(&path).unwrap()).unwrap(), PackagesLock::default());
        std::fs::remove_file(&path).unwrap();
        let small = PackagesLock { packages: lock().packages[..1].to_vec(), roots: Vec::new() };
        let small = PackagesLock {
            packages: vec![LockedPackage { dependencies: Vec::new(), ..small.packages[0].clone() }],
            ..small
        };
        small.write(&path).unwrap();
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        # Written by Sheaf; keep it under version control.

        version = 1

        [[package]]
        name = "attention-lib"
        version = "1.2.0"
        source = "registry+https://registry.example/index"
        repository = "https://git.example/attention-lib"
        ref = "refs/tags/v1.2.0"
        commit = "3f786850e387550fdab836ed7e6dc881de23001b"
        tree = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        published = "2026-01-02T03:04:05Z"
        signer = "ada:3ccd"
        programs = "https://cache.example"
        "#);
    }

    /// Two branches that each add a package, with what it needs.
    #[test]
    fn additions_of_two_branches_merge() {
        let folder = tempfile::tempdir().unwrap();
        let index = Source::Registry { index: "https://registry.example/index".into() };
        let package = |name: &str| LockedPackage {
            tree: Some(HASH.into()),
            ..LockedPackage::new(name.into(), Version::new(1, 0, 0), index.clone())
        };
        let edge = |name: &str| LockedEdge {
            name: name.into(),
            package: name.into(),
            version: Version::new(1, 0, 0),
            source: index.clone(),
        };
        let with = |roots: &[&str], names: &[&str]| {
            let packages = names.iter().map(|name| {
                let needs = if roots.contains(name) { vec![edge("units")] } else { Vec::new() };
                LockedPackage { dependencies: needs, ..package(name) }
            });
            PackagesLock { roots: roots.iter().copied().map(edge).collect(), packages: packages.collect() }
        };
        let write = |name: &str, lock: &PackagesLock| lock.write(&folder.path().join(name)).unwrap();
        let known = ["attention-lib", "maths", "vision", "units"];
        write("base", &with(&known[..3], &known));
        write(
            "ours",
            &with(&["attention-lib", "graphs", "maths", "vision"], &[&known[..], &["graphs"]].concat()),
        );
        let theirs = [&known[..], &["plots", "tables"]].concat();
        write("theirs", &with(&["attention-lib", "maths", "plots", "vision"], &theirs));
        let merged = std::process::Command::new("git")
            .args(["merge-file", "--stdout", "ours", "base", "theirs"])
            .current_dir(folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        let text = String::from_utf8(merged.stdout).unwrap();
        assert!(merged.status.success(), "{text}");
        let both = with(
            &["attention-lib", "graphs", "maths", "plots", "vision"],
            &[&known[..], &["graphs", "plots", "tables"]].concat(),
        );
        assert_eq!(parse(&text).unwrap(), both.clone().sorted());
        // It is what one of them would have written.
        write("whole", &both);
        assert_eq!(std::fs::read_to_string(folder.path().join("whole")).unwrap(), text);
    }

    #[test]
    fn old_formats_are_read() {
        // Sheaf 0.1 wrote the compiler alone, without a version.
        assert_eq!(parse("[toolchain]\niree = \"3.13.0\"\n").unwrap(), PackagesLock::default());
        assert_eq!(parse("").unwrap(), PackagesLock::default());
    }

    #[test]
    fn differences_are_lines() {
        let (before, mut after) = (lock(), lock());
        after.packages[0].version = "1.3.0".parse().unwrap();
        after.packages.remove(1);
        after.packages[1].tree = None;
        let lines: Vec<_> = before.difference(&after).iter().map(Change::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ~ attention-lib 1.2.0 -> 1.3.0
        - maths 1.4.0
        ~ maths 2.0.1, from elsewhere
        ");
        assert_eq!(before.difference(&before), []);
    }

    #[test]
    fn what_means_nothing_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Sheaf.lock");
        lock().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let message = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            parse(&text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        insta::assert_snapshot!(message("version = 1\n", "version = 2\n"), @"
        /p/Sheaf.lock:3:1: this file was written by a newer Sheaf, in format 2; update this Sheaf, or use the project with the newer one
         3 | version = 2
           | ^^^^^^^
        ");
        insta::assert_snapshot!(message("version = 1\n", "<<<<<<< HEAD\nversion = 1\n"), @"
        /p/Sheaf.lock:3:1: two branches have changed this part; take one side of the file (`git checkout --ours Sheaf.lock`) and run `sheaf install`, which adds the rest
         3 | <<<<<<< HEAD
           | ^^^^^^^
        ");
        insta::assert_snapshot!(message(HASH, "sha256-x"), @r#"
        /p/Sheaf.lock:16:8: `package.tree` is "sha256-x", but it must be a hash: sha256- and 44 characters of base64
         16 | tree = "sha256-x"
            |        ^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message("3f786850e387550fdab836ed7e6dc881de23001b", "3f78"), @r#"
        /p/Sheaf.lock:15:10: `package.commit` is "3f78", but it must be a commit: 40 hexadecimal digits
         15 | commit = "3f78"
            |          ^^^^^^
        "#);
        insta::assert_snapshot!(message("version = \"1.2.0\"", "version = \"1.2\""), @r#"
        /p/Sheaf.lock:11:11: `package.version` is "1.2", but it must be a version, such as "1.2.0"
         11 | version = "1.2"
            |           ^^^^^
        "#);
        insta::assert_snapshot!(message("source = \"registry+", "source = \""), @r#"
        /p/Sheaf.lock:12:10: `package.source` is "https://registry.example/index", but it must be an origin, such as "registry+https://..."
         12 | source = "https://registry.example/index"
            |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message("\"maths 2.0.1 (reg", "\"maths 2.0.9 (reg"), @r#"
        /p/Sheaf.lock:21:5: `package.dependencies[0]` is "maths 2.0.9 (registry+https://registry.example/index)", but it must be a package of this file and its version, such as "maths 1.2.0"
         21 |     "maths 2.0.9 (registry+https://registry.example/index)",
            |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message("name = \"attention-lib\"", "name = \"../x\""), @r#"
        /p/Sheaf.lock:10:8: `../x` is no name for a package: it has `.`; small letters, digits, - and _ make one, a letter first; restore the file, or remove it and run `sheaf install`
         10 | name = "../x"
            |        ^^^^^^
        "#);
        insta::assert_snapshot!(message("version = \"1.4.0\"\nsource", "version = \"2.0.1\"\nsource"), @r#"
        /p/Sheaf.lock:38:8: maths 2.0.1 is there twice; restore the file, or remove it and run `sheaf install`
         38 | name = "maths"
            |        ^^^^^^^
        "#);
        insta::assert_snapshot!(message("name = \"attention-lib\"\n", ""), @r#"
        /p/Sheaf.lock:10:1: `package.name` is missing; restore the file, or remove it and run `sheaf install`
         10 | version = "1.2.0"
            | ^
        "#);
    }
}
