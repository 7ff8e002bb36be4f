//! Shapes and tensor types.

use std::fmt;

use smallvec::SmallVec;

use super::DType;

/// The extents of a tensor's axes, outermost first; empty for a scalar.
pub type Shape = SmallVec<[usize; 4]>;

/// The number of elements of a tensor of this shape.
pub fn element_count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Row-major strides, in elements.
pub fn strides(shape: &[usize]) -> Shape {
    let mut out: Shape = SmallVec::from_elem(1, shape.len());
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        out[axis] = out[axis + 1] * shape[axis + 1];
    }
    out
}

/// A tensor type: the abstract value (aval) of tracing.
#[derive(PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: Shape,
    /// A weak scalar adapts to the dtype of the other operand (as in JAX). Only scalars are weak.
    pub weak: bool,
}

impl Clone for TensorType {
    // The derived one copies the shape axis by axis; a call clones the type of each result.
    fn clone(&self) -> Self {
        TensorType { dtype: self.dtype, shape: Shape::from_slice(&self.shape), weak: self.weak }
    }
}

impl TensorType {
    /// A strong type.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        TensorType { dtype, shape: shape.into(), weak: false }
    }

    /// A strong scalar type.
    pub fn scalar(dtype: DType) -> Self {
        TensorType::new(dtype, Shape::new())
    }

    /// A weak scalar type, as of a number literal.
    pub fn weak(dtype: DType) -> Self {
        TensorType { dtype, shape: Shape::new(), weak: true }
    }

    /// This type with another shape; only scalars stay weak.
    #[must_use]
    pub fn with_shape(&self, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        let weak = self.weak && shape.is_empty();
        TensorType { dtype: self.dtype, shape, weak }
    }

    /// This type with another dtype, strong.
    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> Self {
        TensorType { dtype, shape: self.shape.clone(), weak: false }
    }

    /// The type of the same bits as signed integers, of a type of unsigned integers; any other type as it is.
    #[must_use]
    pub fn signless(&self) -> Self {
        if self.dtype.is_unsigned() { self.with_dtype(self.dtype.as_signed_bits()) } else { self.clone() }
    }

    /// The dtype after strengthening: its own, but the default `i32` for a weak integer.
    pub fn strong_dtype(&self) -> DType {
        if self.weak && self.dtype == DType::I64 { DType::I32 } else { self.dtype }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        element_count(&self.shape)
    }

    /// The type in MLIR, such as `tensor<4x2xf32>`.
    pub fn mlir(&self) -> String {
        use std::fmt::Write;
        let mut out = String::from("tensor<");
        for extent in &self.shape {
            let _ = write!(out, "{extent}x");
        }
        out.push_str(self.dtype.mlir());
        out.push('>');
        out
    }
}

/// `f32[4x2]`, or `f32[]` for a scalar, in messages and traces.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, extent) in self.shape.iter().enumerate() {
            if i > 0 {
                f.write_str("x")?;
            }
            write!(f, "{extent}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weak {
            f.write_str("weak ")?;
        }
        write!(f, "{self}")
    }
}
