//! Angles of points (Q08).

use super::doubles;
use crate::stablehlo::Lowering;
use crate::tensor::DType;

/// Writes the angle of the point with ordinate operand 0 and abscissa operand 1.
///
/// `stablehlo.atan2` gives NaN at the origin and where both are infinite, and forgets the sign of the ordinate at infinities.
/// The abscissa is therefore replaced by 1 at the origin, two infinities by ones, and the sign is put on afterwards.
pub fn angle(to: &mut Lowering<'_>) {
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
        doubles::angle(to, &ordinate, &abscissa)
    } else {
        to.value("stablehlo.atan2", &[&ordinate, &abscissa], &ty)
    };
    let negated = to.value("stablehlo.negate", &[&angle], &ty);
    let negative = to.sign_bit(&y, &ty);
    to.line(&format!("stablehlo.select {negative}, {negated}, {angle} : {}, {}", truth.mlir(), ty.mlir()));
}
