//! Per-process state of IREE: the VM instance with its registered types.
//!
//! IREE keeps the ids of registered types in global variables, and writes them at each registration. One instance,
//! created once behind a lock, serves all threads.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use eerie_sys::runtime as iree;

use crate::Error;
use crate::error::{Status, check};
use crate::ffi::host_allocator;

/// Never released: it lives as long as the process.
pub(crate) struct Process {
    instance: *mut iree::iree_vm_instance_t,
    changing: Mutex<()>,
    drivers: OnceLock<Result<Drivers, Status>>,
}

/// The registry of the drivers that this build has. Never freed.
struct Drivers(*mut iree::iree_hal_driver_registry_t);

// SAFETY: IREE documents the instance and the registry as thread-safe, and the struct has no other IREE object.
unsafe impl Send for Process {}
// SAFETY: as above.
unsafe impl Sync for Process {}

static PROCESS: OnceLock<Result<Process, Status>> = OnceLock::new();

impl Process {
    /// The process's instance; the first call creates it.
    pub(crate) fn get() -> Result<&'static Self, Error> {
        PROCESS.get_or_init(Self::new).as_ref().map_err(|status| Error::Start(status.clone()))
    }

    fn new() -> Result<Self, Status> {
        let mut instance = std::ptr::null_mut();
        // SAFETY: the out pointer is to a local; types are registered with a live instance, once per process.
        unsafe {
            check(iree::iree_vm_instance_create(
                iree::IREE_VM_TYPE_CAPACITY_DEFAULT as usize,
                host_allocator(),
                &raw mut instance,
            ))?;
            check(iree::iree_hal_module_register_all_types(instance))?;
        }
        Ok(Self { instance, changing: Mutex::default(), drivers: OnceLock::new() })
    }

    /// The drivers of this build. Their registration loads no library.
    pub(crate) fn drivers(&self) -> Result<*mut iree::iree_hal_driver_registry_t, Status> {
        let register = || {
            let mut registry = std::ptr::null_mut();
            // SAFETY: the out pointer is to a local, and the registry is live.
            unsafe {
                check(iree::iree_hal_driver_registry_allocate(host_allocator(), &raw mut registry))?;
                check(iree::iree_hal_register_all_available_drivers(registry))?;
            }
            Ok(Drivers(registry))
        };
        self.drivers.get_or_init(register).as_ref().map(|drivers| drivers.0).map_err(Clone::clone)
    }

    /// To be held while a device is opened or a program loaded: both describe the processor in a global variable, which
    /// is briefly empty each time.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn instance(&self) -> *mut iree::iree_vm_instance_t {
        self.instance
    }
}
