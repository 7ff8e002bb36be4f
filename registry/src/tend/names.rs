//! Names of packages that users would take for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{Problem, path_of};
use crate::index::{CONFIG_NAME, package_path};

/// New packages whose names differ from another only by `-` and `_`. `known` are the packages of before.
pub(super) fn alike<'a>(known: &[String], now: impl Iterator<Item = &'a String>) -> Vec<Problem> {
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in now {
        groups.entry(name.replace('_', "-")).or_default().push(name);
    }
    let mut problems = Vec::new();
    for names in groups.into_values().filter(|names| names.len() > 1) {
        for name in names.iter().filter(|name| !known.contains(*name)) {
            let other = names.iter().find(|other| *other != name).unwrap_or(name);
            let cause = format!(
                "{name} is new, and differs from {other} by - and _ alone: users would take one for the other; give it another name"
            );
            problems.push(Problem { file: path_of(name), cause });
        }
    }
    problems
}

/// Files whose path is that of a package but for capital letters, in a registry's folder. Users cannot ask for such a package, and
/// on some systems its file is that of another.
pub fn misnamed(folder: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut open = vec![(folder.to_path_buf(), String::new(), 0)];
    while let Some((folder, path, depth)) = open.pop() {
        for item in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = item.file_name().to_string_lossy().into_owned();
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let is_folder = item.file_type().is_ok_and(|kind| kind.is_dir());
            // A package is two folders below the root at most.
            if is_folder && depth < 2 {
                open.push((item.path(), path, depth + 1));
            } else if !is_folder && path != CONFIG_NAME && is_misnamed(&name, &path) {
                let small = name.to_lowercase();
                let cause = format!("packages have names of small letters; call it {small}, if that is free");
                problems.push(Problem { file: path, cause });
            }
        }
    }
    problems
}

fn is_misnamed(name: &str, path: &str) -> bool {
    let (name, small) = (name.to_lowercase(), path.to_lowercase());
    small != path && package_path(&name).is_some_and(|right| right == small)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_told_for_the_new_package() {
        let all = ["attention-lib", "attention_lib", "maths", "a-b_c", "a_b-c"].map(str::to_owned);
        let known = ["attention-lib", "maths"].map(str::to_owned);
        let causes: Vec<_> = alike(&known, all.iter()).into_iter().map(|p| p.cause).collect();
        insta::assert_snapshot!(causes.join("\n"), @"
        a-b_c is new, and differs from a_b-c by - and _ alone: users would take one for the other; give it another name
        a_b-c is new, and differs from a-b_c by - and _ alone: users would take one for the other; give it another name
        attention_lib is new, and differs from attention-lib by - and _ alone: users would take one for the other; give it another name
        ");
        assert_eq!(alike(&all, all.iter()), [], "what is there already stays");
    }

    #[test]
    fn a_name_with_capital_letters_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["Ma/th/Maths", "ma/th/maths", "3/O/ode", "README.md", ".github/workflows/CI", "docs/A"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut files: Vec<_> = misnamed(folder.path()).into_iter().map(|problem| problem.file).collect();
        files.sort();
        // On some systems two of them are one.
        assert!(files == ["3/O/ode", "Ma/th/Maths"] || files == ["3/O/ode"], "{files:?}");
    }
}
