//! The runtime of a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use sheaf_bundle::Part;
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

/// The runtime for a platform that has the `parts`, or what is `given`: the smallest of the files `sheaf-rt*` beside this `sheaf`.
pub fn find(platform: &str, parts: &BTreeMap<Part, String>, given: Option<&Path>) -> Result<Vec<u8>, Failed> {
    let lacks = |runtime: &[u8]| {
        let linked = Part::linked(runtime);
        parts.keys().copied().find(|part| !linked.contains(part))
    };
    if let Some(path) = given {
        let bytes = check(path, platform)?;
        return match lacks(&bytes) {
            None => Ok(bytes),
            Some(part) => {
                let message = format!("the runtime {} is built without `{}`", path.display(), part.name());
                Err(without(&message, part, &parts[&part]))
            }
        };
    }
    let executable =
        std::env::current_exe().map_err(|error| failed(format!("this `sheaf` is not found: {error}")))?;
    let folder = executable.parent().unwrap_or(Path::new(""));
    let mut runtimes = Vec::new();
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().starts_with("sheaf-rt")
            && let Ok(bytes) = std::fs::read(file.path())
            && platform_of(&bytes) == Some(platform)
        {
            runtimes.push(bytes);
        }
    }
    runtimes.sort_by_key(Vec::len);
    let Some(lacking) = runtimes.first().and_then(|smallest| lacks(smallest)) else {
        return runtimes.into_iter().next().ok_or_else(|| {
            let message =
                format!("there is no runtime for {platform}: no sheaf-rt of it is in {}", folder.display());
            let help = "take it from the release of this version, or name one with --runtime FILE";
            messages::error(message, Some(help));
            Failed
        });
    };
    runtimes.into_iter().find(|runtime| lacks(runtime).is_none()).ok_or_else(|| {
        let message =
            format!("no runtime for {platform} in {} is built with `{}`", folder.display(), lacking.name());
        without(&message, lacking, &parts[&lacking])
    })
}

fn without(message: &str, part: Part, place: &str) -> Failed {
    let all = Part::ALL.map(Part::name).join(",");
    let help = format!(
        "{} is used at {place}; build a runtime with `make runtime FEATURES={all}`, and name it with --runtime FILE",
        part.builtin()
    );
    messages::error(message, Some(&help));
    Failed
}

/// The file, if it is an executable of the platform by its header.
fn check(path: &Path, platform: &str) -> Result<Vec<u8>, Failed> {
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
