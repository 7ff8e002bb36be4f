//! Copies between the memory of the process and that of a GPU, through memory of the process that the GPU reaches. It is allocated once for a
//! device: CUDA takes 1.3 ms for an allocation of such memory, and IREE's own transfers make one each.

use std::cell::OnceCell;

use eerie_sys::runtime as iree;

use crate::device::{Backend, create};
use crate::error::{Status, check};
use crate::ffi::Ref;

/// Bytes of a part of a copy.
const SIZE: usize = 4 << 20;

/// Memory for copies, allocated by the first.
#[derive(Default)]
pub(crate) struct Staging(OnceCell<Ref<iree::iree_hal_buffer_t>>);

impl Backend {
    /// Copies bytes to the beginning of a buffer of this device, a GPU.
    ///
    /// # Safety
    ///
    /// The buffer is live.
    pub(crate) unsafe fn send(&self, bytes: &[u8], to: *mut iree::iree_hal_buffer_t) -> Result<(), Status> {
        let staging = self.staging()?;
        for (i, part) in bytes.chunks(SIZE).enumerate() {
            // SAFETY: both buffers are live; the staging memory has room for a part, and IREE checks the range of the other.
            unsafe {
                check(iree::iree_hal_buffer_map_write(staging, 0, part.as_ptr().cast(), part.len()))?;
                self.copy((staging, 0), (to, i * SIZE), part.len())?;
            }
        }
        Ok(())
    }

    /// Copies bytes of a buffer of this device, a GPU, from the offset `start` on.
    ///
    /// # Safety
    ///
    /// The buffer is live.
    pub(crate) unsafe fn fetch(
        &self,
        from: *mut iree::iree_hal_buffer_t,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), Status> {
        let staging = self.staging()?;
        for (i, part) in bytes.chunks_mut(SIZE).enumerate() {
            // SAFETY: as in `send`.
            unsafe {
                self.copy((from, start + i * SIZE), (staging, 0), part.len())?;
                check(iree::iree_hal_buffer_map_read(staging, 0, part.as_mut_ptr().cast(), part.len()))?;
            }
        }
        Ok(())
    }

    /// Copies from one buffer to another, each with its offset, and waits for the end.
    ///
    /// # Safety
    ///
    /// Both buffers are live, and no two of one allocation.
    unsafe fn copy(
        &self,
        from: (*mut iree::iree_hal_buffer_t, usize),
        to: (*mut iree::iree_hal_buffer_t, usize),
        length: usize,
    ) -> Result<(), Status> {
        // SAFETY: by the contract of this function.
        unsafe {
            check(iree::iree_hal_device_transfer_d2d(
                self.device.as_ptr(),
                from.0,
                from.1 as _,
                to.0,
                to.1 as _,
                length as _,
                iree::iree_hal_transfer_buffer_flag_bits_t_IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT,
                FOREVER,
            ))
        }
    }

    fn staging(&self) -> Result<*mut iree::iree_hal_buffer_t, Status> {
        if let Some(memory) = self.staging.0.get() {
            return Ok(memory.as_ptr());
        }
        // SAFETY: the allocator lives in the backend.
        let memory = unsafe {
            create(|out| {
                iree::iree_hal_allocator_allocate_buffer(self.allocator.as_ptr(), IN_REACH, SIZE as _, out)
            })
        }?;
        Ok(self.staging.0.get_or_init(|| memory).as_ptr())
    }
}

/// Waits without an end: a transfer ends or fails.
const FOREVER: iree::iree_timeout_t =
    iree::iree_timeout_t { type_: iree::iree_timeout_type_e_IREE_TIMEOUT_ABSOLUTE, nanos: i64::MAX };

/// Memory of the process that a GPU reaches. Reads of it go through the processor's caches.
const IN_REACH: iree::iree_hal_buffer_params_t = iree::iree_hal_buffer_params_t {
    usage: iree::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_TRANSFER
        | iree::iree_hal_buffer_usage_bits_t_IREE_HAL_BUFFER_USAGE_MAPPING,
    access: iree::iree_hal_memory_access_bits_t_IREE_HAL_MEMORY_ACCESS_ALL as u16,
    type_: iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_HOST_LOCAL
        | iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_HOST_CACHED
        | iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_DEVICE_VISIBLE,
    queue_affinity: 0,
    min_alignment: 0,
};
