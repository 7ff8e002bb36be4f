//! Tensors in host memory: a shape and immutable, shared, row-major elements.

use std::sync::Arc;

use super::{DType, Shape, TensorType, element_count};

/// The elements of a host tensor. Cloning shares them.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Elements of dtype `bool`.
    Bool(Arc<Vec<bool>>),
    /// Elements of dtype `i32`.
    I32(Arc<Vec<i32>>),
    /// Elements of dtype `i64`.
    I64(Arc<Vec<i64>>),
    /// Elements of dtype `u32`.
    U32(Arc<Vec<u32>>),
    /// Elements of dtype `f32`.
    F32(Arc<Vec<f32>>),
}

/// Runs an expression for whichever element vector is there, under one name.
#[macro_export]
macro_rules! with_elements {
    ($data:expr, $name:ident => $body:expr) => {
        match $data {
            $crate::tensor::Data::Bool($name) => $body,
            $crate::tensor::Data::I32($name) => $body,
            $crate::tensor::Data::I64($name) => $body,
            $crate::tensor::Data::U32($name) => $body,
            $crate::tensor::Data::F32($name) => $body,
        }
    };
}

/// Like [`with_elements`], and wraps the vector that the expression gives in the same dtype.
#[macro_export]
macro_rules! map_elements {
    ($data:expr, $name:ident => $body:expr) => {
        match $data {
            $crate::tensor::Data::Bool($name) => $crate::tensor::Data::from($body),
            $crate::tensor::Data::I32($name) => $crate::tensor::Data::from($body),
            $crate::tensor::Data::I64($name) => $crate::tensor::Data::from($body),
            $crate::tensor::Data::U32($name) => $crate::tensor::Data::from($body),
            $crate::tensor::Data::F32($name) => $crate::tensor::Data::from($body),
        }
    };
}

macro_rules! data_from {
    ($($variant:ident $ty:ty),*) => {$(
        impl From<Vec<$ty>> for Data {
            fn from(elements: Vec<$ty>) -> Data {
                Data::$variant(Arc::new(elements))
            }
        }
    )*};
}
data_from!(Bool bool, I32 i32, I64 i64, U32 u32, F32 f32);

impl Data {
    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::U32(_) => DType::U32,
            Data::F32(_) => DType::F32,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, v => v.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both share the same memory.
    pub fn same(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Bool(a), Data::Bool(b)) => Arc::ptr_eq(a, b),
            (Data::I32(a), Data::I32(b)) => Arc::ptr_eq(a, b),
            (Data::I64(a), Data::I64(b)) => Arc::ptr_eq(a, b),
            (Data::U32(a), Data::U32(b)) => Arc::ptr_eq(a, b),
            (Data::F32(a), Data::F32(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A tensor in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    shape: Shape,
    data: Data,
}

impl HostTensor {
    /// A tensor of `shape` with row-major elements.
    ///
    /// # Panics
    /// If the number of elements is not what the shape asks for; callers compute both from one shape.
    pub fn new(shape: impl Into<Shape>, data: impl Into<Data>) -> Self {
        let (shape, data) = (shape.into(), data.into());
        assert_eq!(element_count(&shape), data.len(), "elements for shape {shape:?}");
        HostTensor { shape, data }
    }

    /// A rank-0 tensor.
    pub fn scalar<T>(value: T) -> Self
    where
        Data: From<Vec<T>>,
    {
        HostTensor::new(Shape::new(), vec![value])
    }

    /// `count` times the same number, cast to `dtype`.
    pub fn filled(dtype: DType, shape: impl Into<Shape>, value: f64) -> Self {
        let shape = shape.into();
        let n = element_count(&shape);
        let data = match dtype {
            DType::Bool => Data::from(vec![value != 0.0; n]),
            DType::I32 => Data::from(vec![value as i32; n]),
            DType::I64 => Data::from(vec![value as i64; n]),
            DType::U32 => Data::from(vec![value as u32; n]),
            DType::F32 => Data::from(vec![value as f32; n]),
        };
        HostTensor { shape, data }
    }

    /// A tensor from bytes in memory order, as a device or a file holds them.
    /// `None` if the number of bytes is not what `ty` asks for, or a byte of a `bool` is neither 0 nor 1.
    pub fn from_bytes(ty: &TensorType, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != ty.count() * ty.dtype.byte_width() {
            return None;
        }
        let data = match ty.dtype {
            DType::Bool => {
                Data::from(bytes.iter().map(|b| (*b <= 1).then_some(*b == 1)).collect::<Option<Vec<bool>>>()?)
            }
            DType::I32 => Data::from(bytemuck::allocation::pod_collect_to_vec::<u8, i32>(bytes)),
            DType::I64 => Data::from(bytemuck::allocation::pod_collect_to_vec::<u8, i64>(bytes)),
            DType::U32 => Data::from(bytemuck::allocation::pod_collect_to_vec::<u8, u32>(bytes)),
            DType::F32 => Data::from(bytemuck::allocation::pod_collect_to_vec::<u8, f32>(bytes)),
        };
        Some(HostTensor { shape: ty.shape.clone(), data })
    }

    /// The elements as bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        with_elements!(&self.data, v => bytemuck::cast_slice(v.as_slice()))
    }

    /// The extents of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// The elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The (strong) type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype(), self.shape.clone())
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.data.len()
    }

    /// The same elements under another shape of the same size.
    ///
    /// # Panics
    /// If the sizes differ; type rules have refused that before.
    #[must_use]
    pub fn reshaped(&self, shape: impl Into<Shape>) -> Self {
        HostTensor::new(shape, self.data.clone())
    }

    /// Element `i` in row-major order as a float; booleans are 0 or 1.
    pub fn element_f64(&self, i: usize) -> f64 {
        match &self.data {
            Data::Bool(v) => v[i] as u8 as f64,
            Data::I32(v) => v[i] as f64,
            Data::I64(v) => v[i] as f64,
            Data::U32(v) => v[i] as f64,
            Data::F32(v) => v[i] as f64,
        }
    }

    /// Element `i` in row-major order as an integer; floats are truncated.
    pub fn element_i64(&self, i: usize) -> i64 {
        match &self.data {
            Data::Bool(v) => v[i] as i64,
            Data::I32(v) => v[i] as i64,
            Data::I64(v) => v[i],
            Data::U32(v) => v[i] as i64,
            Data::F32(v) => v[i] as i64,
        }
    }

    /// The elements, if they are `f32`.
    pub fn as_f32(&self) -> Option<&[f32]> {
        if let Data::F32(v) = &self.data { Some(v) } else { None }
    }
}
