//! Functions that IREE's code for GPUs computes wrongly under Vulkan (Q50).

use crate::stablehlo::Lowering;
use crate::tensor::DType;

/// Writes `log(1 + x)`: below a quarter by the series of `2 artanh(x / (2 + x))` to its fifth term, whose rest is below 1e-9 of it. IREE writes
/// the logarithm of a rounded sum, which has no digit of a small `x`; to take the rounding off again does not help, since shaders
/// may drop it.
pub fn log_plus_one(to: &mut Lowering<'_>) {
    let ty = to.result_type(0).clone();
    let x = to.operand(0);
    let [one, two, quarter] = [1.0, 2.0, 0.25].map(|number| to.full(&ty, number));
    let sum = to.value("stablehlo.add", &[&x, &one], &ty);
    let log = to.value("stablehlo.log", &[&sum], &ty);
    let below = to.value("stablehlo.add", &[&x, &two], &ty);
    let s = to.value("stablehlo.divide", &[&x, &below], &ty);
    let z = to.value("stablehlo.multiply", &[&s, &s], &ty);
    let mut series = to.full(&ty, 2.0 / 9.0);
    for term in [7.0, 5.0, 3.0, 1.0] {
        let factor = to.full(&ty, 2.0 / term);
        let product = to.value("stablehlo.multiply", &[&series, &z], &ty);
        series = to.value("stablehlo.add", &[&product, &factor], &ty);
    }
    let near = to.value("stablehlo.multiply", &[&series, &s], &ty);
    let size = to.value("stablehlo.abs", &[&x], &ty);
    let is_near = to.compare("LT", &size, &quarter, &ty);
    let line = format!(
        "stablehlo.select {is_near}, {near}, {log} : {}, {}",
        ty.with_dtype(DType::Bool).mlir(),
        ty.mlir()
    );
    to.line(&line);
}

/// Writes a division of floats by the constant 0 as a product with infinity, which is the same; false for other divisions. Shaders
/// may do anything at a division that is seen to be by 0: Mesa's store nothing.
pub fn divide_by_zero(to: &mut Lowering<'_>) -> bool {
    let ty = to.result_type(0).clone();
    let number = to.repeated_number(1).filter(|_| ty.dtype.is_float());
    let divisor = number.and_then(|number| number.parse::<f64>().ok()).filter(|divisor| *divisor == 0.0);
    let Some(divisor) = divisor else { return false };
    let x = to.operand(0);
    let inverse = to.full(&ty, 1.0 / divisor);
    to.line(&format!("stablehlo.multiply {x}, {inverse} : {}", ty.mlir()));
    true
}
