//! Rules that several crates must share exactly: atomic replacement of files, SHA-256 digests, which connections may carry
//! secrets, how an address is printed without them, whose files are used, and the keys that sign claims and published versions. And files mapped
//! into memory, the one place for their unsafe code, and how much memory the machine has.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod address;
pub mod atomic;
mod digest;
mod mapped;
mod memory;
mod owner;
mod signing;

pub use address::{is_private, normal_address, shown, shown_text};
pub use digest::{Digest, DigestError};
pub use mapped::too_many_files;
pub use mapped::{FileChange, MappedFile, lost_bytes};
pub use memory::machine_memory;
#[cfg(unix)]
pub use owner::{Foreign, Owners, SAFE_VARIABLE};
pub use signing::{KeyError, KeySyntax, NoRandomness, PublicKey, SecretKey, SignatureError};
