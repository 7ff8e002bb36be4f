//! The caches as used by other crates, on real disks and between real processes.
#![allow(clippy::unwrap_used)]

mod common;
mod folder;
#[cfg(target_os = "linux")]
mod full_disk;
mod keys;
mod processes;
