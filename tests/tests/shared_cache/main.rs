//! `sheaf` with shared caches: machines that share only a server. Programs compiled by one run on the other; and
//! whatever the fault of the cache, the other's run succeeds.
//!
//! A machine is a sandbox. The servers are real ones, as installed by `scripts/remote-servers`; a test without its
//! server prints a message and passes.

#![cfg(unix)]

mod access;
mod audit;
mod commands;
mod entries;
mod execution;
mod faults;
mod local;
mod machine;
mod nanogpt;
mod network;
#[path = "../../../cache/tests/remotes/servers.rs"]
mod servers;
mod shared;
mod trust;
mod tuned;
mod web;
mod why;

use sheaf_tests::skip;
