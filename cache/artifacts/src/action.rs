//! The inputs of one compilation, and the cache key derived from them.
//!
//! # The key's encoding
//!
//! The key is the SHA-256 of a byte string that any program can build:
//!
//! - A *number* is 8 bytes, little endian, unsigned.
//! - A *text* is the number of its bytes in UTF-8, followed by those bytes.
//! - A *list* is the number of its items, followed by each item as a text.
//!
//! The byte string is the text `sheaf action`, the number [`KEY_VERSION`], and then the eight parts below, in this
//! order. Each part is its name as a text, the number of bytes of its value, and the value.
//!
//! | name       | value |
//! |------------|-------|
//! | `program`  | the `StableHLO` text without source locations ([`strip_locations`]), in UTF-8 |
//! | `compiler` | the digest of the compiler's release, 64 hexadecimal digits in lower case |
//! | `flags`    | a list of the flags of every attempt, in the order of the command line; the number of alternatives; each alternative's further flags as a list |
//! | `device`   | `cpu`, `cuda`, `vulkan` or `metal` |
//! | `cpu`      | a list: the architecture, then the CPU's features sorted by their bytes; empty when no CPU is aimed at |
//! | `donation` | a list of `ARGUMENT->OUTPUT`, both decimal, sorted by the numbers |
//! | `debug`    | `on` or `off` |
//! | `rejected` | a list of the digests of [`Action::rejected`], 64 hexadecimal digits each, in their order |
//!
//! Lengths come first everywhere, so no two different actions have one byte string: a byte moved from the end of a
//! part to the beginning of the next changes the key.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::locations::strip_locations;
use crate::tuning::TuningFlag;
use sheaf_foundation::{Digest, DigestError};

/// The version of the key's encoding, itself part of the key.
///
/// Incremented whenever [`Action::key`] takes in something new, leaves something out or writes something differently,
/// and whenever the same action must compile to something else. Otherwise a program compiled by an earlier Sheaf is
/// taken for one that this Sheaf would compile.
pub const KEY_VERSION: u64 = 6;

/// All inputs that determine the compiler's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The `StableHLO` text; source locations in it do not count.
    pub program: String,
    /// The compiler's release, such as `3.13.0`: for people, since it does not count.
    pub compiler: String,
    /// The digest of that release, the same on every platform.
    pub compiler_digest: Digest,
    /// The compiler's flags, in the order of the command line, common to all alternatives.
    pub flags: Vec<String>,
    /// Sets of further flags in the order in which they are tried: the program is that of the first set with which the
    /// compiler succeeds. Empty if `flags` is the complete list.
    pub alternatives: Vec<Vec<String>>,
    /// The flags of a tuning record, which are the first of all alternatives; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<BTreeSet<TuningFlag>>,
    /// The target device kind: `cpu`, `cuda`, `vulkan` or `metal`.
    pub device: String,
    /// The target CPU, if the device is one.
    pub cpu: Option<Cpu>,
    /// The arguments whose buffers become outputs.
    pub donation: BTreeSet<Donation>,
    /// True if debug information is kept in the compiled program.
    pub debug: bool,
    /// The programs ([`Action::program_digest`]) for the same function that were preferred to this one and rejected, in order: the
    /// compiler failed on them or took too long, a trial did, or the machine that compiled could try none. A release that
    /// emits one of them differently tries it again instead of finding this one.
    pub rejected: Vec<Digest>,
}

/// A CPU that a program is compiled for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cpu {
    /// The architecture, such as `x86_64`.
    pub arch: String,
    /// The features that the program may use, named as Rust does (`avx2`); it runs only on a CPU that has them all.
    pub features: BTreeSet<String>,
}

/// An argument whose buffer is consumed by the call and becomes an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Donation {
    /// The argument's position, from 0.
    pub argument: u32,
    /// The output's position, from 0.
    pub output: u32,
}

impl fmt::Display for Donation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.argument, self.output)
    }
}

/// The address of a compiled program: the digest of the action that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionKey(pub Digest);

impl fmt::Display for ActionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ActionKey {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}

impl Action {
    /// The action's key; the module's documentation gives the encoding.
    pub fn key(&self) -> ActionKey {
        let mut bytes = text("sheaf action");
        bytes.extend(number(KEY_VERSION));
        for (name, value) in self.values() {
            bytes.extend(text(name));
            bytes.extend(number(value.len() as u64));
            bytes.extend(value);
        }
        ActionKey(Digest::of(&bytes))
    }

    /// The name of each part of the key with the digest of its value alone: identifies the parts in which the keys of
    /// two machines differ.
    pub fn parts(&self) -> Vec<(&'static str, Digest)> {
        self.values().into_iter().map(|(name, value)| (name, Digest::of(&value))).collect()
    }

    /// The digest of the program part: equal for one program compiled for different devices or with different flags.
    pub fn program_digest(&self) -> Digest {
        Digest::of(strip_locations(&self.program).as_bytes())
    }

