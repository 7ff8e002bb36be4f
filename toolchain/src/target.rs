//! What a program is compiled for, as flags of the compiler.

use std::fmt;

use crate::destination::Processor;

/// A kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The processor of this machine.
    Cpu,
}

/// How a compiled program reaches its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutionModel {
    /// Through IREE's hardware abstraction layer: queues, fences, any device. What bundles and published programs use.
    Hal,
    /// Calls of plain functions on the calling thread, without a device: much less work for each call.
    Inline,
}

/// A device and how it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The device.
    pub device: Device,
    /// The way to it.
    pub model: ExecutionModel,
}

/// Programs are `StableHLO`; what only helps in finding errors of the compiler is left out of them, which makes a small
/// program a third smaller.
const COMMON: [&str; 5] = [
    "--iree-input-type=stablehlo",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map=true",
    "--iree-vm-emit-polyglot-zip=false",
    "--iree-opt-strip-assertions=true",
];

/// Code for a processor; which one, [`Processor::flags`] says.
const CPU: [&str; 2] = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"];

/// The code stays in an embedded library that the runtime loads, so that a program is still one file.
///
/// IREE 3.13 leaves constants empty in this model. Programs come with theirs as arguments, and without hoisting the
/// compiler makes no others.
///
/// Aggressive fusion would make fewer calls, which is what small programs spend their time on (6.4 instead of 7.1 us for a
/// training step of XOR). But IREE 3.13 then computes wrong numbers, for the mean of a `log_softmax` beside its gradient.
const INLINE: [&str; 2] = ["--iree-execution-model=inline-dynamic", "--iree-opt-const-expr-hoisting=false"];

/// IREE makes singles of doubles unless it is told not to. Only programs with doubles get the flag: it is part of their
/// keys, and the keys of all others stay what they are.
const DOUBLES: &str = "--iree-input-demote-f64-to-f32=false";

impl Target {
    /// The processor through the hardware abstraction layer.
    pub const CPU: Self = Self { device: Device::Cpu, model: ExecutionModel::Hal };
    /// The processor through plain calls.
    pub const CPU_INLINE: Self = Self { device: Device::Cpu, model: ExecutionModel::Inline };

    /// The compiler's flags, always the same and in the same order for the same target and processor. The processor of
    /// this machine is named by what it has, so that the flags mean the same on every machine.
    pub fn flags(self) -> Vec<String> {
        let Device::Cpu = self.device;
        let device = CPU.iter().map(|flag| (*flag).to_owned()).chain(Processor::Host.flags());
        let model: &[&str] = match self.model {
            ExecutionModel::Hal => &[],
            ExecutionModel::Inline => &INLINE,
        };
        let owned = |flag: &&str| (*flag).to_owned();
        COMMON.iter().map(owned).chain(device).chain(model.iter().map(owned)).collect()
    }

    /// [`Target::flags`], and those that this program needs besides.
    pub fn flags_for(self, program: &str) -> Vec<String> {
        let mut flags = self.flags();
        if program.contains("f64") {
            flags.push(DOUBLES.to_owned());
        }
        flags
    }
}

impl fmt::Display for Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cpu => "cpu",
        })
    }
}

impl fmt::Display for ExecutionModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Hal => "hal",
            Self::Inline => "inline",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_means_another_thing_on_another_machine() {
        for target in [Target::CPU, Target::CPU_INLINE] {
            let flags = target.flags();
            assert!(!flags.iter().any(|flag| flag.contains("host")), "{flags:?}");
            for named in ["triple", "cpu", "cpu-features"] {
                let start = format!("--iree-llvmcpu-target-{named}=");
                assert_eq!(flags.iter().filter(|flag| flag.starts_with(&start)).count(), 1, "{flags:?}");
            }
        }
    }

    #[test]
    fn only_programs_with_doubles_have_more_flags() {
        let single = "func.func @main(%a: tensor<2xf32>, %i: tensor<i64>) -> tensor<2xf32>";
        assert_eq!(Target::CPU.flags_for(single), Target::CPU.flags());
        let double = Target::CPU_INLINE.flags_for("func.func @main(%a: tensor<2xf64>) -> tensor<2xf64>");
        assert_eq!(double.last().map(String::as_str), Some(DOUBLES));
    }
}
