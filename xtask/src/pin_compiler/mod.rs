//! Inspects the compiler's wheels, and writes the table.

mod table;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use sheaf_target::{Member, Platform, Release};

use crate::Result;
use wheel::{Found, Wheel};

/// The wheels of these versions, for all platforms, as the table's source.
pub(crate) fn pin_compiler(versions: &[String], notes: Option<&Path>) -> Result<()> {
    let mut rows = Vec::new();
    for version in versions {
        let mut bytecode = None;
        for platform in Platform::ALL {
            let found = noted(&Wheel { version, platform }, notes)?;
            // The platform that can run comes first, and the compilers of the others have the same sources.
            bytecode = bytecode.or(found.bytecode);
            let bytecode = bytecode.ok_or("the version of the bytecode is not known")?;
            println!("{}: {} {} {bytecode:?}", found.wheel, found.sha256, found.backends.join(" "));
            rows.push((version, platform, found, bytecode));
        }
    }
    let backends: Vec<Vec<&str>> =
        rows.iter().map(|(_, _, found, _)| found.backends.iter().map(String::as_str).collect()).collect();
    let releases = rows.iter().zip(&backends).map(|((version, platform, found, bytecode), backends)| {
        let [library, linker, program, notice] = found.members.each_ref().map(|member| Member {
            path: &member.path,
            size: member.size,
            sha256: &member.sha256,
        });
        let (wheel, size, sha256) = (found.wheel.as_str(), found.size, found.sha256.as_str());
        let (platform, bytecode) = (*platform, *bytecode);
        Release {
            version,
            platform,
            wheel,
            size,
            sha256,
            library,
            linker,
            program,
            notice,
            backends,
            bytecode,
        }
    });
    let source = table::source(&releases.collect::<Vec<_>>());
    let path = table_path();
    fs::write(&path, source).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// The result for a wheel, from the notes if an earlier run recorded it.
fn noted(wheel: &Wheel<'_>, notes: Option<&Path>) -> Result<Found> {
    let Some(notes) = notes else { return wheel.inspect() };
    let note = notes.join(format!("{}-{}.json", wheel.version, wheel.platform.name()));
    if let Ok(text) = fs::read(&note) {
        return serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", note.display()).into());
    }
    let found = wheel.inspect()?;
    fs::create_dir_all(notes)?;
    fs::write(&note, serde_json::to_vec_pretty(&found)?)?;
    Ok(found)
}

/// The generated file.
fn table_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("toolchain").join("target/src/releases/table.rs")
}
