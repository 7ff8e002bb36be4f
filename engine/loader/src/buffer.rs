//! Tensors on the device.

use std::any::Any;
use std::rc::Rc;

use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::host::{Buffer, DeviceTensor, HostError};
use sheaf_lang::observe::Activity;
use sheaf_runtime::{Device, ElementType, Error};

use crate::timeline::{Entry, timed};

/// A buffer of the runtime behind the language's trait.
pub struct DeviceBuffer {
    buffer: sheaf_runtime::Buffer,
    /// Its entry in the ledger of an observer.
    _entry: Option<Entry>,
}

impl DeviceBuffer {
    /// Hands a buffer to the language; `origin` tells an observer of memory where it comes from.
    pub fn share(buffer: sheaf_runtime::Buffer, origin: impl FnOnce() -> String) -> Buffer {
        Rc::new(DeviceBuffer { _entry: Entry::new(origin, buffer.byte_len()), buffer })
    }

    /// The runtime's buffer behind one of the language's.
    pub fn of(buffer: &Buffer) -> Result<&sheaf_runtime::Buffer, HostError> {
        match (&**buffer as &dyn Any).downcast_ref::<DeviceBuffer>() {
            Some(DeviceBuffer { buffer, .. }) => Ok(buffer),
            None => Err(HostError { message: "a tensor of another device".into(), help: None }),
        }
    }
}

impl DeviceBuffer {
    /// The runtime's buffer of a tensor without other references.
    pub fn take(buffer: Buffer) -> Option<sheaf_runtime::Buffer> {
        let buffer: Rc<dyn Any> = buffer;
        Rc::try_unwrap(buffer.downcast::<DeviceBuffer>().ok()?).ok().map(|inner| inner.buffer)
    }
}

impl DeviceTensor for DeviceBuffer {
    fn read(&self, ty: &TensorType) -> Result<HostTensor, HostError> {
        let size = |read: &Result<Vec<u8>, Error>| read.as_ref().ok().map(|bytes| bytes.len() as u64);
        let read = timed(Activity::Download, "", size, || self.buffer.read());
        let bytes = read.map_err(crate::loaded::runtime_error)?;
        HostTensor::from_bytes(ty, &bytes).ok_or_else(|| HostError {
            message: format!("a result should be {ty} but has {} bytes", bytes.len()),
            help: None,
        })
    }

    fn is_ready(&self) -> bool {
        // Calls return when all is done.
        true
    }
}

/// Copies a tensor to the device.
pub fn upload(device: &Device, tensor: &HostTensor) -> Result<sheaf_runtime::Buffer, Error> {
    device.upload(element_type(tensor.dtype()), tensor.shape(), &tensor.copied_bytes())
}

/// The runtime's name of a dtype.
pub fn element_type(dtype: DType) -> ElementType {
    match dtype {
        DType::Bool => ElementType::Bool,
        DType::I8 => ElementType::I8,
        DType::I16 => ElementType::I16,
        DType::I32 => ElementType::I32,
        DType::I64 => ElementType::I64,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::BF16 => ElementType::Bf16,
        DType::F16 => ElementType::F16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
    }
}
