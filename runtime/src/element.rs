//! Types of tensor elements.

use eerie_sys::runtime as iree;

/// Type of the elements of a [`Buffer`](crate::Buffer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of a single-precision number.
    Bf16,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// A truth value: `i1` in MLIR, one byte, 0 or 1, in memory.
    Bool,
}

impl ElementType {
    /// All types, in the order of their declaration.
    pub const ALL: [Self; 13] = [
        Self::F32,
        Self::F64,
        Self::F16,
        Self::Bf16,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
    ];

    /// Bytes of one element in memory.
    pub const fn byte_width(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// IREE's number of the type. Integers are distinguished by sign so that a result has its exact type; as arguments
    /// IREE accepts any integer of the right width.
    pub(crate) const fn to_iree(self) -> iree::iree_hal_element_type_t {
        match self {
            Self::F32 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_32,
            Self::F64 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_64,
            Self::F16 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_16,
            Self::Bf16 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BFLOAT_16,
            Self::I8 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_8,
            Self::I16 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_16,
            Self::I32 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_32,
            Self::I64 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_64,
            Self::U8 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_8,
            Self::U16 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_16,
            Self::U32 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_32,
            Self::U64 => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_64,
            Self::Bool => iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BOOL_8,
        }
    }

    /// The type for IREE's number; its signless integers count as signed, as in MLIR.
    pub(crate) const fn from_iree(raw: iree::iree_hal_element_type_t) -> Result<Self, UnknownElementType> {
        Ok(match raw {
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_32 => Self::F32,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_64 => Self::F64,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_FLOAT_16 => Self::F16,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BFLOAT_16 => Self::Bf16,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_8
            | iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_INT_8 => Self::I8,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_16
            | iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_INT_16 => Self::I16,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_32
            | iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_INT_32 => Self::I32,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_SINT_64
            | iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_INT_64 => Self::I64,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_8 => Self::U8,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_16 => Self::U16,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_32 => Self::U32,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_UINT_64 => Self::U64,
            iree::iree_hal_element_types_t_IREE_HAL_ELEMENT_TYPE_BOOL_8 => Self::Bool,
            _ => return Err(UnknownElementType(raw)),
        })
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
        })
    }
}

/// An element type of IREE's that has no [`ElementType`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type {0:#010x}")]
pub struct UnknownElementType(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_the_way_to_iree_and_back() {
        for element in ElementType::ALL {
            let raw = element.to_iree();
            assert_eq!(ElementType::from_iree(raw), Ok(element));
            assert_eq!(element.byte_width() * 8, (raw & 0xff) as usize, "{element}");
        }
    }

    #[test]
    fn a_type_without_a_name_is_reported_by_number() {
        assert_eq!(ElementType::from_iree(0x2300_0040), Err(UnknownElementType(0x2300_0040)));
        insta::assert_snapshot!(UnknownElementType(0x2300_0040), @"unknown element type 0x23000040");
    }
}
