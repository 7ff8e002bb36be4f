//! Python's format strings.
