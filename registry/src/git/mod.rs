//! Git repositories: shallow fetches into bare repositories, and reads from them.
