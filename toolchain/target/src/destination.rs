//! Compilation targets, which need not be this machine: devices and processors by name.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::cpu::Cpu;
use crate::target::NO_HOISTING;

/// A device, with the details needed to compile for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A processor.
    Cpu(Processor),
    /// An NVIDIA GPU of this architecture or a newer one.
    Cuda(&'static str),
    /// A GPU under Vulkan; without an architecture, any of recent years.
    Vulkan(Option<&'static str>),
    /// A GPU of Apple.
    Metal,
}

/// A processor, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Processor {
    /// That of this machine, with all its features.
    Host,
    /// One of [`Processor::NAMED`].
    Named(&'static NamedProcessor),
}

/// A named processor: a program for it runs on all processors that have its features.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct NamedProcessor {
    /// The name on the command line.
    pub name: &'static str,
    /// LLVM's name.
    llvm: &'static str,
    /// The architecture as Rust and LLVM name it.
    arch: &'static str,
    /// The features beyond the architecture's own, as Rust names them.
    features: &'static [&'static str],
}

/// The name is not that of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDestination {
    /// No such device.
    #[error("there is no device {0}; there are cpu, cuda, vulkan and metal")]
    Device(String),
    /// The device has no such architecture.
    #[error("there is no {device} architecture {name}; there are {}", known.join(" "))]
    Architecture {
        /// The device.
        device: &'static str,
        /// The name that was given.
        name: String,
        /// The known architectures.
        known: &'static [&'static str],
    },
    /// The device has no architectures here.
    #[error("{device} takes no architecture: write {device} alone{hint}")]
    NoArchitecture {
        /// The device.
        device: &'static str,
        /// Device that the name may belong to.
        hint: &'static str,
    },
    /// No such processor.
    #[error("there is no CPU {name}; there are host {}", known.join(" "))]
    Cpu {
        /// The name that was given.
        name: String,
        /// The known processors.
        known: Vec<&'static str>,
    },
}

