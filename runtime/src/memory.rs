//! Memory statistics of a device.

use eerie_sys::runtime as iree;

use crate::ffi::Ref;

/// Bytes of a device's buffers: arguments, results, and intermediate values of programs. Memory of IREE's own objects
/// does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes currently in use.
    pub in_use: usize,
    /// Maximum of `in_use` since the device was opened.
    pub peak: usize,
}

impl Memory {
    pub(crate) fn of(allocator: &Ref<iree::iree_hal_allocator_t>) -> Self {
        // SAFETY: integers, for which all zeros is a valid value.
        let mut counted: iree::iree_hal_allocator_statistics_t = unsafe { std::mem::zeroed() };
        // SAFETY: the allocator is live, and the function only fills the struct.
        unsafe { iree::iree_hal_allocator_query_statistics(allocator.as_ptr(), &raw mut counted) };
        // On a CPU either all buffers are host buffers or all are device buffers, so the peaks of the two never add up
        // wrongly.
        Memory {
            in_use: counted.host_bytes_allocated - counted.host_bytes_freed + counted.device_bytes_allocated
                - counted.device_bytes_freed,
            peak: counted.host_bytes_peak + counted.device_bytes_peak,
        }
    }
}
