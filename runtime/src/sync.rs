//! The device `local-sync`.
//!
//! IREE's registered driver opens it with all linked kernel loaders. One of them creates a VM instance of its own,
//! which registers IREE's types again, in global variables that programs of other threads are reading. Here the device
//! gets only the loader that it needs; the functions for that are in the archive, but not among the bindings of
//! `eerie-sys`.

use eerie_sys::runtime as iree;

use crate::device::{create, embedded_elf_loader};
use crate::error::Status;
use crate::ffi::{Ref, view};
use crate::hal::proactor_pool;
use crate::heap::{device_allocator, heap_allocator};

/// `iree_hal_sync_device_params_t` of `iree/hal/drivers/local_sync/sync_device.h`.
#[repr(C)]
struct DeviceParameters {
    arena_block_size: iree::iree_host_size_t,
}

unsafe extern "C" {
    fn iree_hal_sync_device_params_initialize(out: *mut DeviceParameters);
    fn iree_hal_sync_device_create(
        identifier: iree::iree_string_view_t,
        parameters: *const DeviceParameters,
        create_parameters: *const iree::iree_hal_device_create_params_t,
        loader_count: iree::iree_host_size_t,
        loaders: *mut *mut iree::iree_hal_executable_loader_t,
        device_allocator: *mut iree::iree_hal_allocator_t,
        host_allocator: iree::iree_allocator_t,
        out: *mut *mut iree::iree_hal_device_t,
    ) -> iree::iree_status_t;
}

/// Creates the device.
pub(crate) fn device() -> Result<Ref<iree::iree_hal_device_t>, Status> {
    let loader = embedded_elf_loader()?;
    let allocator = heap_allocator()?;
    let pool = proactor_pool()?;
    let create_parameters =
        iree::iree_hal_device_create_params_t { next: std::ptr::null(), proactor_pool: pool.as_ptr() };
    let mut loaders = [loader.as_ptr()];
    let mut parameters = DeviceParameters { arena_block_size: 0 };
    // SAFETY: the struct has the layout of IREE's, see above; all borrowed objects are live for the call, and the
    // device copies the parameters and keeps its own references to loader, allocator and pool.
    unsafe {
        iree_hal_sync_device_params_initialize(&raw mut parameters);
        create(|out| {
            iree_hal_sync_device_create(
                view("local-sync"),
                &raw const parameters,
                &raw const create_parameters,
                loaders.len(),
                loaders.as_mut_ptr(),
                allocator.as_ptr(),
                device_allocator(),
                out,
            )
        })
    }
}
