//! Names of files that mean the same file on every system.

use gix::bstr::ByteSlice;
use gix::validate::path::component;
use unicode_normalization::UnicodeNormalization;

/// Maximum length of a name in bytes, that of the common file systems.
const LENGTH: usize = 255;

/// The text of `name`, if every system can have a file of this name; the reason otherwise.
pub(super) fn portable(name: &[u8], is_link: bool) -> Result<&str, &'static str> {
    use component::Error;
    let text = name.to_str().map_err(|_| "is not UTF-8")?;
    if name.len() > LENGTH {
        return Err("is longer than 255 bytes");
    }
    if text.chars().any(char::is_control) {
        return Err("has a control character");
    }
    if text.chars().any(is_invisible) {
        return Err("has an invisible character, which some file systems ignore");
    }
    let mode = is_link.then_some(component::Mode::Symlink);
    component(name.as_bstr(), mode, component::Options::default()).map_err(|error| match error {
        Error::Empty => "is empty",
        Error::PathSeparator => "has a separator of paths",
        Error::Relative => "means another folder",
        Error::DotGitDir => "means git's own folder",
        Error::SymlinkedGitModules => "means git's own file",
        Error::WindowsReservedName => "means a device on Windows",
        Error::WindowsPathPrefix | Error::WindowsIllegalCharacter => {
            "has a character that Windows does not allow there"
        }
        _ => "is not allowed",
    })?;
    // Windows reads these digits as 1, 2 and 3.
    let plain = text.replace('¹', "1").replace('²', "2").replace('³', "3");
    if gix::validate::path::component_is_windows_device(plain.as_str().into()) {
        return Err("means a device on Windows");
    }
    Ok(text)
}

/// The key under which file systems may look a name up: equal for names that differ by case or normal form only.
///
/// Lower case of upper case stands for case folding, of which it is a superset: `ß` and `ss` are equal here.
pub(super) fn folded(name: &str) -> String {
    name.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

/// Zero-width characters and controls of direction: HFS+ ignores most of them, people see none.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_names_everywhere_are_refused() {
        let refused: &[&[u8]] = &[
            b"",
            b".",
            b"..",
            b"a/b",
            b"a\\b",
            b"/",
            b".git",
            b".GIT",
            b".Git ",
            b".git.",
            b"git~1",
            b"GIT~1",
            b"a:b",
            b"c:",
            b"a\nb",
            b"a\0",
            b"a\x1b[2J",
            b"\x7f",
            b"CON",
            b"con.txt",
            b"nul",
            b"AUX.shf",
            b"com1",
            b"LPT9.c",
            b"a.",
            b"a ",
            b"a?",
            b"a*",
            b"<a>",
            b"a|b",
            b"\"a\"",
            b"\xff",
            b"CONIN$",
        ];
        for name in refused {
            assert!(portable(name, false).is_err(), "{:?}", name.as_bstr());
        }
        for name in [".g\u{200c}it", "a\u{202e}b", "COM¹", "\u{feff}a", &"a".repeat(256)] {
            assert!(portable(name.as_bytes(), false).is_err(), "{name:?}");
        }
        assert!(portable(b".gitmodules", true).is_err());
    }

    #[test]
    fn ordinary_names_are_taken() {
        let long = "a".repeat(255);
        for name in [
            "a",
            ".gitignore",
            ".gitmodules",
            "lib.shf",
            "été",
            "你好.txt",
            "__sheaf__",
            "a b",
            "console",
            &long,
        ] {
            assert_eq!(portable(name.as_bytes(), false), Ok(name));
        }
    }

    #[test]
    fn names_fold_by_case_and_normal_form() {
        for (a, b) in
            [("README", "readme"), ("é", "e\u{301}"), ("É", "é"), ("ſ", "S"), ("Å", "\u{212b}"), ("ς", "Σ")]
        {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        for (a, b) in [("a", "b"), ("e", "é"), ("a-b", "a_b")] {
            assert_ne!(folded(a), folded(b), "{a} {b}");
        }
    }
}
