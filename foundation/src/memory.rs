//! The memory of the machine.

/// The machine's memory without its swap, in bytes. `None` where it is unknown: on systems other than Linux.
#[must_use]
pub fn machine_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    let bytes = nix::sys::sysinfo::sysinfo().ok().map(|info| info.ram_total());
    #[cfg(not(target_os = "linux"))]
    let bytes = None;
    bytes.filter(|bytes| *bytes > 0)
}
