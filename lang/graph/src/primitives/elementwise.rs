//! The rules that all element-wise primitives share.

use smallvec::smallvec;

use super::{Cotangents, Primitive, TypeFault, Types, Zeros, batch_all_to_front, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, HostTensor, TensorType};

/// The rules of an element-wise function of one operand.
pub trait UnaryRule: Copy + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {
    /// The name.
    const NAME: &'static str;
    /// The operation in `StableHLO` text.
    const OPERATION: &'static str;
    /// True if the derivative is infinite or NaN somewhere, infinite operands included.
    const STEEP: bool = false;
    /// True if elements of `dtype` are in the domain.
    fn accepts(self, dtype: DType) -> bool;
    /// The dtype of the result for an operand of `dtype`.
    fn result(self, dtype: DType) -> DType {
        dtype
    }
    /// The function on the host.
    fn evaluate(self, x: &Data) -> Data;
    /// The derivative at `x`, where the function gives `y`, times `t`; `None` if it is zero everywhere.
    fn partial(self, b: &mut Builder, x: Var, y: Var, t: Var) -> Option<Var>;
    /// Writes the operation, if it is not written like most.
    fn stablehlo(self, to: &mut Lowering<'_>) {
        to.typed(Self::OPERATION, "");
    }
}

/// An element-wise primitive of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unary<R>(pub R);

impl<R: UnaryRule> Primitive for Unary<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity(R::NAME, args, 1)?;
        if !self.0.accepts(args[0].dtype) {
            return Err(TypeFault::new(format!("{} is not defined on {}", R::NAME, args[0])));
        }
        let dtype = self.0.result(args[0].dtype);
        Ok(smallvec![TensorType { dtype, weak: args[0].weak && dtype != DType::Bool, ..args[0].clone() }])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> smallvec::SmallVec<[HostTensor; 2]> {
        smallvec![args[0].mapped(|x| self.0.evaluate(x))]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        self.jvp(b, args, outs, cotangents)
    }

    // The Jacobian is diagonal, so it is its own transpose.
    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].and_then(|t| self.0.partial(b, args[0], outs[0], t))]
    }

    fn batch(
        &self,
        b: &mut Builder,
        args: &[Var],
        axes: &[Option<usize>],
    ) -> smallvec::SmallVec<[(Var, usize); 2]> {
        smallvec![(b.apply(*self, args), axes[0].expect("batched"))]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        self.0.stablehlo(to);
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn computes(&self) -> bool {
        true
    }

    fn zeros(&self, _: &[bool]) -> Zeros {
        if R::STEEP { Zeros::Endangered } else { Zeros::Kept }
    }
}

/// The rules of an element-wise function of two operands; all of one dtype.
pub trait BinaryRule: Copy + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {
    /// The name.
    const NAME: &'static str;
    /// The operation in `StableHLO` text.
    const OPERATION: &'static str;
    /// True if elements of `dtype` are in the domain.
    fn accepts(self, dtype: DType) -> bool;
    /// The function on the host; both operands have the same dtype, and the same length unless one has one element.
    fn evaluate(self, x: &Data, y: &Data) -> Data;
    /// True if a partial derivative is infinite or NaN somewhere, infinite operands included, when each operand is a
    /// constant or not.
    fn steep(self, _constant: [bool; 2]) -> bool {
        false
    }
    /// The partial derivatives times `t`: along `x` (`side` 0) or `y` (`side` 1); `None` if it is zero.
    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], out: Var, t: Var) -> Option<Var>;
    /// Writes the operation, if the compiler's own does not keep the host's definition everywhere.
    fn stablehlo(self, to: &mut Lowering<'_>) {
        to.elementwise(Self::OPERATION);
    }
}

/// An element-wise primitive of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binary<R>(pub R);

impl<R: BinaryRule> Primitive for Binary<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity(R::NAME, args, 2)?;
        let [x, y] = [args[0], args[1]];
        if x.dtype != y.dtype || x.shape != y.shape {
            return Err(TypeFault::new(format!("{} of {x} and {y}: the types differ", R::NAME)));
        }
        if !self.0.accepts(x.dtype) {
            return Err(TypeFault::new(format!("{} is not defined on {x}", R::NAME)));
        }
        Ok(smallvec![TensorType { weak: x.weak && y.weak, ..x.clone() }])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> smallvec::SmallVec<[HostTensor; 2]> {
        smallvec![args[0].zipped(args[1], |x, y| self.0.evaluate(x, y))]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return zeros_for(args) };
        (0..2).map(|side| self.0.partial(b, side, [args[0], args[1]], outs[0], ct)).collect()
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let mut sum: Option<Var> = None;
        for (side, tangent) in tangents.iter().enumerate() {
            let term = tangent.and_then(|t| self.0.partial(b, side, [args[0], args[1]], outs[0], t));
            sum = match (sum, term) {
                (Some(s), Some(t)) => Some(b.add(s, t)),
                (s, t) => s.or(t),
            };
        }
        smallvec![sum]
    }

    fn batch(
        &self,
        b: &mut Builder,
        args: &[Var],
        axes: &[Option<usize>],
    ) -> smallvec::SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        smallvec![(b.apply(*self, &args), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        self.0.stablehlo(to);
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn computes(&self) -> bool {
        true
    }

    fn zeros(&self, constant: &[bool]) -> Zeros {
        if self.0.steep([constant[0], constant[1]]) { Zeros::Endangered } else { Zeros::Kept }
    }
}
