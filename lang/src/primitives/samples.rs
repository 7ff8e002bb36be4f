//! The samples of every primitive.
