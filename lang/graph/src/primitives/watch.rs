//! `watch`: the identity on a value that an observer looks at. It is part of traced graphs alone: `crate::watch` turns it
//! into checks or statistics before a program is simplified and emitted, so there is no `StableHLO` of it, and it is none
//! of the primitives that the registry lists.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, HostTensor, TensorType};
use crate::watch::{Site, Stage, report};

/// The identity on its first operand.
///
/// If it is `masked`, the second operand is the truth value under which the value counts. Both have the same `batch`
/// axes in front. Reverse-mode differentiation passes the cotangent through a watch of its own.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The place of the value in the program.
    pub site: Arc<Site>,
    /// The values to look at.
    pub stage: Stage,
    /// True if it counts only for true elements of the second operand.
    pub masked: bool,
    /// The number of axes that batching added in front.
    pub batch: usize,
}

impl Watch {
    /// A watch without a mask.
    pub fn new(site: Arc<Site>, stage: Stage) -> Watch {
        Watch { site, stage, masked: false, batch: 0 }
    }
}

/// The operands with `x` in the place of the first.
fn with_first(x: Var, args: &[Var]) -> SmallVec<[Var; 2]> {
    std::iter::once(x).chain(args[1..].iter().copied()).collect()
}

impl PartialEq for Watch {
    fn eq(&self, other: &Watch) -> bool {
        let key = |watch: &Watch| (Arc::as_ptr(&watch.site), watch.stage, watch.masked, watch.batch);
        key(self) == key(other)
    }
}

impl Eq for Watch {}

impl Hash for Watch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.site), self.stage, self.masked, self.batch).hash(state);
    }
}

impl Primitive for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn parameters(&self) -> String {
        format!("{} {}", self.site, self.stage)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let fits = match args {
            [_] => !self.masked,
            [x, counts] => {
                self.masked
                    && counts.dtype == DType::Bool
                    && counts.rank() == self.batch
                    && x.shape.get(..self.batch) == Some(&counts.shape[..])
            }
            _ => false,
        };
        if fits { Ok(smallvec![args[0].clone()]) } else { Err(TypeFault::new(format!("watch of {args:?}"))) }
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        report(self, args);
        smallvec![args[0].clone()]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let mut outgoing = zeros_for(args);
        outgoing[0] = cotangents[0].map(|cotangent| {
            let op = Watch { stage: Stage::Backward, ..self.clone() };
            b.apply(op, &with_first(cotangent, args))
        });
        outgoing
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0]]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        if let ([x], [Some(axis)]) = (args, axes) {
            return smallvec![(b.apply(self.clone(), &[*x]), *axis)];
        }
        let args = batch_all_to_front(b, args, axes);
        smallvec![(b.apply(Watch { batch: self.batch + 1, ..self.clone() }, &args), 0)]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, _: &mut Lowering<'_>) {
        unreachable!("watches are checks or results of the program by then");
    }

    fn watches(&self) -> bool {
        true
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
