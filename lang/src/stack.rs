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
    /// The address below which too little is left of the stack in use; the greatest one where that is not known.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs `f`, on a new piece of stack where little is left of the current one. Functions that walk over code or data
/// as deep as the user likes call themselves through this.
#[inline]
pub(crate) fn deep<T>(f: impl FnOnce() -> T) -> T {
    if here() > FLOOR.get() || enough_is_left() { f() } else { on_new_piece(f) }
}

/// An address in the innermost frame: to compare it with [`FLOOR`] costs less than to ask what is left each time.
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
fn on_new_piece<T>(f: impl FnOnce() -> T) -> T {
    struct Piece;
    impl Drop for Piece {
        fn drop(&mut self) {
            PIECES.set(PIECES.get() - 1);
        }
    }
    PIECES.set(PIECES.get() + 1);
    let _piece = Piece;
    let _floor = Floor::unknown();
    stacker::grow(PIECE, f)
}

/// Puts back, when it is dropped, what was known of the stack that was left for another.
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

/// Whether so much stack is in use that the program's calls must have no end.
pub(crate) fn exhausted() -> bool {
    PIECES.get() > MOST_PIECES
}

/// Runs `f` with room for recursion over expanded code, whose nesting is bounded: to resolve it, to clone it, to drop it.
pub(crate) fn roomy<T>(f: impl FnOnce() -> T) -> T {
    /// Of a debug build, for `MAX_NESTING` forms within each other.
    const NEEDED: usize = 32 << 20;
    let _floor = Floor::unknown();
    stacker::maybe_grow(NEEDED, 2 * NEEDED, f)
}
