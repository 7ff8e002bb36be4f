//! Symbolic links that stay inside their tree.

use std::collections::HashMap;

use super::name::folded;

/// Maximum number of links in a chain, that of Linux.
const CHAIN: usize = 40;

/// The links of a tree, by folded path: on some file systems a link is found under other names too.
#[derive(Debug, Default)]
pub(super) struct Links {
    targets: HashMap<String, String>,
    /// Paths as written, in the order of insertion.
    paths: Vec<String>,
}

impl Links {
    pub(super) fn insert(&mut self, path: &str, target: &str) {
        self.targets.insert(folded(path), target.into());
        self.paths.push(path.into());
    }

    /// The first link that may lead out of the tree, with its target and the reason.
    pub(super) fn first_escape(&self) -> Option<(&str, &str, &'static str)> {
        self.paths.iter().find_map(|path| {
            let target = self.targets.get(&folded(path))?;
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let mut at: Vec<String> = folder.split('/').filter(|part| !part.is_empty()).map(folded).collect();
            let mut followed = 1;
            self.follow(&mut at, target, &mut followed)
                .err()
                .map(|reason| (path.as_str(), target.as_str(), reason))
        })
    }

    /// Moves `at`, a folded path, along `target`. Parts that do not exist count as folders.
    fn follow(&self, at: &mut Vec<String>, target: &str, followed: &mut usize) -> Result<(), &'static str> {
        if target.is_empty() {
            return Err("points to nothing");
        }
        if target.starts_with('/') {
            return Err("is absolute");
        }
        if target.contains(['\\', ':']) || target.chars().any(char::is_control) {
            return Err("has a character that means something else on Windows");
        }
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    at.pop().ok_or("leads out of the package")?;
                }
                part => {
                    at.push(folded(part));
                    if let Some(target) = self.targets.get(&at.join("/")) {
                        *followed += 1;
                        if *followed > CHAIN {
                            return Err("leads through too many other links, or in a circle");
                        }
                        at.pop();
                        self.follow(at, target, followed)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escape(links: &[(&str, &str)]) -> Option<String> {
        let mut all = Links::default();
        links.iter().for_each(|(path, target)| all.insert(path, target));
        all.first_escape().map(|(path, target, reason)| format!("{path} -> {target} {reason}"))
    }

    #[test]
    fn links_inside_are_taken() {
        for links in [
            &[("a", "b")][..],
            &[("a/b/c", "../../d")],
            &[("a", "."), ("b", "a/a/a/c")],
            &[("src/old.shf", "./new.shf")],
            &[("a", "missing/../b")],
            &[("l", "a/b"), ("m", "l/..")],
        ] {
            assert_eq!(escape(links), None);
        }
    }

    #[test]
    fn links_outside_are_refused() {
        insta::assert_snapshot!(
            [
                &[("a", "/etc/passwd")][..],
                &[("a", "..")],
                &[("a/b", "../../etc")],
                &[("a", "b/../../c")],
                &[("d/up", ".."), ("x", "d/up/../secret")],
                // The link is found by another name if case is ignored.
                &[("Dir/up", ".."), ("x", "dir/UP/../../secret")],
                &[("a", "b"), ("b", "a")],
                &[("a", "a/x")],
                &[("a", "")],
                &[("a", "C:x")],
                &[("a", "..\\..\\x")],
            ]
            .map(|links| escape(links).unwrap_or_default())
            .join("\n"),
            @r#"
            a -> /etc/passwd is absolute
            a -> .. leads out of the package
            a/b -> ../../etc leads out of the package
            a -> b/../../c leads out of the package
            x -> d/up/../secret leads out of the package
            x -> dir/UP/../../secret leads out of the package
            a -> b leads through too many other links, or in a circle
            a -> a/x leads through too many other links, or in a circle
            a ->  points to nothing
            a -> C:x has a character that means something else on Windows
            a -> ..\..\x has a character that means something else on Windows
            "#
        );
    }

    proptest::proptest! {
        /// The real file system agrees: what is followed from an accepted link lies inside.
        #[test]
        #[cfg(unix)]
        fn accepted_links_stay_inside(
            links in proptest::collection::vec(
                ("[ab]", proptest::collection::vec(
                    proptest::sample::select(vec!["..", ".", "a", "b", "d"]), 1..5)), 1..5)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap().join("outer/root");
            std::fs::create_dir_all(root.join("d")).unwrap();
            let mut all = Links::default();
            for (index, (name, target)) in links.iter().enumerate() {
                let path = if index % 2 == 0 { name.clone() } else { format!("d/{name}") };
                let target = target.join("/");
                if std::os::unix::fs::symlink(&target, root.join(&path)).is_ok() {
                    all.insert(&path, &target);
                }
            }
            if all.first_escape().is_none() {
                for path in &all.paths {
                    if let Ok(end) = root.join(path).canonicalize() {
                        proptest::prop_assert!(end.starts_with(&root), "{path} leads to {end:?}");
                    }
                }
            }
        }
    }
}
