//! Tensors in host memory: a shape and immutable, shared, row-major elements.

use half::{bf16, f16};

use bytemuck::allocation::pod_collect_to_vec;

use super::shared::{FileChanged, FilePart, Shared};
use super::splat::Elements;
use super::{DType, FromNumber, Number, Shape, TensorType, element_count};

/// The elements of a host tensor. Cloning shares them.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Elements of dtype `bool`.
    Bool(Shared<bool>),
    /// Elements of dtype `i8`.
    I8(Shared<i8>),
    /// Elements of dtype `i16`.
    I16(Shared<i16>),
    /// Elements of dtype `i32`.
    I32(Shared<i32>),
    /// Elements of dtype `i64`.
    I64(Shared<i64>),
    /// Elements of dtype `u8`.
    U8(Shared<u8>),
    /// Elements of dtype `u16`.
    U16(Shared<u16>),
    /// Elements of dtype `u32`.
    U32(Shared<u32>),
    /// Elements of dtype `bf16`.
    BF16(Shared<bf16>),
    /// Elements of dtype `f16`.
    F16(Shared<f16>),
    /// Elements of dtype `f32`.
    F32(Shared<f32>),
    /// Elements of dtype `f64`.
    F64(Shared<f64>),
}

/// Runs an expression on the elements of any dtype, a slice, under one name.
#[macro_export]
macro_rules! with_elements {
    ($data:expr, $name:ident => $body:expr) => {
        match $data {
            $crate::tensor::Data::Bool($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::I8($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::I16($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::I32($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::I64($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::U8($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::U16($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::U32($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::BF16($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::F16($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::F32($name) => {
                let $name = $name.as_slice();
                $body
            }
            $crate::tensor::Data::F64($name) => {
                let $name = $name.as_slice();
                $body
            }
        }
    };
}

/// Like [`with_elements`], and wraps the resulting vector in the same dtype.
#[macro_export]
macro_rules! map_elements {
    ($data:expr, $name:ident => $body:expr) => {
        $crate::with_elements!($data, $name => $crate::tensor::Data::from($body))
    };
}

/// Runs an expression with `$ty` as the element type of a dtype.
#[macro_export]
macro_rules! with_element_type {
    ($dtype:expr, $ty:ident => $body:expr) => {
        match $dtype {
            $crate::tensor::DType::Bool => {
                type $ty = bool;
                $body
            }
            $crate::tensor::DType::I8 => {
                type $ty = i8;
                $body
            }
            $crate::tensor::DType::I16 => {
                type $ty = i16;
                $body
            }
            $crate::tensor::DType::I32 => {
                type $ty = i32;
                $body
            }
            $crate::tensor::DType::I64 => {
                type $ty = i64;
                $body
            }
            $crate::tensor::DType::U8 => {
                type $ty = u8;
                $body
            }
            $crate::tensor::DType::U16 => {
                type $ty = u16;
                $body
            }
            $crate::tensor::DType::U32 => {
                type $ty = u32;
                $body
            }
            $crate::tensor::DType::BF16 => {
                type $ty = $crate::tensor::bf16;
                $body
            }
            $crate::tensor::DType::F16 => {
                type $ty = $crate::tensor::f16;
                $body
            }
            $crate::tensor::DType::F32 => {
                type $ty = f32;
                $body
            }
            $crate::tensor::DType::F64 => {
                type $ty = f64;
                $body
            }
        }
    };
}

macro_rules! data_from {
    ($($variant:ident $ty:ty),*) => {$(
        impl From<Vec<$ty>> for Data {
            fn from(elements: Vec<$ty>) -> Data {
                Data::$variant(elements.into())
            }
        }

        impl Element for $ty {
            const DTYPE: DType = DType::$variant;

            fn elements(data: &Data) -> Option<&[Self]> {
                if let Data::$variant(v) = data { Some(v) } else { None }
            }

            fn view(bytes: &[u8]) -> Option<&[Self]> {
                data_from!(@view $variant bytes)
            }

            fn append(bytes: &[u8], to: &mut Vec<Self>) {
                data_from!(@append $variant bytes to)
            }
        }
    )*};
    (@view Bool $bytes:ident) => {{
        let _ = $bytes;
        None
    }};
    (@view $variant:ident $bytes:ident) => {
        bytemuck::try_cast_slice($bytes).ok()
    };
    (@append Bool $bytes:ident $to:ident) => {
        $to.extend($bytes.iter().map(|byte| *byte != 0))
    };
    (@append $variant:ident $bytes:ident $to:ident) => {
        $to.extend($bytes.chunks_exact(size_of::<Self>()).map(bytemuck::pod_read_unaligned::<Self>))
    };
}
data_from!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, BF16 bf16, F16 f16, F32 f32, F64 f64);

/// A Rust element type.
pub trait Element: Copy + Into<Number> {
    /// Its dtype.
    const DTYPE: DType;

    /// The elements, if they are of this type.
    fn elements(data: &Data) -> Option<&[Self]>;

    /// Bytes in memory order as elements in place. `None` if they are misaligned or no whole elements; always for `bool`,
    /// which does not take every byte.
    fn view(bytes: &[u8]) -> Option<&[Self]>;

    /// Appends the elements of bytes in memory order, whatever their alignment.
    fn append(bytes: &[u8], to: &mut Vec<Self>);
}

/// Runs an expression on the storage of any dtype.
macro_rules! each_storage {
    ($data:expr, $name:ident => $body:expr) => {
        match $data {
            Data::Bool($name) => $body,
            Data::I8($name) => $body,
            Data::I16($name) => $body,
            Data::I32($name) => $body,
            Data::I64($name) => $body,
            Data::U8($name) => $body,
            Data::U16($name) => $body,
            Data::U32($name) => $body,
            Data::BF16($name) => $body,
            Data::F16($name) => $body,
            Data::F32($name) => $body,
            Data::F64($name) => $body,
        }
    };
}

impl Data {
    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::I8(_) => DType::I8,
            Data::I16(_) => DType::I16,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::U8(_) => DType::U8,
            Data::U16(_) => DType::U16,
            Data::U32(_) => DType::U32,
            Data::BF16(_) => DType::BF16,
            Data::F16(_) => DType::F16,
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        each_storage!(self, v => v.count())
    }

    /// The parts of files that hold the elements; none if they are in memory.
    pub fn files(&self) -> &[FilePart] {
        each_storage!(self, v => v.files())
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        with_elements!(self, v => bytemuck::cast_slice(v))
    }

    /// True if both share the same memory.
    pub fn same(&self, other: &Data) -> bool {
        fn shared<T: Element>(a: &[T], b: &Data) -> bool {
            T::elements(b).is_some_and(|b| std::ptr::eq(a, b))
        }
        with_elements!(self, v => shared(v, other))
    }

    /// 16-bit floats as `f32`; all others unchanged.
    #[must_use]
    pub fn widened(&self) -> Data {
        match self {
            Data::BF16(v) => Data::from(v.iter().map(|x| x.to_f32()).collect::<Vec<_>>()),
            Data::F16(v) => Data::from(v.iter().map(|x| x.to_f32()).collect::<Vec<_>>()),
            other => other.clone(),
        }
    }

    /// `f32` rounded to 16-bit floats of `dtype`; unchanged for any other dtype.
    #[must_use]
    pub fn narrowed(self, dtype: DType) -> Data {
        match (&self, dtype) {
            (Data::F32(v), DType::BF16) => {
                Data::from(v.iter().map(|x| bf16::from_f32(*x)).collect::<Vec<_>>())
            }
            (Data::F32(v), DType::F16) => Data::from(v.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()),
            _ => self,
        }
    }
}

/// A tensor in host memory.
#[derive(Clone)]
pub struct HostTensor {
    pub(super) shape: Shape,
    pub(super) elements: Elements,
}

impl HostTensor {
    /// A tensor of `shape` with row-major elements.
    ///
    /// # Panics
    /// If the number of elements does not match the shape; callers compute both from one shape.
    pub fn new(shape: impl Into<Shape>, data: impl Into<Data>) -> Self {
        let (shape, data) = (shape.into(), data.into());
        assert_eq!(element_count(&shape), data.len(), "elements for shape {shape:?}");
        HostTensor { shape, elements: Elements::Each(data) }
    }

    /// A rank-0 tensor.
    pub fn scalar<T>(value: T) -> Self
    where
        Data: From<Vec<T>>,
    {
        HostTensor::new(Shape::new(), vec![value])
    }

    /// `value` repeated, cast to `dtype`.
    pub fn filled(dtype: DType, shape: impl Into<Shape>, value: f64) -> Self {
        HostTensor::number(dtype, shape, Number::Float(value))
    }

    /// A number repeated, cast to `dtype`.
    pub fn number(dtype: DType, shape: impl Into<Shape>, value: Number) -> Self {
        let number = with_element_type!(dtype, T => HostTensor::scalar(T::from_number(value)));
        HostTensor::repeated(&number, shape)
    }

    /// A tensor from bytes in memory order, as in device memory or a file. `None` if the number of bytes does not match
    /// `ty`, or a byte of a `bool` is neither 0 nor 1.
    pub fn from_bytes(ty: &TensorType, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != ty.count() * ty.dtype.byte_width() {
            return None;
        }
        let data = match ty.dtype {
            DType::Bool => {
                Data::from(bytes.iter().map(|b| (*b <= 1).then_some(*b == 1)).collect::<Option<Vec<bool>>>()?)
            }
            DType::I8 => Data::from(pod_collect_to_vec::<u8, i8>(bytes)),
            DType::I16 => Data::from(pod_collect_to_vec::<u8, i16>(bytes)),
            DType::I32 => Data::from(pod_collect_to_vec::<u8, i32>(bytes)),
            DType::I64 => Data::from(pod_collect_to_vec::<u8, i64>(bytes)),
            DType::U8 => Data::from(pod_collect_to_vec::<u8, u8>(bytes)),
            DType::U16 => Data::from(pod_collect_to_vec::<u8, u16>(bytes)),
            DType::U32 => Data::from(pod_collect_to_vec::<u8, u32>(bytes)),
            DType::BF16 => Data::from(pod_collect_to_vec::<u8, bf16>(bytes)),
            DType::F16 => Data::from(pod_collect_to_vec::<u8, f16>(bytes)),
            DType::F32 => Data::from(pod_collect_to_vec::<u8, f32>(bytes)),
            DType::F64 => Data::from(pod_collect_to_vec::<u8, f64>(bytes)),
        };
        Some(HostTensor { shape: ty.shape.clone(), elements: Elements::Each(data) })
    }

    /// A tensor whose elements are in parts of files, one after the other, in memory order. They are read when they are
    /// accessed; booleans are checked, and so copied, at once. `None` as for [`HostTensor::from_bytes`].
    pub fn in_files(ty: &TensorType, parts: Vec<FilePart>) -> Option<Self> {
        let bytes = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.range.len()));
        if bytes != ty.count().checked_mul(ty.dtype.byte_width()) {
            return None;
        }
        if ty.dtype == DType::Bool {
            let bytes: Vec<u8> = parts.iter().flat_map(FilePart::bytes).copied().collect();
            return HostTensor::from_bytes(ty, &bytes);
        }
        let data = match ty.dtype {
            DType::Bool => return None,
            DType::I8 => Data::I8(Shared::in_files(parts)?),
            DType::I16 => Data::I16(Shared::in_files(parts)?),
            DType::I32 => Data::I32(Shared::in_files(parts)?),
            DType::I64 => Data::I64(Shared::in_files(parts)?),
            DType::U8 => Data::U8(Shared::in_files(parts)?),
            DType::U16 => Data::U16(Shared::in_files(parts)?),
            DType::U32 => Data::U32(Shared::in_files(parts)?),
            DType::BF16 => Data::BF16(Shared::in_files(parts)?),
            DType::F16 => Data::F16(Shared::in_files(parts)?),
            DType::F32 => Data::F32(Shared::in_files(parts)?),
            DType::F64 => Data::F64(Shared::in_files(parts)?),
        };
        Some(HostTensor { shape: ty.shape.clone(), elements: Elements::Each(data) })
    }

    /// Fails if its elements are in a file that has changed.
    pub fn check_files(&self) -> Result<(), FileChanged> {
        self.stored().files().iter().try_for_each(|part| part.file.check())
    }

    /// The elements as bytes in memory order; a splat is materialized permanently.
    pub fn bytes(&self) -> &[u8] {
        self.data().bytes()
    }

    /// The extents of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.stored().dtype()
    }

    /// The elements; a splat is materialized permanently.
    pub fn data(&self) -> &Data {
        self.elements.each()
    }

    /// The (strong) type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype(), self.shape.clone())
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        element_count(&self.shape)
    }

    /// A reshape to a shape of the same size.
    ///
    /// # Panics
    /// If the sizes differ; the type rules check them before.
    #[must_use]
    pub fn reshaped(&self, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        assert_eq!(element_count(&shape), self.count(), "elements for shape {shape:?}");
        HostTensor { shape, elements: self.elements.clone() }
    }

    /// Element `i` in row-major order.
    pub fn element(&self, i: usize) -> Number {
        let i = if self.is_splat() { 0 } else { i };
        with_elements!(self.stored(), v => v[i].into())
    }

    /// Element `i` in row-major order as a float; booleans are 0 or 1.
    pub fn element_f64(&self, i: usize) -> f64 {
        self.element(i).as_f64()
    }

    /// Element `i` in row-major order as an integer; floats are truncated.
    pub fn element_i64(&self, i: usize) -> i64 {
        self.element(i).as_i64()
    }

    /// The elements, if they are `f32`.
    pub fn as_f32(&self) -> Option<&[f32]> {
        if let Data::F32(v) = self.data() { Some(v) } else { None }
    }
}
