//! Powers of floats (Q09).

use crate::stablehlo::Lowering;
use crate::tensor::DType;

/// Writes operand 0 to the power of operand 1, as IEEE 754 `pow`.
///
/// IREE computes `e^(y log x)`, which is NaN for negative and some special bases. So the power of |x| is taken, and the sign and
/// the special cases are put around it.
pub fn power(to: &mut Lowering<'_>) {
    let ty = to.result_type(0).clone();
    let truth = ty.with_dtype(DType::Bool);
    let (x, y) = (to.operand(0), to.operand(1));
    let (zero, one, half) = (to.splat(&ty, "0.0"), to.splat(&ty, "1.0"), to.splat(&ty, "0.5"));
    let nan = to.full(&ty, f64::NAN);

    let base = to.value("stablehlo.abs", &[&x], &ty);
    let power = to.value("stablehlo.power", &[&base, &y], &ty);
    // 1^y = 1 and x^0 = 1, even for infinite and NaN operands; (-1)^NaN is NaN as NaN is not whole.
    let unit = to.compare("EQ", &base, &one, &ty);
    let exponent_zero = to.compare("EQ", &y, &zero, &ty);
    let trivial = to.value("stablehlo.or", &[&unit, &exponent_zero], &truth);
    let power = to.select(&trivial, &one, &power, &ty);
    let whole = to.value("stablehlo.floor", &[&y], &ty);
    let is_whole = to.compare("EQ", &whole, &y, &ty);
    let halved = to.value("stablehlo.multiply", &[&y, &half], &ty);
    let halved_whole = to.value("stablehlo.floor", &[&halved], &ty);
    let is_odd = to.compare("NE", &halved_whole, &halved, &ty);

    let negated = to.value("stablehlo.negate", &[&power], &ty);
    let negative = to.sign_bit(&x, &ty);
    let flips = to.value("stablehlo.and", &[&is_odd, &is_whole], &truth);
    let flips = to.value("stablehlo.and", &[&flips, &negative], &truth);
    let power = to.select(&flips, &negated, &power, &ty);
    // Only a finite negative base has no power with a broken exponent.
    let infinity = to.full(&ty, f64::INFINITY);
    let finite = to.compare("NE", &base, &infinity, &ty);
    let below = to.compare("LT", &x, &zero, &ty);
    let broken = to.value("stablehlo.not", &[&is_whole], &truth);
    let undefined = to.value("stablehlo.and", &[&below, &broken], &truth);
    let undefined = to.value("stablehlo.and", &[&undefined, &finite], &truth);
    to.line(&format!("stablehlo.select {undefined}, {nan}, {power} : {}, {}", truth.mlir(), ty.mlir()));
}
