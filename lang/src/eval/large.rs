//! Large tensors that are made of nothing, or of a few known numbers, while a function is traced: operations of its
//! program. The elements are counted or drawn where that runs; neither the trace nor the program holds them.

use std::rc::Rc;
use std::sync::Arc;

use super::interp::Interp;
use super::signal::Eval;
use super::tensor::{Tensor, Trace, bind, record_in};
use crate::graph::Op;
use crate::primitives::Iota;
use crate::tensor::DType;

/// Tensors of fewer bytes are computed while the function is traced, which may then ask for their elements.
const LARGE: usize = 64 << 10;

impl Interp {
    /// The trace that records what is made of known numbers, if it has so many elements of `dtype`.
    fn maker(&self, count: usize, dtype: DType) -> Option<Rc<Trace>> {
        if self.recording == 0 || count.saturating_mul(dtype.byte_width()) <= LARGE {
            return None;
        }
        let open = self.open.borrow();
        open.closed.last().or(open.root.as_ref()).cloned()
    }

    /// True if a tensor of so many elements that is made of known numbers is computed by the program being traced.
    pub(crate) fn is_made_by_program(&self, count: usize, dtype: DType) -> bool {
        self.maker(count, dtype).is_some()
    }

    /// A known tensor as one of the program being traced, if what is made of it has so many elements of `dtype`.
    pub(crate) fn given_to_program(&self, t: &Tensor, count: usize, dtype: DType) -> Eval<Tensor> {
        match self.maker(count, dtype) {
            Some(trace) if !t.is_traced() => Trace::variable(&trace, t),
            _ => Ok(t.clone()),
        }
    }

    /// Positions along an axis.
    pub(crate) fn iota(&self, op: Iota) -> Eval<Tensor> {
        match self.maker(crate::tensor::element_count(&op.shape), op.dtype) {
            Some(trace) => Ok(record_in(&trace, &(Arc::new(op) as Op), &[], self.span)?.swap_remove(0)),
            None => bind(op, &[], self.span),
        }
    }
}
