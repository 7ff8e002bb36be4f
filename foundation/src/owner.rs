//! Ownership checks: a compiled program is native code, and settings start programs, so files of other users are
//! ignored.
//!
//! A file is trusted if its owner is
//!
//! - the user: the effective user id, and after `sudo` that of `SUDO_UID` too;
//! - root;
//! - the overflow user id, inside a user namespace that does not map root: root's files appear to belong to it there;
//!
//! or if it is in a folder that the user has named, in `safe-directories` of `config.toml` or in
//! `SHEAF_SAFE_DIRECTORIES`, a list like `PATH`. There `*` stands for all folders, as in git's `safe.directory`.
//!
//! On systems without Unix users every file is trusted.

use std::fmt;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// The environment variable that names folders in which every file is trusted.
pub const SAFE_VARIABLE: &str = "SHEAF_SAFE_DIRECTORIES";

/// The trusted user ids, and the folders in which all are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// User ids.
    users: Vec<u32>,
    /// The folders that the user has named, with their links resolved.
    safe: Vec<PathBuf>,
    everywhere: bool,
}

/// A file that is not used because the user does not own it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The file or folder.
    pub path: PathBuf,
    why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// Owned by this user.
    Owner(u32),
    /// A link, perhaps to another user's file.
    Link,
}

/// Facts about the users of a process.
#[derive(Debug, Clone, Copy)]
struct Process<'a> {
    effective: u32,
    /// `SUDO_UID`.
    sudo: Option<&'a str>,
    /// `/proc/self/uid_map`.
    map: Option<&'a str>,
    /// `/proc/sys/kernel/overflowuid`.
    overflow: Option<&'a str>,
}

impl Owners {
    /// The owners for this process, with the folders of `SHEAF_SAFE_DIRECTORIES` and those `named` in the user's
    /// configuration; `environment` looks up a variable.
    pub fn of_process(environment: impl Fn(&str) -> Option<String>, named: &[PathBuf]) -> Self {
        let mut owners = Self { users: users(&environment), ..Self::default() };
        let listed = environment(SAFE_VARIABLE).unwrap_or_default();
        for folder in std::env::split_paths(&listed).chain(named.iter().cloned()) {
            owners.name_safe(&folder);
        }
        owners
    }

    /// Trusts every file in a folder. Ignores missing folders and relative paths.
    fn name_safe(&mut self, folder: &Path) {
        if folder == Path::new("*") {
            self.everywhere = true;
        }
        // Git's notation is accepted, too.
        let folder = if folder.ends_with("*") { folder.parent().unwrap_or(folder) } else { folder };
        if folder.is_absolute()
            && let Ok(folder) = fs::canonicalize(folder)
        {
            self.safe.push(folder);
        }
    }

    /// True if `path` is in a folder that the user has named. For a link its own location counts, not its target's.
    pub fn is_safe(&self, path: &Path) -> bool {
        if self.everywhere || self.safe.is_empty() {
            return self.everywhere;
        }
        let Ok(path) = std::path::absolute(path) else { return false };
        let found = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        let path =
            found.zip(path.file_name()).map_or_else(|| path.clone(), |(folder, name)| folder.join(name));
        self.safe.iter().any(|safe| path.starts_with(safe))
    }

    /// The reason for not trusting the file or folder at `path` with this `metadata`; `None` if it is trusted.
    pub fn foreign(&self, path: &Path, metadata: &Metadata) -> Option<Foreign> {
        let owner = owner(metadata).filter(|owner| !self.users.contains(owner))?;
        (!self.is_safe(path)).then(|| Foreign { path: path.into(), why: Why::Owner(owner) })
    }

    /// Like [`foreign`](Self::foreign) for a folder, whose `metadata` was read without following links: links are not
    /// trusted.
    pub fn foreign_folder(&self, path: &Path, metadata: &Metadata) -> Option<Foreign> {
        if cfg!(unix) && metadata.is_symlink() && !self.is_safe(path) {
            return Some(Foreign { path: path.into(), why: Why::Link });
        }
        self.foreign(path, metadata)
    }

    /// The reason for not trusting the file at `path` and its link target; `None` if they are trusted or do not exist.
    pub fn foreign_at(&self, path: &Path) -> Option<Foreign> {
        let there = [fs::symlink_metadata(path), fs::metadata(path)];
        there.into_iter().flatten().find_map(|metadata| self.foreign(path, &metadata))
    }
}

impl Foreign {
    /// The folder to name to have it trusted.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The owner for messages, or that it is a link.
    pub fn owner(&self) -> String {
        match self.why {
            Why::Owner(owner) => format!("belongs to {}", user(owner)),
            Why::Link => "is a link".into(),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, owner, folder) = (self.path.display(), self.owner(), self.folder().display());
        let instead = match self.why {
            Why::Owner(_) => "",
            Why::Link => "make it a folder, or, ",
        };
        write!(
            f,
            "{path} {owner} and is passed over: {instead}if you trust {folder}, name it in `safe-directories` of your \
             config.toml or in {SAFE_VARIABLE}"
        )
    }
}

/// The trusted user ids.
fn trusted(process: Process<'_>) -> Vec<u32> {
    const ROOT: u32 = 0;
    let mut users = vec![process.effective, ROOT];
    if process.effective == ROOT {
        users.extend(process.sudo.and_then(|sudo| sudo.trim().parse::<u32>().ok()));
    }
    if process.map.is_some_and(|map| !maps_root(map)) {
        users.extend(process.overflow.and_then(|overflow| overflow.trim().parse::<u32>().ok()));
    }
    users
}

