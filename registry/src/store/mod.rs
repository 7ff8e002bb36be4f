//! The store of package sources, by the hash of their tree, shared by all projects.
//!
//! ```text
//! <cache>/sources/
//! ├── lock                    held while staging folders are made or removed
//! ├── 3f9a…c2/                an entry, named by the hexadecimal form of its tree's hash
//! │   ├── tree/               the package; its files are read-only
//! │   └── stamp               sizes, times and modes of its files when it was verified
//! ├── damaged/                entries that have changed, moved away
//! └── staging/
//!     └── Xk3…/               an entry in the making; `lock` in it is held by its process
//! ```
//!
//! An entry is staged beside the others, hashed as it lies there, and renamed, so it exists whole or not at all. Killed
//! processes leave folders whose lock no process holds; the next insertion removes them. Files are not synced one by
//! one: after a power failure a file that was not written has another size, so the entry does not match its stamp.
//!
//! A tree is hashed when it is inserted. Each later use compares the stamp, which asks for the state of each file (20
//! microseconds for a small package): it notices changes by editors, tools and failing disks that change a size or a
//! time, and then the tree is hashed again. It is no protection from an attacker who may write into the user's cache;
//! [`SourceStore::verify`] hashes always, which notices decayed bytes too.

mod archive;
mod entry;
mod error;
mod export;
mod fetch;
mod staging;
mod stamp;

pub use entry::{Inserted, SourceStore};
pub use error::StoreError;
pub use fetch::{FetchReporter, Fetched, Item, Silent, fetch_all};
