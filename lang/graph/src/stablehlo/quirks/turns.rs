//! Sine and cosine far from zero and near their zeros (Q11).

use crate::stablehlo::Lowering;

/// π in three parts, the products of the first two of which with up to 2^13 are exact (S. L. Moshier, "Methods and programs for
/// mathematical functions", 1989).
const PARTS: [f32; 3] = [3.140_625, 9.675_026e-4, 1.509_958e-7];

/// Writes the sine of the operand, or its cosine, by the sine of what is left of it after half turns. IREE takes quarters of a turn off in
/// one step, whose rounding is 2e-5 at 1000 radians, and has the sine of a small negative number from a cosine, to 6e-8: few of its digits.
/// Here the last step is the sine of a number from 0 to π / 2, of which IREE takes nothing off.
pub fn by_half_turns(is_cosine: bool, to: &mut Lowering<'_>) {
    let ty = to.result_type(0).clone();
    let mut x = to.operand(0);
    // The nearest zero of the function is at so many times π.
    let per_radian = to.full(&ty, std::f64::consts::FRAC_1_PI);
    let half = to.full(&ty, 0.5);
    let mut place = to.value("stablehlo.multiply", &[&x, &per_radian], &ty);
    if is_cosine {
        place = to.value("stablehlo.subtract", &[&place, &half], &ty);
    }
    let turns = to.value("stablehlo.round_nearest_even", &[&place], &ty);
    let place = if is_cosine { to.value("stablehlo.add", &[&turns, &half], &ty) } else { turns.clone() };
    for part in PARTS {
        let part = to.full(&ty, part.into());
        let product = to.value("stablehlo.multiply", &[&place, &part], &ty);
        x = to.value("stablehlo.subtract", &[&x, &product], &ty);
    }
    // 0 for even half turns, 1/2 for odd ones: the function falls where the sine of the rest rises.
    let halved = to.value("stablehlo.multiply", &[&turns, &half], &ty);
    let whole = to.value("stablehlo.floor", &[&halved], &ty);
    let odd = to.value("stablehlo.subtract", &[&halved, &whole], &ty);
    let (slope, start) = if is_cosine { (4.0, -1.0) } else { (-4.0, 1.0) };
    let (slope, start) = (to.full(&ty, slope), to.full(&ty, start));
    let scaled = to.value("stablehlo.multiply", &[&odd, &slope], &ty);
    let rises = to.value("stablehlo.add", &[&scaled, &start], &ty);
    let size = to.value("stablehlo.abs", &[&x], &ty);
    let sine = to.value("stablehlo.sine", &[&size], &ty);
    let sign = to.value("stablehlo.sign", &[&x], &ty);
    let signed = to.value("stablehlo.multiply", &[&sine, &sign], &ty);
    to.line(&format!("stablehlo.multiply {signed}, {rises} : {}", ty.mlir()));
}
