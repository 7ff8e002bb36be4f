//! Registries and what projects take from them, with real servers on loopback.

#![allow(clippy::unwrap_used)]

#[path = "../git_sources/fixture.rs"]
#[allow(dead_code, reason = "tests of git sources use the rest")]
mod fixture;
mod hostile;
mod mirrors;
#[path = "../git_sources/servers.rs"]
#[allow(dead_code, reason = "tests of git sources use the rest")]
mod servers;
mod site;
mod static_copies;
mod web;
