//! Malicious load on the cache server. Separate from its other tests, which would disturb the timing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../serve/common.rs"]
mod common;
mod flood;
#[allow(dead_code)]
#[path = "../serve/process.rs"]
mod process;
