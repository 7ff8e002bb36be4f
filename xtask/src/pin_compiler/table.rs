//! The table as Rust source, formatted as by rustfmt.

use sheaf_target::{Member, Release};

const HEAD: &str = "\
// Written by `cargo xtask pin-compiler`; run it to change the releases.

use super::{Member, Platform, Release};

/// The wheels of iree-base-compiler: the default release first, and each for all platforms.
";

/// The source of the table with these rows.
pub(super) fn source(releases: &[Release<'_>]) -> String {
    let rows: String = releases.iter().map(row).collect();
    format!("{HEAD}pub const RELEASES: [Release<'static>; {}] = [\n{rows}];\n", releases.len())
}

fn row(release: &Release<'_>) -> String {
    let Release { version, platform, wheel, size, sha256, backends, bytecode, .. } = release;
    let members = [
        member("library", &release.library),
        member("linker", &release.linker),
        member("program", &release.program),
        member("notice", &release.notice),
    ];
    format!(
        "    Release {{
        version: {version:?},
        platform: Platform::{platform:?},
        wheel: {wheel:?},
        size: {},
        sha256: {sha256:?},
{}        backends: &{backends:?},
        bytecode: {bytecode:?},
    }},
",
        grouped(*size),
        members.concat(),
    )
}

fn member(name: &str, Member { path, size, sha256 }: &Member<'_>) -> String {
    format!(
        "        {name}: Member {{
            path: {path:?},
            size: {},
            sha256: {sha256:?},
        }},
",
        grouped(*size),
    )
}

/// A number with an underscore before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("_")
}

#[cfg(test)]
mod tests {
    use sheaf_target::RELEASES;

    use super::*;

    #[test]
    fn what_is_committed_is_what_would_be_written() {
        let committed = std::fs::read_to_string(crate::pin_compiler::table_path()).expect("the table");
        assert!(source(&RELEASES) == committed, "the table was edited by hand, or the layout has changed");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 83_634_623].map(grouped), ["0", "999", "1_000", "83_634_623"]);
    }
}