/// The CUDA targets of IREE 3.13; their programs run on newer GPUs too. It does not support `sm_90`.
const CUDA: [&str; 10] =
    ["sm_60", "sm_61", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_120"];

/// Supported by every GPU of recent years.
const CUDA_DEFAULT: &str = "sm_80";

/// The Vulkan targets of IREE 3.13, besides the generic one.
const VULKAN: [&str; 14] = [
    "rdna1",
    "rdna2",
    "rdna3",
    "rdna4",
    "pascal",
    "turing",
    "ampere",
    "ada",
    "adreno",
    "valhall1",
    "valhall2",
    "valhall3",
    "valhall4",
    "vp_android_baseline_2022",
];

/// The levels of the x86-64 System V ABI, and the baseline of `AArch64`.
const V2: [&str; 6] = ["cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
const V3: [&str; 14] = [
    "avx",
    "avx2",
    "bmi1",
    "bmi2",
    "cmpxchg16b",
    "f16c",
    "fma",
    "lzcnt",
    "movbe",
    "popcnt",
    "sse3",
    "sse4.1",
    "sse4.2",
    "ssse3",
];
const V4: [&str; 19] = [
    "avx",
    "avx2",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512vl",
    "bmi1",
    "bmi2",
    "cmpxchg16b",
    "f16c",
    "fma",
    "lzcnt",
    "movbe",
    "popcnt",
    "sse3",
    "sse4.1",
    "sse4.2",
    "ssse3",
];

impl Processor {
    /// The named processors, the most capable of an architecture first.
    pub const NAMED: [NamedProcessor; 5] = [
        NamedProcessor { name: "x86-64-v4", llvm: "x86-64-v4", arch: "x86_64", features: &V4 },
        NamedProcessor { name: "x86-64-v3", llvm: "x86-64-v3", arch: "x86_64", features: &V3 },
        NamedProcessor { name: "x86-64-v2", llvm: "x86-64-v2", arch: "x86_64", features: &V2 },
        NamedProcessor { name: "x86-64", llvm: "x86-64", arch: "x86_64", features: &[] },
        NamedProcessor { name: "aarch64", llvm: "generic", arch: "aarch64", features: &["neon"] },
    ];

    /// The named processors whose programs this machine runs, the most capable first.
    pub fn portable() -> Vec<Processor> {
        let host = Cpu::host();
        Self::named().filter(|p| host.supports(&p.cpu()).is_ok()).collect()
    }

    /// All named processors.
    pub fn named() -> impl Iterator<Item = Processor> {
        NAMED.iter().map(Processor::Named)
    }

    /// The compiler's flags: architecture, processor and features in LLVM's names.
    ///
    /// The processor of this machine is expressed as the most capable of [`Processor::NAMED`] that it supports, plus
    /// all its further features. LLVM's name of its model would make LLVM choose among equal instructions in another
    /// order; that is not measurably faster (`docs/architecture.md`), and no two models could share a program.
    pub(crate) fn flags(self) -> Vec<String> {
        let (cpu, named) = match self {
            Self::Named(named) => (None, Some(named)),
            Self::Host => {
                static HOST: LazyLock<Cpu> = LazyLock::new(Cpu::host);
                let supported =
                    |named: &&NamedProcessor| HOST.supports(&Cpu::with(named.arch, named.features)).is_ok();
                (Some(&*HOST), NAMED.iter().find(supported))
            }
        };
        let arch = named.map_or(std::env::consts::ARCH, |named| named.arch);
        let mut flags = vec![
            format!("{TARGET}triple={arch}-unknown-unknown-eabi-elf"),
            format!("{TARGET}cpu={}", named.map_or("generic", |named| named.llvm)),
        ];
        if let Some(cpu) = cpu {
            let features =
                cpu.llvm_features().iter().map(|feature| format!("+{feature}")).collect::<Vec<_>>();
            flags.push(format!("{TARGET}cpu-features={}", features.join(",")));
        }
        flags
    }

    /// The architecture and the features that its programs may use.
    pub fn cpu(self) -> Cpu {
        match self {
            Self::Host => Cpu::host(),
            Self::Named(named) => Cpu::with(named.arch, named.features),
        }
    }
}

impl Destination {
    /// All destinations, this machine's processor first.
    pub fn all() -> impl Iterator<Item = Destination> {
        let processors = std::iter::once(Processor::Host).chain(Processor::named());
        let cuda = CUDA.into_iter().map(Destination::Cuda);
        let vulkan = std::iter::once(None).chain(VULKAN.into_iter().map(Some)).map(Destination::Vulkan);
        processors.map(Destination::Cpu).chain(cuda).chain(vulkan).chain([Destination::Metal])
    }

    /// This machine's processor.
    pub const HOST: Self = Self::Cpu(Processor::Host);

    /// The target for a GPU of CUDA with this compute capability, as (major, minor): the most capable whose programs it runs.
    pub fn cuda(capability: Option<(u32, u32)>) -> Self {
        let number = |arch: &&&str| arch.trim_start_matches("sm_").parse().unwrap_or(u32::MAX);
        // Programs are PTX, which newer GPUs compile for themselves.
        let newest =
            |(major, minor)| CUDA.iter().filter(|arch| number(arch) <= 10 * major + minor).max_by_key(number);
        Self::Cuda(capability.and_then(newest).copied().unwrap_or(CUDA_DEFAULT))
    }

    /// The kind of device, as in keys and file names.
    pub fn device(&self) -> &'static str {
        match self {
            Self::Cpu(_) => "cpu",
            Self::Cuda(_) => "cuda",
            Self::Vulkan(_) => "vulkan",
            Self::Metal => "metal",
        }
    }

    /// The processor that its programs need, if it is one.
    pub fn cpu(&self) -> Option<Cpu> {
        match self {
            Self::Cpu(processor) => Some(processor.cpu()),
            _ => None,
        }
    }

    /// True if 64-bit numbers are computed in 32 bits: GPUs without dependable support for more.
    pub fn demotes(&self) -> bool {
        matches!(self, Self::Vulkan(_) | Self::Metal)
    }

    /// The compiler's flags, derived from those for this machine's processor
    /// ([`Target::flags_for`](crate::Target::flags_for)). Deterministic, including their order. With `debug`, debug
    /// information for errors of the compiler is kept in the program.
    pub fn flags(&self, host: &[String], debug: bool) -> Vec<String> {
        let mut flags = host.to_vec();
        if debug {
            flags.retain(|flag| !STRIPS.contains(&flag.as_str()));
        }
        let device: Vec<String> = match self {
            Self::Cpu(Processor::Host) => return flags,
            Self::Cpu(processor) => {
                // In the position of those for this machine's processor, so that the key is the same on every machine.
                let place = flags.iter().position(|flag| flag.starts_with(TARGET)).unwrap_or(flags.len());
                flags.retain(|flag| !flag.starts_with(TARGET));
                flags.splice(place..place, processor.flags());
                return flags;
            }
            Self::Cuda(arch) => {
                vec!["--iree-hal-target-device=cuda".into(), format!("--iree-cuda-target={arch}")]
            }
            Self::Vulkan(arch) => {
                let arch = arch.map_or(VULKAN_FEATURES.into(), |arch| format!("--iree-vulkan-target={arch}"));
                vec!["--iree-hal-target-device=vulkan".into(), arch]
            }
            Self::Metal => vec!["--iree-hal-target-device=metal".into()],
        };
        let of_processor = |flag: &String| {
            flag.starts_with("--iree-hal-") || flag.starts_with("--iree-llvmcpu-") || flag == NO_HOISTING
        };
        flags.retain(|flag| !of_processor(flag));
        flags.extend(device);
        if self.demotes() {
            flags.retain(|flag| !flag.starts_with("--iree-input-demote-"));
            flags.push("--iree-input-demote-i64-to-i32=true".into());
        }
        flags
    }
}

/// Features of GPUs under Vulkan that no architecture names: numbers of 8 and 16 bits, as all have them since about 2018. IREE's own
/// default is without; it computes such numbers by halves of words, wrongly for `f16` and where a tensor's bytes are no multiple of four.
const VULKAN_FEATURES: &str = "--iree-vulkan-target-features=spirv:v1.6,cap:Shader,cap:Int8,cap:Int16,cap:Float16,\
                               cap:StorageBuffer8BitAccess,cap:StorageBuffer16BitAccess";

/// Prefix of the flags for the processor.
const TARGET: &str = "--iree-llvmcpu-target-";

/// [`Processor::NAMED`] as a static, for references.
static NAMED: [NamedProcessor; 5] = Processor::NAMED;

/// Flags that strip debug information.
const STRIPS: [&str; 3] = [
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map=true",
    "--iree-opt-strip-assertions=true",
];

impl FromStr for Destination {
    type Err = UnknownDestination;

    /// `cpu`, `cuda`, `cuda:sm_89`, `vulkan`, `vulkan:rdna3` or `metal`.
    fn from_str(text: &str) -> Result<Self, UnknownDestination> {
        let (device, architecture) = match text.split_once(':') {
            Some((device, architecture)) => (device, Some(architecture)),
            None => (text, None),
        };
        match (device, architecture) {
            ("cpu", None) => Ok(Self::HOST),
            ("cpu", Some(_)) => Err(UnknownDestination::NoArchitecture {
                device: "cpu",
                hint: ", and name the processor with --cpu, as in --cpu x86-64-v3",
            }),
            ("cuda", None) => Ok(Self::Cuda(CUDA_DEFAULT)),
            ("cuda", Some(name)) => Ok(Self::Cuda(known("cuda", name, &CUDA)?)),
            ("vulkan", None) => Ok(Self::Vulkan(None)),
            ("vulkan", Some(name)) => Ok(Self::Vulkan(Some(known("vulkan", name, &VULKAN)?))),
            ("metal", None) => Ok(Self::Metal),
            ("metal", Some(_)) => Err(UnknownDestination::NoArchitecture { device: "metal", hint: "" }),
            _ => Err(UnknownDestination::Device(device.to_owned())),
        }
    }
}

fn known(
    device: &'static str,
    name: &str,
    known: &'static [&'static str],
) -> Result<&'static str, UnknownDestination> {
    let found = known.iter().find(|k| **k == name).copied();
    found.ok_or_else(|| UnknownDestination::Architecture { device, name: name.to_owned(), known })
}

