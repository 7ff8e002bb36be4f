//! Typed access to the elements of host tensors, for evaluations that are the same for every dtype.

use crate::tensor::{Data, HostTensor};

/// An element type.
pub trait Element: Copy {
    /// The elements of a tensor of this type.
    ///
    /// # Panics
    /// If the tensor is of another dtype; the type rule has refused that before.
    fn elements(x: &HostTensor) -> &[Self];
}

macro_rules! elements {
    ($($variant:ident $ty:ty),*) => {$(
        impl Element for $ty {
            fn elements(x: &HostTensor) -> &[Self] {
                match x.data() {
                    Data::$variant(v) => v,
                    other => unreachable!("elements of {} read as {}", other.dtype(), stringify!($ty)),
                }
            }
        }
    )*};
}
elements!(Bool bool, I32 i32, I64 i64, U32 u32, F32 f32);

/// The elements of `x`, which has the dtype of `_like`.
pub fn elements_like<'a, T: Element>(_like: &[T], x: &'a HostTensor) -> &'a [T] {
    T::elements(x)
}
