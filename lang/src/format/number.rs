//! Digits of floats, as in Python.

use sheaf_graph::decimal::Decimal;
use sheaf_graph::tensor::DType;

/// A number without its sign, split for layout.
pub(super) struct Number {
    pub negative: bool,
    /// The digits before the point; empty if there are no digits at all.
    pub whole: String,
    /// The rest: fraction and exponent.
    pub rest: String,
}

impl Number {
    /// True if all digits shown are zero.
    pub fn is_zero(&self) -> bool {
        let shown = self.rest.split(['e', 'E']).next().unwrap_or("");
        !self.whole.is_empty() && self.whole.chars().chain(shown.chars()).all(|c| !('1'..='9').contains(&c))
    }
}

/// Number style.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub code: Option<char>,
    pub precision: Option<usize>,
    /// Keeps the point without digits after it, and the trailing zeros that `g` drops.
    pub alternate: bool,
}

/// A float in Python's `repr`.
pub(super) fn repr(x: f64) -> String {
    let number = float(x, None, Style { code: None, precision: None, alternate: false });
    let sign = if number.negative { "-" } else { "" };
    format!("{sign}{}{}", number.whole, number.rest)
}

/// A float in the style; `dtype` is that of its tensor, `None` for a plain float.
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

/// That many significant digits, without trailing zeros unless `keep_zeros`. `keep_point` keeps one digit after the
/// point if there is no exponent.
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

/// The shortest digits that round-trip in its type.
fn shortest(x: f64, dtype: Option<DType>) -> Parts {
    // An element is shown as `print` does.
    let (decimal, exponent) = if let Some(dtype) = dtype {
        (Decimal::of(x, dtype), sheaf_graph::tensor::has_exponent(x, dtype))
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
    /// Inserts the separators, padding with zeros up to `width`.
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
