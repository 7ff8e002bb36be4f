//! Tensor types and host tensors.

mod dtype;
mod host;
mod number;
mod print;
mod splat;
mod types;

pub use dtype::{DType, Kind};
pub use host::{Data, Element, HostTensor};
pub use number::{FromNumber, Number};
pub(crate) use print::has_exponent;
pub use print::{format_float, format_number, format_tensor};
pub use splat::pairs;
pub use types::{Shape, TensorType, element_count, strides};
