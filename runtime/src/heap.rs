//! Host memory for buffers.
//!
//! IREE's heap allocator asks for memory that is zero, though what a new buffer holds is undefined: a result of 6 MB cost
//! 0.8 ms of a call that took 6.9, for zeros that the program writes over. Here only the start of an allocation is
//! zero, where the buffer's own fields are.

use std::ffi::c_void;

use eerie_sys::runtime as iree;

use crate::device::create;
use crate::error::Status;
use crate::ffi::{Ref, host_allocator, iree_allocator_libc_ctl, view};

/// The allocator of buffers on the devices of the CPU.
pub(crate) fn heap_allocator() -> Result<Ref<iree::iree_hal_allocator_t>, Status> {
    let memory = iree::iree_allocator_t { ctl: Some(mostly_uninitialized), ..host_allocator() };
    // SAFETY: the name is copied; the function stays where it is. With two allocators that are the same, IREE has a
    // buffer's fields and its bytes in one allocation.
    unsafe { create(|out| iree::iree_hal_allocator_create_heap(view("local"), memory, memory, out)) }
}

/// Bytes that are zero at the start of an allocation: more than `iree_hal_heap_buffer_t`, its alignment, and the
/// allocator's own struct take.
const ZEROED: usize = 4096;

/// `iree_allocator_libc_ctl` that leaves the bytes beyond [`ZEROED`] as they are where zeros are asked for.
unsafe extern "C" fn mostly_uninitialized(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    use iree::{
        iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_CALLOC as CALLOC,
        iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_MALLOC as MALLOC,
    };
    if command != CALLOC {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { iree_allocator_libc_ctl(this, command, params, inout_ptr) };
    }
    // SAFETY: with CALLOC and MALLOC `params` is an `iree_allocator_alloc_params_t`, and on success, which is null,
    // `inout_ptr` has the address of that many bytes.
    unsafe {
        let length = (*params.cast::<iree::iree_allocator_alloc_params_t>()).byte_length;
        let status = iree_allocator_libc_ctl(this, MALLOC, params, inout_ptr);
        if status.is_null() {
            (*inout_ptr).cast::<u8>().write_bytes(0, length.min(ZEROED));
        }
        status
    }
}
