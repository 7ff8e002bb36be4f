//! The driver of CUDA, whose devices keep the memory that programs have freed. IREE's own settings give it back to the system at each
//! synchronisation, and the allocations of every call take 0.1 ms each.

use std::ffi::c_int;

use eerie_sys::runtime as iree;

use crate::device::create;
use crate::error::Status;
use crate::ffi::{Ref, host_allocator, view};

// As `iree/hal/drivers/cuda/api.h` of IREE 3.13 declares them, which `eerie-sys` contains but does not bind.

#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryPool {
    minimum_capacity: u64,
    release_threshold: u64,
}

#[repr(C)]
struct DeviceParameters {
    queue_count: usize,
    arena_block_size: usize,
    event_pool_capacity: usize,
    command_buffer_mode: c_int,
    stream_tracing: i32,
    async_allocations: bool,
    device_local: MemoryPool,
    other: MemoryPool,
}

#[repr(C)]
struct DriverOptions {
    default_device_index: c_int,
}

unsafe extern "C" {
    fn iree_hal_cuda_device_params_initialize(parameters: *mut DeviceParameters);
    fn iree_hal_cuda_driver_options_initialize(options: *mut DriverOptions);
    fn iree_hal_cuda_driver_create(
        identifier: iree::iree_string_view_t,
        options: *const DriverOptions,
        parameters: *const DeviceParameters,
        host_allocator: iree::iree_allocator_t,
        driver: *mut *mut iree::iree_hal_driver_t,
    ) -> iree::iree_status_t;
}

/// Command buffers that are issued to a stream, rather than recorded into a graph.
const STREAM: c_int = 1;

fn parameters() -> DeviceParameters {
    let mut parameters = std::mem::MaybeUninit::uninit();
    // SAFETY: the function writes all of the parameters.
    unsafe {
        iree_hal_cuda_device_params_initialize(parameters.as_mut_ptr());
        parameters.assume_init()
    }
}

/// Loads NVIDIA's library.
pub(crate) fn driver() -> Result<Ref<iree::iree_hal_driver_t>, Status> {
    let kept = MemoryPool { minimum_capacity: 0, release_threshold: u64::MAX };
    let parameters =
        DeviceParameters { command_buffer_mode: STREAM, device_local: kept, other: kept, ..parameters() };
    let mut options = std::mem::MaybeUninit::uninit();
    // SAFETY: the options are initialised before they are read; the driver copies them, and the parameters.
    unsafe {
        iree_hal_cuda_driver_options_initialize(options.as_mut_ptr());
        create(|out| {
            iree_hal_cuda_driver_create(
                view("cuda"),
                options.as_ptr(),
                &raw const parameters,
                host_allocator(),
                out,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_declared_as_iree_declares_them() {
        let DeviceParameters {
            queue_count,
            arena_block_size,
            event_pool_capacity,
            command_buffer_mode,
            stream_tracing,
            async_allocations,
            device_local,
            other,
        } = parameters();
        assert_eq!((queue_count, arena_block_size, event_pool_capacity), (1, 32 * 1024, 32));
        assert_eq!((command_buffer_mode, stream_tracing, async_allocations), (0, 0, true));
        for pool in [device_local, other] {
            assert_eq!((pool.minimum_capacity, pool.release_threshold), (0, 0));
        }
    }
}
