//! Functions of the standard library for which processors have kernels of their own.

use std::sync::Arc;

use super::interp::Interp;
use super::signal::Eval;
use super::tensor::bind_all;
use crate::program::{Tensor, Value};
use sheaf_graph::graph::{Op, unchecked};
use sheaf_graph::primitives::{CustomKernel, Kernel};
use sheaf_graph::simplify::simplify;
use sheaf_graph::watch::unwatched;

impl Interp {
    /// Calls `f`, a function of tensors to a tensor or a list of them that asks for no values and captures none. Inside a trace the
    /// call is recorded as one operation.
    pub(crate) fn custom_kernel(&mut self, kernel: Kernel, f: &Value, args: &[Value]) -> Eval<Value> {
        let traced = args.iter().any(|arg| matches!(arg, Value::Tensor(Tensor::Traced(_))));
        if !traced {
            return self.kernel_on_host(kernel, f, args);
        }
        if !self.tracing.traces_regions() {
            return self.call(f, args.to_vec());
        }
        let operands = args.iter().map(|arg| self.tensor(arg)).collect::<Eval<Vec<_>>>()?;
        let types: Vec<_> = operands.iter().map(|t| t.ty().clone()).collect();
        let (listed, region) = self.closed_region(&types, |interp, parameters| {
            let parameters: Vec<Value> = parameters.into_iter().map(Value::from).collect();
            let value = interp.call(f, parameters)?;
            let results = match &value {
                Value::Tensor(t) => vec![t.clone()],
                list => {
                    let items = interp.sequence(list)?;
                    items.iter().map(|item| interp.tensor(item)).collect::<Eval<Vec<_>>>()?
                }
            };
            Ok((!matches!(value, Value::Tensor(_)), results))
        })?;
        if !region.captures.is_empty() {
            return self.call(f, args.to_vec());
        }
        let body = Arc::new(simplify(&unwatched(&unchecked(&region.graph))));
        let op: Op = Arc::new(CustomKernel { kernel, body });
        let operands: Vec<&Tensor> = operands.iter().collect();
        let mut results: Vec<Value> =
            bind_all(&op, &operands, self.span)?.into_iter().map(Value::from).collect();
        Ok(if listed { Value::list(results) } else { results.swap_remove(0) })
    }

    /// The kernel of a library on tensors with elements, or else a call of `f`.
    fn kernel_on_host(&mut self, kernel: Kernel, f: &Value, args: &[Value]) -> Eval<Value> {
        let operands = args.iter().map(|arg| self.tensor(arg)).collect::<Eval<Vec<_>>>()?;
        let elements = operands.iter().map(|x| x.read_once("a matrix")).collect::<Eval<Vec<_>>>()?;
        let Some(results) = kernel.evaluate(&elements.iter().map(|x| &**x).collect::<Vec<_>>()) else {
            return self.call(f, args.to_vec());
        };
        let made = |x| Value::from(Tensor::made(x, self.span));
        let mut results: Vec<Value> = results.into_iter().map(made).collect();
        Ok(if results.len() == 1 { results.swap_remove(0) } else { Value::list(results) })
    }
}
