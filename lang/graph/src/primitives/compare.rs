//! `compare`: element-wise comparison, giving booleans. NaN compares unequal to everything.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, HostTensor, TensorType};
use crate::zip_data;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `x = y`
    Eq,
    /// `x != y`
    Ne,
    /// `x < y`
    Lt,
    /// `x <= y`
    Le,
    /// `x > y`
    Gt,
    /// `x >= y`
    Ge,
}

impl Direction {
    /// The name in MLIR.
    pub fn mlir(self) -> &'static str {
        match self {
            Direction::Eq => "EQ",
            Direction::Ne => "NE",
            Direction::Lt => "LT",
            Direction::Le => "LE",
            Direction::Gt => "GT",
            Direction::Ge => "GE",
        }
    }
}

/// Element-wise comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    /// The comparison.
    pub direction: Direction,
}

impl Compare {
    fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self.direction {
            Direction::Eq => a == b,
            Direction::Ne => a != b,
            Direction::Lt => a < b,
            Direction::Le => a <= b,
            Direction::Gt => a > b,
            Direction::Ge => a >= b,
        }
    }
}

impl Primitive for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn parameters(&self) -> String {
        self.direction.mlir().to_lowercase()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("compare", args, 2)?;
        let [x, y] = [args[0], args[1]];
        if x.dtype != y.dtype || x.shape != y.shape {
            return Err(TypeFault::new(format!("compare {x} with {y}: the types differ")));
        }
        Ok(smallvec![x.with_dtype(DType::Bool)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![args[0].zipped(args[1], |x, y| zip_data!(x, y; any(a, b) => self.holds(&a, &b)))]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        smallvec![(b.apply(*self, &args), 0)]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let (x, y, ty) = (to.operand(0), to.operand(1), to.operand_type(0).clone());
        let text = to.comparison(self.direction.mlir(), &x, &y, &ty);
        to.line(&text);
    }
}
