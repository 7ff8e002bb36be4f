//! `Sheaf.toml`: the manifest of a package.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use semver::{Version, VersionReq};

use crate::dependencies::{Dependency, registries, version_range};
use crate::edit::{self, EditError};
use crate::error::{FileError, Warning};
use crate::location::SourceLocation;
use crate::name::package_name;
use crate::resolver::ResolverTable;
use crate::spanned_toml::{self, Document, Found, Table, Text};
use crate::tables::{CacheTable, ToolchainTable};
use crate::workspace::WorkspaceTable;
use sheaf_foundation::Owners;

/// The program of `sheaf run` if the package names none.
pub const DEFAULT_MAIN: &str = "src/main.shf";

/// A parsed and checked `Sheaf.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct SheafToml {
    /// The file.
    pub path: PathBuf,
    /// `[package]`.
    pub package: Package,
    /// `[toolchain]`.
    pub toolchain: ToolchainTable,
    /// `[cache]`.
    pub cache: CacheTable,
    /// `[fmt]`.
    pub fmt: FmtTable,
    /// `[dependencies]`.
    pub dependencies: Vec<Dependency>,
    /// `[dev-dependencies]`: for the package's own tests and examples.
    pub dev_dependencies: Vec<Dependency>,
    /// `[registries]`: addresses of indexes by name.
    pub registries: BTreeMap<String, String>,
    /// `[resolver]`.
    pub resolver: ResolverTable,
    /// `[workspace]`.
    pub workspace: Option<WorkspaceTable>,
    /// Ineffective keys of the file.
    pub warnings: Vec<Warning>,
}

/// `[fmt]`: the layout options of `sheaf fmt`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FmtTable {
    /// Maximum columns of a line.
    pub width: Option<usize>,
}

/// The tables of the file.
pub(crate) const TABLES: &[&str] = &[
    "package",
    "toolchain",
    "cache",
    "fmt",
    "dependencies",
    "dev-dependencies",
    "registries",
    "resolver",
    "workspace",
];

/// The keys of `[package]`.
pub(crate) const PACKAGE: &[&str] =
    &["name", "version", "description", "license", "licence", "authors", "repository", "sheaf", "main"];

/// The keys of `[fmt]`.
pub(crate) const FMT: &[&str] = &["width"];

/// Range of permitted widths.
pub(crate) const WIDTHS: RangeInclusive<i64> = 20..=1000;

/// `[package]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// The package's name.
    pub name: Option<String>,
    /// The package's version.
    pub version: Option<Version>,
    /// One sentence about it.
    pub description: Option<String>,
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// Its authors.
    pub authors: Vec<String>,
    /// The address of its git repository.
    pub repository: Option<String>,
    /// The versions of Sheaf that it works with.
    pub sheaf: Option<VersionReq>,
    /// Location of that value.
    pub sheaf_location: Option<SourceLocation>,
    /// The program of `sheaf run`, relative to the package; see [`DEFAULT_MAIN`].
    pub main: Option<PathBuf>,
}

impl SheafToml {
    /// Reads the file at `path`, if one of the `owners` owns it.
    pub fn read(path: &Path, owners: &Owners) -> Result<Found<Self>, FileError> {
        spanned_toml::read_owned(path, owners)?.and(|text| Self::parse(path, &text))
    }

    /// Parses `text`, the contents of `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let document = Document::parse(path, text)?;
        let root = document.root(TABLES);
        let package = Package::read(&root)?;
        let toolchain = ToolchainTable::read(&document, &root)?;
        let cache = CacheTable::read(&root)?;
        let fmt = root.table("fmt", FMT)?;
        let width = fmt.integer("width", &WIDTHS, "a number of columns from 20 to 1000")?;
        let fmt = FmtTable { width: width.and_then(|width| usize::try_from(width).ok()) };
        let own = package.name.as_deref();
        let dependencies = Dependency::read_all(&root, "dependencies", own)?;
        let dev_dependencies = Dependency::read_all(&root, "dev-dependencies", own)?;
        let registries = registries(&root)?;
        let resolver = ResolverTable::read(&root)?;
        let workspace = WorkspaceTable::read(&root)?;
        let warnings = document.into_warnings();
        Ok(Self {
            path: path.into(),
            package,
            toolchain,
            cache,
            fmt,
            dependencies,
            dev_dependencies,
            registries,
            resolver,
            workspace,
            warnings,
        })
    }
}

