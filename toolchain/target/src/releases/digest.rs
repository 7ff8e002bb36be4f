//! Digest of a whole release, part of action keys, and its files for remote execution.
//!
//! The digest is the SHA-256 of a text in UTF-8 whose lines end with a line feed. The first is `sheaf compiler 1`, the
//! second `version` and the version; then comes a line for each platform of the release, in the order of
//! [`Platform::ALL`]: its name, the wheel's file name, its size in bytes in decimal, and its SHA-256. Within a line there
//! is one space between words.
//!
//! ```text
//! sheaf compiler 1
//! version 3.13.0
//! linux-x86_64 iree_base_compiler-3.13.0-cp312-abi3-...-x86_64.whl 83634623 d09d2ebd8955d3ee...
//! ...
//! ```
//!
//! Hence the same release has the same digest on every platform, and another set of wheels under the same version has
//! another.

use sha2::{Digest, Sha256};

use super::{Platform, RELEASES, Release};

/// A file of the compiler for Linux on x86-64, for remote execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFile {
    /// Its path relative to the folder that holds all of them; a single component.
    pub path: &'static str,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
    /// True if it is executable.
    pub executable: bool,
}

/// The digest of a release over all platforms, or `None` if the table does not have the version. The hashed text is a
/// line `sheaf compiler 1`, a line `version 3.13.0`, and for each platform a line with the platform, the wheel's file
/// name, size and SHA-256, separated by single spaces; every line ends with a line feed.
pub fn compiler_digest(version: &str) -> Option<[u8; 32]> {
    let rows: Vec<_> = RELEASES.iter().filter(|release| release.version == version).collect();
    if rows.is_empty() { None } else { Some(Sha256::digest(text(version, &rows)).into()) }
}

/// The hashed text.
fn text(version: &str, rows: &[&Release<'_>]) -> String {
    let mut text = format!("sheaf compiler 1\nversion {version}\n");
    for platform in Platform::ALL {
        for row in rows.iter().filter(|row| row.platform == platform) {
            text += &format!("{} {} {} {}\n", platform.name(), row.wheel, row.size, row.sha256);
        }
    }
    text
}

/// The files for compilation on Linux on x86-64: `iree-compile`, the library and the linker, which must be in one
/// folder. Their installed copies have the same names in the folder of the toolchain. `None` if
/// the table does not have the version.
pub fn executor_files(version: &str) -> Option<Vec<ToolFile>> {
    let release = Release::find(version, Platform::LinuxX86_64)?;
    let files = [(release.program, true), (release.library, false), (release.linker, true)];
    let files = files.into_iter().map(|(member, executable)| {
        let sha256 = hex::decode(member.sha256).ok()?.try_into().ok()?;
        Some(ToolFile { path: member.file_name(), sha256, size: member.size, executable })
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::releases::COMPILER;

    #[test]
    fn the_digest_is_that_of_the_documented_text() {
        let version = COMPILER[0].version;
        let rows: Vec<_> = COMPILER.iter().collect();
        let text = text(version, &rows);
        insta::assert_snapshot!(text);
        assert_eq!(compiler_digest(version), Some(Sha256::digest(text).into()));
        // Part of keys: must not change.
        insta::assert_snapshot!(hex::encode(compiler_digest(version).expect("in the table")));
    }

    #[test]
    fn every_release_has_a_digest_of_its_own() {
        let mut digests: Vec<_> = Release::versions().into_iter().map(compiler_digest).collect();
        assert!(digests.iter().all(Option::is_some));
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), Release::versions().len());
        assert_eq!(compiler_digest("0.0.1"), None);
    }

    #[test]
    fn an_executor_gets_three_files_with_plain_names() {
        let files = executor_files(COMPILER[0].version).expect("in the table");
        let names: Vec<_> = files.iter().map(|file| (file.path, file.executable)).collect();
        assert_eq!(names, [("iree-compile", true), ("libIREECompiler.so", false), ("iree-lld", true)]);
        assert!(files.iter().all(|file| file.size > 0));
        assert_eq!(executor_files("0.0.1"), None);
    }
}
