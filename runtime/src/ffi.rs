//! Owned references to IREE's objects, strings, and C functions that `eerie-sys` contains but does not bind.

use std::ptr::NonNull;

use eerie_sys::runtime as iree;

unsafe extern "C" {
    /// The allocator over `malloc` that IREE is built with.
    pub(crate) fn iree_allocator_libc_ctl(
        this: *mut std::ffi::c_void,
        command: iree::iree_allocator_command_t,
        params: *const std::ffi::c_void,
        inout_ptr: *mut *mut std::ffi::c_void,
    ) -> iree::iree_status_t;
}

/// The allocator of all IREE objects of this process.
pub(crate) const fn host_allocator() -> iree::iree_allocator_t {
    iree::iree_allocator_t { self_: std::ptr::null_mut(), ctl: Some(iree_allocator_libc_ctl) }
}

/// Borrows a string for a call into IREE.
pub(crate) fn view(text: &str) -> iree::iree_string_view_t {
    iree::iree_string_view_t { data: text.as_ptr().cast(), size: text.len() }
}

/// Reads a string borrowed from IREE.
///
/// # Safety
///
/// `text` points at `size` readable bytes that live at least as long as `'a`, or is empty.
pub(crate) unsafe fn text_of<'a>(text: iree::iree_string_view_t) -> std::borrow::Cow<'a, str> {
    if text.size == 0 {
        return "".into();
    }
    // SAFETY: by the contract of this function.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.data.cast(), text.size) })
}

/// A reference-counted IREE object.
pub(crate) trait Counted {
    /// Adds a reference.
    ///
    /// # Safety
    ///
    /// `this` points at a live object.
    unsafe fn retain(this: *mut Self);
    /// Releases a reference; the last one destroys the object.
    ///
    /// # Safety
    ///
    /// The caller owns a reference to `this` and does not use it again.
    unsafe fn release(this: *mut Self);
}

/// One owned reference to an object of IREE. Cloning retains it, dropping releases it.
pub(crate) struct Ref<T: Counted>(NonNull<T>);

impl<T: Counted> Ref<T> {
    /// Takes ownership of a reference that an IREE function returned.
    ///
    /// # Safety
    ///
    /// `raw` points at a live object, and the caller passes on a reference that it owns.
    pub(crate) unsafe fn adopt(raw: *mut T) -> Self {
        // SAFETY: a live object is not at null.
        Self(unsafe { NonNull::new_unchecked(raw) })
    }

    /// The object, valid while `self` lives.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Counted> Clone for Ref<T> {
    fn clone(&self) -> Self {
        // SAFETY: `self` owns a reference, so the object lives.
        unsafe { T::retain(self.as_ptr()) };
        Self(self.0)
    }
}

impl<T: Counted> Drop for Ref<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns this reference and is gone afterwards.
        unsafe { T::release(self.as_ptr()) };
    }
}

macro_rules! counted {
    ($($type:ident: $retain:ident, $release:ident;)*) => {$(
        impl Counted for iree::$type {
            unsafe fn retain(this: *mut Self) {
                // SAFETY: the contract of `Counted` is the contract of the C function.
                unsafe { iree::$retain(this) };
            }
            unsafe fn release(this: *mut Self) {
                // SAFETY: the contract of `Counted` is the contract of the C function.
                unsafe { iree::$release(this) };
            }
        }
    )*};
}

counted! {
    iree_async_frontier_tracker_t: iree_async_frontier_tracker_retain, iree_async_frontier_tracker_release;
    iree_async_proactor_pool_t: iree_async_proactor_pool_retain, iree_async_proactor_pool_release;
    iree_hal_allocator_t: iree_hal_allocator_retain, iree_hal_allocator_release;
    iree_hal_buffer_t: iree_hal_buffer_retain, iree_hal_buffer_release;
    iree_hal_buffer_view_t: iree_hal_buffer_view_retain, iree_hal_buffer_view_release;
    iree_hal_device_group_t: iree_hal_device_group_retain, iree_hal_device_group_release;
    iree_hal_device_t: iree_hal_device_retain, iree_hal_device_release;
    iree_hal_driver_t: iree_hal_driver_retain, iree_hal_driver_release;
    iree_hal_executable_loader_t: iree_hal_executable_loader_retain, iree_hal_executable_loader_release;
    iree_vm_context_t: iree_vm_context_retain, iree_vm_context_release;
    iree_vm_list_t: iree_vm_list_retain, iree_vm_list_release;
    iree_vm_module_t: iree_vm_module_retain, iree_vm_module_release;
}
