//! Compiler flags of a compilation target.

use crate::destination::Processor;

/// A device that programs are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its kind, as in keys.
    pub device: &'static str,
    /// The flags that select it.
    flags: [&'static str; 2],
}

/// Programs are `StableHLO`; debug information for errors of the compiler is left out, which makes a small program a
/// third smaller.
const COMMON: [&str; 5] = [
    "--iree-input-type=stablehlo",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map=true",
    "--iree-vm-emit-polyglot-zip=false",
    "--iree-opt-strip-assertions=true",
];

/// IREE demotes doubles to singles by default. Only programs with doubles get this flag: it is part of their keys, and
/// the keys of all others remain unchanged.
const DOUBLES: &str = "--iree-input-demote-f64-to-f32=false";

/// Constant expressions stay where they are used, and are computed by each call. For programs of the processor: no GPU has run
/// programs without their hoisting.
pub const NO_HOISTING: &str = "--iree-opt-const-expr-hoisting=false";

impl Target {
    /// The processor of this machine.
    pub const CPU: Self = Self {
        device: "cpu",
        flags: ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"],
    };

    /// The compiler's flags. Deterministic for the same target and processor, including their order. The processor of
    /// this machine is described by its features, so that the flags mean the same on every machine.
    pub fn flags(self) -> Vec<String> {
        let named = COMMON.iter().chain(&self.flags).map(|flag| (*flag).to_owned());
        named.chain(Processor::Host.flags()).collect()
    }

    /// [`Target::flags`], and the one that a program with doubles needs besides.
    pub fn flags_for(self, has_doubles: bool) -> Vec<String> {
        let mut flags = self.flags();
        if has_doubles {
            flags.push(DOUBLES.to_owned());
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_means_another_thing_on_another_machine() {
        let flags = Target::CPU.flags();
        assert!(!flags.iter().any(|flag| flag.contains("host")), "{flags:?}");
        for named in ["triple", "cpu", "cpu-features"] {
            let start = format!("--iree-llvmcpu-target-{named}=");
            assert_eq!(flags.iter().filter(|flag| flag.starts_with(&start)).count(), 1, "{flags:?}");
        }
    }

    #[test]
    fn only_programs_with_doubles_have_more_flags() {
        assert_eq!(Target::CPU.flags_for(false), Target::CPU.flags());
        let double = Target::CPU.flags_for(true);
        assert_eq!(double.last().map(String::as_str), Some(DOUBLES));
    }
}
