//! File names for compiled functions: `<function>[-<transform>][-<hash>].<device>.vmfb`.
//!
//! A function's name may hold any character (`zero?`, `nn/dense`, `<lambda>`). ASCII letters, digits, `-` and `_` stand
//! for themselves; each byte of anything else is percent-encoded, so `zero?` becomes `zero%3F`. The encoding is
//! reversible, and its names can neither leave their folder nor be hidden files. A very long name is cut, and then
//! always carries a hash.

use std::fmt::Write as _;

use crate::action::ActionKey;

/// Maximum length of the encoded function and transform, in bytes; file systems allow 255 in all.
const STEM_LIMIT: usize = 140;
/// Maximum length of the encoded device, in bytes.
const DEVICE_LIMIT: usize = 30;
/// Extension of every name.
const EXTENSION: &str = ".vmfb";

/// Candidate names for a compiled function, best first. The last one holds the whole key.
pub(crate) fn candidates(function: &str, transform: &str, device: &str, key: &ActionKey) -> Vec<String> {
    let mut stem = encode(function);
    if !transform.is_empty() {
        stem = format!("{stem}-{}", encode(transform));
    }
    let (stem, whole) = cut(&stem, STEM_LIMIT);
    let device = encode(device);
    let (device, _) = cut(&device, DEVICE_LIMIT);
    let plain = whole.then(|| format!("{stem}.{device}{EXTENSION}"));
    let hashed = [8, 16, 64].map(|digits| format!("{stem}-{}.{device}{EXTENSION}", key.0.short(digits)));
    plain.into_iter().chain(hashed).collect()
}

/// True if `name` is of this form: no other file is read or removed because a manifest lists it.
pub(crate) fn is_plain(name: &str) -> bool {
    name.len() <= 255
        && name.strip_suffix(EXTENSION).is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'))
        && name.bytes().all(|byte| is_literal(byte) || byte == b'%' || byte == b'.')
}

/// True if two names denote one file on a case-insensitive file system.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn encode(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_literal(byte) {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// At most the first `limit` bytes of an encoded name, and true if nothing was cut.
fn cut(encoded: &str, limit: usize) -> (&str, bool) {
    if encoded.len() <= limit {
        return (encoded, true);
    }
    let short = &encoded[..limit];
    // Never cuts inside a `%3F`.
    let end = short.rfind('%').filter(|percent| percent + 3 > limit).unwrap_or(limit);
    (&short[..end], false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use sheaf_foundation::Digest;

    fn key() -> ActionKey {
        ActionKey(Digest::of(b"key"))
    }

    fn plain_name(function: &str, transform: &str, device: &str) -> String {
        candidates(function, transform, device, &key()).swap_remove(0)
    }

    #[test]
    fn names_can_be_read() {
        assert_eq!(plain_name("forward", "", "cuda"), "forward.cuda.vmfb");
        assert_eq!(plain_name("train-step", "vag", "cpu"), "train-step-vag.cpu.vmfb");
        assert_eq!(plain_name("zero?", "", "cpu"), "zero%3F.cpu.vmfb");
        assert_eq!(plain_name("nn/*", "", "cpu"), "nn%2F%2A.cpu.vmfb");
        assert_eq!(plain_name("<lambda>", "", "cpu"), "%3Clambda%3E.cpu.vmfb");
        assert_eq!(plain_name("été", "", "cpu"), "%C3%A9t%C3%A9.cpu.vmfb");
        assert_eq!(plain_name("", "", "cpu"), "%.cpu.vmfb");
    }

    #[test]
    fn a_taken_name_gets_a_growing_hash() {
        let names = candidates("f", "vag", "cpu", &key());
        assert_eq!(names[1], "f-vag-2c70e12b.cpu.vmfb");
        assert_eq!(names[2], "f-vag-2c70e12b7a0646f9.cpu.vmfb");
        assert_eq!(names[3], format!("f-vag-{}.cpu.vmfb", key()));
    }

    #[test]
    fn names_stay_in_their_folder() {
        for function in
            ["..", ".", "../../etc/passwd", "/etc/passwd", "..\\x", "C:\\x", "a\0b", "%2e%2e", "-"]
        {
            assert!(is_plain(&plain_name(function, "", "cpu")), "{function}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            ".vmfb",
            "..vmfb",
            ".hidden.cpu.vmfb",
            "../f.cpu.vmfb",
            "/f.cpu.vmfb",
            "a/f.cpu.vmfb",
            "a\\f.vmfb",
            "C:f.vmfb",
            "manifest.json",
            "f.cpu.vmfb\0",
            "f.cpu.vmfb/",
            "f.cpu.vmfb/..",
            "f f.vmfb",
            "é.vmfb",
        ] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(!is_plain(&format!("{}.vmfb", "f".repeat(255))));
    }

    #[test]
    fn long_names_are_cut_and_hashed() {
        let names = candidates(&"f".repeat(1000), "", &"d".repeat(1000), &key());
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| is_plain(name)));
        assert_eq!(cut("ab%3F", 4), ("ab", false));
        assert_eq!(cut("ab%3Fc", 5), ("ab%3F", false));
        assert_eq!(cut("ab%3F", 5), ("ab%3F", true));
    }

    proptest! {
        #[test]
        fn encoding_can_be_undone(name in ".{0,20}") {
            let mut bytes = Vec::new();
            let encoded = encode(&name);
            let mut rest = encoded.as_bytes();
            while let Some((&byte, after)) = rest.split_first() {
                if byte == b'%' && after.len() >= 2 {
                    bytes.extend(hex::decode(&after[..2]).unwrap());
                    rest = &after[2..];
                } else {
                    bytes.extend((byte != b'%').then_some(byte));
                    rest = after;
                }
            }
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), name);
        }

        #[test]
        fn every_function_gets_a_plain_name(function in ".{0,300}", transform in ".{0,30}", device in ".{0,80}") {
            for name in candidates(&function, &transform, &device, &key()) {
                prop_assert!(is_plain(&name), "{}", name);
            }
        }
    }
}
