//! Paths of the files of an index.

use sheaf_project::package_name;

/// The file of a package in an index: folders by its first letters, so that none has too many entries. `None` if no
/// package can be called so.
///
/// ```text
/// a              1/a
/// nn             2/nn
/// ode            3/o/ode
/// attention-lib  at/te/attention-lib
/// ```
pub fn package_path(name: &str) -> Option<String> {
    package_name(name).ok()?;
    Some(match name.len() {
        length @ 1..=2 => format!("{length}/{name}"),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    })
}

/// The package of a file in an index; the reverse of [`package_path`].
pub(super) fn package_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    (package_path(name)? == path).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_has_one_file() {
        for (name, path) in
            [("a", "1/a"), ("ab", "2/ab"), ("ode", "3/o/ode"), ("attention-lib", "at/te/attention-lib")]
        {
            assert_eq!(package_path(name).as_deref(), Some(path));
            assert_eq!(package_of(path), Some(name));
        }
        for name in ["", "../x", "A", "con", "nn", "é"] {
            assert_eq!(package_path(name), None, "{name}");
        }
        for path in ["config.toml", "at/te/optim-extra", "attention-lib", "", "README.md"] {
            assert_eq!(package_of(path), None, "{path}");
        }
    }
}