impl SheafToml {
    /// Refuses the package if it does not work with this version of Sheaf.
    pub fn check_sheaf(&self, sheaf: &Version) -> Result<(), FileError> {
        match (&self.package.sheaf, &self.package.sheaf_location) {
            (Some(range), Some(location)) if !works_with(range, sheaf) => Err(FileError::Refused {
                location: location.clone().into(),
                cause: format!("this package works with Sheaf {range}, and this is Sheaf {sheaf}"),
                remedy: "install a Sheaf that it works with, or change `sheaf`",
            }),
            _ => Ok(()),
        }
    }
}

/// Pins the release of the compiler in the `Sheaf.toml` at `path`; the rest of the file is kept as it is.
pub fn pin_toolchain(path: &Path, release: &str) -> Result<(), EditError> {
    edit::edit(path, |document| {
        edit::in_table(document, "toolchain", |table| edit::set(table, "iree", release));
    })
}

impl Package {
    fn read(root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("package", PACKAGE)?;
        let main = table.string("main")?.map(|text| match PathBuf::from(&text.value) {
            path if is_inside(&path) => Ok(path),
            _ => Err(text.wrong("the path of a program inside the package, such as \"src/main.shf\"")),
        });
        let name = table.string("name")?;
        if let Some(text) = &name {
            package_name(&text.value)
                .map_err(|error| text.refused(error.to_string(), "give it another name"))?;
        }
        let sheaf = table.string("sheaf")?;
        let license =
            table.string("license")?.map_or_else(|| table.string("licence"), |text| Ok(Some(text)))?;
        Ok(Self {
            name: name.map(|text| text.value),
            version: table.string("version")?.map(|text| version(&text)).transpose()?,
            description: table.string("description")?.map(|text| text.value),
            license: license.map(|text| text.value),
            authors: table.strings("authors")?.unwrap_or_default(),
            repository: table.string("repository")?.map(|text| text.value),
            sheaf: sheaf.as_ref().map(version_range).transpose()?,
            sheaf_location: sheaf.as_ref().map(Text::location),
            main: main.transpose()?,
        })
    }
}

/// True if a package that works with `range` works with this version of Sheaf. A pre-release of Sheaf works with the same as its
/// release.
pub fn works_with(range: &VersionReq, sheaf: &Version) -> bool {
    range.matches(sheaf) || range.matches(&Version::new(sheaf.major, sheaf.minor, sheaf.patch))
}

/// A version of a package.
fn version(text: &Text<'_, '_>) -> Result<Version, FileError> {
    let version: Version = text.value.parse().map_err(|error: semver::Error| {
        text.refused(format!("{:?} is no version: {error}", text.value), "write one such as \"0.1.0\"")
    })?;
    if version.build.is_empty() {
        return Ok(version);
    }
    Err(text.refused("a version here has no part after a +".into(), "remove it"))
}

