//! Functions of doubles for which IREE has no code (Q12): its programs for the processor would call a mathematical library
//! that is not linked to them. By way of `f32` half of the digits would be lost, so they are written out.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI, SQRT_2};

use crate::stablehlo::Lowering;
use crate::tensor::{DType, TensorType};

/// Expressions over temporaries of one type.
struct Expression<'a, 'b> {
    to: &'a mut Lowering<'b>,
    ty: TensorType,
}

impl<'a, 'b> Expression<'a, 'b> {
    fn new(to: &'a mut Lowering<'b>) -> Self {
        let ty = to.result_type(0).clone();
        Expression { to, ty }
    }

    fn number(&mut self, x: f64) -> String {
        self.to.full(&self.ty, x)
    }

    fn unary(&mut self, operation: &str, x: &str) -> String {
        self.to.value(&format!("stablehlo.{operation}"), &[x], &self.ty)
    }

    fn binary(&mut self, operation: &str, x: &str, y: &str) -> String {
        self.to.value(&format!("stablehlo.{operation}"), &[x, y], &self.ty)
    }

    fn add(&mut self, x: &str, y: &str) -> String {
        self.binary("add", x, y)
    }

    fn sub(&mut self, x: &str, y: &str) -> String {
        self.binary("subtract", x, y)
    }

    fn mul(&mut self, x: &str, y: &str) -> String {
        self.binary("multiply", x, y)
    }

    fn div(&mut self, x: &str, y: &str) -> String {
        self.binary("divide", x, y)
    }

    fn scale(&mut self, x: &str, by: f64) -> String {
        let by = self.number(by);
        self.mul(x, &by)
    }

    fn compare(&mut self, direction: &str, x: &str, y: &str) -> String {
        self.to.compare(direction, x, y, &self.ty)
    }

    fn select(&mut self, predicate: &str, x: &str, y: &str) -> String {
        self.to.select(predicate, x, y, &self.ty)
    }

    /// Horner's rule; the coefficient of the highest power first.
    fn polynomial(&mut self, coefficients: &[f64], x: &str) -> String {
        let mut sum = self.number(coefficients[0]);
        for c in &coefficients[1..] {
            let product = self.mul(&sum, x);
            let c = self.number(*c);
            sum = self.add(&product, &c);
        }
        sum
    }

    /// Writes the result.
    fn give(self, predicate: &str, x: &str, y: &str) {
        let truth = self.ty.with_dtype(DType::Bool).mlir();
        self.to.line(&format!("stablehlo.select {predicate}, {x}, {y} : {truth}, {}", self.ty.mlir()));
    }
}

/// `tanh |x| = -e / (e + 2)` for `e = e^(-2 |x|) - 1`, with the sign put on afterwards.
pub fn tanh(to: &mut Lowering<'_>) {
    let x = to.operand(0);
    let mut e = Expression::new(to);
    let size = e.unary("abs", &x);
    let exponent = e.scale(&size, -2.0);
    let less = e.unary("exponential_minus_one", &exponent);
    let two = e.number(2.0);
    let below = e.add(&less, &two);
    let negated = e.div(&less, &below);
    let value = e.unary("negate", &negated);
    let ty = e.ty.clone();
    let negative = e.to.sign_bit(&x, &ty);
    e.give(&negative, &negated, &value);
}

