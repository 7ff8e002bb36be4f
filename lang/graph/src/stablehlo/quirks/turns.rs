//! Sine and cosine of large numbers (Q11).

use crate::stablehlo::Lowering;

/// Writes sine or cosine of what is left of the operand after whole turns. IREE takes them off in one step, whose rounding is
/// 2e-5 at 1000 radians; here a turn has three parts, whose products with up to 2^12 turns are exact but for the last (Cody
/// and Waite, "Software manual for the elementary functions", 1980).
pub fn within_a_turn(operation: &str, to: &mut Lowering<'_>) {
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
