//! The CPU that code compiled for `host` depends on.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// An architecture and the CPU features that a compiler may use: the part of an action key and of a manifest that
/// determines the machines on which `host` code runs. Written as `x86_64+avx+avx2`, with the features in alphabetical
/// order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu {
    arch: String,
    features: BTreeSet<String>,
}

/// Cause of an incompatibility between two processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingFeatures {
    /// Another architecture.
    #[error("it was compiled for {recorded} processors and this one is {host}")]
    Architecture {
        /// The architecture of the code.
        recorded: String,
        /// The architecture of this machine.
        host: String,
    },
    /// The code may use instructions that this processor lacks.
    #[error("it was compiled for a processor with {}, which this one lacks", .0.join(", "))]
    Features(Vec<String>),
}

/// The text is not a processor in the notation of [`Cpu`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a processor; one is written like `x86_64+avx+avx2`")]
pub struct CpuSyntax(pub String);

impl Cpu {
    /// The processor this program runs on.
    pub fn host() -> Self {
        Self { arch: std::env::consts::ARCH.to_owned(), features: host_features() }
    }

    /// A processor of this architecture with these features.
    pub(crate) fn with(arch: &str, features: &[&str]) -> Self {
        Self { arch: arch.to_owned(), features: features.iter().map(|f| (*f).to_owned()).collect() }
    }

    /// Its architecture, as Rust names it.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Its features, as Rust names them, in alphabetical order.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.features.iter().map(String::as_str)
    }

    /// Its features in LLVM's names, in alphabetical order: the ones that the compiler may use.
    pub(crate) fn llvm_features(&self) -> Vec<&str> {
        let x86 = self.arch == "x86_64";
        let mut features: Vec<_> =
            self.features().map(|feature| if x86 { llvm_x86(feature) } else { llvm_arm(feature) }).collect();
        features.sort_unstable();
        features.dedup();
        features
    }

    /// Errors unless this processor can run code compiled for `recorded` with all of its features.
    pub fn supports(&self, recorded: &Self) -> Result<(), MissingFeatures> {
        if self.arch != recorded.arch {
            return Err(MissingFeatures::Architecture {
                recorded: recorded.arch.clone(),
                host: self.arch.clone(),
            });
        }
        let missing: Vec<_> = recorded.features.difference(&self.features).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(MissingFeatures::Features(missing)) }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.arch)?;
        self.features.iter().try_for_each(|feature| write!(out, "+{feature}"))
    }
}

impl FromStr for Cpu {
    type Err = CpuSyntax;

    fn from_str(text: &str) -> Result<Self, CpuSyntax> {
        let mut parts = text.split('+').map(str::to_owned);
        let arch = parts.next().unwrap_or_default();
        let features: BTreeSet<_> = parts.collect();
        let cpu = Self { arch, features };
        // Keys hold the text, so each processor has exactly one spelling.
        if cpu.arch.is_empty() || cpu.to_string() != text || cpu.features.contains("") {
            return Err(CpuSyntax(text.to_owned()));
        }
        Ok(cpu)
    }
}

/// LLVM's name of a feature, if it differs from Rust's.
fn llvm_x86(feature: &str) -> &str {
    match feature {
        "bmi1" => "bmi",
        "cmpxchg16b" => "cx16",
        "pclmulqdq" => "pclmul",
        same => same,
    }
}

/// The same for `AArch64`.
fn llvm_arm(feature: &str) -> &str {
    match feature {
        "fcma" => "complxnum",
        "frintts" => "fptoint",
        "pmull" => "aes",
        "rcpc2" => "rcpc-immo",
        same => same,
    }
}

/// Collects the names for which a detection macro returns true.
macro_rules! detected {
    ($detect:ident: $($feature:tt)*) => {{
        let mut features = BTreeSet::new();
        $(if $detect!($feature) {
            features.insert($feature.to_owned());
        })*
        features
    }};
}

