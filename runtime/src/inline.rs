//! The inline execution model: no device, only the two VM modules that its programs import.

use eerie_sys::runtime as iree;

use crate::device::{Backend, create, embedded_elf_loader, heap_allocator};
use crate::error::Status;
use crate::ffi::host_allocator;
use crate::process::Process;

/// Makes the modules `hal_inline` (buffers) and `hal_loader` (kernels, which `inline-dynamic` programs carry as
/// ELF images and load when they are themselves loaded).
pub(crate) fn open(process: &Process) -> Result<Backend, Status> {
    let allocator = heap_allocator()?;
    let loader = embedded_elf_loader()?;
    let mut loaders = [loader.as_ptr()];
    // SAFETY: instance, allocator and loader are live for the calls; the modules keep their own references to them
    // and copy the array of loaders.
    let modules = unsafe {
        vec![
            create(|out| {
                iree::iree_hal_inline_module_create(
                    process.instance(),
                    iree::iree_hal_inline_module_flag_bits_t_IREE_HAL_INLINE_MODULE_FLAG_NONE,
                    iree::iree_hal_module_debug_sink_null(),
                    allocator.as_ptr(),
                    host_allocator(),
                    out,
                )
            })?,
            create(|out| {
                iree::iree_hal_loader_module_create(
                    process.instance(),
                    iree::iree_hal_loader_module_flag_bits_t_IREE_HAL_LOADER_MODULE_FLAG_NONE,
                    loaders.len(),
                    loaders.as_mut_ptr(),
                    host_allocator(),
                    out,
                )
            })?,
        ]
    };
    Ok(Backend { allocator, modules })
}
