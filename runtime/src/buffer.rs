//! Device buffers that hold tensors.

use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use eerie_sys::runtime as iree;

use crate::device::{Device, create};
use crate::error::{Error, check};
use crate::ffi::{Counted, Ref, host_allocator};
use crate::runtime::{Shared, Target};
use crate::suballocations::{Recorded, Suballocation};
use crate::{ElementType, UnknownElementType};

/// Time between two looks at the references to a buffer.
const LOOK: Duration = Duration::from_micros(20);

/// A tensor in device memory: dense, in row-major order.
///
/// A buffer is never written after it was created, except by a call that [consumes](crate::CallFrame::donate) it.
pub struct Buffer {
    /// Its record as a suballocation, if the memory is a part of an allocation. Declared before the view: the address of an
    /// allocation is that of another once it is free.
    suballocation: Option<Recorded>,
    view: Ref<iree::iree_hal_buffer_view_t>,
    element: ElementType,
    target: Target,
    // Declared after the view: the memory may be the device's, which must be dropped last.
    shared: Rc<Shared>,
}

impl Buffer {
    pub(crate) fn upload(
        device: &Device,
        element: ElementType,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let expected = shape
            .iter()
            .try_fold(element.byte_width(), |length, &dim| length.checked_mul(dim))
            .ok_or_else(|| Error::TooLarge { element, shape: shape.to_vec() })?;
        if bytes.len() != expected {
            return Err(Error::ByteLength { element, shape: shape.to_vec(), expected, actual: bytes.len() });
        }
        let (target, allocator) = (device.target, device.backend.allocator.as_ptr());
        let parameters = if target.is_host() { IN_HOST_MEMORY } else { IN_DEVICE_MEMORY };
        // SAFETY: device and allocator live in the backend; `bytes` has the length that is written and `shape` the rank
        // that is given; the view keeps its own reference to the memory.
        let view = unsafe {
            let memory: Result<Ref<iree::iree_hal_buffer_t>, _> =
                create(|out| iree::iree_hal_allocator_allocate_buffer(allocator, parameters, expected, out));
            memory.and_then(|memory| {
                if target.is_host() {
                    let from = bytes.as_ptr().cast();
                    check(iree::iree_hal_buffer_map_write(memory.as_ptr(), 0, from, bytes.len()))?;
                } else {
                    device.backend.send(bytes, memory.as_ptr())?;
                }
                create(|out| {
                    iree::iree_hal_buffer_view_create(
                        memory.as_ptr(),
                        shape.len(),
                        shape.as_ptr(),
                        element.to_iree(),
                        iree::iree_hal_encoding_types_t_IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR,
                        host_allocator(),
                        out,
                    )
                })
            })
        };
        let view = view.map_err(|status| Error::Buffer { action: "made", target, status })?;
        // A separate allocation.
        Ok(Self { view, element, target, suballocation: None, shared: Rc::clone(&device.shared) })
    }

    /// Wraps a result of a program.
    pub(crate) fn from_view(
        view: Ref<iree::iree_hal_buffer_view_t>,
        target: Target,
        shared: &Rc<Shared>,
    ) -> Result<Self, UnknownElementType> {
        // SAFETY: the view is live.
        let element =
            ElementType::from_iree(unsafe { iree::iree_hal_buffer_view_element_type(view.as_ptr()) })?;
        let suballocation = part_of(&view).map(|(address, part)| shared.suballocations.add(address, part));
        Ok(Self { view, element, target, suballocation, shared: Rc::clone(shared) })
    }