/// True if a user namespace with this `uid_map` maps root, its own or the machine's: then files of the overflow user
/// belong to other users. An unreadable map counts as mapping root.
fn maps_root(map: &str) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|number| number.parse().ok()).collect();
        match numbers[..] {
            [inside, outside, count] => count > 0 && (inside == 0 || outside == 0),
            _ => true,
        }
    })
}

#[cfg(unix)]
fn users(environment: &impl Fn(&str) -> Option<String>) -> Vec<u32> {
    trusted(Process {
        effective: nix::unistd::Uid::effective().as_raw(),
        sudo: environment("SUDO_UID").as_deref(),
        map: fs::read_to_string("/proc/self/uid_map").ok().as_deref(),
        overflow: fs::read_to_string("/proc/sys/kernel/overflowuid").ok().as_deref(),
    })
}

#[cfg(not(unix))]
fn users(_: &impl Fn(&str) -> Option<String>) -> Vec<u32> {
    Vec::new()
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere files have no such owner")]
fn owner(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(metadata))
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<u32> {
    None
}

/// A user for messages: the name, if there is one, and the id.
#[cfg(unix)]
fn user(id: u32) -> String {
    let known = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(id)).ok().flatten();
    known.map_or_else(|| format!("user {id}"), |known| format!("{} (user {id})", known.name))
}

#[cfg(not(unix))]
fn user(id: u32) -> String {
    format!("user {id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Process<'_> = Process { effective: 1000, sudo: None, map: None, overflow: Some("65534\n") };

    #[test]
    fn the_user_and_root_count() {
        assert_eq!(trusted(NOBODY), [1000, 0]);
        assert_eq!(trusted(Process { effective: 0, ..NOBODY }), [0, 0]);
    }

    #[test]
    fn after_sudo_the_one_who_asked_counts_too() {
        let sudo = Some("1000");
        assert_eq!(trusted(Process { effective: 0, sudo, ..NOBODY }), [0, 0, 1000]);
        assert_eq!(trusted(Process { effective: 1, sudo, ..NOBODY }), [1, 0], "anybody may set a variable");
        for wrong in ["", "-1", "ada", "99999999999"] {
            assert_eq!(trusted(Process { effective: 0, sudo: Some(wrong), ..NOBODY }), [0, 0], "{wrong}");
        }
    }

    #[test]
    fn the_overflow_user_counts_where_root_is_not_mapped() {
        let with = |map| trusted(Process { map: Some(map), ..NOBODY });
        assert_eq!(with("      1000       1000          1\n"), [1000, 0, 65534]);
        for map in [
            "         0          0 4294967295\n",
            "         0       1000          1\n",
            "      1000          0          1\n",
            "1000 1000 1\n0 100000 65536\n",
            "what is this\n",
        ] {
            assert_eq!(with(map), [1000, 0], "{map}");
        }
        let none = Process { map: Some("1000 1000 1"), overflow: None, ..NOBODY };
        assert_eq!(trusted(none), [1000, 0]);
    }

    #[cfg(unix)]
    #[test]
    fn files_of_others_count_in_folders_that_the_user_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = root.join("p/Sheaf.toml");
        fs::create_dir(root.join("p")).unwrap();
        fs::write(&path, "").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let with = |listed: String| Owners {
            users: Vec::new(),
            ..Owners::of_process(move |name| (name == SAFE_VARIABLE).then(|| listed.clone()), &[])
        };
        let counts = |listed: String| with(listed).foreign(&path, &metadata).is_none();
        assert!(!counts(String::new()));
        assert!(!counts(root.join("q").display().to_string()));
        assert!(!counts("p".into()), "not named from the root");
        assert!(!counts(format!("{}/p/Sheaf", root.display())), "not a folder above");
        assert!(counts(root.display().to_string()));
        assert!(counts(format!("/nowhere:{}/p/", root.display())));
        assert!(counts(format!("{}/*", root.display())));
        assert!(counts("*".into()));
        let configured =
            Owners { users: Vec::new(), ..Owners::of_process(|_| None, std::slice::from_ref(&root)) };
        assert!(configured.foreign(&path, &metadata).is_none());
        assert!(Owners::of_process(|_| None, &[]).foreign(&path, &metadata).is_none(), "the user's own");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_no_folder_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("__sheaf__");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let metadata = fs::symlink_metadata(&link).unwrap();
        let owners = Owners::of_process(|_| None, &[]);
        let foreign = owners.foreign_folder(&link, &metadata).unwrap().to_string();
        insta::assert_snapshot!(foreign.replace(&*folder.path().to_string_lossy(), "~"), @"~/__sheaf__ is a link and is passed over: make it a folder, or, if you trust ~, name it in `safe-directories` of your config.toml or in SHEAF_SAFE_DIRECTORIES");
        let named = Owners::of_process(|_| None, &[folder.path().to_owned()]);
        assert_eq!(named.foreign_folder(&link, &metadata), None);
    }

    #[test]
    fn the_message_names_owner_and_remedy() {
        let foreign = Foreign { path: "/tmp/Sheaf.toml".into(), why: Why::Owner(3_999_999_999) };
        insta::assert_snapshot!(foreign, @"/tmp/Sheaf.toml belongs to user 3999999999 and is passed over: if you trust /tmp, name it in `safe-directories` of your config.toml or in SHEAF_SAFE_DIRECTORIES");
    }
}
