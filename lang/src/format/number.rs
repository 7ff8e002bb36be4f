//! Floats in digits, as Python writes them.

use crate::decimal::Decimal;
use crate::tensor::DType;

/// A number without its sign, in the parts that are laid out.
pub(super) struct Number {
    pub negative: bool,
    /// The digits before the point; empty if there are no digits at all.
    pub whole: String,
    /// All after them.
    pub rest: String,
}

impl Number {
    /// Whether no digit shown differs from zero.
    pub fn is_zero(&self) -> bool {
        let shown = self.rest.split(['e', 'E']).next().unwrap_or("");
        !self.whole.is_empty() && self.whole.chars().chain(shown.chars()).all(|c| !('1'..='9').contains(&c))
    }
}

/// How a float is written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub code: Option<char>,
    pub precision: Option<usize>,
    /// A point even if no digit follows, and the zeros that `g` cuts off.
    pub alternate: bool,
}

/// A float as Python's `repr` has it.
pub(super) fn repr(x: f64) -> String {
    let number = float(x, None, Style { code: None, precision: None, alternate: false });
    let sign = if number.negative { "-" } else { "" };
    format!("{sign}{}{}", number.whole, number.rest)
}

/// A float in the style; `dtype` is that of the tensor whose element it is, if it is one.
pub(super) fn float(x: f64, dtype: Option<DType>, style: Style) -> Number {
    let code = style.code.unwrap_or(' ');
    let percent = if code == '%' { "%" } else { "" };
    let x = if code == '%' { x * 100.0 } else { x };
    let negative = x.is_sign_negative() && !x.is_nan();
    if !x.is_finite() {
        let name = if x.is_nan() { "nan" } else { "inf" };
        let name = if code.is_uppercase() { name.to_uppercase() } else { name.to_owned() };
        return Number { negative, whole: String::new(), rest: name + percent };
    }
    let (whole, fraction, exponent) = match code.to_ascii_lowercase() {
        'e' => scientific(&Decimal::rounded(x, style.precision.unwrap_or(6))),
        'f' | '%' => {
            let text = format!("{:.digits$}", x.abs(), digits = style.precision.unwrap_or(6));
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            (whole.to_owned(), fraction.to_owned(), String::new())
        }
        'g' | 'n' => general(x, style.precision.unwrap_or(6), style.alternate, false),
        _ => match style.precision {
            Some(precision) => general(x, precision, style.alternate, true),
            None => shortest(x, dtype),
        },
    };
    let point = if fraction.is_empty() && !style.alternate { "" } else { "." };
    let exponent = if code.is_uppercase() { exponent.to_uppercase() } else { exponent };
    Number { negative, whole, rest: format!("{point}{fraction}{exponent}{percent}") }
}

/// Digits before and after the point, and the exponent or nothing.
type Parts = (String, String, String);

fn scientific(decimal: &Decimal) -> Parts {
    let (first, fraction) = decimal.digits.split_at(1);
    (first.to_owned(), fraction.to_owned(), decimal.exponent_text())
}

fn positional(decimal: &Decimal, keep_point: bool) -> Parts {
    let (whole, mut fraction) = decimal.split();
    if fraction.is_empty() && keep_point {
        fraction.push('0');
    }
    (whole, fraction, String::new())
}

/// So many significant digits, without trailing zeros unless they are wanted. `keep_point` leaves one digit after the
/// point where there is no exponent.
fn general(x: f64, precision: usize, keep_zeros: bool, keep_point: bool) -> Parts {
    let precision = precision.max(1);
    let mut decimal = Decimal::rounded(x, precision - 1);
    let limit = precision as i32 - i32::from(keep_point);
    let exponent = !(-4..limit).contains(&decimal.exponent);
    if !keep_zeros {
        let digits = decimal.digits.trim_end_matches('0').len().max(1);
        decimal.digits.truncate(digits);
    }
    if exponent { scientific(&decimal) } else { positional(&decimal, keep_point) }
}

/// The fewest digits that tell it from its neighbours of the same type.
fn shortest(x: f64, dtype: Option<DType>) -> Parts {
    // An element is shown as `print` does.
    let (decimal, exponent) = if let Some(dtype) = dtype {
        (Decimal::of(x, dtype), crate::tensor::has_exponent(x, dtype))
    } else {
        let decimal = Decimal::shortest(x);
        let exponent = !(-4..16).contains(&decimal.exponent);
        (decimal, exponent)
    };
    if exponent { scientific(&decimal) } else { positional(&decimal, true) }
}

/// Separators within the digits before the point.
pub(super) struct Grouping {
    pub separator: char,
    /// Digits between two separators.
    pub group: usize,
}

impl Grouping {
    /// Zeros are put before the digits until the text is at least `width` long.
    pub fn apply(&self, digits: &str, width: usize) -> String {
        let length = |digits: usize| digits + (digits - 1) / self.group;
        let mut count = digits.len();
        while length(count) < width {
            count += 1;
        }
        let mut out = String::with_capacity(length(count));
        for (i, digit) in format!("{digits:0>count$}").chars().enumerate() {
            if i > 0 && (count - i).is_multiple_of(self.group) {
                out.push(self.separator);
            }
            out.push(digit);
        }
        out
    }
}
