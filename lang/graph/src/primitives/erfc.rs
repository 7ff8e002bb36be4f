//! `erfc`: the complementary error function, `1 - erf(x)`, which keeps its digits where `erf` is near 1.

use super::{Unary, UnaryRule, polynomial};
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};

/// Element-wise complementary error function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Erfc;

impl UnaryRule for Erfc {
    const NAME: &'static str = "erfc";
    const OPERATION: &'static str = "chlo.erfc";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; single(a) => erfc(a), F64(a) => libm::erfc(a))
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        // -2 / sqrt(pi) e^(-x^2)
        let square = b.mul(x, x);
        let negated = b.neg(square);
        let bell = b.apply(Unary(super::Exp), &[negated]);
        let slope = b.scale(bell, -std::f64::consts::FRAC_2_SQRT_PI);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        let (x, ty) = (to.operand(0), to.result_type(0).mlir());
        to.line(&format!("{} {x} : {ty} -> {ty}", Self::OPERATION));
    }
}

/// The approximations of Cephes (S. L. Moshier, `erfcf` and `erff`), to which the compiler expands `chlo.erfc`: a series
/// near 0, and `e^(-x^2) / x` times a polynomial of `1 / x^2` in two ranges beyond 1.
fn erfc(x: f32) -> f32 {
    const SERIES: [f32; 7] = [
        7.853_861_4e-5,
        -8.010_193_6e-4,
        0.005_188_327_8,
        -0.026_853_813,
        0.112_835_85,
        -0.376_126_26,
        std::f32::consts::FRAC_2_SQRT_PI,
    ];
    const NEAR: [f32; 9] = [
        0.023_268_2,
        -0.138_703_94,
        0.368_742_47,
        -0.582_473_3,
        0.621_000_47,
        -0.494_451_52,
        0.340_488,
        -0.274_112_7,
        0.563_825_96,
    ];
    const FAR: [f32; 8] = [
        -10.477_664,
        12.977_2,
        -7.495_518_7,
        2.921_019,
        -1.015_265_2,
        0.421_846_33,
        -0.282_076_75,
        0.564_189_5,
    ];
    let (square, size) = (x * x, x.abs());
    if size < 1.0 {
        return 1.0 - x * polynomial(&SERIES, square);
    }
    let coefficients: &[f32] = if size < 2.0 { &NEAR } else { &FAR };
    // The largest x^2 of which e^(-x^2) is more than zero.
    let tail = if square > 88.722_84 {
        0.0
    } else {
        (-square).exp() * (1.0 / size) * polynomial(coefficients, 1.0 / square)
    };
    if x < 0.0 { 2.0 - tail } else { tail }
}
