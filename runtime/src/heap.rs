//! Host memory for buffers.
//!
//! IREE's heap allocator asks for memory that is zero, though what a new buffer holds is undefined: a result of 6 MB cost
//! 0.8 ms of a call that took 6.9, for zeros that the program writes over. Here only the start of an allocation is
//! zero, where the buffer's own fields are.
//!
//! Large allocations are mapped by themselves, backed by huge pages where the system has these, and kept when they are freed (`mapped`).

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use eerie_sys::runtime as iree;
use iree::{
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_CALLOC as CALLOC,
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_FREE as FREE,
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_MALLOC as MALLOC,
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_REALLOC as REALLOC,
};

use crate::device::create;
use crate::error::Status;
use crate::ffi::{Ref, host_allocator, iree_allocator_libc_ctl, view};
use crate::mapped;

/// The allocator of buffers on the devices of the CPU.
pub(crate) fn heap_allocator() -> Result<Ref<iree::iree_hal_allocator_t>, Status> {
    let memory = iree::iree_allocator_t { ctl: Some(counted), ..host_allocator() };
    // SAFETY: the name is copied; the function stays where it is. With two allocators that are the same, IREE has a
    // buffer's fields and its bytes in one allocation.
    unsafe { create(|out| iree::iree_hal_allocator_create_heap(view("local"), memory, memory, out)) }
}

/// The allocator for what a device of the CPU needs itself, the memory of its pools among it.
pub(crate) fn device_allocator() -> iree::iree_allocator_t {
    iree::iree_allocator_t { ctl: Some(with_pools), ..host_allocator() }
}

/// Minimum bytes of an allocation that can only be one of a pool: all else that a device asks for has to be zero.
const POOL: usize = 16 << 20;

/// Bytes that an allocator is asked for.
///
/// # Safety
///
/// `params` are those of an allocator's control function for CALLOC, MALLOC or REALLOC.
unsafe fn wanted(params: *const c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*params.cast::<iree::iree_allocator_alloc_params_t>()).byte_length }
}

/// `iree_allocator_libc_ctl`, but for the memory of pools, which is kept when it is freed.
unsafe extern "C" fn with_pools(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    // SAFETY: the caller's arguments, unchanged; with CALLOC and MALLOC `params` is an `iree_allocator_alloc_params_t`.
    unsafe {
        let is_new = command == CALLOC || command == MALLOC;
        let is_small = is_new && wanted(params) < POOL;
        let control = if is_small { iree_allocator_libc_ctl } else { mostly_uninitialized };
        control(this, command, params, inout_ptr)
    }
}

/// Bytes that are zero at the start of an allocation: more than `iree_hal_heap_buffer_t`, its alignment, and the
/// allocator's own struct take.
const ZEROED: usize = 4096;

/// Bytes of buffers, counted for `--mem-profile`: IREE's own statistics have one peak for all time.
static COUNTS: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// Counts, from now on, the bytes of buffers in this process: arguments, results and intermediate values.
pub fn count_memory() {
    COUNTS.store(true, Ordering::Relaxed);
}

/// Bytes of buffers in use; 0 if they are not counted.
pub fn memory_in_use() -> u64 {
    u64::try_from(IN_USE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Most bytes in use since [`begin_peak`].
pub fn memory_peak() -> u64 {
    u64::try_from(PEAK.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Begins a new peak.
pub fn begin_peak() {
    PEAK.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
}

fn count(bytes: i64) {
    let now = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

/// Size of an allocation, or 0 for null and where the system does not tell.
///
/// # Safety
///
/// `start` is null or was given by `malloc` or `mapped` and not freed.
unsafe fn size_of_allocation(start: *mut c_void) -> i64 {
    if let Some(length) = mapped::length(start) {
        return length as i64;
    }
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn malloc_usable_size(start: *mut c_void) -> usize;
        }
        // SAFETY: the caller's promise.
        unsafe { malloc_usable_size(start) as i64 }
    }
    #[cfg(target_os = "macos")]
    {
        unsafe extern "C" {
            fn malloc_size(start: *const c_void) -> usize;
        }
        // SAFETY: the caller's promise.
        unsafe { malloc_size(start) as i64 }
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = start;
        0
    }
}

/// [`mostly_uninitialized`] with a count of the bytes, if wanted.
unsafe extern "C" fn counted(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    if !COUNTS.load(Ordering::Relaxed) {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { mostly_uninitialized(this, command, params, inout_ptr) };
    }
    // SAFETY: the caller's arguments, unchanged. `inout_ptr` leads to null or an allocation that is resized or freed, and
    // to the new allocation on success.
    unsafe {
        let before = if command == CALLOC || command == MALLOC { 0 } else { size_of_allocation(*inout_ptr) };
        let status = mostly_uninitialized(this, command, params, inout_ptr);
        if status.is_null() {
            let after = if command == FREE { 0 } else { size_of_allocation(*inout_ptr) };
            count(after - before);
        }
        status
    }
}

/// `iree_allocator_libc_ctl` that leaves the bytes beyond [`ZEROED`] as they are where zeros are asked for, with large allocations mapped
/// by themselves.
unsafe extern "C" fn mostly_uninitialized(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    // SAFETY: the caller's arguments, unchanged. With CALLOC, MALLOC and REALLOC `params` is an `iree_allocator_alloc_params_t`, and
    // on success, which is null, `inout_ptr` has the address of that many bytes; with FREE and REALLOC it has that of an allocation.
    unsafe {
        if command == FREE && mapped::free(*inout_ptr) {
            return std::ptr::null_mut();
        }
        if command == REALLOC
            && let Some(length) = mapped::length(*inout_ptr)
        {
            return moved(this, params, inout_ptr, length);
        }
        if command != CALLOC && command != MALLOC {
            return iree_allocator_libc_ctl(this, command, params, inout_ptr);
        }
        let length = wanted(params);
        let large = if length < mapped::LEAST { None } else { mapped::allocate(length) };
        if let Some(start) = large {
            *inout_ptr = start.as_ptr();
        } else {
            let status = iree_allocator_libc_ctl(this, MALLOC, params, inout_ptr);
            if !status.is_null() {
                return status;
            }
        }
        if command == CALLOC {
            (*inout_ptr).cast::<u8>().write_bytes(0, length.min(ZEROED));
        }
        std::ptr::null_mut()
    }
}

/// Moves an allocation of `mapped` to another one.
///
/// # Safety
///
/// The arguments are those of an allocator's control function for REALLOC, and `length` is the allocation's own.
unsafe fn moved(
    this: *mut c_void,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
    length: usize,
) -> iree::iree_status_t {
    // SAFETY: the caller's promise; the new allocation is another one, and nobody uses the old one behind this.
    unsafe {
        let old = *inout_ptr;
        let mut new = std::ptr::null_mut();
        let status = mostly_uninitialized(this, MALLOC, params, &raw mut new);
        if status.is_null() {
            let length = length.min(wanted(params));
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), length);
            mapped::free(old);
            *inout_ptr = new;
        }
        status
    }
}
