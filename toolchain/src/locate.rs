//! Installed compilers: where they are and when they are to be trusted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::releases::{Member, Release};

/// The folder in the data folder that holds one folder for each installed compiler.
pub(crate) const TOOLCHAINS: &str = "toolchains";

/// The file that is written when everything else of an installation is on the disk.
pub(crate) const MARKER: &str = "complete";

/// A compiler that is ready for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The version, as published.
    pub version: String,
    /// The folder that holds everything else.
    pub folder: PathBuf,
    /// The compiler as a shared library.
    pub library: PathBuf,
    /// The linker that the compiler starts.
    pub linker: PathBuf,
    /// The compiler as a program, `iree-compile`.
    pub program: PathBuf,
}

/// The pinned compiler for this machine, if it is installed completely under the data folder `home`.
pub fn locate(home: &Path) -> Option<Toolchain> {
    locate_release(&Release::host()?, home)
}

/// A given release, if it is installed completely under the data folder `home`: its marker must be the one that an
/// installation of this very wheel wrote, and the files must have their sizes. [`verify`](crate::verify) reads them.
pub fn locate_release(release: &Release<'_>, home: &Path) -> Option<Toolchain> {
    let folder = folder(release, home);
    let marker = fs::read_to_string(folder.join(MARKER)).ok()?;
    let size = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    let path = |member: Member<'_>| folder.join(member.file_name());
    let complete = marker == marker_text(release)
        && release.members().into_iter().all(|member| size(&path(member)) == Some(member.size));
    complete.then(|| Toolchain {
        version: release.version.to_owned(),
        library: path(release.library),
        linker: path(release.linker),
        program: path(release.program),
        folder: folder.clone(),
    })
}

/// Where a release is installed under the data folder `home`, or would be.
pub fn folder(release: &Release<'_>, home: &Path) -> PathBuf {
    home.join(TOOLCHAINS).join(release.folder())
}

/// What the marker of a complete installation says: the wheel and the hash of every file.
pub(crate) fn marker_text(release: &Release<'_>) -> String {
    let mut text = format!("Installed by Sheaf from\n{}\nsha256 {}\n", release.wheel, release.sha256);
    for member in release.members() {
        text += &format!("{} {} {}\n", member.sha256, member.size, member.file_name());
    }
    text
}
