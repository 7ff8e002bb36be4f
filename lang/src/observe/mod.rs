//! Observation of a run: the calls of the program with their values and times.
//!
//! An [`Observer`] is told of each call that the program makes: of its own functions and of those of the language, not of
//! calls within the library. Guards are conditions on the values of those calls. Without either, an evaluator has one
//! absent pointer to look at. Nothing here changes a value: `eval/observed.rs` has the places that report.

mod breach;
mod capsule;
mod describe;
mod guard;
mod inside;
mod timeline;
mod trail;

use std::rc::Rc;

use crate::program::Value;
use sheaf_syntax::{Sources, Span};

pub use breach::Breach;
pub use capsule::Capsule;
pub(crate) use capsule::{PackedFunction, PackedTransform, Packer, Place};
pub use describe::{bytes, describe, duration, plain, shown_type, with_statistics};
pub use guard::Guard;
pub(crate) use guard::{Broken, conditions, first_broken};
pub use inside::{Inside, Row, Shown, inside};
pub use timeline::{Activity, Held, MemoryUse, Timeline};
pub(crate) use trail::{Event, Noted, Trail, What};

/// Receives the calls of a run, in order.
pub trait Observer {
    /// Nanoseconds since a fixed moment.
    fn now(&self) -> u64;

    /// Receiver of the times of what the backend does besides calls.
    fn timeline(&self) -> Option<Rc<dyn Timeline>> {
        None
    }

    /// True if the calls inside of compiled functions are wanted.
    fn looks_inside(&self) -> bool {
        false
    }

    /// A call begins.
    fn enter(&mut self, call: &Entered<'_>) {
        let _ = call;
    }

    /// The calls inside of the compiled function, or of the derivative, that was entered last.
    fn inside(&mut self, inside: &Inside, depth: usize) {
        let _ = (inside, depth);
    }

    /// A call ends.
    fn leave(&mut self, call: &Left<'_>) {
        let _ = call;
    }
}

/// A call that begins.
#[derive(Clone, Copy)]
pub struct Entered<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// Kind of the function.
    pub kind: Kind,
    /// The call.
    pub span: Span,
    /// Number of observed calls around it.
    pub depth: usize,
    /// The arguments.
    pub args: &'a [Value],
    /// The texts of spans.
    pub sources: &'a Sources,
}

/// A call that ends.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// Kind of the function.
    pub kind: Kind,
    /// Number of observed calls around it.
    pub depth: usize,
    /// The result; `None` if it failed.
    pub result: Option<&'a Value>,
    /// True if a compiled program computed it.
    pub compiled: bool,
    /// Begin of the call, as [`Observer::now`].
    pub began: u64,
    /// Its end.
    pub ended: u64,
}

/// Kind of a called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function of the program.
    Own,
    /// A function of the language.
    Language,
}
