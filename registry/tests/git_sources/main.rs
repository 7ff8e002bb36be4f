//! Git repositories, fetched from real servers into a store.

// Tests, and the servers beside them.
#![allow(clippy::unwrap_used)]

mod fetch;
mod fixture;
mod hostile;
mod http_backend;
mod locals;
mod parallel;
mod servers;
mod store;
mod trees;