/// The features that LLVM uses for code generation, or IREE for selecting microkernels. Left out are those used only by
/// system software and explicit intrinsics (`xsave`, `rdrand`, `clflushopt`, ...): they differ between machines that
/// run the same code. The processors with `fma4` and `xop`, which Rust does not detect, are those with `tbm`.
/// Arithmetic on 16-bit floats is left out as well: programs compute with them as `f32`, and LLVM would merge the
/// roundings of a product and its sum (Q07).
#[cfg(target_arch = "x86_64")]
fn host_features() -> BTreeSet<String> {
    use std::arch::is_x86_feature_detected;
    detected!(is_x86_feature_detected:
        "sse3" "ssse3" "sse4.1" "sse4.2" "sse4a" "popcnt" "cmpxchg16b" "lzcnt" "movbe" "adx" "tbm"
        "bmi1" "bmi2" "avx" "avx2" "f16c" "fma" "aes" "pclmulqdq" "sha" "gfni" "vaes" "vpclmulqdq"
        "avx512f" "avx512cd" "avx512bw" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni"
        "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512vp2intersect"
        "avxvnni" "avxifma" "avxneconvert" "avxvnniint8" "avxvnniint16" "sha512" "sm3" "sm4"
    )
}

/// As for x86-64.
#[cfg(target_arch = "aarch64")]
fn host_features() -> BTreeSet<String> {
    use std::arch::is_aarch64_feature_detected;
    detected!(is_aarch64_feature_detected:
        "neon" "fcma" "jsconv" "frintts" "rdm" "dotprod" "i8mm" "bf16" "lse" "lse2" "crc" "aes" "pmull"
        "sha2" "sha3" "sm4" "rcpc" "rcpc2" "flagm" "sve" "sve2" "f32mm" "f64mm" "sve2-aes" "sve2-bitperm" "sve2-sha3"
        "sve2-sm4"
    )
}

/// On other architectures, only the architecture counts.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn host_features() -> BTreeSet<String> {
    BTreeSet::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(text: &str) -> Cpu {
        text.parse().expect("a processor")
    }

    #[test]
    fn the_host_supports_itself_and_keeps_its_name() {
        let host = Cpu::host();
        assert_eq!(host.supports(&host), Ok(()));
        assert_eq!(cpu(&host.to_string()), host);
        assert_eq!(host.arch(), std::env::consts::ARCH);
        let names: Vec<&str> = std::iter::once(host.arch()).chain(host.features()).collect();
        assert_eq!(names.join("+"), host.to_string());
    }

    #[test]
    fn fewer_features_are_supported_and_more_are_not() {
        let small = cpu("x86_64+avx");
        let large = cpu("x86_64+avx+avx2+avx512f");
        assert_eq!(large.supports(&small), Ok(()));
        insta::assert_snapshot!(small.supports(&large).expect_err("lacks two"), @"it was compiled for a processor with avx2, avx512f, which this one lacks");
        insta::assert_snapshot!(cpu("aarch64+neon").supports(&small).expect_err("another"), @"it was compiled for x86_64 processors and this one is aarch64");
    }

    #[test]
    fn llvm_has_names_of_its_own() {
        let names = |text: &str| cpu(text).llvm_features().join(" ");
        assert_eq!(names("x86_64+avx2+bmi1+cmpxchg16b+pclmulqdq+sse4.1"), "avx2 bmi cx16 pclmul sse4.1");
        assert_eq!(names("aarch64+aes+fcma+neon+pmull"), "aes complxnum neon");
        assert_eq!(names("x86_64"), "");
    }

    #[test]
    fn only_one_spelling_is_read() {
        for wrong in ["", "+avx", "x86_64+", "x86_64+avx2+avx", "x86_64+avx+avx"] {
            assert_eq!(wrong.parse::<Cpu>(), Err(CpuSyntax(wrong.to_owned())));
        }
        insta::assert_snapshot!("x86_64+".parse::<Cpu>().expect_err("open"), @"`x86_64+` does not name a processor; one is written like `x86_64+avx+avx2`");
    }
}
