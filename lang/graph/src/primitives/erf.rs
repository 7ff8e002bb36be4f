//! `erf`: the error function.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};

/// Element-wise error function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Erf;

impl UnaryRule for Erf {
    const NAME: &'static str = "erf";
    const OPERATION: &'static str = "chlo.erf";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; single(a) => erf(a), F64(a) => libm::erf(a))
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        // 2 / sqrt(pi) e^(-x^2)
        let square = b.mul(x, x);
        let negated = b.neg(square);
        let bell = b.apply(super::Unary(super::Exp), &[negated]);
        let slope = b.scale(bell, std::f64::consts::FRAC_2_SQRT_PI);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        let (x, ty) = (to.operand(0), to.result_type(0).mlir());
        to.line(&format!("{} {x} : {ty} -> {ty}", Self::OPERATION));
    }
}

/// The rational minimax approximation that the compiler expands `chlo.erf` to (Eigen's and XLA's coefficients):
/// `x P(x^2) / Q(x^2)`, with `x` clamped to where the result rounds to 1.
fn erf(x: f32) -> f32 {
    const P: [f32; 5] =
        [0.000_229_050_65, 0.003_408_291, 0.050_955_694, 0.185_208_32, std::f32::consts::FRAC_2_SQRT_PI];
    const Q: [f32; 7] =
        [-1.179_160_3e-7, 0.000_023_547_966, 0.001_017_962_5, 0.014_070_47, 0.110_985_05, 0.497_469_25, 1.0];
    let x = x.clamp(-3.832_507, 3.832_507);
    let square = x * x;
    let value = x * polynomial(&P, square) / polynomial(&Q, square);
    value.clamp(-1.0, 1.0)
}

/// Horner's rule; the coefficient of the highest power first.
pub fn polynomial(coefficients: &[f32], x: f32) -> f32 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}
