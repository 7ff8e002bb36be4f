//! What the buffers of a device took.

use eerie_sys::runtime as iree;

use crate::ffi::Ref;

/// Bytes of a device's buffers: arguments, results, and what programs keep in between. Memory of IREE's own objects does
/// not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What is in use now.
    pub in_use: usize,
    /// The most that was in use at one time since the device was opened.
    pub peak: usize,
}

impl Memory {
    pub(crate) fn of(allocator: &Ref<iree::iree_hal_allocator_t>) -> Self {
        // SAFETY: integers, for which all zeros is a value.
        let mut counted: iree::iree_hal_allocator_statistics_t = unsafe { std::mem::zeroed() };
        // SAFETY: the allocator is live, and the function only fills what it is given.
        unsafe { iree::iree_hal_allocator_query_statistics(allocator.as_ptr(), &raw mut counted) };
        // On a CPU all buffers are of one kind or all of the other, so the peaks of the two are never far apart in time.
        Memory {
            in_use: counted.host_bytes_allocated - counted.host_bytes_freed + counted.device_bytes_allocated
                - counted.device_bytes_freed,
            peak: counted.host_bytes_peak + counted.device_bytes_peak,
        }
    }
}