/// True if `path`, joined to a folder, is inside that folder.
fn is_inside(path: &Path) -> bool {
    path.file_name().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Mode;

    fn parse(text: &str) -> Result<SheafToml, FileError> {
        SheafToml::parse(Path::new("/p/Sheaf.toml"), text)
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    fn warnings(text: &str) -> String {
        let warnings = parse(text).unwrap().warnings;
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn everything_can_be_said() {
        let manifest = parse(
            r#"
            [package]
            name = "digits"
            version = "0.1.0"
            main = "train.shf"

            [toolchain]
            iree = "3.13.0"
            index = "../wheels"
            mirrors = ["https://mirror.example", "wheels"]

            [cache]
            remote = ["https://cache.example/sheaf"]
            mode = "read-only"
            trusted-keys = ["ed25519:abc"]

            [fmt]
            width = 80

            [dependencies]
            vision = { git = "https://git.example/vision", tag = "v1" }
            plots = "1.2"
            mine = { path = "../mine", version = "0.3" }
            sums = { package = "maths", version = ">=1, <3", registry = "team" }

            [dev-dependencies]
            data-sets = "0.1"

            [registries]
            default = "https://registry.example/index"
            team = { index = "sparse+https://team.example/index" }

            [resolver]
            exclude-newer = "7 days"
            "#,
        )
        .unwrap();
        assert_eq!(manifest.package.name.as_deref(), Some("digits"));
        assert_eq!(manifest.package.version, Some(Version::new(0, 1, 0)));
        assert_eq!(manifest.package.main.as_deref(), Some(Path::new("train.shf")));
        assert_eq!(manifest.toolchain.index.as_deref(), Some("/p/../wheels"));
        assert_eq!(manifest.toolchain.iree.as_deref(), Some("3.13.0"));
        let mirrors = Some(vec!["https://mirror.example".to_owned(), "/p/wheels".to_owned()]);
        assert_eq!(manifest.toolchain.mirrors, mirrors);
        assert_eq!(manifest.cache.remote, Some(vec!["https://cache.example/sheaf".to_owned()]));
        assert_eq!(manifest.cache.mode, Some(Mode::ReadOnly));
        assert_eq!(manifest.cache.trusted_keys, Some(vec!["ed25519:abc".to_owned()]));
        assert_eq!(manifest.fmt.width, Some(80));
        let shown = |d: &Dependency| format!("{} {} {} {:?}", d.name, d.package, d.range, d.source);
        insta::assert_snapshot!(manifest.dependencies.iter().map(shown).collect::<Vec<_>>().join("\n"), @r#"
        vision vision * Git { url: "https://git.example/vision", reference: Tag("v1") }
        plots plots ^1.2 Registry { name: None }
        mine mine ^0.3 Path { folder: "../mine" }
        sums maths >=1, <3 Registry { name: Some("team") }
        "#);
        assert_eq!(manifest.dependencies[1].location.line, 22);
        assert_eq!(manifest.dev_dependencies[0].name, "data-sets");
        assert_eq!(manifest.registries["team"], "sparse+https://team.example/index");
        assert_eq!(manifest.resolver.exclude_newer, crate::resolver::Newer::parse("1 week"));
        assert_eq!(manifest.warnings, []);
    }

    #[test]
    fn a_pin_changes_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Sheaf.toml");
        for (before, after) in [
            (
                "[package] # me\nname = \"x\"\n",
                "[package] # me\nname = \"x\"\n\n[toolchain]\niree = \"3.12.0\"\n",
            ),
            (
                "[toolchain]\n# why\niree = \"3.13.0\" # so\nmirrors = []\n[fmt]\n",
                "[toolchain]\n# why\niree = \"3.12.0\" # so\nmirrors = []\n[fmt]\n",
            ),
        ] {
            std::fs::write(&path, before).unwrap();
            pin_toolchain(&path, "3.12.0").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
        std::fs::write(&path, "[package\n").unwrap();
        assert!(pin_toolchain(&path, "3.12.0").unwrap_err().to_string().contains("is not TOML"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[package\n");
    }

    #[test]
    fn nothing_has_to_be_said() {
        let manifest = parse("").unwrap();
        assert_eq!(manifest.package, Package::default());
        assert_eq!(manifest.toolchain, ToolchainTable::default());
        assert_eq!(manifest.cache, CacheTable::default());
        assert!(manifest.dependencies.is_empty());
    }

    #[test]
    fn addresses_are_not_taken_for_folders() {
        for (written, meant) in [
            ("https://mirror.example/simple", "https://mirror.example/simple"),
            ("file:///wheels", "file:///wheels"),
            ("/wheels", "/wheels"),
            ("wheels", "/p/wheels"),
            ("wheels/a:b", "/p/wheels/a:b"),
        ] {
            let manifest = parse(&format!("toolchain.index = \"{written}\"")).unwrap();
            assert_eq!(manifest.toolchain.index.as_deref(), Some(meant));
        }
    }

    #[test]
    fn unknown_keys_are_warnings_with_their_place() {
        insta::assert_snapshot!(warnings("[package]\nname = \"x\"\n\tnmae = \"y\"\n[cache]\nremotes = []\n[tools]\n"), @r#"
        /p/Sheaf.toml:3:2: `nmae` is not known in [package] and does nothing; did you mean `name`? known are `name`, `version`, `description`, `license`, `licence`, `authors`, `repository`, `sheaf`, `main`
         3 | 	nmae = "y"
           | 	^^^^
        /p/Sheaf.toml:5:1: `remotes` is not known in [cache] and does nothing; did you mean `remote`? known are `remote`, `mode`, `trusted-keys`, `revoked-keys`, `credential-helper`, `max-size`, `executor`
         5 | remotes = []
           | ^^^^^^^
        /p/Sheaf.toml:6:2: `tools` is not known here and does nothing; known are `package`, `toolchain`, `cache`, `fmt`, `dependencies`, `dev-dependencies`, `registries`, `resolver`, `workspace`
         6 | [tools]
           |  ^^^^^
        "#);
        insta::assert_snapshot!(warnings("toolchain = { index = \"x\", version = 3 }"), @r#"
        /p/Sheaf.toml:1:28: `version` is not known in [toolchain] and does nothing; known are `iree`, `index`, `mirrors`
         1 | toolchain = { index = "x", version = 3 }
           |                            ^^^^^^^
        "#);
    }

    #[test]
    fn what_is_not_toml_is_shown() {
        insta::assert_snapshot!(message("[package\nname = \"x\""), @"
        /p/Sheaf.toml:1:9: this is not TOML: unclosed table, expected `]`; correct this line
         1 | [package
           |         ^
        ");
        insta::assert_snapshot!(message("[package]\nname = x\n"), @"
        /p/Sheaf.toml:2:8: this is not TOML: string values must be quoted, expected literal string; correct this line
         2 | name = x
           |        ^
        ");
        insta::assert_snapshot!(message("[package]\nname = \"a\"\nname = \"b\"\n"), @r#"
        /p/Sheaf.toml:3:1: this is not TOML: duplicate key; correct this line
         3 | name = "b"
           | ^^^^
        "#);
        insta::assert_snapshot!(message("name = \"never closed\n"), @r#"
        /p/Sheaf.toml:1:21: this is not TOML: invalid basic string, expected `"`; correct this line
         1 | name = "never closed
           |                     ^
        "#);
    }

    #[test]
    fn wrong_types_are_shown() {
        insta::assert_snapshot!(message("[package]\nversion = 1.0\n"), @r#"
        /p/Sheaf.toml:2:11: `package.version` is a float, but it must be a string, such as "text"
         2 | version = 1.0
           |           ^^^
        "#);
        insta::assert_snapshot!(message("cache = true"), @"
        /p/Sheaf.toml:1:9: `cache` is a boolean, but it must be a table, such as [cache]
         1 | cache = true
           |         ^^^^
        ");
        insta::assert_snapshot!(message("[cache]\nremote = \"https://cache.example\"\n"), @r#"
        /p/Sheaf.toml:2:10: `cache.remote` is a string, but it must be a list of strings, such as ["text"]
         2 | remote = "https://cache.example"
           |          ^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message("[cache]\ntrusted-keys = [\"a\", 2]\n"), @r#"
        /p/Sheaf.toml:2:22: `cache.trusted-keys[1]` is an integer, but it must be a string, such as "text"
         2 | trusted-keys = ["a", 2]
           |                      ^
        "#);
        insta::assert_snapshot!(message("dependencies = []"), @"
        /p/Sheaf.toml:1:16: `dependencies` is a list, but it must be a table, such as [dependencies]
         1 | dependencies = []
           |                ^^
        ");
        insta::assert_snapshot!(message("[[package]]\nname = \"x\"\n"), @"
        /p/Sheaf.toml:1:1: `package` is a list, but it must be a table, such as [package]
         1 | [[package]]
           | ^^^^^^^^^^^
        ");
    }

    #[test]
    fn wrong_dependencies_are_shown() {
        let dependency =
            |line: &str| message(&format!("[package]\nname = \"mine\"\n[dependencies]\n{line}\n"));
        insta::assert_snapshot!(dependency("nn = \"1\""), @r#"
        /p/Sheaf.toml:4:1: nn is a module of the standard library; correct the name
         4 | nn = "1"
           | ^^
        "#);
        insta::assert_snapshot!(dependency("\"../x\" = \"1\""), @r#"
        /p/Sheaf.toml:4:1: `../x` is no name for a package: it has `.`; small letters, digits, - and _ make one, a letter first; correct the name
         4 | "../x" = "1"
           | ^^^^^^
        "#);
        insta::assert_snapshot!(dependency("\"m\u{430}ths\" = \"1\""), @r#"
        /p/Sheaf.toml:4:1: `mаths` is no name for a package: it has `а` (U+0430); small letters, digits, - and _ make one, a letter first; correct the name
         4 | "mаths" = "1"
           | ^^^^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = \"one\""), @r#"
        /p/Sheaf.toml:4:9: "one" is no range of versions: unexpected character 'o' while parsing major version number; write one such as "1.2" or ">=1.2, <3"
         4 | maths = "one"
           |         ^^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = \">2, <1\""), @r#"
        /p/Sheaf.toml:4:9: no version can match ">2, <1"; its lower bound must be below its upper bound
         4 | maths = ">2, <1"
           |         ^^^^^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = { git = \"https://g.example\", path = \"../m\" }"), @r#"
        /p/Sheaf.toml:4:1: maths has several origins; keep one of `git`, `path` and `registry`
         4 | maths = { git = "https://g.example", path = "../m" }
           | ^^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = { git = \"https://g.example\", tag = \"a\", branch = \"b\" }"), @r#"
        /p/Sheaf.toml:4:44: a dependency has one of `tag`, `branch` and `rev`; remove the others
         4 | maths = { git = "https://g.example", tag = "a", branch = "b" }
           |                                            ^^^
        "#);
        insta::assert_snapshot!(dependency("maths = { git = \"https://g.example\", rev = \"abc\" }"), @r#"
        /p/Sheaf.toml:4:44: `dependencies.maths.rev` is "abc", but it must be a commit in full: 40 hexadecimal digits
         4 | maths = { git = "https://g.example", rev = "abc" }
           |                                            ^^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = {}"), @"
        /p/Sheaf.toml:4:1: maths has no origin; give a `version` of a registry, a `git` repository, or a `path`
         4 | maths = {}
           | ^^^^^
        ");
        insta::assert_snapshot!(dependency("a-b = \"1\"\na_b = \"1\""), @r#"
        /p/Sheaf.toml:5:1: a-b and a_b are too alike; give one of them another name, and its real name as `package`
         5 | a_b = "1"
           | ^^^
        "#);
        insta::assert_snapshot!(dependency("mine = \"1\""), @r#"
        /p/Sheaf.toml:4:1: mine depends on itself; remove this line
         4 | mine = "1"
           | ^^^^
        "#);
        insta::assert_snapshot!(dependency("maths = 1"), @"
        /p/Sheaf.toml:4:9: `dependencies.maths` is an integer, but it must be a table, such as [dependencies.maths]
         4 | maths = 1
           |         ^
        ");
        insta::assert_snapshot!(message("[registries]\nteam = \"https://ada:pw@team.example\"\n"), @r#"
        /p/Sheaf.toml:2:8: the address of a registry has no password; remove it, and run `sheaf login HOST`
         2 | team = "***************************"
           |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message("[resolver]\nexclude-newer = \"soon\"\n"), @r#"
        /p/Sheaf.toml:2:17: `resolver.exclude-newer` is "soon", but it must be an age such as "7 days", or a time such as "2026-11-01T00:00:00Z"
         2 | exclude-newer = "soon"
           |                 ^^^^^^
        "#);
        insta::assert_snapshot!(warnings("[dependencies]\nmaths = { verison = \"1\", path = \"../m\" }\n"), @r#"
        /p/Sheaf.toml:2:11: `verison` is not known in [dependencies.maths] and does nothing; did you mean `version`? known are `version`, `git`, `tag`, `branch`, `rev`, `path`, `registry`, `package`, `workspace`
         2 | maths = { verison = "1", path = "../m" }
           |           ^^^^^^^
        "#);
        for empty in
            ["<1, >1", "=1.2, =1.3", "^1, ^2", "~1.2, >=1.3", "<0.0.0", ">=2, <2", "1.*, 2.*", ">1, <2"]
        {
            assert!(dependency(&format!("maths = \"{empty}\"")).contains("no version can match"), "{empty}");
        }
        for range in ["^1, <1.5", ">=1, <=1", ">1.2, <2", "*", "=1", "~1.2, >=1.2.3", ">=1.0.0-a, <1.0.0"] {
            assert!(parse(&format!("[dependencies]\nmaths = \"{range}\"\n")).is_ok(), "{range}");
        }
    }

    #[test]
    fn wrong_values_are_shown() {
        insta::assert_snapshot!(message("[cache]\nmode = \"write\"\n"), @r#"
        /p/Sheaf.toml:2:8: `cache.mode` is "write", but it must be "read-write" or "read-only"
         2 | mode = "write"
           |        ^^^^^^^
        "#);
        insta::assert_snapshot!(message("[package]\nmain = \"../main.shf\"\n"), @r#"
        /p/Sheaf.toml:2:8: `package.main` is "../main.shf", but it must be the path of a program inside the package, such as "src/main.shf"
         2 | main = "../main.shf"
           |        ^^^^^^^^^^^^^
        "#);
        for release in ["", "3", "3.13.", "latest", "3.13.0rc1", "../x"] {
            let parsed = parse(&format!("toolchain.iree = \"{release}\""));
            assert_eq!(parsed.is_ok(), release == "3", "{release}");
        }
        for width in ["19", "1001", "-1", "99999999999999999999"] {
            assert!(
                message(&format!("[fmt]\nwidth = {width}\n"))
                    .contains(&format!("`fmt.width` is \"{width}\""))
            );
        }
        assert!(
            message("[fmt]\nwidth = \"wide\"\n")
                .contains("is a string, but it must be an integer, such as 100")
        );
        for main in ["", "/main.shf", "src/..", "."] {
            assert!(parse(&format!("[package]\nmain = \"{main}\"\n")).is_err(), "{main}");
        }
    }

    #[test]
    fn files_are_absent_or_read_or_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Sheaf.toml");
        let shown = |error: FileError| error.to_string().replace(&*folder.path().to_string_lossy(), "~");
        let read = || SheafToml::read(&path, &Owners::of_process(|_| None, &[]));
        assert_eq!(read().unwrap(), Found::Absent);
        std::fs::write(&path, "[package]\nname = \"x\"\n").unwrap();
        let Found::File(manifest) = read().unwrap() else { panic!("a file") };
        assert_eq!(manifest.package.name.as_deref(), Some("x"));
        std::fs::write(&path, b"[package]\nname = \"caf\xe9\"\n").unwrap();
        insta::assert_snapshot!(shown(read().unwrap_err()), @r#"
        ~/Sheaf.toml:2:12: this is not TOML: a character is not written in UTF-8; correct this line
         2 | name = "caf�"
           |            ^
        "#);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        insta::assert_snapshot!(shown(read().unwrap_err()), @"~/Sheaf.toml cannot be read: Is a directory (os error 21); make it a file that you may read, or move it away");
    }
}
