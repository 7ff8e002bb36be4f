//! The runtime of a bundle.

use std::path::{Path, PathBuf};

use sheaf_target::Processor;

use crate::evaluator::{Failed, failed};
use crate::messages;

/// The platform of this `sheaf`.
pub const HOST: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    "linux-x86_64"
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    "linux-aarch64"
} else if cfg!(target_os = "macos") {
    "macos-aarch64"
} else {
    "windows-x86_64"
};

/// The platforms, each with the processor that all its machines have.
const PLATFORMS: [(&str, &str); 4] = [
    ("linux-x86_64", "x86-64-v3"),
    ("linux-aarch64", "aarch64"),
    ("macos-aarch64", "aarch64"),
    ("windows-x86_64", "x86-64-v3"),
];

/// The processor to compile for by default.
pub fn processor(platform: &str) -> Result<Processor, Failed> {
    let found = PLATFORMS.iter().find(|(name, _)| *name == platform);
    found.and_then(|(_, processor)| processor.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = PLATFORMS.iter().map(|(name, _)| *name).collect();
        messages::error(
            format!("there is no platform {platform}"),
            Some(&format!("one of {}", names.join(", "))),
        );
        Failed
    })
}

/// The file of the runtime for a platform.
pub fn find(platform: &str, given: Option<&Path>) -> Result<PathBuf, Failed> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let executable =
        std::env::current_exe().map_err(|error| failed(format!("this `sheaf` is not found: {error}")))?;
    let suffix = if platform.starts_with("windows") { ".exe" } else { "" };
    let mut names = vec![format!("sheaf-rt-{platform}{suffix}")];
    if platform == HOST {
        names.push(format!("sheaf-rt{suffix}"));
    }
    let found = names.iter().map(|name| executable.with_file_name(name)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let folder = executable.parent().unwrap_or(Path::new("")).display();
        let message = format!("there is no runtime for {platform}: {} is not in {folder}", names[0]);
        messages::error(
            message,
            Some("take it from the release of this version, or name one with --runtime FILE"),
        );
        Failed
    })
}

/// Fails unless the file is an executable of the platform, by its header.
pub fn check(path: &Path, platform: &str) -> Result<Vec<u8>, Failed> {
    let bytes =
        std::fs::read(path).map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))?;
    let found = platform_of(&bytes);
    if found == Some(platform) {
        return Ok(bytes);
    }
    let is = found.map_or("no executable that is known here".to_owned(), |found| format!("for {found}"));
    let message = format!("the runtime {} is {is}, and the platform is {platform}", path.display());
    messages::error(message, Some("name the runtime of that platform with --runtime FILE"));
    Err(Failed)
}

/// The platform of an executable: `e_machine` of ELF, `cputype` of Mach-O, `Machine` of PE.
fn platform_of(bytes: &[u8]) -> Option<&'static str> {
    let u16_at = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let u32_at = |at: usize| Some(u32::from(u16_at(at)?) | u32::from(u16_at(at + 2)?) << 16);
    match bytes.get(..4)? {
        b"\x7fELF" => match u16_at(18)? {
            62 => Some("linux-x86_64"),
            183 => Some("linux-aarch64"),
            _ => None,
        },
        b"\xcf\xfa\xed\xfe" => (u32_at(4)? == 0x0100_000c).then_some("macos-aarch64"),
        [b'M', b'Z', ..] => {
            let header = u32_at(0x3c)? as usize;
            (u16_at(header + 4)? == 0x8664).then_some("windows-x86_64")
        }
        _ => None,
    }
}
