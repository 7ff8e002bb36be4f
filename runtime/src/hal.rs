//! Devices of IREE's hardware abstraction layer.

use eerie_sys::runtime as iree;

use crate::device::{Backend, create};
use crate::error::Status;
use crate::ffi::{Ref, host_allocator};
use crate::process::Process;
use crate::staging::Staging;

/// The threads that poll a device's asynchronous work; every device requires a pool. They start on first use.
pub(crate) fn proactor_pool() -> Result<Ref<iree::iree_async_proactor_pool_t>, Status> {
    // SAFETY: null node ids mean "the first so many"; the options are IREE's own.
    unsafe {
        create(|out| {
            iree::iree_async_proactor_pool_create(
                iree::iree_numa_node_count(),
                std::ptr::null(),
                iree::iree_async_proactor_pool_options_default(),
                host_allocator(),
                out,
            )
        })
    }
}

/// Creates the VM module `hal` for one device.
pub(crate) fn open(process: &Process, device: Ref<iree::iree_hal_device_t>) -> Result<Backend, Status> {
    let options = iree::iree_async_frontier_tracker_options_t {
        axis_table_capacity: FRONTIER_AXES,
        session_epoch: 1,
        machine_index: 0,
    };
    // SAFETY: every object is live for the calls that borrow it, and the group and module keep their own references.
    // The device's allocator lives as long as the device, which the module holds through the group; the reference taken
    // here is owned.
    unsafe {
        let tracker: Ref<iree::iree_async_frontier_tracker_t> =
            create(|out| iree::iree_async_frontier_tracker_create(options, host_allocator(), out))?;
        let group: Ref<iree::iree_hal_device_group_t> = create(|out| {
            iree::iree_hal_device_group_create_from_device(
                device.as_ptr(),
                tracker.as_ptr(),
                host_allocator(),
                out,
            )
        })?;
        let module = create(|out| {
            iree::iree_hal_module_create(
                process.instance(),
                iree::iree_hal_module_device_policy_default(),
                group.as_ptr(),
                iree::iree_hal_module_flag_bits_t_IREE_HAL_MODULE_FLAG_SYNCHRONOUS,
                iree::iree_hal_module_debug_sink_null(),
                host_allocator(),
                out,
            )
        })?;
        let allocator = iree::iree_hal_device_allocator(device.as_ptr());
        iree::iree_hal_allocator_retain(allocator);
        Ok(Backend { allocator: Ref::adopt(allocator), module, device, staging: Staging::default() })
    }
}

/// IREE's own default; one device takes one.
const FRONTIER_AXES: u32 = 256;
