//! Decimal formatting of finite floats, rounded as in Python and `NumPy`.

use std::fmt::LowerExp;
use std::str::FromStr;

use half::{bf16, f16};

use crate::tensor::{DType, FromNumber, Number};

/// A finite float as decimal digits and a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// True if negative, -0 included.
    pub negative: bool,
    /// At least one digit; the point is after the first.
    pub digits: String,
    /// The power of ten of the first digit.
    pub exponent: i32,
}

impl Decimal {
    /// The shortest digits that round-trip to the same number of the same type.
    pub fn shortest<T>(x: T) -> Self
    where
        T: LowerExp + FromStr + PartialEq + Copy + Into<f64>,
    {
        let shortest = format!("{x:e}");
        // Rust rounds ties of the shortest form up, Python to even; exact rounding to the same number of digits is to
        // even as well.
        let even = Decimal::rounded(x.into(), Decimal::parse(&shortest).digits.len() - 1);
        let same = even.scientific().parse::<T>().is_ok_and(|y| y == x);
        if same { even } else { Decimal::parse(&shortest) }
    }

    /// The shortest digits that round-trip in a float dtype.
    pub fn of(x: f64, dtype: DType) -> Self {
        match dtype {
            DType::F64 => Decimal::shortest(x),
            DType::BF16 | DType::F16 => {
                let same = |decimal: &Decimal| {
                    let number = Number::Float(decimal.scientific().parse().unwrap_or(f64::NAN));
                    let number = if dtype == DType::F16 {
                        f16::from_number(number).to_f64()
                    } else {
                        bf16::from_number(number).to_f64()
                    };
                    number == x
                };
                // Five digits distinguish all 16-bit floats.
                let few = (0..5).map(|digits| Decimal::rounded(x, digits)).find(same);
                few.unwrap_or_else(|| Decimal::shortest(x))
            }
            _ => Decimal::shortest(x as f32),
        }
    }

    /// Exactly `digits` after the first one; the exact value is rounded, ties to even.
    pub fn rounded(x: f64, digits: usize) -> Self {
        Decimal::parse(&format!("{x:.digits$e}"))
    }

    /// Parses Rust's scientific notation.
    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        Decimal { negative: mantissa.starts_with('-'), digits, exponent: exponent.parse().unwrap_or(0) }
    }

    /// The sign, empty for positive numbers.
    pub fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// The digits before and after the point, without exponent and sign.
    pub fn split(&self) -> (String, String) {
        let Ok(place) = usize::try_from(self.exponent) else {
            return ("0".to_owned(), "0".repeat(self.exponent.unsigned_abs() as usize - 1) + &self.digits);
        };
        let (whole, fraction) = self.digits.split_at(self.digits.len().min(place + 1));
        (format!("{whole:0<width$}", width = place + 1), fraction.to_owned())
    }

    /// `-1.5e-07`: the exponent has a sign and at least two digits.
    pub fn scientific(&self) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{}{first}{point}{rest}{}", self.sign(), self.exponent_text())
    }

    /// `e-07`
    pub fn exponent_text(&self) -> String {
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("e{sign}{:02}", self.exponent.unsigned_abs())
    }
}
