//! `power`: `x^y`. Floats as IEEE 754 `pow`, so a negative base has powers with whole exponents; integers wrap, and
//! negative exponents give what is left of `1 / x^-y` after truncation.

use super::{BinaryRule, Direction, Log, Unary};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pow;

macro_rules! integer_power {
    ($a:expr, $b:expr) => {
        match ($a, $b) {
            (1, _) => 1,
            (-1, b) => 1 - 2 * (b & 1),
            (_, b) if b < 0 => 0,
            // Powers wrap with a period, but the exponent must be taken bit by bit: it may exceed 32 bits.
            (a, b) => wrapping_power(a as u64, b as u64) as _,
        }
    };
}

impl BinaryRule for Pow {
    const NAME: &'static str = "pow";
    const OPERATION: &'static str = "stablehlo.power";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            float(a, b) => a.powf(b),
            signed(a, b) => integer_power!(a, b),
            U8(a, b) => wrapping_power(a.into(), b.into()) as u8,
            U16(a, b) => wrapping_power(a.into(), b.into()) as u16,
            U32(a, b) => wrapping_power(a.into(), b.into()) as u32)
    }

    fn steep(self, _: [bool; 2]) -> bool {
        true
    }

    // d(x^y) = y x^(y-1) dx + log(x) x^y dy, with 0 where y = 0 and where x = 0, as in JAX.
    fn partial(self, b: &mut Builder, side: usize, [x, y]: [Var; 2], out: Var, t: Var) -> Option<Var> {
        let (zero, one) = (b.full_like(x, 0.0), b.full_like(x, 1.0));
        let at_zero = b.compare(Direction::Eq, if side == 0 { y } else { x }, zero);
        let slope = if side == 0 {
            let exponent = b.sub(y, one);
            let exponent = b.select(at_zero, one, exponent);
            let power = b.apply(super::Binary(Pow), &[x, exponent]);
            b.mul(y, power)
        } else {
            let base = b.select(at_zero, one, x);
            let log = b.apply(Unary(Log), &[base]);
            b.mul(log, out)
        };
        let slope = b.select(at_zero, zero, slope);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype.is_float() {
            float_power(to);
        } else {
            to.elementwise(Self::OPERATION);
        }
    }
}

fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut power = 1_u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    power
}

// IREE 3.13 computes `e^(y log x)`, which is NaN for negative and some special bases. So the power of |x| is taken,
// and the sign and the special cases are put around it.
fn float_power(to: &mut Lowering<'_>) {
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
