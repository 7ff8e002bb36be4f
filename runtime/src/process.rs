//! What IREE has once per process: the VM instance with its registered types, and the table of device drivers.
//!
//! IREE keeps the ids of registered types in global variables and its default driver table is global too. One
//! instance, made once behind a lock, serves all threads: both objects may be used from any thread.

use std::sync::OnceLock;

use eerie_sys::runtime as iree;

use crate::Error;
use crate::error::{Status, check};
use crate::ffi::host_allocator;

/// Never released: it lives as long as the process.
pub(crate) struct Process {
    instance: *mut iree::iree_vm_instance_t,
    drivers: *mut iree::iree_hal_driver_registry_t,
}

// SAFETY: IREE documents the instance and the driver registry as thread-safe, and nothing else is in here.
unsafe impl Send for Process {}
// SAFETY: as above.
unsafe impl Sync for Process {}

static PROCESS: OnceLock<Result<Process, Status>> = OnceLock::new();

impl Process {
    /// The one of this process; the first call makes it.
    pub(crate) fn get() -> Result<&'static Self, Error> {
        PROCESS.get_or_init(Self::new).as_ref().map_err(|status| Error::Start(status.clone()))
    }

    fn new() -> Result<Self, Status> {
        let mut instance = std::ptr::null_mut();
        // SAFETY: the out pointer is to a local; types are registered with a live instance, once per process.
        // The default registry is a static of IREE's.
        unsafe {
            check(iree::iree_vm_instance_create(
                iree::IREE_VM_TYPE_CAPACITY_DEFAULT as usize,
                host_allocator(),
                &raw mut instance,
            ))?;
            check(iree::iree_hal_module_register_all_types(instance))?;
            let drivers = iree::iree_hal_driver_registry_default();
            check(iree::iree_hal_register_all_available_drivers(drivers))?;
            Ok(Self { instance, drivers })
        }
    }

    pub(crate) fn instance(&self) -> *mut iree::iree_vm_instance_t {
        self.instance
    }

    pub(crate) fn drivers(&self) -> *mut iree::iree_hal_driver_registry_t {
        self.drivers
    }
}
