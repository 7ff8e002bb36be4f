//! Large tensors made of few known numbers, in a trace: operations of the program. The program generates their
//! elements; neither the trace nor the program stores them.

use std::rc::Rc;
use std::sync::Arc;

use super::interp::Interp;
use super::signal::Eval;
use super::tensor::{bind, record_in};
use crate::program::{Tensor, Trace};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives::Iota;
use sheaf_graph::tensor::DType;

/// Maximum bytes of tensors computed while tracing, which may then ask for their elements.
const LARGE: usize = 64 << 10;

impl Interp {
    /// The trace that records a tensor made of known numbers, if its `count` elements of `dtype` are large.
    fn maker(&self, count: usize, dtype: DType) -> Option<Rc<Trace>> {
        if self.tracing.staging == 0 || count.saturating_mul(dtype.byte_width()) <= LARGE {
            return None;
        }
        let open = self.tracing.regions.borrow();
        open.closed.last().or(open.root.as_ref()).cloned()
    }

    /// True if a tensor of `count` elements made of known numbers is computed by the program being traced.
    pub(crate) fn is_made_by_program(&self, count: usize, dtype: DType) -> bool {
        self.maker(count, dtype).is_some()
    }

    /// A known tensor as one of the program being traced, if it is used for one of `count` elements of `dtype` that is.
    pub(crate) fn given_to_program(&self, t: &Tensor, count: usize, dtype: DType) -> Eval<Tensor> {
        match self.maker(count, dtype) {
            Some(trace) if !t.is_traced() => Trace::variable(&trace, t),
            _ => Ok(t.clone()),
        }
    }

    /// Positions along an axis.
    pub(crate) fn iota(&self, op: Iota) -> Eval<Tensor> {
        match self.maker(sheaf_graph::tensor::element_count(&op.shape), op.dtype) {
            Some(trace) => Ok(record_in(&trace, &(Arc::new(op) as Op), &[], self.span)?.swap_remove(0)),
            None => bind(op, &[], self.span),
        }
    }
}
