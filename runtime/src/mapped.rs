//! Large allocations, each mapped by itself and kept when it is freed (`extents`). Only on Linux; elsewhere there are none.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{allocate, free, length};
#[cfg(target_os = "linux")]
pub(crate) use linux::{allocate, free, length};

/// Minimum bytes of such an allocation.
pub(crate) const LEAST: usize = 256 << 10;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_void;
    use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
    use std::sync::{LazyLock, Mutex};
    use std::time::Instant;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use crate::extents::{Extent, Extents, GRAIN};

    /// Minimum bytes of a mapping that is backed by huge pages, where the system has these: more than the 64 MiB that a pool maps at its
    /// start, of which a small program touches a few pages.
    const HUGE: usize = 65 << 20;

    static EXTENTS: LazyLock<Mutex<Extents>> = LazyLock::new(Mutex::default);

    /// The start of `length` bytes, which hold anything; `None` if there is no room.
    pub(crate) fn allocate(length: usize) -> Option<NonNull<c_void>> {
        let length = length.checked_next_multiple_of(GRAIN)?;
        let mut extents = EXTENTS.lock().ok()?;
        if let Some(start) = extents.take(length) {
            return NonNull::new(with_exposed_provenance_mut(start));
        }
        extents.room_for(length).into_iter().for_each(unmap);
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe {
            mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .ok()?;
        if length >= HUGE {
            // SAFETY: the pages have just been mapped, and the advice changes nothing of what they hold.
            let _ = unsafe { madvise(start, length, Advice::LinuxHugepage) };
        }
        extents.add(Extent { start: start.expose_provenance(), length });
        NonNull::new(start)
    }

    /// Keeps the memory of an allocation, which nobody uses any more; false if the address is none of [`allocate`].
    pub(crate) fn free(start: *mut c_void) -> bool {
        let Some(mut extents) = is_aligned(start).then(|| EXTENTS.lock().ok()).flatten() else {
            return false;
        };
        let unmapped = extents.give(start.addr(), Instant::now());
        let is_own = unmapped.is_some();
        unmapped.into_iter().flatten().for_each(unmap);
        is_own
    }

    /// Bytes of an allocation.
    pub(crate) fn length(start: *mut c_void) -> Option<usize> {
        is_aligned(start).then(|| EXTENTS.lock().ok()?.length(start.addr())).flatten()
    }

    /// True for null and starts of pages: most of what `malloc` gives needs no look into the table.
    fn is_aligned(start: *mut c_void) -> bool {
        start.addr().is_multiple_of(4096)
    }

    fn unmap(extent: Extent) {
        // SAFETY: the extent is part of a mapping of `allocate`, and has been removed from the table when nobody used it.
        let _ = unsafe { munmap(with_exposed_provenance_mut(extent.start), extent.length) };
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    pub(crate) fn allocate(_: usize) -> Option<NonNull<c_void>> {
        None
    }

    pub(crate) fn free(_: *mut c_void) -> bool {
        false
    }

    pub(crate) fn length(_: *mut c_void) -> Option<usize> {
        None
    }
}
