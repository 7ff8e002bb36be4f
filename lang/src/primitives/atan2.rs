//! `atan2`: the angle of the point with ordinate `y` (left) and abscissa `x` (right), in radians. At the origin it
//! is `y`, that is zero.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, double};
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

    // IREE 3.13 gives NaN at the origin and where both are infinite, and forgets the sign of `y` at infinities. So the
    // abscissa is replaced by 1 at the origin, two infinities by ones, and the sign is put on afterwards.
    fn stablehlo(self, to: &mut Lowering<'_>) {
        let ty = to.result_type(0).clone();
        let truth = ty.with_dtype(DType::Bool);
        let (y, x) = (to.operand(0), to.operand(1));
        let (zero, one) = (to.splat(&ty, "0.0"), to.splat(&ty, "1.0"));
        let flat = to.compare("EQ", &y, &zero, &ty);
        let narrow = to.compare("EQ", &x, &zero, &ty);
        let origin = to.value("stablehlo.and", &[&flat, &narrow], &truth);
        let abscissa = to.select(&origin, &one, &x, &ty);
        let ordinate = to.value("stablehlo.abs", &[&y], &ty);
        let width = to.value("stablehlo.abs", &[&x], &ty);
        // Both infinite: the smaller one is.
        let infinity = to.full(&ty, f64::INFINITY);
        let smaller = to.value("stablehlo.minimum", &[&ordinate, &width], &ty);
        let diagonal = to.compare("EQ", &smaller, &infinity, &ty);
        let sign = to.value("stablehlo.sign", &[&x], &ty);
        let ordinate = to.select(&diagonal, &one, &ordinate, &ty);
        let abscissa = to.select(&diagonal, &sign, &abscissa, &ty);
        let angle = if ty.dtype == DType::F64 {
            double::angle(to, &ordinate, &abscissa)
        } else {
            to.value("stablehlo.atan2", &[&ordinate, &abscissa], &ty)
        };
        let negated = to.value("stablehlo.negate", &[&angle], &ty);
        let negative = to.sign_bit(&y, &ty);
        to.line(&format!(
            "stablehlo.select {negative}, {negated}, {angle} : {}, {}",
            truth.mlir(),
            ty.mlir()
        ));
    }
}
