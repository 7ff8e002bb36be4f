//! Element types.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Truth values; one byte each in memory, `i1` in MLIR.
    Bool,
    /// 32-bit signed integers, wrapping.
    I32,
    /// 64-bit signed integers, wrapping; also what a weak integer is made of.
    I64,
    /// 32-bit unsigned integers, wrapping.
    U32,
    /// IEEE single precision, the default.
    F32,
}

/// The promotion class of a dtype: `bool -> integer -> float`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Truth values.
    Bool,
    /// Signed and unsigned integers.
    Integer,
    /// Floating point numbers.
    Float,
}

impl DType {
    /// Every dtype, in promotion order.
    pub const ALL: [DType; 5] = [DType::Bool, DType::I32, DType::I64, DType::U32, DType::F32];

    /// The name used in programs (without the colon), messages and manifests.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U32 => "u32",
            DType::F32 => "f32",
        }
    }

    /// The dtype called `name` in programs.
    pub fn parse(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// The dtypes of the language that this build does not have.
    const ABSENT: [&str; 7] = ["bf16", "f16", "f64", "i8", "i16", "u8", "u16"];

    /// Whether `name` is a dtype of the language, in this build or not.
    pub fn is_name(name: &str) -> bool {
        DType::parse(name).is_some() || DType::ABSENT.contains(&name)
    }

    /// The dtype called `name`; the error says whether there is none, or none in this build.
    pub fn named(name: &str) -> Result<DType, String> {
        let known = DType::ALL.map(DType::name).join(" ");
        DType::parse(name).ok_or_else(|| {
            if DType::is_name(name) {
                format!("this build of Sheaf has no dtype {name}; it has {known}")
            } else {
                format!("there is no dtype {name}; there are {known}")
            }
        })
    }

    /// The element type in MLIR. `StableHLO` marks unsigned integers by `ui`.
    pub fn mlir(self) -> &'static str {
        match self {
            DType::Bool => "i1",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U32 => "ui32",
            DType::F32 => "f32",
        }
    }

    /// The promotion class.
    pub fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::I32 | DType::I64 | DType::U32 => Kind::Integer,
            DType::F32 => Kind::Float,
        }
    }

    /// Whether elements are floating point numbers.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Whether elements are integers.
    pub fn is_integer(self) -> bool {
        self.kind() == Kind::Integer
    }

    /// Bytes per element in memory.
    pub fn byte_width(self) -> usize {
        match self {
            DType::Bool => 1,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 => 8,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
