//! Reason for a recompilation: the nearest earlier claim, and the parts of the key that differ.

use std::collections::BTreeSet;
use std::fmt;

use crate::claim::Claim;

/// A part of the key in which two compilations differ; in pairs, the earlier one comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebuildReason {
    /// An argument's type.
    Argument {
        /// Its position, from 1.
        number: usize,
        /// Its types; `None` if there is no such argument.
        types: (Option<String>, Option<String>),
    },
    /// The program, with equal argument types: the source of the function, or of one that it calls, has changed.
    Program {
        /// The first lines that differ, if both programs are available.
        lines: Option<(String, String)>,
    },
    /// The compiler's release.
    Compiler(String, String),
    /// The kind of device.
    Device(String, String),
    /// The CPU: features that only one of them has, or another architecture.
    Cpu {
        /// Only in the earlier one.
        lost: Vec<String>,
        /// Only in the later one.
        gained: Vec<String>,
    },
    /// The compiler's flags.
    Flags {
        /// Only in the earlier one.
        lost: Vec<String>,
        /// Only in the later one.
        gained: Vec<String>,
    },
    /// The arguments donated to results.
    Donation(String, String),
    /// Debug information kept.
    Debug(bool, bool),
    /// The programs that were preferred and rejected.
    Rejected,
}

impl fmt::Display for RebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = |f: &mut fmt::Formatter<'_>, lost: &[String], gained: &[String]| {
            let lost = lost.iter().map(|item| format!("without {item}"));
            let all: Vec<_> = lost.chain(gained.iter().map(|item| format!("with {item}"))).collect();
            f.write_str(&all.join(", "))
        };
        match self {
            Self::Argument { number, types: (Some(before), Some(after)) } => {
                write!(f, "argument {number}: {before} -> {after}")
            }
            Self::Argument { number, types: (None, Some(after)) } => {
                write!(f, "argument {number} is new: {after}")
            }
            Self::Argument { number, types: (before, _) } => {
                write!(f, "argument {number} is gone: {}", before.as_deref().unwrap_or_default())
            }
            Self::Program { lines } => {
                f.write_str("source: the function, or one that it calls, does something else")?;
                if let Some((before, after)) = lines {
                    write!(f, "\n    before: {}\n    now:    {}", before.trim(), after.trim())?;
                }
                Ok(())
            }
            Self::Compiler(before, after) => write!(f, "compiler: {before} -> {after}"),
            Self::Device(before, after) => write!(f, "device: {before} -> {after}"),
            Self::Cpu { lost, gained } => {
                f.write_str("cpu: ")?;
                changes(f, lost, gained)
            }
            Self::Flags { lost, gained } if lost.is_empty() && gained.is_empty() => {
                f.write_str("flags: another order")
            }
            Self::Flags { lost, gained } => {
                f.write_str("flags: ")?;
                changes(f, lost, gained)
            }
            Self::Donation(before, after) => {
                let shown = |text: &String| if text.is_empty() { "none".into() } else { text.clone() };
                write!(f, "donation: {} -> {}", shown(before), shown(after))
            }
            Self::Debug(before, after) => write!(f, "debug information: {before} -> {after}"),
            Self::Rejected => f.write_str("source: another form of the program is tried before this one"),
        }
    }
}

impl Claim {
    /// The parts in which the compilation of `self` differs from the `earlier` one. `program` gives the text of a
    /// program, if available.
    pub fn rebuild_reasons(
        &self,
        earlier: &Self,
        program: impl Fn(&Self) -> Option<String>,
    ) -> Vec<RebuildReason> {
        let mut all = Vec::new();
        for number in 1..=self.inputs.len().max(earlier.inputs.len()) {
            let types = (earlier.inputs.get(number - 1).cloned(), self.inputs.get(number - 1).cloned());
            if types.0 != types.1 {
                all.push(RebuildReason::Argument { number, types });
            }
        }
        if self.program != earlier.program && all.is_empty() {
            let texts = program(earlier).zip(program(self));
            let lines = texts.and_then(|(before, after)| {
                let pair = before.lines().zip(after.lines()).find(|(before, after)| before != after);
                pair.map(|(before, after)| (before.to_owned(), after.to_owned()))
            });
            all.push(RebuildReason::Program { lines });
        }
        let differ =
            |before: &str, after: &str| (before != after).then(|| (before.to_owned(), after.to_owned()));
        if earlier.compiler_digest != self.compiler_digest {
            // Builds of the same release differ in their digests.
            let named = earlier.compiler != self.compiler;
            let name = |c: &Self| if named { c.compiler.clone() } else { c.compiler_digest.short(12) };
            all.push(RebuildReason::Compiler(name(earlier), name(self)));
        }
        all.extend(differ(&earlier.device, &self.device).map(|(a, b)| RebuildReason::Device(a, b)));
        let features = |claim: &Self| -> BTreeSet<String> {
            let cpu = claim.cpu.iter();
            cpu.flat_map(|cpu| cpu.features.iter().cloned().chain([cpu.arch.clone()])).collect()
        };
        let (before, after) = (features(earlier), features(self));
        if before != after {
            let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect();
            all.push(RebuildReason::Cpu { lost: only(&before, &after), gained: only(&after, &before) });
        }
        // Flags that follow from another device or CPU are not a reason of their own.
        let is_follower = |flag: &&String| {
            let of_cpu = flag.starts_with("--iree-llvmcpu-target");
            (before != after && of_cpu) || earlier.device != self.device
        };
        let flags = |claim: &Self| [&claim.flags[..], &claim.alternatives.concat()].concat();
        if earlier.flags != self.flags || earlier.alternatives != self.alternatives {
            let (before, after) = (flags(earlier), flags(self));
            let only = |a: &[String], b: &[String]| -> Vec<String> {
                a.iter().filter(|flag| !b.contains(flag) && !is_follower(flag)).cloned().collect()
            };
            let (lost, gained) = (only(&before, &after), only(&after, &before));
            let reordered = before.iter().collect::<BTreeSet<_>>() == after.iter().collect();
            if reordered || !lost.is_empty() || !gained.is_empty() {
                all.push(RebuildReason::Flags { lost, gained });
            }
        }
        let donation =
            |claim: &Self| claim.donation.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        all.extend(differ(&donation(earlier), &donation(self)).map(|(a, b)| RebuildReason::Donation(a, b)));
        if earlier.debug != self.debug {
            all.push(RebuildReason::Debug(earlier.debug, self.debug));
        }
        if earlier.rejected != self.rejected && all.is_empty() {
            all.push(RebuildReason::Rejected);
        }
        all
    }

