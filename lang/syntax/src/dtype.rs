//! Element types.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Booleans; one byte each in memory, `i1` in MLIR.
    Bool,
    /// 8-bit signed integers, wrapping.
    I8,
    /// 16-bit signed integers, wrapping.
    I16,
    /// 32-bit signed integers, wrapping.
    I32,
    /// 64-bit signed integers, wrapping; also the dtype of weak integers.
    I64,
    /// 8-bit unsigned integers, wrapping.
    U8,
    /// 16-bit unsigned integers, wrapping.
    U16,
    /// 32-bit unsigned integers, wrapping.
    U32,
    /// The upper half of an `f32`: 8 bits of exponent, 7 of fraction. Operations compute in `f32` and round.
    BF16,
    /// IEEE half precision: 5 bits of exponent, 10 of fraction. Operations compute in `f32` and round.
    F16,
    /// IEEE single precision, the default.
    F32,
    /// IEEE double precision.
    F64,
}

/// The promotion class of a dtype: `bool -> integer -> float`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Booleans.
    Bool,
    /// Signed and unsigned integers.
    Integer,
    /// Floating point numbers.
    Float,
}

impl DType {
    /// Every dtype, in promotion order.
    pub const ALL: [DType; 12] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::BF16,
        DType::F16,
        DType::F32,
        DType::F64,
    ];

    /// The name used in programs (without the colon), messages and manifests.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::BF16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// The dtype called `name` in programs; `None` if there is none.
    pub fn parse(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// The dtype called `name`; the error lists all dtypes.
    pub fn named(name: &str) -> Result<DType, String> {
        let known = DType::ALL.map(DType::name).join(" ");
        DType::parse(name).ok_or_else(|| format!("there is no dtype {name}; there are {known}"))
    }

    /// The element type in MLIR. `StableHLO` marks unsigned integers by `ui`.
    pub fn mlir(self) -> &'static str {
        match self {
            DType::Bool => "i1",
            DType::U8 => "ui8",
            DType::U16 => "ui16",
            DType::U32 => "ui32",
            other => other.name(),
        }
    }

    /// The promotion class.
    pub fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::BF16 | DType::F16 | DType::F32 | DType::F64 => Kind::Float,
            _ => Kind::Integer,
        }
    }

    /// True for floats.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// True for 16-bit floats, which are computed in `f32`.
    pub fn is_half(self) -> bool {
        matches!(self, DType::BF16 | DType::F16)
    }

    /// True for integers.
    pub fn is_integer(self) -> bool {
        self.kind() == Kind::Integer
    }

    /// True for unsigned integers.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32)
    }

    /// True for integers with a sign.
    pub fn is_signed_integer(self) -> bool {
        self.is_integer() && !self.is_unsigned()
    }

    /// The least and the greatest integer; `None` for booleans and floats.
    pub fn range(self) -> Option<(i64, i64)> {
        Some(match self {
            DType::I8 => (i8::MIN.into(), i8::MAX.into()),
            DType::I16 => (i16::MIN.into(), i16::MAX.into()),
            DType::I32 => (i32::MIN.into(), i32::MAX.into()),
            DType::I64 => (i64::MIN, i64::MAX),
            DType::U8 => (0, u8::MAX.into()),
            DType::U16 => (0, u16::MAX.into()),
            DType::U32 => (0, u32::MAX.into()),
            _ => return None,
        })
    }

    /// True for signed integers and floats.
    pub fn is_signed(self) -> bool {
        self != DType::Bool && !self.is_unsigned()
    }

    /// The signed integer dtype of the same width.
    #[must_use]
    pub fn as_signed_bits(self) -> DType {
        match self.byte_width() {
            1 => DType::I8,
            2 => DType::I16,
            4 => DType::I32,
            _ => DType::I64,
        }
    }

    /// The minimum and maximum, as integers; `None` for booleans and floats.
    pub fn bounds(self) -> Option<(i64, i64)> {
        let bits = 8 * self.byte_width() as u32;
        match self.kind() {
            Kind::Integer if self.is_unsigned() => Some((0, i64::MAX >> (63 - bits))),
            Kind::Integer => Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))),
            _ => None,
        }
    }

    /// True if this dtype represents every number of `other`, a dtype of the same kind.
    pub fn holds(self, other: DType) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((least, most)), Some((low, high))) => least <= low && high <= most,
            _ => self == other || self.byte_width() > other.byte_width(),
        }
    }

    /// Bytes per element in memory.
    pub fn byte_width(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::BF16 | DType::F16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