    /// The complete command lines of the compiler, in the order in which they are tried; at least one.
    pub fn attempts(&self) -> Vec<Vec<String>> {
        let alternatives = self.all_alternatives();
        if alternatives.is_empty() {
            return vec![self.flags.clone()];
        }
        alternatives.iter().map(|further| [&self.flags[..], further].concat()).collect()
    }

    /// The alternatives, those of a tuning record first.
    pub fn all_alternatives(&self) -> Vec<Vec<String>> {
        let Some(tuned) = &self.tuned else { return self.alternatives.clone() };
        let tuned: Vec<String> = tuned.iter().map(|flag| flag.flag().to_owned()).collect();
        let none = [Vec::new()];
        let others = match &self.alternatives[..] {
            [] if tuned.is_empty() => return Vec::new(),
            [] => &none[..],
            others => others,
        };
        let others = others.iter().filter(|other| **other != tuned).cloned();
        std::iter::once(tuned.clone()).chain(others).collect()
    }

    /// The key without the flags of a tuning record; `None` if there are none, or they make no difference.
    pub fn untuned_key(&self) -> Option<ActionKey> {
        let untuned = Action { tuned: None, ..self.clone() };
        let differs = untuned.alternatives != self.all_alternatives();
        differs.then(|| untuned.key())
    }

    fn flag_bytes(&self) -> Vec<u8> {
        let alternatives = self.all_alternatives();
        let mut bytes = list(&self.flags);
        bytes.extend(number(alternatives.len() as u64));
        alternatives.iter().for_each(|further| bytes.extend(list(further)));
        bytes
    }