    /// Type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element
    }

    /// Length of each dimension; empty for a single element.
    pub fn shape(&self) -> &[usize] {
        // SAFETY: the view is live as long as `self` and does not change its shape; for rank 0 the pointer
        // leads to no dimension, but is not null.
        unsafe {
            let rank = iree::iree_hal_buffer_view_shape_rank(self.view.as_ptr());
            let dims = iree::iree_hal_buffer_view_shape_dims(self.view.as_ptr());
            std::slice::from_raw_parts(dims, rank)
        }
    }

    /// Size of the elements in bytes.
    pub fn byte_len(&self) -> usize {
        // SAFETY: the view is live.
        (unsafe { iree::iree_hal_buffer_view_byte_length(self.view.as_ptr()) }) as usize
    }

    /// True if this buffer holds the only reference to the memory: no argument or result of a frame, and no constant of
    /// a program does.
    pub fn is_unshared(&self) -> bool {
        self.is_unshared_view() && self.is_unshared_memory()
    }

    /// As [`is_unshared`](Self::is_unshared), but waits up to the deadline for the workers of [`Target::LocalTask`]: after a call has
    /// ended they free its intermediate values, 40 ms for 1.5 GB, and only then release its arguments and results. No
    /// wait where a frame holds a reference.
    pub fn is_unshared_by(&self, deadline: Instant) -> bool {
        while self.is_unshared_view() {
            if self.is_unshared_memory() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        false
    }

    fn is_unshared_view(&self) -> bool {
        references(self.view.as_ptr()) == 1
    }

    fn is_unshared_memory(&self) -> bool {
        let Self { view, suballocation, .. } = self;
        // SAFETY: the view and its memory are live.
        let (memory, allocation) = unsafe {
            let memory = iree::iree_hal_buffer_view_buffer(view.as_ptr());
            (memory, iree::iree_hal_buffer_allocated_buffer(memory))
        };
        if references(memory) != 1 {
            return false;
        }
        match suballocation {
            None => allocation == memory,
            Some(recorded) => recorded.is_exclusive(references(allocation)),
        }
    }

    /// Copies the elements to the host.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.byte_len()];
        self.read_into(&mut bytes)?;
        Ok(bytes)
    }

    /// Copies the elements to `bytes`, which must have exactly their size.
    pub fn read_into(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let expected = self.byte_len();
        if bytes.len() != expected {
            let (element, shape) = (self.element, self.shape().to_vec());
            return Err(Error::ByteLength { element, shape, expected, actual: bytes.len() });
        }
        self.read_part(0, bytes)
    }

    /// Fills `bytes` from the byte offset `start` on. An error of the device if the elements end earlier.
    pub fn read_part(&self, start: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let target = self.target;
        // SAFETY: the view and its memory are live; as many bytes are copied as `bytes` has, and IREE checks the range.
        let status = unsafe {
            let from = iree::iree_hal_buffer_view_buffer(self.view.as_ptr());
            if target.is_host() {
                let to = bytes.as_mut_ptr().cast();
                check(iree::iree_hal_buffer_map_read(from, start as _, to, bytes.len()))
            } else {
                self.shared.backend(target)?.fetch(from, start, bytes)
            }
        };
        status.map_err(|status| Error::Buffer { action: "read", target, status })
    }

    pub(crate) fn view(&self) -> &Ref<iree::iree_hal_buffer_view_t> {
        &self.view
    }

    pub(crate) fn is_of(&self, shared: &Rc<Shared>) -> bool {
        Rc::ptr_eq(&self.shared, shared)
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({}{:?})", self.element, self.shape())
    }
}

/// The address of the allocation that the memory of a view is a part of, and its suballocation. `None` if it is all of
/// it.
fn part_of(view: &Ref<iree::iree_hal_buffer_view_t>) -> Option<(usize, Suballocation)> {
    // SAFETY: the view is live, and with it its memory and the allocation.
    unsafe {
        let memory = iree::iree_hal_buffer_view_buffer(view.as_ptr());
        let allocation = iree::iree_hal_buffer_allocated_buffer(memory);
        let start = iree::iree_hal_buffer_byte_offset(memory);
        let end = start + iree::iree_hal_buffer_byte_length(memory);
        (allocation != memory)
            .then(|| (allocation.addr(), Suballocation { start, end, object: memory.addr() }))
    }
}

/// The reference count of an IREE object.
fn references<T: Counted>(object: *mut T) -> usize {
    // SAFETY: the object is live, and begins with the count, as every counted object of IREE's does: an atomic integer,
    // since worker threads release their references.
    let count = unsafe { AtomicI32::from_ptr(object.cast()) };
    usize::try_from(count.load(Ordering::Acquire)).unwrap_or(usize::MAX)
}

/// Memory of a GPU.
const IN_DEVICE_MEMORY: iree::iree_hal_buffer_params_t = iree::iree_hal_buffer_params_t {
    usage: iree::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_DEFAULT,
    type_: iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL,
    ..IN_HOST_MEMORY
};

/// Memory that any CPU device can use and the host can read.
const IN_HOST_MEMORY: iree::iree_hal_buffer_params_t = iree::iree_hal_buffer_params_t {
    usage: iree::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_DEFAULT
        | iree::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_MAPPING,
    access: iree::iree_hal_memory_access_bits_t_IREE_HAL_MEMORY_ACCESS_ALL as u16,
    type_: iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL
        | iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_HOST_VISIBLE,
    queue_affinity: 0,
    min_alignment: 0,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    #[test]
    fn the_wait_for_a_worker_ends_with_its_reference_and_none_is_for_a_frame() {
        let device = Runtime::new().and_then(|runtime| runtime.device(Target::LocalSync)).expect("a device");
        let buffer = Buffer::upload(&device, ElementType::F32, &[2], &[0; 8]).expect("a buffer");
        // SAFETY: the view is live; the reference is a new one, and the thread's.
        let of_worker = unsafe {
            let memory = iree::iree_hal_buffer_view_buffer(buffer.view().as_ptr());
            iree::iree_hal_buffer_retain(memory);
            memory.expose_provenance()
        };
        assert!(!buffer.is_unshared_by(Instant::now()), "the worker has not released it");
        let worker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            let memory = std::ptr::with_exposed_provenance_mut(of_worker);
            // SAFETY: the thread owns this reference and does not use it again.
            unsafe { iree::iree_hal_buffer_release(memory) };
        });
        assert!(buffer.is_unshared_by(Instant::now() + Duration::from_mins(1)));
        worker.join().expect("the worker");

        let of_frame = buffer.view().clone();
        let start = Instant::now();
        assert!(!buffer.is_unshared_by(start + Duration::from_mins(1)));
        assert!(start.elapsed() < Duration::from_mins(1));
        drop(of_frame);
        assert!(buffer.is_unshared_by(start));
    }
}
