//! Typed access to the elements of host tensors, for evaluations that are the same for every dtype.

use crate::tensor::{Element, HostTensor};

/// The elements of `x`, which has the dtype of `_like`.
///
/// # Panics
/// If it has another; the type rule has refused that before.
pub fn elements_like<'a, T: Element>(_like: &[T], x: &'a HostTensor) -> &'a [T] {
    T::elements(x.data()).unwrap_or_else(|| unreachable!("elements of {} read as {}", x.dtype(), T::DTYPE))
}
