//! Tensors as NumPy prints them.

use super::HostTensor;

/// A float as `print` shows it in a tensor or alone.
pub fn format_float(x: f32) -> String {
    format!("{x}")
}

/// A tensor as NumPy prints it.
pub fn format_tensor(x: &HostTensor) -> String {
    format!("{x:?}")
}
