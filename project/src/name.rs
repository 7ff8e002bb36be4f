//! Names of packages.

/// Maximum length of a name.
const LONGEST: usize = 64;

/// Names of the standard library's modules, those to come included, and of its parts.
const STANDARD: [&str; 14] = [
    "nn",
    "optim",
    "text",
    "data",
    "generate",
    "linalg",
    "distributions",
    "training",
    "solvers",
    "fourier",
    "core",
    "macros",
    "misc",
    "std",
];

/// Names of devices on Windows, where no folder can be called so.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
    "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Defect of a package's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No characters.
    #[error("a package needs a name")]
    Empty,
    /// A character that names do not have. Only ASCII has no characters that look alike.
    #[error(
        "`{}` is no name for a package: it has {}; small letters, digits, - and _ make one, a letter first",
        .0.escape_debug(),
        shown(*.1)
    )]
    Character(String, char),
    /// Too many characters.
    #[error("a package's name has at most {LONGEST} characters, and this has {0}")]
    Long(usize),
    /// A name of the standard library.
    #[error("{0} is a module of the standard library")]
    Standard(String),
    /// A name that Windows keeps for devices.
    #[error("{0} is a device on Windows, where no folder can be called so")]
    Device(String),
}

fn shown(character: char) -> String {
    if character.is_ascii_graphic() {
        format!("`{character}`")
    } else {
        format!("`{}` (U+{:04X})", character.escape_debug(), u32::from(character))
    }
}

/// Checks that a package can be called so: the name is a word in `(use name)`, a folder everywhere, and like no other.
pub fn package_name(name: &str) -> Result<(), NameError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let first = name.chars().next().ok_or(NameError::Empty)?;
    let wrong = if first.is_ascii_lowercase() { name.chars().find(|c| !is_plain(*c)) } else { Some(first) };
    if let Some(wrong) = wrong {
        return Err(NameError::Character(name.into(), wrong));
    }
    if name.len() > LONGEST {
        return Err(NameError::Long(name.len()));
    }
    if STANDARD.contains(&name) {
        return Err(NameError::Standard(name.into()));
    }
    if DEVICES.contains(&name) {
        return Err(NameError::Device(name.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_everywhere() {
        for name in ["a", "attention-lib", "optim_extra", "x2"] {
            assert_eq!(package_name(name), Ok(()), "{name}");
        }
        let message = |name: &str| package_name(name).unwrap_err().to_string();
        insta::assert_snapshot!(message(""), @"a package needs a name");
        insta::assert_snapshot!(message("../x"), @"`../x` is no name for a package: it has `.`; small letters, digits, - and _ make one, a letter first");
        insta::assert_snapshot!(message("2x"), @"`2x` is no name for a package: it has `2`; small letters, digits, - and _ make one, a letter first");
        insta::assert_snapshot!(message("\u{430}ttention"), @"`аttention` is no name for a package: it has `а` (U+0430); small letters, digits, - and _ make one, a letter first");
        insta::assert_snapshot!(message("con"), @"con is a device on Windows, where no folder can be called so");
        insta::assert_snapshot!(message("nn"), @"nn is a module of the standard library");
        insta::assert_snapshot!(message(&"a".repeat(65)), @"a package's name has at most 64 characters, and this has 65");
    }
}