    fn values(&self) -> [(&'static str, Vec<u8>); 8] {
        let cpu = self.cpu.iter().flat_map(|cpu| std::iter::once(&cpu.arch).chain(&cpu.features));
        [
            ("program", strip_locations(&self.program).into_owned().into_bytes()),
            ("compiler", self.compiler_digest.to_string().into_bytes()),
            ("flags", self.flag_bytes()),
            ("device", self.device.clone().into_bytes()),
            ("cpu", list(cpu)),
            ("donation", list(self.donation.iter().map(Donation::to_string))),
            ("debug", if self.debug { b"on".to_vec() } else { b"off".to_vec() }),
            ("rejected", list(self.rejected.iter().map(Digest::to_string))),
        ]
    }
}

fn number(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

fn text(value: &str) -> Vec<u8> {
    [&number(value.len() as u64), value.as_bytes()].concat()
}

fn list(items: impl IntoIterator<Item: AsRef<str>>) -> Vec<u8> {
    let mut count = 0;
    let mut bytes = Vec::new();
    for item in items {
        count += 1;
        bytes.extend(text(item.as_ref()));
    }
    [&number(count), bytes.as_slice()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Action {
        Action {
            program: "module @sheaf {}".into(),
            compiler: "3.13.0".into(),
            compiler_digest: Digest::of(b"3.13.0"),
            flags: vec!["--a=1".into(), "--b".into()],
            alternatives: vec![vec!["--c".into()], vec![]],
            tuned: None,
            device: "cpu".into(),
            cpu: Some(Cpu { arch: "x86_64".into(), features: ["sse4.2", "avx2"].map(String::from).into() }),
            donation: [Donation { argument: 10, output: 1 }, Donation { argument: 2, output: 0 }].into(),
            debug: false,
            rejected: vec![Digest::of(b"b"), Digest::of(b"a")],
        }
    }

    /// Asserts that `change` changes the key and, among the parts, only the one called `name`.
    fn assert_differs(name: &str, change: impl FnOnce(&mut Action)) {
        let before = sample();
        let mut after = before.clone();
        change(&mut after);
        assert_ne!(before.key(), after.key());
        let parts = before.parts().into_iter().zip(after.parts());
        let changed: Vec<_> = parts.filter(|(a, b)| a != b).map(|(a, _)| a.0).collect();
        assert_eq!(changed, [name]);
    }

    #[test]
    fn program_differs() {
        assert_differs("program", |action| action.program.push('\n'));
    }

    #[test]
    fn compiler_differs() {
        assert_differs("compiler", |action| action.compiler_digest = Digest::of(b"3.13.1"));
    }

    #[test]
    fn the_name_of_the_release_does_not_matter() {
        let named = Action { compiler: "3.13".into(), ..sample() };
        assert_eq!(named.key(), sample().key());
    }

    #[test]
    fn flags_differ() {
        assert_differs("flags", |action| action.flags[1] = "--c".into());
    }

    #[test]
    fn order_of_flags_differs() {
        assert_differs("flags", |action| action.flags.reverse());
    }

    #[test]
    fn split_of_flags_differs() {
        assert_differs("flags", |action| action.flags = vec!["--a=1--b".into()]);
    }

    #[test]
    fn alternatives_differ() {
        assert_differs("flags", |action| action.alternatives[0][0] = "--d".into());
        assert_differs("flags", |action| action.alternatives.reverse());
        assert_differs("flags", |action| {
            action.alternatives.pop();
        });
        assert_differs("flags", |action| {
            let first = action.alternatives.remove(0);
            action.flags.extend(first);
        });
    }

    #[test]
    fn attempts_are_the_flags_with_each_alternative() {
        assert_eq!(sample().attempts(), [vec!["--a=1", "--b", "--c"], vec!["--a=1", "--b"]]);
        let plain = Action { alternatives: vec![], ..sample() };
        assert_eq!(plain.attempts(), [["--a=1", "--b"]]);
    }

    #[test]
    fn flags_of_a_tuning_record_are_tried_first() {
        assert_differs("flags", |action| action.tuned = Some([TuningFlag::Im2col].into()));
        let tuned = |tuned: &[TuningFlag], alternatives: &[Vec<String>]| Action {
            tuned: Some(tuned.iter().copied().collect()),
            alternatives: alternatives.to_vec(),
            ..sample()
        };
        let im2col = vec![TuningFlag::Im2col.flag().to_owned()];
        let tiles = vec![TuningFlag::DataTiling.flag().to_owned()];
        let none = Vec::new();
        assert_eq!(tuned(&[TuningFlag::Im2col], &[]).all_alternatives(), [im2col.clone(), none.clone()]);
        let default = [tiles.clone(), none.clone()];
        assert_eq!(
            tuned(&[TuningFlag::Im2col], &default).all_alternatives(),
            [im2col, tiles.clone(), none.clone()]
        );
        assert_eq!(tuned(&[], &default).all_alternatives(), [none, tiles]);
        // As without a record.
        let plain = tuned(&[], &[]);
        assert_eq!((plain.all_alternatives(), plain.untuned_key()), (Vec::new(), None));
        assert_eq!(plain.key(), Action { tuned: None, ..plain.clone() }.key());
        let same = tuned(&[TuningFlag::DataTiling], &default);
        assert_eq!(same.key(), Action { tuned: None, ..same.clone() }.key());
        assert_eq!(same.untuned_key(), None);
        let other = tuned(&[], &default);
        assert_eq!(other.untuned_key(), Some(same.key()));
        assert_eq!(other.tuning_record().key(), same.tuning_record().key());
        assert_ne!(same.tuning_record().key(), same.key());
    }

    #[test]
    fn device_differs() {
        assert_differs("device", |action| action.device = "cuda".into());
    }

    #[test]
    fn cpu_architecture_differs() {
        assert_differs("cpu", |action| action.cpu.as_mut().unwrap().arch = "aarch64".into());
    }

    #[test]
    fn cpu_features_differ() {
        assert_differs("cpu", |action| {
            action.cpu.as_mut().unwrap().features.insert("fma".into());
        });
    }

    #[test]
    fn absence_of_a_cpu_differs() {
        assert_differs("cpu", |action| action.cpu = None);
    }

    #[test]
    fn donation_differs() {
        assert_differs("donation", |action| {
            action.donation.remove(&Donation { argument: 2, output: 0 });
        });
    }

    #[test]
    fn debug_differs() {
        assert_differs("debug", |action| action.debug = true);
    }

    #[test]
    fn programs_that_were_rejected_differ() {
        assert_differs("rejected", |action| action.rejected.reverse());
        assert_differs("rejected", |action| {
            action.rejected.pop();
        });
    }

    #[test]
    fn a_byte_moved_to_the_next_part_changes_the_key() {
        let mut moved = sample();
        let byte = moved.program.pop().unwrap();
        moved.flags[0].insert(0, byte);
        assert_ne!(moved.key(), sample().key());
    }

    #[test]
    fn locations_change_nothing() {
        let mut located = sample();
        located.program = "module @sheaf {} loc(\"a.shf\":1:1)".into();
        assert_eq!(located.key(), sample().key());
        assert_eq!(located.program_digest(), sample().parts()[0].1);
    }

    /// The key by an implementation of its own, in Python:
    ///
    /// ```python
    /// from hashlib import sha256
    /// from struct import pack
    /// number = lambda n: pack("<Q", n)
    /// text = lambda s: number(len(s)) + s
    /// items = lambda xs: number(len(xs)) + b"".join(map(text, xs))
    /// parts = [
    ///     (b"program", b"module @sheaf {}"), (b"compiler", sha256(b"3.13.0").hexdigest().encode()),
    ///     (b"flags", items([b"--a=1", b"--b"]) + number(2) + items([b"--c"]) + items([])), (b"device", b"cpu"),
    ///     (b"cpu", items([b"x86_64", b"avx2", b"sse4.2"])),
    ///     (b"donation", items([b"2->0", b"10->1"])), (b"debug", b"off"),
    ///     (b"rejected", items([sha256(p).hexdigest().encode() for p in [b"b", b"a"]])),
    /// ]
    /// key = text(b"sheaf action") + number(6) + b"".join(text(n) + text(v) for n, v in parts)
    /// print(sha256(key).hexdigest())
    /// ```
    #[test]
    fn the_encoding_is_the_documented_one() {
        assert_eq!(KEY_VERSION, 6);
        assert_eq!(
            sample().key().to_string(),
            "5d48ff1a891ee4e2afa31ea865453cd28265d571564b6904ca3ec06df2e2e01b"
        );
    }
}