/// Sine, or cosine: of what is left after quarter turns, whose parts are exact products for up to 2^20 of them (Cody and
/// Waite, 1980), by Taylor's series.
pub fn sine(to: &mut Lowering<'_>, is_cosine: bool) {
    const QUARTER: [f64; 3] =
        [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    // 1 / n! with alternating signs: of n = 17, 15, ..., 1 and n = 16, 14, ..., 0.
    let series = |last: u32| -> Vec<f64> {
        let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
        let term = |n: u32| if (n / 2).is_multiple_of(2) { 1.0 } else { -1.0 } / factorial(n);
        (0..=8).map(|i| term(last - 2 * i)).collect()
    };
    let x = to.operand(0);
    let mut e = Expression::new(to);
    let turns = e.scale(&x, FRAC_2_PI);
    let turns = e.unary("round_nearest_even", &turns);
    let mut rest = x;
    for part in QUARTER {
        let product = e.scale(&turns, part);
        rest = e.sub(&rest, &product);
    }
    let square = e.mul(&rest, &rest);
    let odd = e.polynomial(&series(17), &square);
    let odd = e.mul(&rest, &odd);
    let even = e.polynomial(&series(16), &square);
    // Cosine is a quarter turn ahead.
    let ahead = e.number(if is_cosine { 1.0 } else { 0.0 });
    let turns = e.add(&turns, &ahead);
    let halved = e.scale(&turns, 0.5);
    let half = e.unary("floor", &halved);
    let is_odd = e.compare("NE", &half, &halved);
    let value = e.select(&is_odd, &even, &odd);
    let quartered = e.scale(&half, 0.5);
    let quarter = e.unary("floor", &quartered);
    let flips = e.compare("NE", &quarter, &quartered);
    let negated = e.unary("negate", &value);
    e.give(&flips, &negated, &value);
}

/// The angle of a point with an ordinate that is not negative, of which not both coordinates are zero or infinite.
pub fn angle(to: &mut Lowering<'_>, y: &str, x: &str) -> String {
    let mut e = Expression::new(to);
    let width = e.unary("abs", x);
    let (less, more) = (e.binary("minimum", y, &width), e.binary("maximum", y, &width));
    // At most 1; beyond tan(pi / 8) an eighth of a turn is taken off, and then the angle is halved.
    let slope = e.div(&less, &more);
    let one = e.number(1.0);
    let (below, above) = (e.sub(&slope, &one), e.add(&slope, &one));
    let turned = e.div(&below, &above);
    let bound = e.number(SQRT_2 - 1.0);
    let steep = e.compare("GT", &slope, &bound);
    let tangent = e.select(&steep, &turned, &slope);
    let square = e.mul(&tangent, &tangent);
    let hypotenuse = e.add(&square, &one);
    let hypotenuse = e.unary("sqrt", &hypotenuse);
    let hypotenuse = e.add(&hypotenuse, &one);
    let half = e.div(&tangent, &hypotenuse);
    let square = e.mul(&half, &half);
    let series: Vec<f64> =
        (0..14).rev().map(|k| if k % 2 == 0 { 1.0 } else { -1.0 } / f64::from(2 * k + 1)).collect();
    let arc = e.polynomial(&series, &square);
    let arc = e.mul(&half, &arc);
    let arc = e.scale(&arc, 2.0);
    let eighth = e.number(FRAC_PI_4);
    let more = e.add(&arc, &eighth);
    let arc = e.select(&steep, &more, &arc);
    let quarter = e.number(FRAC_PI_2);
    let complement = e.sub(&quarter, &arc);
    let upright = e.compare("GT", y, &width);
    let arc = e.select(&upright, &complement, &arc);
    let half_turn = e.number(PI);
    let supplement = e.sub(&half_turn, &arc);
    let ty = e.ty.clone();
    let left = e.to.sign_bit(x, &ty);
    e.select(&left, &supplement, &arc)
}

/// The remainder of truncating division, exact where the quotient is less than 2^150: each step takes a whole multiple of
/// `y` off, whose product is computed in two doubles (Dekker, 1971), and leaves less than 2^-50 of what was there.
pub fn remainder(to: &mut Lowering<'_>) {
    let (x, y) = (to.operand(0), to.operand(1));
    let mut e = Expression::new(to);
    let (size, step) = (e.unary("abs", &x), e.unary("abs", &y));
    let zero = e.number(0.0);
    let (step_high, step_low) = split(&mut e, &step);
    let mut rest = size;
    for _ in 0..3 {
        let quotient = e.div(&rest, &step);
        let count = e.unary("floor", &quotient);
        let (high, low) = split(&mut e, &count);
        let product = e.mul(&count, &step);
        let parts = [(&high, &step_high), (&high, &step_low), (&low, &step_high), (&low, &step_low)];
        let mut error = e.unary("negate", &product);
        for (a, b) in parts {
            let part = e.mul(a, b);
            error = e.add(&error, &part);
        }
        let left = e.sub(&rest, &product);
        rest = e.sub(&left, &error);
        // The quotient was rounded: it may be one too many.
        let below = e.compare("LT", &rest, &zero);
        let more = e.add(&rest, &step);
        rest = e.select(&below, &more, &rest);
    }
    let above = e.compare("GE", &rest, &step);
    let less = e.sub(&rest, &step);
    let rest = e.select(&above, &less, &rest);
    let negated = e.unary("negate", &rest);
    let ty = e.ty.clone();
    let negative = e.to.sign_bit(&x, &ty);
    let rest = e.select(&negative, &negated, &rest);
    // A finite number is less than infinity.
    let infinity = e.number(f64::INFINITY);
    let endless = e.compare("EQ", &step, &infinity);
    let finite = e.compare("LT", &x, &infinity);
    let lowest = e.number(f64::NEG_INFINITY);
    let finite_below = e.compare("GT", &x, &lowest);
    let truth = e.ty.with_dtype(DType::Bool);
    let whole = e.to.value("stablehlo.and", &[&finite, &finite_below], &truth);
    let whole = e.to.value("stablehlo.and", &[&whole, &endless], &truth);
    e.give(&whole, &x, &rest);
}

/// A double as two of half as many digits.
fn split(e: &mut Expression<'_, '_>, x: &str) -> (String, String) {
    let bits = e.ty.with_dtype(DType::I64);
    let (float, whole) = (e.ty.mlir(), bits.mlir());
    let pattern = e.to.temporary(&format!("stablehlo.bitcast_convert {x} : ({float}) -> {whole}"));
    let mask = e.to.splat(&bits, &(-1_i64 << 27).to_string());
    let pattern = e.to.value("stablehlo.and", &[&pattern, &mask], &bits);
    let high = e.to.temporary(&format!("stablehlo.bitcast_convert {pattern} : ({whole}) -> {float}"));
    let low = e.sub(x, &high);
    (high, low)
}
