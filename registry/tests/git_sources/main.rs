//! Git repositories, fetched from real servers into a store.

mod fetch;
mod fixture;
mod hostile;
mod locals;
mod parallel;
mod servers;
mod store;
mod trees;
