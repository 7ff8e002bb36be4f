//! Resolution of requirements to versions.
