//! One sample of every primitive, for the registry test.
