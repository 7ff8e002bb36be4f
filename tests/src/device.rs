//! Tensors of the host in memory of a device, and back.

use std::process::Command;

use sheaf_graph::tensor::{HostTensor, TensorType};
use sheaf_loader::element_type;
use sheaf_runtime::{Buffer, Device};

/// The compile worker: the program under test, as it starts itself.
pub fn worker() -> Command {
    let mut command = Command::new(crate::sheaf());
    command.arg("compile-worker");
    command
}

/// `tensor` in memory of the device.
///
/// # Panics
/// If the device has no memory for it.
pub fn upload(device: &Device, tensor: &HostTensor) -> Buffer {
    device.upload(element_type(tensor.dtype()), tensor.shape(), tensor.bytes()).expect("a buffer")
}

/// The content of a buffer of type `ty`.
///
/// # Errors
/// If it has another shape, or cannot be read.
pub fn download(buffer: &Buffer, ty: &TensorType) -> Result<HostTensor, String> {
    if buffer.shape() != ty.shape.as_slice() {
        return Err(format!("a result of shape {:?} instead of {ty}", buffer.shape()));
    }
    let bytes = buffer.read().map_err(|e| e.to_string())?;
    HostTensor::from_bytes(ty, &bytes).ok_or_else(|| format!("{} bytes instead of {ty}", bytes.len()))
}
