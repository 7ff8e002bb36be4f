//! Common subexpressions: equal operations of equal operands are one.

use crate::graph::{Op, Var};

/// Description of an equation; equal equations have equal descriptions. Large constants are equal only if they
/// are the same memory: their elements would make a long description.
pub(super) fn description(op: &Op, operands: &[Var]) -> String {
    format!("{op:?} {operands:?}")
}
