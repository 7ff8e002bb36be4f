//! `sine`: sine, of radians.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::{Lowering, double};
use crate::tensor::{DType, Data};

/// Element-wise sine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sin;

impl UnaryRule for Sin {
    const NAME: &'static str = "sin";
    const OPERATION: &'static str = "stablehlo.sine";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.sin())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        let slope = b.apply(super::Unary(super::Cos), &[x]);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype == DType::F64 {
            double::sine(to, false);
        } else {
            lower(Self::OPERATION, to);
        }
    }
}

/// Writes sine or cosine of what is left of the operand after whole turns. IREE 3.13 takes them off in one step,
/// whose rounding is 2e-5 at 1000 radians; here a turn has three parts, whose products with up to 2^12 turns are exact
/// but for the last (Cody and Waite, "Software manual for the elementary functions", 1980).
pub(super) fn lower(operation: &str, to: &mut Lowering<'_>) {
    const TURN: [f32; 3] = [6.281_25, 0.001_935_482, -1.748_455_6e-7];
    let ty = to.result_type(0).clone();
    let mut x = to.operand(0);
    let per_radian = to.full(&ty, std::f64::consts::FRAC_1_PI / 2.0);
    let turns = to.value("stablehlo.multiply", &[&x, &per_radian], &ty);
    let turns = to.value("stablehlo.round_nearest_even", &[&turns], &ty);
    for part in TURN {
        let part = to.full(&ty, part.into());
        let product = to.value("stablehlo.multiply", &[&turns, &part], &ty);
        x = to.value("stablehlo.subtract", &[&x, &product], &ty);
    }
    to.line(&format!("{operation} {x} : {}", ty.mlir()));
}
