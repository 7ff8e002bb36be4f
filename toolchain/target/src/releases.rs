//! The supported compilers: for each release and platform one wheel, identified by name, size and SHA-256.

mod digest;
mod table;

pub use digest::{ToolFile, compiler_digest, executor_files};
pub use table::RELEASES;

/// The wheels of the default release, which matches the statically linked runtime.
pub const COMPILER: [Release<'static>; 4] = [RELEASES[0], RELEASES[1], RELEASES[2], RELEASES[3]];

/// A system and processor with a published compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux with glibc 2.28 or newer on x86-64.
    LinuxX86_64,
    /// Linux with glibc 2.28 or newer on 64-bit Arm.
    LinuxAarch64,
    /// macOS 13 or newer, both processors.
    MacOsUniversal,
    /// Windows on x86-64.
    WindowsX86_64,
}

impl Platform {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] =
        [Self::LinuxX86_64, Self::LinuxAarch64, Self::MacOsUniversal, Self::WindowsX86_64];

    /// The platform this program runs on, or `None` if no compiler is published for it.
    pub fn host() -> Option<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Some(Self::LinuxX86_64),
            ("linux", "aarch64") => Some(Self::LinuxAarch64),
            ("macos", "x86_64" | "aarch64") => Some(Self::MacOsUniversal),
            ("windows", "x86_64") => Some(Self::WindowsX86_64),
            _ => None,
        }
    }

    /// The name used in folder names: system, hyphen, processor.
    pub fn name(self) -> &'static str {
        match self {
            Self::LinuxX86_64 => "linux-x86_64",
            Self::LinuxAarch64 => "linux-aarch64",
            Self::MacOsUniversal => "macos-universal",
            Self::WindowsX86_64 => "windows-x86_64",
        }
    }
}

/// A file extracted from the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its path in the wheel.
    pub path: &'a str,
    /// Its size in bytes, unpacked.
    pub size: u64,
    /// Its SHA-256, in 64 lower-case hexadecimal digits.
    pub sha256: &'a str,
}

impl<'a> Member<'a> {
    /// The last component of the path, the name of the installed file.
    pub fn file_name(&self) -> &'a str {
        file_name(self.path)
    }
}

/// One published compiler for one platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release<'a> {
    /// The version, as published.
    pub version: &'a str,
    /// The platform.
    pub platform: Platform,
    /// The wheel's file name, the same on every index.
    pub wheel: &'a str,
    /// The wheel's size in bytes.
    pub size: u64,
    /// The wheel's SHA-256, in 64 lower-case hexadecimal digits.
    pub sha256: &'a str,
    /// The compiler as a shared library.
    pub library: Member<'a>,
    /// The linker that the compiler runs for CPU code; a thin program around the library.
    pub linker: Member<'a>,
    /// The compiler's executable, `iree-compile`, for manual use and remote execution. It too is a thin program around
    /// the library, and finds it in its own folder.
    pub program: Member<'a>,
    /// The text with authors and licence.
    pub notice: Member<'a>,
    /// The supported backends, sorted.
    pub backends: &'a [&'a str],
    /// Major and minor version of the bytecode in its programs. A runtime loads those of its own major version, up to
    /// its own minor version.
    pub bytecode: (u16, u16),
}

impl Release<'static> {
    /// The default compiler for this machine, or `None` if there is no such wheel.
    pub fn host() -> Option<Self> {
        Self::of(Platform::host()?)
    }

    /// The default compiler for a platform; `None` only if the table lacks the platform.
    pub fn of(platform: Platform) -> Option<Self> {
        COMPILER.into_iter().find(|release| release.platform == platform)
    }

    /// The compiler of a version for a platform, if the table has it.
    pub fn find(version: &str, platform: Platform) -> Option<Self> {
        RELEASES.into_iter().find(|release| release.version == version && release.platform == platform)
    }

    /// The versions of the table, newest first.
    pub fn versions() -> Vec<&'static str> {
        let mut versions: Vec<_> = RELEASES.iter().map(|release| release.version).collect();
        versions.dedup();
        versions
    }
}

impl Release<'_> {
    /// The name of its installation folder.
    pub fn folder(&self) -> String {
        format!("iree-compiler-{}-{}", self.version, self.platform.name())
    }

    /// The extracted files, the library first.
    pub fn members(&self) -> [Member<'_>; 4] {
        [self.library, self.linker, self.program, self.notice]
    }

    /// Peak disk use of an installation in bytes: the wheel and the extracted files.
    pub fn space(&self) -> u64 {
        self.size + self.members().iter().map(|member| member.size).sum::<u64>()
    }

    /// True if the linked runtime loads its programs.
    pub fn is_loadable(&self) -> bool {
        is_loadable(self.bytecode)
    }
}

/// True if the linked runtime, that of the default release, loads bytecode of this version.
pub fn is_loadable((major, minor): (u16, u16)) -> bool {
    let (runtime_major, runtime_minor) = COMPILER[0].bytecode;
    major == runtime_major && minor <= runtime_minor
}

/// The last component of a path inside a wheel.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_has_one_well_formed_entry_for_each_platform() {
        assert!(Release::versions().len() >= 6);
        assert_eq!(RELEASES.len(), Release::versions().len() * Platform::ALL.len());
        for (number, release) in RELEASES.into_iter().enumerate() {
            assert_eq!(release.platform, Platform::ALL[number % Platform::ALL.len()]);
            let start = format!("iree_base_compiler-{}-cp312-", release.version);
            assert!(release.wheel.starts_with(&start), "{release:?}");
            for sha256 in release.members().iter().map(|member| member.sha256).chain([release.sha256]) {
                assert_eq!(hex::decode(sha256).expect("hexadecimal").len(), 32, "{release:?}");
                assert_eq!(sha256, sha256.to_lowercase());
            }
            assert!(release.size > 10_000_000 && release.library.size > release.size, "{release:?}");
            assert!(release.notice.path.contains(release.version));
            assert!(release.backends.contains(&"llvm-cpu") && release.backends.is_sorted());
            assert_eq!(Release::find(release.version, release.platform), Some(release));
        }
    }

    #[test]
    fn the_default_release_is_the_newest_and_loads() {
        assert_eq!(Release::versions()[0], COMPILER[0].version);
        assert!(
            COMPILER.iter().all(|release| release.version == COMPILER[0].version && release.is_loadable())
        );
        let (major, minor) = COMPILER[0].bytecode;
        for (bytecode, loads) in [
            ((major, minor), true),
            ((major, 0), true),
            ((major, minor + 1), false),
            ((major - 1, 0), false),
            ((major + 1, 0), false),
        ] {
            assert_eq!(is_loadable(bytecode), loads, "{bytecode:?}");
        }
    }

    #[test]
    fn the_folder_says_version_and_platform() {
        insta::assert_snapshot!(
            Release::of(Platform::LinuxX86_64).expect("in the table").folder(),
            @"iree-compiler-3.13.0-linux-x86_64"
        );
    }
}
