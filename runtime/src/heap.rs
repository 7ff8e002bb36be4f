//! Host memory for buffers.
//!
//! IREE's heap allocator asks for memory that is zero, though what a new buffer holds is undefined: a result of 6 MB cost
//! 0.8 ms of a call that took 6.9, for zeros that the program writes over. Here only the start of an allocation is
//! zero, where the buffer's own fields are.
//!
//! `malloc` maps large allocations anew each time, and each page of them costs a fault at its first use: a result of 52 MB, 13,000
//! of them in each call. They are backed by huge pages where the system has these, and kept when they are freed (`block_cache`).

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use eerie_sys::runtime as iree;
use iree::{
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_CALLOC as CALLOC,
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_FREE as FREE,
    iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_MALLOC as MALLOC,
};

use crate::block_cache::{self, Block};
use crate::device::create;
use crate::error::Status;
use crate::ffi::{Ref, host_allocator, iree_allocator_libc_ctl, view};

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

/// `iree_allocator_libc_ctl`, but for the memory of pools, which is kept when it is freed.
unsafe extern "C" fn with_pools(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    // SAFETY: the caller's arguments, unchanged; with CALLOC and MALLOC `params` is an `iree_allocator_alloc_params_t`.
    unsafe {
        let is_pool = match command {
            CALLOC | MALLOC => (*params.cast::<iree::iree_allocator_alloc_params_t>()).byte_length >= POOL,
            FREE => size_of_allocation(*inout_ptr) >= POOL as i64,
            _ => false,
        };
        let allocate = if is_pool { mostly_uninitialized } else { iree_allocator_libc_ctl };
        allocate(this, command, params, inout_ptr)
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

/// Size of an allocation of `malloc`, or 0 for null and where the system does not tell.
///
/// # Safety
///
/// `start` is null or was given by `malloc` and not freed.
unsafe fn size_of_allocation(start: *mut c_void) -> i64 {
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

/// `iree_allocator_libc_ctl` that leaves the bytes beyond [`ZEROED`] as they are where zeros are asked for, and keeps large blocks
/// (`block_cache`).
unsafe extern "C" fn mostly_uninitialized(
    this: *mut c_void,
    command: iree::iree_allocator_command_t,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> iree::iree_status_t {
    // SAFETY: the caller's arguments, unchanged. With CALLOC and MALLOC `params` is an `iree_allocator_alloc_params_t`, and on
    // success, which is null, `inout_ptr` has the address of that many bytes; with FREE it has that of an allocation.
    unsafe {
        if command == FREE {
            let size = usize::try_from(size_of_allocation(*inout_ptr)).unwrap_or(0);
            if let Some(block) = NonNull::new(*inout_ptr).filter(|_| size >= block_cache::LEAST) {
                free(this, block_cache::give(Block(block), size));
                return std::ptr::null_mut();
            }
        }
        if command != CALLOC && command != MALLOC {
            return iree_allocator_libc_ctl(this, command, params, inout_ptr);
        }
        let length = (*params.cast::<iree::iree_allocator_alloc_params_t>()).byte_length;
        if length < block_cache::LEAST || !take_kept(this, length, inout_ptr) {
            let status = iree_allocator_libc_ctl(this, MALLOC, params, inout_ptr);
            if !status.is_null() {
                return status;
            }
            back_by_huge_pages(*inout_ptr, length);
            let size = usize::try_from(size_of_allocation(*inout_ptr)).unwrap_or(0);
            if size >= block_cache::LEAST {
                block_cache::note(size);
            }
        }
        if command == CALLOC {
            (*inout_ptr).cast::<u8>().write_bytes(0, length.min(ZEROED));
        }
        std::ptr::null_mut()
    }
}

/// Gives a kept block for `length` bytes to `inout_ptr`; false if there is none.
///
/// # Safety
///
/// `this` is the allocator's own pointer, `inout_ptr` may be written to.
unsafe fn take_kept(this: *mut c_void, length: usize, inout_ptr: *mut *mut c_void) -> bool {
    let (block, rest) = block_cache::take(length);
    // SAFETY: the caller's promise; nobody else has the blocks.
    unsafe {
        free(this, rest);
        if let Some(block) = &block {
            *inout_ptr = block.0.as_ptr();
        }
    }
    block.is_some()
}

/// Gives blocks back to the system.
///
/// # Safety
///
/// `this` is the allocator's own pointer.
unsafe fn free(this: *mut c_void, blocks: Vec<Block>) {
    for block in blocks {
        let mut start = block.0.as_ptr();
        // SAFETY: `malloc` gave the block, and nobody else has it. Freeing cannot fail.
        let _ = unsafe { iree_allocator_libc_ctl(this, FREE, std::ptr::null(), &raw mut start) };
    }
}

/// Asks for huge pages for an allocation that `malloc` maps by itself. If the system has none, nothing changes.
///
/// # Safety
///
/// `start` has the address of `length` bytes that were allocated.
#[cfg(target_os = "linux")]
unsafe fn back_by_huge_pages(start: *mut c_void, length: usize) {
    /// Bytes from which glibc always maps an allocation by itself (`DEFAULT_MMAP_THRESHOLD_MAX`).
    const MAPPED: usize = 32 << 20;
    /// More than the size of a page on any system; the advice is for whole pages.
    const PAGE: usize = 64 << 10;

    let before = start.addr().next_multiple_of(PAGE) - start.addr();
    if length > MAPPED {
        let whole = (length - before) / PAGE * PAGE;
        // SAFETY: the pages are part of the allocation, and the advice changes nothing of what they hold.
        let _ =
            unsafe { rustix::mm::madvise(start.byte_add(before), whole, rustix::mm::Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
unsafe fn back_by_huge_pages(_: *mut c_void, _: usize) {}
