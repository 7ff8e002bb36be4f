//! Packages end to end: the real command against real git repositories, behind a git server on loopback.

#![cfg(unix)]

mod journey;
mod refused;
mod resolution;
mod world;
