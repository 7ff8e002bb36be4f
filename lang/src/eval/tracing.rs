//! State of the traces under construction.

use std::rc::Rc;

use ustr::Ustr;

use super::checks::Raised;
use super::signal::{Reason, Signal, Stop};
use super::transforms::MAX_EQUATIONS;
use crate::program::{Code, Regions, Trace};
use sheaf_syntax::Span;

/// Maximum nesting of regions, beyond which the recursion must depend on an unknown condition.
const MAX_LEVELS: u32 = 24;

/// Maximum nesting of one function's gradient: that of the function, and of its calls within its gradient.
const MAX_GRADIENTS: usize = 2;

/// The traces under construction.
#[derive(Default)]
pub(super) struct Tracing {
    /// Level of the innermost trace, 0 outside.
    pub level: u32,
    /// Nesting of traces that are staged, for compilation or as a region: effects stop them.
    pub staging: u32,
    /// The regions being traced.
    pub regions: Regions,
    /// True until the root of a trace is entered, whose caller is no part of it.
    pub at_root: bool,
    /// The call stack, outermost first: function names and spans.
    pub calls: Vec<(Option<Ustr>, Span)>,
    /// The gradients written by hand that are being traced, outermost first.
    pub gradients: Vec<Rc<Code>>,
    /// The last error raised by the program in a region.
    pub raised: Option<Raised>,
}

impl Tracing {
    /// An empty trace.
    pub fn trace(&self, level: u32) -> Rc<Trace> {
        Trace::new(level, MAX_EQUATIONS, &self.regions)
    }

    /// True if a call of a function with this gradient is to be recorded with it. Not deep within the gradient itself,
    /// which may call its function: there the body stands for it.
    pub fn records(&self, gradient: &Rc<Code>) -> bool {
        let around = self.gradients.iter().filter(|around| Rc::ptr_eq(around, gradient));
        around.count() < MAX_GRADIENTS
    }

    /// True if a region may be traced here: inside another trace.
    pub fn traces_regions(&self) -> bool {
        (1..MAX_LEVELS).contains(&self.level)
    }

    /// True if a signal asks for a value inside a region traced here: then it cannot be traced.
    pub fn asks_inside(&self, signal: &Signal) -> bool {
        match &**signal {
            Stop::Trace(stop) => match stop.reason {
                Reason::Value { level, .. } | Reason::Elements { level, .. } => level > self.level,
                Reason::Loop | Reason::Reads | Reason::NoVjp(_) => true,
                Reason::Effect(_) | Reason::Unevaluated(_) => false,
            },
            Stop::Error(_) => false,
        }
    }
}
