//! Times and memory of a backend, for observers.

/// Work of a backend besides the calls of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// The compilation of a function.
    Compile,
    /// A look into caches for the program of a function, or an entry into them.
    Cache,
    /// The loading of a program.
    Load,
    /// A copy of a tensor to the device.
    Upload,
    /// A copy of a tensor from the device.
    Download,
}

/// Receives the times of a backend's work.
pub trait Timeline {
    /// Nanoseconds since a fixed moment.
    fn now(&self) -> u64;

    /// Work that began at `began` has ended: its subject, and the bytes that it moved.
    fn done(&self, activity: Activity, subject: &str, began: u64, bytes: Option<u64>);

    /// True if the memory of calls is wanted.
    fn wants_memory(&self) -> bool {
        false
    }

    /// The memory of a call.
    fn memory(&self, used: &MemoryUse<'_>) {
        let _ = used;
    }
}

/// The memory of the buffers during one call of a program.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse<'a> {
    /// The function.
    pub function: &'a str,
    /// The device.
    pub device: &'a str,
    /// Most bytes in use during the call, by all buffers.
    pub peak: u64,
    /// The buffers that were there when it began.
    pub held: &'a [Held],
}

/// Buffers of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Their origin: `results of step`.
    pub origin: String,
    /// Their number.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
}
