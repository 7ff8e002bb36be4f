//! `erf_inv`: the inverse of the error function; infinite at -1 and 1, NaN beyond.

use super::{UnaryRule, elementary, polynomial};
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};

/// Element-wise inverse error function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErfInv;

impl UnaryRule for ErfInv {
    const NAME: &'static str = "erf_inv";
    const OPERATION: &'static str = "chlo.erf_inv";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; single(a) => erf_inv(a), F64(a) => erf_inv_double(a))
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        // sqrt(pi) / 2 e^(y^2)
        let square = b.mul(y, y);
        let bell = b.apply(super::Unary(super::Exp), &[square]);
        let slope = b.scale(bell, 1.0 / std::f64::consts::FRAC_2_SQRT_PI);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        let (x, ty) = (to.operand(0), to.result_type(0).mlir());
        to.line(&format!("{} {x} : {ty} -> {ty}", Self::OPERATION));
    }
}

/// M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2010: the single precision polynomials, one
/// for the middle and one for the tails. XLA and `chlo.erf_inv` use the same, so normal samples agree with theirs.
pub fn erf_inv(x: f32) -> f32 {
    const MIDDLE: [f32; 9] = [
        2.810_226_4e-8,
        3.432_739_4e-7,
        -3.523_387_7e-6,
        -4.391_506_5e-6,
        0.000_218_580_87,
        -0.001_253_725,
        -0.004_177_681_6,
        0.246_640_73,
        1.501_409_4,
    ];
    const TAIL: [f32; 9] = [
        -0.000_200_214_26,
        0.000_100_950_56,
        0.001_349_343_2,
        -0.003_673_428_4,
        0.005_739_507_7,
        -0.007_622_461,
        0.009_438_87,
        1.001_674,
        2.832_976_8,
    ];
    let w = -elementary::ln_1p(-x * x);
    // Both, without branches, so that the compiler makes vectors of a loop.
    let (middle, tail) = (polynomial(&MIDDLE, w - 2.5), polynomial(&TAIL, w.sqrt() - 3.0));
    let factor = if w < 5.0 { middle } else { tail };
    x * if w.is_infinite() { w } else { factor }
}

/// Halley's method on `erf(y) = x` in double precision, from the result in single precision; near the ends on `erfc`,
/// which keeps the digits there.
fn erf_inv_double(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() || size >= 1.0 {
        return if size == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    // The complement of a double near 1 is exact; that of a single would be 0.
    let complement = 1.0 - size;
    let mut y = if complement > 1e-6 {
        f64::from(erf_inv(size as f32))
    } else {
        // erfc(y) is about e^(-y^2) / (y sqrt(pi)).
        let log = -(complement * std::f64::consts::PI.sqrt()).ln();
        (log - 0.5 * log.ln()).sqrt()
    };
    for _ in 0..4 {
        let error = if size < 0.5 { libm::erf(y) - size } else { complement - libm::erfc(y) };
        let step = error / (std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp());
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}
