//! `atan2`: the angle of the point with ordinate `y` (left) and abscissa `x` (right), in radians. At the origin it
//! is `y`, that is zero.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise angle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atan2;

impl BinaryRule for Atan2 {
    const NAME: &'static str = "atan2";
    const OPERATION: &'static str = "stablehlo.atan2";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, y: &Data, x: &Data) -> Data {
        zip_data!(y, x; float(a, b) => if a == 0.0 && b == 0.0 { a } else { a.atan2(b) })
    }

    fn steep(self, _: [bool; 2]) -> bool {
        true
    }

    // (x dy - y dx) / (x^2 + y^2)
    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], _: Var, t: Var) -> Option<Var> {
        let squares = args.map(|v| b.mul(v, v));
        let norm = b.add(squares[0], squares[1]);
        let slope = b.div(args[1 - side], norm);
        let product = b.mul(t, slope);
        Some(if side == 0 { product } else { b.neg(product) })
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        quirks::angle(to);
    }
}
