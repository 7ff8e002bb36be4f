//! Recursion that cannot exhaust the native stack, whatever the thread it happens on.

use std::cell::Cell;

/// More than any code between two calls of [`deep`] needs, in a debug build too.
const RED_ZONE: usize = 256 << 10;

/// The size of a new piece of stack.
const PIECE: usize = 4 << 20;

/// Calls of the program that need more pieces than this have no end: half a gibibyte.
const MOST_PIECES: usize = 128;

thread_local! {
    /// Pieces of stack in use beside the thread's own.
    static PIECES: Cell<usize> = const { Cell::new(0) };
}

/// Runs `f`, on a new piece of stack where little is left of the current one. Functions that walk over code or data
/// as deep as the user likes call themselves through this.
#[inline]
pub(crate) fn deep<T>(f: impl FnOnce() -> T) -> T {
    if stacker::remaining_stack().is_some_and(|left| left >= RED_ZONE) { f() } else { on_new_piece(f) }
}

#[cold]
fn on_new_piece<T>(f: impl FnOnce() -> T) -> T {
    struct Piece;
    impl Drop for Piece {
        fn drop(&mut self) {
            PIECES.set(PIECES.get() - 1);
        }
    }
    PIECES.set(PIECES.get() + 1);
    let _piece = Piece;
    stacker::grow(PIECE, f)
}

/// Whether so much stack is in use that the program's calls must have no end.
pub(crate) fn exhausted() -> bool {
    PIECES.get() > MOST_PIECES
}

/// Runs `f` with room for recursion over expanded code, whose nesting is bounded: to resolve it, to clone it, to drop it.
pub(crate) fn roomy<T>(f: impl FnOnce() -> T) -> T {
    /// Of a debug build, for `MAX_NESTING` forms within each other.
    const NEEDED: usize = 32 << 20;
    stacker::maybe_grow(NEEDED, 2 * NEEDED, f)
}
