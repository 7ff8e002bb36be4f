//! Clients that want to bring the cache server down. Apart from its other tests, which are in the way of times.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../serve/common.rs"]
mod common;
mod flood;
#[allow(dead_code)]
#[path = "../serve/process.rs"]
mod process;
