//! Common subexpressions: equal operations of equal operands are one.

use crate::graph::{Op, Var};
use crate::primitives::Constant;
use crate::tensor::HostTensor;

use super::downcast;

/// Larger constants are equal only if they are the same memory: their elements would make a long description.
const LARGEST_COMPARED: usize = 4096;

/// What tells an equation from others; equal equations have equal descriptions.
pub(super) fn description(op: &Op, operands: &[Var]) -> String {
    if let Some(constant) = downcast::<Constant>(op) {
        return constant_description(&constant.value);
    }
    format!("{op:?} {operands:?}")
}

fn constant_description(value: &HostTensor) -> String {
    let bytes = value.bytes();
    if bytes.len() > LARGEST_COMPARED {
        return format!("constant {:?} at {:p}", value.ty(), bytes.as_ptr());
    }
    format!("constant {:?} {bytes:x?}", value.ty())
}
