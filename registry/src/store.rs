//! The store of package sources, by the hash of their tree.
