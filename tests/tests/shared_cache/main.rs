//! `sheaf` with shared caches: machines that have nothing in common but a server. What one compiled, the other runs; and
//! whatever is wrong with the cache, the other's run ends well.
//!
//! A machine is a sealed world of its own. The servers are real ones, as `scripts/remote-servers` installs them; a test
//! whose server is not there says so and passes.

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
mod web;
mod why;

use sheaf_tests::skip;
