//! Output of `sheaf toolchain`.

use std::path::Path;

use serde_json::{Value, json};
use sheaf_target::{COMPILER, Platform, Release};
use sheaf_toolchain::{Difference, Toolchain};

use crate::messages;

/// A release in the list.
pub(super) struct Row {
    pub(super) release: Release<'static>,
    /// True if it is used here.
    pub(super) chosen: bool,
    pub(super) installed: bool,
}

/// All releases of the table.
pub(super) fn list(platform: Platform, rows: &[Row], json: bool) {
    if json {
        let releases: Vec<_> = rows.iter().map(in_json).collect();
        println!("{:#}", json!({ "platform": platform.name(), "releases": releases }));
        return;
    }
    for row in rows {
        let mut notes = Vec::new();
        if row.installed {
            notes.push("installed".to_owned());
        }
        if row.chosen {
            notes.push("used here".to_owned());
        }
        if !row.release.is_loadable() {
            let ((major, minor), (runtime, _)) = (row.release.bytecode, COMPILER[0].bytecode);
            notes.push(format!("not for this Sheaf: bytecode {major}.{minor} instead of {runtime}"));
        }
        println!("{}", format!("{:8} {}", row.release.version, notes.join(", ")).trim_end());
    }
}

fn in_json(row: &Row) -> Value {
    let release = &row.release;
    json!({
        "version": release.version,
        "chosen": row.chosen,
        "installed": row.installed,
        "loadable": release.is_loadable(),
        "bytecode": format!("{}.{}", release.bytecode.0, release.bytecode.1),
        "backends": release.backends,
        "file": release.wheel,
        "size": release.size,
        "sha256": release.sha256,
    })
}

/// A release that is there now.
pub(super) fn installed(release: &Release<'_>, toolchain: &Toolchain) {
    println!("the compiler {} is in {}", release.version, toolchain.folder.display());
}

/// The release that is used here. `origin` is the source of that choice.
pub(super) fn which(release: &Release<'_>, toolchain: &Toolchain, origin: Option<&str>, json: bool) {
    if json {
        let report = json!({
            "version": release.version,
            "origin": origin,
            "folder": toolchain.folder.display().to_string(),
            "library": toolchain.library.display().to_string(),
            "linker": toolchain.linker.display().to_string(),
            "program": toolchain.program.display().to_string(),
            "sha256": release.sha256,
        });
        println!("{report:#}");
    } else {
        println!("{}", toolchain.program.display());
    }
}

/// A release that is not there, with a remedy.
pub(super) fn not_installed(release: &Release<'_>) {
    let version = release.version;
    let help = format!("run `sheaf toolchain install {version}`");
    messages::error(format!("the compiler {version} is not installed"), Some(&help));
}

/// The result of a verification; `None`, not even differences, for a compiler that is not installed.
pub(super) fn verified(release: &Release<'_>, folder: &Path, differences: Option<&[Difference]>, json: bool) {
    if json {
        let found = differences.unwrap_or_default().iter().map(
            |difference| json!({ "path": difference.path.display().to_string(), "cause": difference.cause }),
        );
        let report = json!({
            "version": release.version,
            "folder": folder.display().to_string(),
            "installed": differences.is_some(),
            "intact": differences.is_some_and(<[Difference]>::is_empty),
            "differences": found.collect::<Vec<_>>(),
        });
        println!("{report:#}");
        return;
    }
    let Some(differences) = differences else { return not_installed(release) };
    if differences.is_empty() {
        println!("the compiler {} is as it was published: {}", release.version, folder.display());
        return;
    }
    for difference in differences {
        println!("{difference}");
    }
    let version = release.version;
    let help = format!("run `sheaf toolchain remove {version} && sheaf toolchain install {version}`");
    messages::error(format!("the compiler {version} is damaged"), Some(&help));
}