    /// Distance between two compilations: the number of differences, weighted so that another device or compiler counts
    /// more than another shape, and another source most.
    pub fn distance(&self, other: &Self) -> usize {
        let weight = |reason: &RebuildReason| match reason {
            RebuildReason::Program { .. } => 8,
            RebuildReason::Device(..) | RebuildReason::Compiler(..) => 4,
            RebuildReason::Donation(..) => 2,
            _ => 1,
        };
        self.rebuild_reasons(other, |_| None).iter().map(weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Compilation;
    use sheaf_artifacts::{Action, Cpu};

    fn claim(change: impl FnOnce(&mut Action, &mut Compilation)) -> Claim {
        let mut action = Action {
            program: "func @main\n  add".into(),
            compiler: "3.13.0".into(),
            compiler_digest: sheaf_foundation::Digest::of(b"3.13.0"),
            flags: vec!["--a".into(), "--iree-llvmcpu-target-cpu=x".into()],
            alternatives: vec![],
            tuned: None,
            device: "cpu".into(),
            cpu: Some(Cpu { arch: "x86_64".into(), features: ["avx2".to_owned()].into() }),
            donation: [].into(),
            debug: false,
            rejected: vec![],
        };
        let mut compilation =
            Compilation { inputs: vec!["f32[4]".into(), "~f32[]".into()], ..Compilation::default() };
        change(&mut action, &mut compilation);
        Claim::new(&action, action.program.as_bytes(), b"vmfb", compilation)
    }

    fn reasons(change: impl FnOnce(&mut Action, &mut Compilation)) -> String {
        let text = |program: &'static str| {
            move |c: &Claim| {
                Some(if c.key == claim(|_, _| {}).key {
                    "func @main\n  add".into()
                } else {
                    program.to_owned()
                })
            }
        };
        let all = claim(change).rebuild_reasons(&claim(|_, _| {}), text("func @main\n  multiply"));
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_part_is_told() {
        assert_eq!(reasons(|_, _| {}), "");
        insta::assert_snapshot!(reasons(|a, c| { a.program = "x".into(); c.inputs[0] = "f32[8]".into(); }), @"argument 1: f32[4] -> f32[8]");
        insta::assert_snapshot!(reasons(|a, c| { a.program = "x".into(); c.inputs.pop(); }), @"argument 2 is gone: ~f32[]");
        insta::assert_snapshot!(reasons(|a, c| { a.program = "x".into(); c.inputs.push("i32[]".into()); }), @"argument 3 is new: i32[]");
        insta::assert_snapshot!(reasons(|a, _| a.program = "func @main\n  multiply".into()), @"
        source: the function, or one that it calls, does something else
            before: add
            now:    multiply
        ");
        insta::assert_snapshot!(reasons(|a, _| { a.compiler = "3.14.0".into(); a.compiler_digest = sheaf_foundation::Digest::of(b"3.14.0"); }), @"compiler: 3.13.0 -> 3.14.0");
        insta::assert_snapshot!(reasons(|a, _| a.flags[0] = "--b".into()), @"flags: without --a, with --b");
        insta::assert_snapshot!(reasons(|a, _| a.flags.reverse()), @"flags: another order");
        insta::assert_snapshot!(reasons(|a, _| { a.cpu.as_mut().unwrap().features = ["fma".to_owned()].into(); a.flags[1] = "--iree-llvmcpu-target-cpu=y".into(); }), @"cpu: without avx2, with fma");
        insta::assert_snapshot!(reasons(|a, _| { a.device = "cuda".into(); a.flags = vec!["--cuda".into()]; }), @"device: cpu -> cuda");
        insta::assert_snapshot!(reasons(|a, _| a.debug = true), @"debug information: false -> true");
        insta::assert_snapshot!(reasons(|a, _| a.rejected.push(sheaf_foundation::Digest::of(b"a kernel"))), @"source: another form of the program is tried before this one");
    }

    #[test]
    fn the_nearest_has_fewest_and_lightest_differences() {
        let now = claim(|a, _| a.flags[0] = "--b".into());
        let flag = claim(|_, _| {});
        let source = claim(|a, _| {
            a.flags[0] = "--b".into();
            a.program = "other".into();
        });
        assert!(now.distance(&flag) < now.distance(&source));
        assert_eq!(now.distance(&now), 0);
    }
}
