//! Look-up of installed compilers.

use std::fs;
use std::path::{Path, PathBuf};

use sheaf_target::{Member, Release};

/// The folder in the data folder that holds one folder for each installed compiler.
pub(crate) const TOOLCHAINS: &str = "toolchains";

/// The file that is written once the rest of an installation is on disk.
pub(crate) const MARKER: &str = "complete";

/// An installed compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The version, as published.
    pub version: String,
    /// The folder that holds the rest.
    pub folder: PathBuf,
    /// The compiler as a shared library.
    pub library: PathBuf,
    /// The linker, run by the compiler.
    pub linker: PathBuf,
    /// The compiler's executable, `iree-compile`.
    pub program: PathBuf,
}

/// The pinned compiler for this machine, if its installation under the data folder `home` is complete.
pub fn locate(home: &Path) -> Option<Toolchain> {
    locate_release(&Release::host()?, home)
}

/// A given release, if its installation under the data folder `home` is complete: its marker must match this wheel, and
/// the files must have their sizes. [`verify`](crate::verify) reads them.
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

/// The installation folder of a release under the data folder `home`, existing or not.
pub fn folder(release: &Release<'_>, home: &Path) -> PathBuf {
    home.join(TOOLCHAINS).join(release.folder())
}

/// The contents of a complete installation's marker: the wheel and the hash of every file.
pub(crate) fn marker_text(release: &Release<'_>) -> String {
    let mut text = format!("Installed by Sheaf from\n{}\nsha256 {}\n", release.wheel, release.sha256);
    for member in release.members() {
        text += &format!("{} {} {}\n", member.sha256, member.size, member.file_name());
    }
    text
}
