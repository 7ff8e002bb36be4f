//! Recursion that cannot exhaust the native stack, whatever the thread it happens on.

/// More than any code between two calls of [`deep`] needs, in a debug build too.
const RED_ZONE: usize = 256 << 10;

/// The size of a new piece of stack.
const PIECE: usize = 4 << 20;

/// Runs `f`, on a new piece of stack where little is left of the current one. Functions that walk over code or data
/// as deep as the user likes call themselves through this.
#[inline]
pub(crate) fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, PIECE, f)
}

/// Runs `f` with room for recursion over expanded code, whose nesting is bounded: to resolve it, to clone it, to drop it.
pub(crate) fn roomy<T>(f: impl FnOnce() -> T) -> T {
    /// Of a debug build, for `MAX_NESTING` forms within each other.
    const NEEDED: usize = 32 << 20;
    stacker::maybe_grow(NEEDED, 2 * NEEDED, f)
}
