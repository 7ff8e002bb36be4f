//! Recursion that cannot overflow the native stack, on any thread.

use std::cell::Cell;

/// Maximum stack use between two calls of [`maybe_grow`], in a debug build too.
const RED_ZONE: usize = 256 << 10;

/// Size of a new stack segment.
const SEGMENT_BYTES: usize = 4 << 20;

/// Maximum segments of a terminating program: half a gibibyte.
const MAX_SEGMENTS: usize = 128;

thread_local! {
    /// Stack segments in use besides the thread's own.
    static SEGMENTS: Cell<usize> = const { Cell::new(0) };
    /// Address below which too little of the current stack is left; the maximum if unknown.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs `f`, on a new stack segment if little is left of the current one. Functions that recurse over code or data of
/// unlimited depth call themselves through this.
#[inline]
pub(crate) fn maybe_grow<T>(f: impl FnOnce() -> T) -> T {
    if here() > FLOOR.get() || enough_is_left() { f() } else { on_new_segment(f) }
}

/// An address in the innermost frame: comparing it with [`FLOOR`] is cheaper than querying the remaining stack.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the frame is the caller's")]
fn here() -> usize {
    let local = 0_u8;
    (&raw const local).addr()
}

#[cold]
fn enough_is_left() -> bool {
    let Some(left) = stacker::remaining_stack() else { return false };
    FLOOR.set(here().saturating_sub(left) + RED_ZONE);
    left > RED_ZONE
}

#[cold]
fn on_new_segment<T>(f: impl FnOnce() -> T) -> T {
    struct Segment;
    impl Drop for Segment {
        fn drop(&mut self) {
            SEGMENTS.set(SEGMENTS.get() - 1);
        }
    }
    SEGMENTS.set(SEGMENTS.get() + 1);
    let _segment = Segment;
    let _floor = Floor::unknown();
    stacker::grow(SEGMENT_BYTES, f)
}

/// Restores the floor of the outer stack on drop.
struct Floor(usize);

impl Floor {
    fn unknown() -> Floor {
        Floor(FLOOR.replace(usize::MAX))
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        FLOOR.set(self.0);
    }
}

/// True if the program's recursion exceeds the maximum stack.
pub(crate) fn exhausted() -> bool {
    SEGMENTS.get() > MAX_SEGMENTS
}

/// Runs `f` with stack for recursion over expanded code, whose nesting is bounded: resolving, cloning, dropping.
pub(crate) fn with_large_stack<T>(f: impl FnOnce() -> T) -> T {
    /// Stack use of a debug build for `MAX_NESTING` nested forms.
    const NEEDED_BYTES: usize = 32 << 20;
    let _floor = Floor::unknown();
    stacker::maybe_grow(NEEDED_BYTES, 2 * NEEDED_BYTES, f)
}
