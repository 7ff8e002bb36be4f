//! Lending results of inline programs to devices.
//!
//! Inline programs allocate their results as `HOST_LOCAL` memory, and programs of the HAL model insist on
//! `DEVICE_VISIBLE`. On the CPU both are the same memory, so it is given a second description instead of being copied.

use std::ffi::c_void;

use eerie_sys::runtime as iree;

use crate::buffer::PARAMETERS;
use crate::device::create;
use crate::error::{Status, check};
use crate::ffi::{Ref, host_allocator};

/// A view of the same tensor that programs of devices accept; the very same view if it is one already.
pub(crate) fn for_device(
    view: &Ref<iree::iree_hal_buffer_view_t>,
    allocator: &Ref<iree::iree_hal_allocator_t>,
) -> Result<Ref<iree::iree_hal_buffer_view_t>, Status> {
    // SAFETY: the view and its memory are live.
    let (memory, kind) = unsafe {
        let memory = iree::iree_hal_buffer_view_buffer(view.as_ptr());
        (memory, iree::iree_hal_buffer_memory_type(memory))
    };
    if kind & iree::iree_hal_memory_type_bits_t_IREE_HAL_MEMORY_TYPE_DEVICE_VISIBLE != 0 {
        return Ok(view.clone());
    }
    let mut external = std::mem::MaybeUninit::uninit();
    // SAFETY: allocator, memory and view are live. `external` is read only after the export has filled it. The second
    // description holds a reference to the first, which `release` gives back when the second ends: until then the
    // memory stays. If the import fails, `release` is not called, and the reference is given back here.
    unsafe {
        check(iree::iree_hal_allocator_export_buffer(
            allocator.as_ptr(),
            memory,
            iree::iree_hal_external_buffer_type_e_IREE_HAL_EXTERNAL_BUFFER_TYPE_HOST_ALLOCATION,
            iree::iree_hal_external_buffer_flag_bits_t_IREE_HAL_EXTERNAL_BUFFER_FLAG_NONE,
            external.as_mut_ptr(),
        ))?;
        let on_end =
            iree::iree_hal_buffer_release_callback_t { fn_: Some(release), user_data: memory.cast() };
        iree::iree_hal_buffer_retain(memory);
        let lent: Ref<iree::iree_hal_buffer_t> = create(|out| {
            iree::iree_hal_allocator_import_buffer(
                allocator.as_ptr(),
                PARAMETERS,
                external.as_mut_ptr(),
                on_end,
                out,
            )
        })
        .inspect_err(|_| iree::iree_hal_buffer_release(memory))?;
        create(|out| {
            iree::iree_hal_buffer_view_create_like(lent.as_ptr(), view.as_ptr(), host_allocator(), out)
        })
    }
}

unsafe extern "C" fn release(lender: *mut c_void, _lent: *mut iree::iree_hal_buffer_t) {
    // SAFETY: `lender` is the memory whose reference was put aside when this callback was given to IREE, which calls
    // it once.
    unsafe { iree::iree_hal_buffer_release(lender.cast()) };
}
