//! The device `local-task`, with a chosen number of workers.
//!
//! IREE's registered driver sizes its pool from process-wide command-line flags. Here the pool is created directly, so
//! each runtime has its own; the functions for that are in the archive, but not among the bindings of `eerie-sys`.

use std::num::NonZeroUsize;

use eerie_sys::runtime as iree;

use crate::device::{create, embedded_elf_loader};
use crate::error::{Status, check};
use crate::ffi::{Counted, Ref, host_allocator, view};
use crate::hal::proactor_pool;
use crate::heap::{device_allocator, heap_allocator};
use crate::runtime::Workers;

/// Opaque; `iree/task/executor.h`.
#[repr(C)]
struct Executor {
    _private: [u8; 0],
}

impl Counted for Executor {
    unsafe fn retain(this: *mut Self) {
        // SAFETY: the contract of `Counted` is the contract of the C function.
        unsafe { iree_task_executor_retain(this) };
    }
    unsafe fn release(this: *mut Self) {
        // SAFETY: the contract of `Counted` is the contract of the C function.
        unsafe { iree_task_executor_release(this) };
    }
}

/// `iree_task_executor_options_t` of `iree/task/executor.h`.
#[repr(C)]
struct ExecutorOptions {
    scheduling_mode: u32,
    worker_base_index: iree::iree_host_size_t,
    worker_spin_ns: i64,
    worker_stack_size: iree::iree_host_size_t,
    worker_local_memory_size: iree::iree_host_size_t,
}

/// `iree_hal_task_device_params_t` of `iree/hal/drivers/local_task/task_device.h`.
#[repr(C)]
struct DeviceParameters {
    arena_block_size: iree::iree_host_size_t,
    queue_scope_flags: u32,
    inline_transfer_threshold: iree::iree_device_size_t,
}

/// Storage for an `iree_task_topology_t` of `iree/task/topology.h`: 256 groups of about 100 bytes each, depending on
/// the platform. IREE fills and reads it; this is more than twice its size on any platform.
#[repr(C, align(64))]
struct Topology([u8; 64 * 1024]);

unsafe extern "C" {
    fn iree_task_topology_initialize_from_group_count(count: iree::iree_host_size_t, out: *mut Topology);
    fn iree_task_topology_initialize_from_physical_cores(
        node: u32,
        performance_level: std::ffi::c_int,
        distribution: std::ffi::c_int,
        max_core_count: iree::iree_host_size_t,
        out: *mut Topology,
    ) -> iree::iree_status_t;
    fn iree_task_topology_deinitialize(topology: *mut Topology);

    fn iree_task_executor_options_initialize(out: *mut ExecutorOptions);
    fn iree_task_executor_create(
        options: ExecutorOptions,
        topology: *const Topology,
        allocator: iree::iree_allocator_t,
        out: *mut *mut Executor,
    ) -> iree::iree_status_t;
    fn iree_task_executor_retain(executor: *mut Executor);
    fn iree_task_executor_release(executor: *mut Executor);

    fn iree_hal_task_device_params_initialize(out: *mut DeviceParameters);
    fn iree_hal_task_device_create(
        identifier: iree::iree_string_view_t,
        parameters: *const DeviceParameters,
        queue_count: iree::iree_host_size_t,
        queue_executors: *const *mut Executor,
        loader_count: iree::iree_host_size_t,
        loaders: *mut *mut iree::iree_hal_executable_loader_t,
        device_allocator: *mut iree::iree_hal_allocator_t,
        create_parameters: *const iree::iree_hal_device_create_params_t,
        host_allocator: iree::iree_allocator_t,
        out: *mut *mut iree::iree_hal_device_t,
    ) -> iree::iree_status_t;
}

/// Creates the device.
pub(crate) fn device(workers: Workers) -> Result<Ref<iree::iree_hal_device_t>, Status> {
    let executor = executor(workers)?;
    let loader = embedded_elf_loader()?;
    let allocator = heap_allocator()?;
    let pool = proactor_pool()?;
    let create_parameters =
        iree::iree_hal_device_create_params_t { next: std::ptr::null(), proactor_pool: pool.as_ptr() };
    let mut loaders = [loader.as_ptr()];
    let mut parameters =
        DeviceParameters { arena_block_size: 0, queue_scope_flags: 0, inline_transfer_threshold: 0 };
    // SAFETY: the structs have the layout of IREE's, see above; all borrowed objects are live for the call, and the
    // device copies the parameters and keeps its own references to executor, loader, allocator and pool.
    unsafe {
        iree_hal_task_device_params_initialize(&raw mut parameters);
        create(|out| {
            iree_hal_task_device_create(
                view("local-task"),
                &raw const parameters,
                1,
                &executor.as_ptr(),
                loaders.len(),
                loaders.as_mut_ptr(),
                allocator.as_ptr(),
                &raw const create_parameters,
                device_allocator(),
                out,
            )
        })
    }
}

fn executor(workers: Workers) -> Result<Ref<Executor>, Status> {
    let mut topology = Box::<Topology>::new_uninit();
    let topology = topology.as_mut_ptr();
    let mut options = ExecutorOptions {
        scheduling_mode: 0,
        worker_base_index: 0,
        worker_spin_ns: 0,
        worker_stack_size: 0,
        worker_local_memory_size: 0,
    };
    // SAFETY: `topology` has more room than IREE's struct and is initialised by one of the two functions before it is
    // read; the executor copies what it needs of topology and options.
    unsafe {
        match workers {
            Workers::Exactly(count) => {
                iree_task_topology_initialize_from_group_count(count.get().min(MAX_WORKERS), topology);
            }
            Workers::Cores => check(iree_task_topology_initialize_from_physical_cores(
                ANY_NODE,
                ANY_PERFORMANCE_LEVEL,
                SCATTERED,
                // A container may be allotted less CPU time than there are cores.
                std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_WORKERS),
                topology,
            ))?,
        }
        iree_task_executor_options_initialize(&raw mut options);
        let executor = create(|out| iree_task_executor_create(options, topology, host_allocator(), out));
        iree_task_topology_deinitialize(topology);
        executor
    }
}

/// IREE's own default for its automatic choice; its maximum is 256.
const MAX_WORKERS: usize = 64;
/// `IREE_TASK_TOPOLOGY_NODE_ID_ANY`.
const ANY_NODE: u32 = u32::MAX;
/// `IREE_TASK_TOPOLOGY_PERFORMANCE_LEVEL_ANY`.
const ANY_PERFORMANCE_LEVEL: std::ffi::c_int = 0;
/// `IREE_TASK_TOPOLOGY_DISTRIBUTION_SCATTER`: IREE's default, for memory bandwidth.
const SCATTERED: std::ffi::c_int = 1;
