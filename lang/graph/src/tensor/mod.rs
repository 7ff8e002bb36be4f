//! Tensor types and host tensors.

mod host;
mod number;
mod print;
mod rows;
mod shared;
mod splat;
mod types;

pub use half::{bf16, f16};
pub use host::{Data, Element, HostTensor};
pub use number::{FromNumber, Number};
pub use print::has_exponent;
pub use print::{format_float, format_number, format_tensor};
pub use shared::{FileBytes, FileChanged, FilePart, Shared};
pub use sheaf_syntax::{DType, Kind};
pub use splat::pairs;
pub use types::{Shape, TensorType, element_count, strides};
