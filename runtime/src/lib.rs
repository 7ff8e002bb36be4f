//! Safe access to the IREE runtime: devices, programs, device buffers and calls.
//!
//! The IREE runtime is linked statically; `eerie-sys` carries its source and binds its C API. This crate wraps that
//! API itself because the call path has to stay short: argument and result lists are prepared once per
//! [`CallFrame`], results stay where they were computed, and a result is passed on without touching the host.
//!
//! ```no_run
//! use sheaf_runtime::{ElementType, Runtime, Target, Vmfb, sha256};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bytes = std::fs::read("double.vmfb")?;
//! let digest = sha256(&bytes); // in real code: from the manifest that came with the file
//!
//! let runtime = Runtime::new()?;
//! let device = runtime.device(Target::LocalSync)?;
//! let double = device.load(&Vmfb::verify(bytes, &digest)?)?;
//!
//! let x = device.upload(ElementType::F32, &[2], bytemuck::cast_slice(&[1.0_f32, 2.0]))?;
//! let mut call = double.call_frame()?;
//! call.set(0, &x)?;
//! call.invoke()?;
//! let y = call.result(0)?;
//! assert_eq!(y.shape(), [2]);
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! - **One thread.** No type here is `Send` or `Sync`: only the thread that created a [`Runtime`] uses it. IREE itself
//!   may start worker threads ([`Target::LocalTask`]). Each thread may create a runtime of its own.
//!   ```compile_fail,E0277
//!   let runtime = sheaf_runtime::Runtime::new().unwrap();
//!   std::thread::spawn(move || drop(runtime)); // error: `Rc<...>` cannot be sent between threads safely
//!   ```
//!
//! - **No unchecked byte.** IREE trusts its input: a damaged program file can crash the process. A [`Vmfb`] exists
//!   only for bytes whose SHA-256 was the expected one.
//! - **CPU buffers are shared.** [`Target::LocalSync`] and [`Target::LocalTask`] both compute on ordinary host memory.
//!   A [`Buffer`] made by or for one of them can be an argument of a program on the other of the same [`Runtime`].
//!   A GPU has memory of its own ([`Target::Gpu`]): its buffers are arguments of its own programs only.
//! - **A call is over when it returns.** [`CallFrame::invoke`] waits for the program; its results can be read at
//!   once.

// The only purpose of this crate is to wrap a C API.
#![allow(unsafe_code)]
// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod element;
mod error;
#[cfg(target_os = "linux")]
mod extents;
mod ffi;
mod frame;
mod gpu;
mod hal;
mod heap;
mod mapped;
mod memory;
mod process;
mod program;
mod runtime;
mod scheduling;
mod staging;
mod suballocations;
mod sync;
mod task;
mod vmfb;

pub use buffer::Buffer;
pub use device::Device;
pub use element::{ElementType, UnknownElementType};
pub use error::{Error, Status};
pub use frame::CallFrame;
pub use gpu::{Driver, GpuInfo};
pub use heap::{begin_peak, count_memory, memory_in_use, memory_peak};
pub use memory::Memory;
pub use program::Program;
pub use runtime::{Gpu, Runtime, Target, Workers};
pub use vmfb::{DigestMismatch, Vmfb, sha256};
