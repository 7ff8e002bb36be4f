//! Typed access to the elements of host tensors, for evaluations that are the same for every dtype.

use crate::tensor::{Data, Element, HostTensor};

/// The elements of `x`, which has the dtype of `_like`.
///
/// # Panics
/// If it has another; the type rule has refused that before.
pub fn elements_like<'a, T: Element>(_like: &[T], x: &'a HostTensor) -> &'a [T] {
    typed(x.data())
}

/// The same as they are stored: the one element of a splat.
///
/// # Panics
/// If `x` has another dtype.
pub fn stored_like<'a, T: Element>(_like: &[T], x: &'a HostTensor) -> &'a [T] {
    typed(x.stored())
}

fn typed<T: Element>(data: &Data) -> &[T] {
    T::elements(data).unwrap_or_else(|| unreachable!("elements of {} read as {}", data.dtype(), T::DTYPE))
}
