//! Errors, worded for the user who has to fix them.

use std::ffi::CStr;

use eerie_sys::runtime as iree;

use crate::ffi::host_allocator;
use crate::gpu::Driver;
use crate::{Target, UnknownElementType};

/// Failure of a device, a program, a buffer or a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// IREE could not start.
    #[error("the IREE runtime could not start: {0}")]
    Start(Status),
    /// The device could not be opened.
    #[error("the device {target} could not be opened: {status}")]
    Device {
        /// The requested device.
        target: Target,
        /// IREE's status.
        status: Status,
    },
    /// A driver of GPUs could not be started.
    #[error("the driver {} could not be started: {status}", driver.name())]
    Driver {
        /// The driver.
        driver: Driver,
        /// IREE's status.
        status: Status,
    },
    /// The bytes are not a program that this runtime can load.
    #[error(
        "the program could not be loaded on {target}: {status}; \
         compile it again with the compiler that belongs to this runtime"
    )]
    Load {
        /// The target device.
        target: Target,
        /// IREE's status.
        status: Status,
    },
    /// The program has no `main`, or its `main` takes or returns a value that is not a tensor.
    #[error(
        "the program has no usable function `main`: {reason}; \
         compile it again from a module whose `main` takes and gives tensors only"
    )]
    Entry {
        /// The defect.
        reason: String,
    },
    /// The size of the host bytes does not match the buffer.
    #[error("{element}{shape:?} takes {expected} bytes, but {actual} were given")]
    ByteLength {
        /// Type of the elements.
        element: crate::ElementType,
        /// Length of each dimension.
        shape: Vec<usize>,
        /// Size of the buffer.
        expected: usize,
        /// Size of the given bytes.
        actual: usize,
    },
    /// The shape has more elements than can be addressed.
    #[error("a buffer {element}{shape:?} is too large to address on this machine")]
    TooLarge {
        /// Type of the elements.
        element: crate::ElementType,
        /// Length of each dimension.
        shape: Vec<usize>,
    },
    /// A number does not fit into the integers that the device computes with.
    #[error("the number {number} is beyond the 32-bit integers of {target}")]
    Range {
        /// The number.
        number: i64,
        /// The device.
        target: Target,
    },
    /// A buffer could not be allocated, read or written.
    #[error("the buffer could not be {action} on {target}: {status}")]
    Buffer {
        /// The failed action: `allocated`, `read`, ...
        action: &'static str,
        /// The device of the buffer.
        target: Target,
        /// IREE's status.
        status: Status,
    },
    /// There is no such argument.
    #[error("argument {index} was set, but the program takes {count} (counted from 0)")]
    NoSuchArgument {
        /// The argument that was set.
        index: usize,
        /// Number of the program's arguments.
        count: usize,
    },
    /// The program was called before all its arguments were set.
    #[error("argument {index} of {count} was not set before the call (counted from 0)")]
    MissingArgument {
        /// The first argument that is missing.
        index: usize,
        /// Number of the program's arguments.
        count: usize,
    },
    /// The index is out of range, no call has been made, or its results were taken.
    #[error("there is no result {index}: the last call left {count} (counted from 0)")]
    NoSuchResult {
        /// The requested result.
        index: usize,
        /// Current number of results.
        count: usize,
    },
    /// The buffer belongs to another runtime.
    #[error("argument {index} belongs to another runtime: upload it to a device of this one")]
    ForeignBuffer {
        /// The argument that was set.
        index: usize,
    },
    /// The buffer cannot be consumed, since there are other references to its memory.
    #[error(
        "argument {index} cannot be consumed by the call, since its memory is used elsewhere: clear the frame that holds it first, or set the argument without donating it"
    )]
    SharedBuffer {
        /// The argument that was donated.
        index: usize,
    },
    /// A result has an element type that Sheaf does not know.
    #[error("result {index}: {cause}; compile the program again with results of a known type")]
    ResultType {
        /// The result.
        index: usize,
        /// IREE's number of its type.
        #[source]
        cause: UnknownElementType,
    },
    /// The program failed: an argument of the wrong type or shape, no memory, ...
    #[error("the call failed on {target}: {status}")]
    Call {
        /// The device.
        target: Target,
        /// IREE's status.
        status: Status,
    },
}

/// A status of IREE: a code and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    code: iree::iree_status_code_t,
    text: String,
}

impl Status {
    /// Name of the code, such as `INVALID_ARGUMENT` or `RESOURCE_EXHAUSTED`.
    pub fn code_name(&self) -> &'static str {
        // SAFETY: the function accepts any number and returns a static, NUL-terminated string.
        let name = unsafe { CStr::from_ptr(iree::iree_status_code_string(self.code)) };
        name.to_str().unwrap_or("UNKNOWN")
    }

    /// IREE's message, without the code's name and without the location in IREE's own source.
    pub fn message(&self) -> &str {
        &self.text
    }

    /// A status that IREE did not return.
    pub(crate) fn unavailable(text: String) -> Self {
        Self { code: iree::iree_status_code_e_IREE_STATUS_UNAVAILABLE, text }
    }

    /// Consumes a failed status and frees it.
    ///
    /// # Safety
    ///
    /// `raw` is a status that is not OK, owned by the caller, and not used again.
    unsafe fn consume(raw: iree::iree_status_t) -> Self {
        let code = (raw as usize as u32) & iree::iree_status_code_e_IREE_STATUS_CODE_MASK;
        let host = host_allocator();
        let (mut buffer, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: `raw` is a live status by the contract above; the out pointers are to locals.
        let formatted =
            unsafe { iree::iree_status_to_string(raw, &raw const host, &raw mut buffer, &raw mut length) };
        let text = if formatted && !buffer.is_null() {
            // SAFETY: on success IREE has allocated `length` bytes at `buffer` with the given allocator; they are
            // copied before they are freed, once, with the same allocator.
            unsafe {
                let text = String::from_utf8_lossy(std::slice::from_raw_parts(buffer.cast::<u8>(), length))
                    .into_owned();
                iree::iree_allocator_free(host, buffer.cast());
                text
            }
        } else {
            String::new()
        };
        // SAFETY: ownership of `raw` came with the call.
        unsafe { iree::iree_status_free(raw) };
        let mut status = Self { code, text: String::new() };
        status.text = tidy(&text, status.code_name());
        status
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.text.is_empty() {
            f.write_str(self.code_name())
        } else {
            write!(f, "{} ({})", self.text, self.code_name())
        }
    }
}

/// Converts the status of an IREE function to a `Result`.
///
/// # Safety
///
/// `raw` was returned by an IREE function, and is owned by the caller and not used again.
pub(crate) unsafe fn check(raw: iree::iree_status_t) -> Result<(), Status> {
    if raw.is_null() {
        Ok(())
    } else {
        // SAFETY: a status that is not null is not OK; ownership is passed on.
        Err(unsafe { Status::consume(raw) })
    }
}

/// Drops parts that only IREE's developers can use: the location in its source, which comes first, the code's name,
/// which follows it, and the stack of VM frames. Joins lines.
fn tidy(text: &str, code_name: &str) -> String {
    let text = match text.split_once(code_name) {
        Some((place, rest)) if !place.contains('\n') => rest,
        _ => text,
    };
    let parts = text.split(';').flat_map(str::lines).map(str::trim);
    let is_for_people =
        |part: &&str| !part.is_empty() && !part.starts_with('[') && !part.starts_with("while calling import");
    parts.filter(is_for_people).collect::<Vec<_>>().join("; ")
}
