//! Tensor types and host tensors.

mod dtype;
mod host;
mod print;
mod types;

pub use dtype::{DType, Kind};
pub use host::{Data, HostTensor};
pub(crate) use print::has_exponent;
pub use print::{format_float, format_tensor};
pub use types::{Shape, TensorType, element_count, strides};
