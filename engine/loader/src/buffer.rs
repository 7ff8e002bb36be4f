//! Tensors on the device.

use std::any::Any;
use std::rc::Rc;

use sheaf_graph::primitives::{Convert, Primitive};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::host::{Buffer, DeviceTensor, HostError};
use sheaf_lang::observe::Activity;
use sheaf_runtime::{Device, ElementType, Error, Target};

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
        let narrow = demoted(ty.dtype).filter(|narrow| element_type(*narrow) == self.buffer.element_type());
        let on_device = TensorType { dtype: narrow.unwrap_or(ty.dtype), ..ty.clone() };
        let tensor = HostTensor::from_bytes(&on_device, &bytes).ok_or_else(|| HostError {
            message: format!("a result should be {ty} but has {} bytes", bytes.len()),
            help: None,
        })?;
        Ok(if narrow.is_some() { converted(&tensor, ty.dtype, ty.weak) } else { tensor })
    }

    fn is_ready(&self) -> bool {
        // Calls return when all is done.
        true
    }
}

/// Copies a tensor to the device, as a narrower one where the device has none so wide.
///
/// # Errors
///
/// The device has no memory for it, or an integer is out of the range of the device's.
pub fn upload(device: &Device, tensor: &HostTensor) -> Result<sheaf_runtime::Buffer, Error> {
    let target = device.target();
    if let Some(narrow) = demoted(tensor.dtype()).filter(|_| target.demotes()) {
        if tensor.dtype() == DType::I64 {
            in_range(tensor, target)?;
        }
        return upload(device, &converted(tensor, narrow, false));
    }
    device.upload(element_type(tensor.dtype()), tensor.shape(), &tensor.copied_bytes())
}

/// The dtype that stands for a 64-bit one on devices that have none.
fn demoted(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I64 => Some(DType::I32),
        DType::F64 => Some(DType::F32),
        _ => None,
    }
}

fn converted(tensor: &HostTensor, dtype: DType, weak: bool) -> HostTensor {
    Convert { dtype, weak }.evaluate(&[tensor]).swap_remove(0)
}

/// An error if an integer of the tensor is beyond those of 32 bits.
fn in_range(tensor: &HostTensor, target: Target) -> Result<(), Error> {
    let bytes = tensor.copied_bytes();
    let numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_ne_bytes(*bytes));
    match numbers.into_iter().find(|number| i32::try_from(*number).is_err()) {
        Some(number) => Err(Error::Range { number, target }),
        None => Ok(()),
    }
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
