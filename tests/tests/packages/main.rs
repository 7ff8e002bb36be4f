//! Packages end to end: the real command against real git repositories, behind a git server on loopback.

#![cfg(unix)]

#[allow(dead_code, reason = "tests of shared caches inject other faults")]
#[path = "../shared_cache/web.rs"]
mod cache_web;
mod commands;
mod granted;
#[path = "../../../registry/tests/git_sources/http_backend.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "tests of the registry may, and start it otherwise")]
mod http_backend;
mod journey;
mod login;
#[allow(dead_code, reason = "tests of shared caches have a team")]
#[path = "../shared_cache/machine.rs"]
mod machine;
mod newer;
mod offline;
mod owners;
mod programs;
mod publish;
mod refused;
mod registries;
mod resolution;
#[allow(dead_code, reason = "other tests start the other servers")]
#[path = "../../../cache/tests/remotes/servers.rs"]
mod servers;
#[allow(dead_code, clippy::unwrap_used, reason = "tests of the registry may, and need more")]
#[path = "../../../registry/tests/registries/web.rs"]
mod static_web;
mod terminal;
mod workspaces;
mod world;

use sheaf_tests::skip;