impl FromStr for Processor {
    type Err = UnknownDestination;

    fn from_str(text: &str) -> Result<Self, UnknownDestination> {
        if text == "host" {
            return Ok(Self::Host);
        }
        Self::named().find(|p| p.to_string() == text).ok_or_else(|| UnknownDestination::Cpu {
            name: text.to_owned(),
            known: Self::NAMED.iter().map(|named| named.name).collect(),
        })
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Host => "host",
            Self::Named(named) => named.name,
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(Processor::Host) | Self::Vulkan(None) | Self::Metal => out.write_str(self.device()),
            Self::Cpu(processor) => write!(out, "cpu ({processor})"),
            Self::Cuda(arch) | Self::Vulkan(Some(arch)) => write!(out, "{}:{arch}", self.device()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn destination(text: &str) -> Destination {
        text.parse().expect("a device")
    }

    #[test]
    fn a_gpu_of_cuda_gets_the_most_capable_programs_that_it_runs() {
        for (capability, arch) in
            [((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_89"), ((12, 1), "sm_120")]
        {
            assert_eq!(Destination::cuda(Some(capability)), Destination::Cuda(arch));
        }
        for unknown in [None, Some((3, 5))] {
            assert_eq!(Destination::cuda(unknown), Destination::Cuda(CUDA_DEFAULT));
        }
    }

    #[test]
    fn the_host_has_the_flags_of_a_run() {
        assert_eq!(destination("cpu").flags(&Target::CPU.flags(), false), Target::CPU.flags());
        assert!(Target::CPU.flags().iter().any(|flag| flag.starts_with(TARGET)));
    }

    #[test]
    fn devices_have_their_flags_and_none_of_the_processor() {
        for (name, flag) in [
            ("cuda", "--iree-cuda-target=sm_80"),
            ("cuda:sm_89", "--iree-cuda-target=sm_89"),
            ("vulkan", "--iree-hal-target-device=vulkan"),
            ("vulkan:rdna3", "--iree-vulkan-target=rdna3"),
            ("metal", "--iree-hal-target-device=metal"),
        ] {
            let device = destination(name);
            let host = [Target::CPU.flags(), vec![NO_HOISTING.to_owned()]].concat();
            let flags = device.flags(&host, false);
            assert!(flags.iter().any(|f| f == flag), "{name}: {flags:?}");
            assert!(
                !flags.iter().any(|f| f.contains("llvmcpu") || f.contains("=local") || f == NO_HOISTING),
                "{name}: {flags:?}"
            );
            let demotes = flags.iter().any(|f| f == "--iree-input-demote-i64-to-i32=true");
            assert_eq!(demotes, name.starts_with("vulkan") || name == "metal", "{name}: {flags:?}");
            assert_eq!(device.cpu(), None);
            // Doubles stay doubles where there are any.
            let doubles = device.flags(&Target::CPU.flags_for(true), false);
            assert_eq!(
                doubles.iter().any(|f| f.contains("f64-to-f32=false")),
                !demotes,
                "{name}: {doubles:?}"
            );
        }
    }

    #[test]
    fn named_processors_have_their_flags_and_features() {
        let processor: Processor = "x86-64-v3".parse().expect("a processor");
        let flags = Destination::Cpu(processor).flags(&Target::CPU.flags(), false);
        assert!(flags.contains(&"--iree-llvmcpu-target-cpu=x86-64-v3".to_owned()), "{flags:?}");
        assert!(!flags.iter().any(|f| f.contains("cpu-features")), "nothing of this machine: {flags:?}");
        let count = flags.iter().filter(|flag| flag.starts_with(TARGET)).count();
        assert_eq!(count, 2, "{flags:?}");
        assert!(processor.cpu().to_string().starts_with("x86_64+avx+avx2+bmi1"));
        for processor in Processor::named() {
            let written = processor.cpu().to_string();
            assert_eq!(written.parse::<Cpu>().map(|cpu| cpu.to_string()), Ok(written));
        }
        assert!(Processor::portable().iter().all(|p| Cpu::host().supports(&p.cpu()).is_ok()));
    }

    #[test]
    fn debug_keeps_the_symbols() {
        let plain = Destination::HOST.flags(&Target::CPU.flags(), false);
        let debug = Destination::HOST.flags(&Target::CPU.flags(), true);
        assert_eq!(plain.len(), debug.len() + STRIPS.len());
    }

    #[test]
    fn what_does_not_exist_is_said_with_what_does() {
        let device = |text: &str| text.parse::<Destination>().expect_err("no device").to_string();
        insta::assert_snapshot!(device("tpu"), @"there is no device tpu; there are cpu, cuda, vulkan and metal");
        insta::assert_snapshot!(device("cuda:sm_90"), @"there is no cuda architecture sm_90; there are sm_60 sm_61 sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_120");
        insta::assert_snapshot!(device("cpu:x86-64-v3"), @"cpu takes no architecture: write cpu alone, and name the processor with --cpu, as in --cpu x86-64-v3");
        insta::assert_snapshot!("pentium".parse::<Processor>().expect_err("none").to_string(), @"there is no CPU pentium; there are host x86-64-v4 x86-64-v3 x86-64-v2 x86-64 aarch64");
    }
}
