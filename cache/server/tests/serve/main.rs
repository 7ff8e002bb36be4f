//! The cache server over real sockets, with common http and gRPC clients.
#![allow(clippy::unwrap_used)]

mod access;
mod common;
#[cfg(target_os = "linux")]
mod disk;
mod grpc;
mod http;
mod limits;
#[cfg(unix)]
mod open_files;
mod process;
mod processes;
mod storage;
mod tls;
