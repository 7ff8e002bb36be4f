//! Changes of the dependencies of a manifest: the rest of the file is kept as it is.

use std::path::Path;

use toml_edit::{InlineTable, Item, Table, value};

use crate::edit::{self, EditError};

/// A dependency to be written, in the order of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDependency {
    /// Keys and values besides the version.
    pub keys: Vec<(&'static str, String)>,
    /// The range of versions.
    pub version: Option<String>,
}

/// Adds a dependency to `table` of the manifest at `path`, or replaces it. Sorted tables stay sorted.
pub fn add_dependency(path: &Path, table: &str, name: &str, new: &NewDependency) -> Result<(), EditError> {
    let item = match (&new.version, &new.keys[..]) {
        (Some(version), []) => value(version),
        (version, keys) => {
            let mut inline = InlineTable::new();
            if let Some(version) = version {
                inline.insert("version", version.as_str().into());
            }
            inline.extend(keys.iter().map(|(key, text)| (*key, text.as_str())));
            value(inline)
        }
    };
    edit::edit(path, |document| {
        let entry = document.entry(table).or_insert_with(|| Item::Table(Table::new()));
        let Some(entry) = entry.as_table_like_mut() else { return };
        let keys: Vec<String> = entry.iter().map(|(key, _)| key.to_owned()).collect();
        if let Some(old) = entry.get_mut(name) {
            // The comment after the old value stays.
            let mut item = item;
            if let (Some(old), Some(new)) = (old.as_value(), item.as_value_mut()) {
                *new.decor_mut() = old.decor().clone();
            }
            *old = item;
            return;
        }
        entry.insert(name, item);
        if keys.is_sorted() {
            entry.sort_values();
        }
    })
}

/// Removes a dependency from `table` of the manifest at `path`, and the table if it is empty then. Returns true if it was
/// there.
pub fn remove_dependency(path: &Path, table: &str, name: &str) -> Result<bool, EditError> {
    let mut found = false;
    edit::edit(path, |document| {
        let Some(entry) = document.get_mut(table).and_then(Item::as_table_like_mut) else { return };
        found = entry.remove(name).is_some();
        if found && entry.is_empty() {
            document.remove(table);
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edited(text: &str, change: impl FnOnce(&Path)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Sheaf.toml");
        std::fs::write(&path, text).unwrap();
        change(&path);
        std::fs::read_to_string(&path).unwrap()
    }

    fn version(text: &str) -> NewDependency {
        NewDependency { version: Some(text.into()), ..NewDependency::default() }
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "# top\n[package]\nname = \"x\" # me\n\n[dependencies]\n# why\nalpha = \"1\" # so\nmaths = \"2\"\n\n[cache]\n";
        let added =
            edited(text, |path| add_dependency(path, "dependencies", "gamma", &version("0.3")).unwrap());
        assert_eq!(added, text.replace("maths", "gamma = \"0.3\"\nmaths"));
        let changed =
            edited(text, |path| add_dependency(path, "dependencies", "alpha", &version("1.5")).unwrap());
        assert_eq!(changed, text.replace("\"1\" # so", "\"1.5\" # so"));
        let git = NewDependency {
            keys: vec![("git", "https://git.example/g".into()), ("tag", "v1".into())],
            version: None,
        };
        let added = edited("[package]\nname = \"x\"\n", |path| {
            add_dependency(path, "dependencies", "g", &git).unwrap();
        });
        insta::assert_snapshot!(added, @r#"
        [package]
        name = "x"

        [dependencies]
        g = { git = "https://git.example/g", tag = "v1" }
        "#);
        let unsorted = text.replace("alpha", "zeta");
        let added =
            edited(&unsorted, |path| add_dependency(path, "dependencies", "gamma", &version("1")).unwrap());
        assert!(added.contains("maths = \"2\"\ngamma = \"1\"\n"), "{added}");
    }

    #[test]
    fn what_is_not_toml_is_not_changed() {
        let text = "[dependencies\n";
        let kept =
            edited(text, |path| assert!(add_dependency(path, "dependencies", "a", &version("1")).is_err()));
        assert_eq!(kept, text);
        let text = "[dependencies]\nb = \"1\"\n";
        assert_eq!(
            edited(text, |path| assert!(!remove_dependency(path, "dependencies", "a").unwrap())),
            text
        );
    }

    proptest! {
        #[test]
        fn added_and_removed_is_as_before(names in proptest::collection::btree_set("[a-z]{1,8}", 1..5), new in "[a-z]{9}") {
            let lines: String = names.iter().map(|name| format!("{name} = \"1\" # {name}\n")).collect();
            let text = format!("# x\n[package]\nname = \"p\"\n\n[dependencies]\n{lines}\n[cache]\n");
            let both = edited(&text, |path| {
                add_dependency(path, "dependencies", &new, &version("1")).unwrap();
                assert!(remove_dependency(path, "dependencies", &new).unwrap());
            });
            prop_assert_eq!(both, text);
        }
    }
}
