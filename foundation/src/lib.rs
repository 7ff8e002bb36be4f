//! Rules that several crates must share exactly: which connections may carry secrets, how an address is printed without
//! them, and the keys that sign claims and published versions.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod signing;

pub use address::{is_private, normal_address, shown, shown_text};
pub use signing::{KeyError, KeySyntax, NoRandomness, PublicKey, SecretKey, SignatureError};
