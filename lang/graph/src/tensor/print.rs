//! Formatting of tensors and scalars as in `NumPy` 2.
//!
//! The rules are those of its `str` since version 2.3: float32 has at most 8 fractional digits, and switches to
//! scientific notation from a million on, below 0.0001, or if the largest magnitude is more than 1,000 times the
//! smallest; the elements of a tensor share a width; more than 1,000 elements are summarised; lines end before column
//! 75.

use super::{DType, Data, HostTensor, Number};
use crate::decimal::Decimal;

/// Maximum digits after the point in a tensor.
const PRECISION: usize = 8;
/// Maximum elements of a tensor that is not summarised.
const THRESHOLD: usize = 1_000;
/// Number of elements that a summary shows at each end of an axis.
const EDGE: usize = 3;
/// Maximum columns of a line.
const LINE_WIDTH: usize = 75;

/// Minimum magnitude of a float without scientific notation.
const SMALL: f64 = 1e-4;
/// Maximum ratio of the largest to the smallest magnitude in a tensor without scientific notation.
const MAX_RATIO: f64 = 1_000.0;

/// Magnitude from which floats are in scientific notation: not all digits before the point would be significant, as
/// in `NumPy`; in a tensor at most nine digits.
fn large(dtype: DType, alone: bool) -> f64 {
    match dtype {
        DType::BF16 | DType::F16 => 1e3,
        DType::F64 if alone => 1e16,
        DType::F64 => 1e8,
        _ => 1e6,
    }
}

/// A float32 printed alone: `2.0`, `0.022934`, `1e-08`, `nan`, `-inf`.
pub fn format_float(x: f32) -> String {
    format_number(x.into(), DType::F32)
}

/// A float of `dtype` printed alone: the shortest digits that round-trip in that dtype, with a point or an exponent.
pub fn format_number(x: f64, dtype: DType) -> String {
    if !x.is_finite() {
        return non_finite(x);
    }
    let decimal = Decimal::of(x, dtype);
    if has_exponent(x, dtype) {
        return decimal.scientific();
    }
    let (whole, fraction) = decimal.split();
    let fraction = if fraction.is_empty() { "0" } else { &fraction };
    format!("{}{whole}.{fraction}", decimal.sign())
}

/// True if a finite float alone is printed in scientific notation.
pub fn has_exponent(x: f64, dtype: DType) -> bool {
    let magnitude = x.abs();
    magnitude != 0.0 && (magnitude >= large(dtype, true) || magnitude < SMALL)
}

/// A tensor as `NumPy` prints an array, except that booleans are `true` and `false`, separated by one blank.
pub fn format_tensor(x: &HostTensor) -> String {
    if x.shape().is_empty() {
        return match x.element(0) {
            Number::Float(number) => format_number(number, x.dtype()),
            Number::Int(_) => words(x, &[0]).concat(),
        };
    }
    if x.count() == 0 {
        return "[]".to_owned();
    }
    let summarise = x.count() > THRESHOLD;
    let mut shown = Vec::new();
    collect_shown(x.shape(), summarise, 0, &mut shown);
    let words = words(x, &shown);
    let layout = Layout { shape: x.shape(), summarise };
    layout.axis(0, &mut words.iter())
}

/// Appends the positions of the printed elements; `offset` counts sub-tensors of `shape`.
fn collect_shown(shape: &[usize], summarise: bool, offset: usize, shown: &mut Vec<usize>) {
    let [length, inner @ ..] = shape else {
        shown.push(offset);
        return;
    };
    let mut part = |i: usize| collect_shown(inner, summarise, offset * length + i, shown);
    if summarise && *length > 2 * EDGE {
        (0..EDGE).chain(length - EDGE..*length).for_each(&mut part);
    } else {
        (0..*length).for_each(&mut part);
    }
}

/// The elements at these positions as text, padded to a common width.
fn words(x: &HostTensor, shown: &[usize]) -> Vec<String> {
    if let Data::Bool(v) = x.data() {
        return shown.iter().map(|i| v[*i].to_string()).collect();
    }
    if x.dtype().is_float() {
        return float_words(&shown.iter().map(|i| x.element_f64(*i)).collect::<Vec<_>>(), x.dtype());
    }
    let words: Vec<String> = shown.iter().map(|i| x.element_i64(*i).to_string()).collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// A finite float as text, split for alignment.
struct Shown {
    /// The part before the point, with its sign.
    whole: String,
    /// The part after the point; may be empty.
    fraction: String,
    /// The letter, sign and two digits, or nothing.
    exponent: String,
}

impl Shown {
    /// The shortest digits, with at most [`PRECISION`] after the point; the exact value is rounded.
    fn positional(x: f64, dtype: DType) -> Self {
        let decimal = Decimal::of(x, dtype);
        let (whole, fraction) = decimal.split();
        if fraction.len() <= PRECISION {
            return Shown { whole: decimal.sign().to_owned() + &whole, fraction, exponent: String::new() };
        }
        let rounded = format!("{x:.PRECISION$}");
        let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
        Shown {
            whole: whole.to_owned(),
            fraction: fraction.trim_end_matches('0').to_owned(),
            exponent: String::new(),
        }
    }

    /// With `digits` after the point, at least those of the shortest form.
    fn scientific(x: f64, dtype: DType, digits: usize) -> Self {
        let mut decimal = Decimal::of(x, dtype);
        if decimal.digits.len() <= digits {
            decimal = Decimal::rounded(x, digits);
        }
        let (first, fraction) = decimal.digits.split_at(1);
        Shown {
            whole: decimal.sign().to_owned() + first,
            fraction: fraction.to_owned(),
            exponent: decimal.exponent_text(),
        }
    }
}

fn non_finite(x: f64) -> String {
    if x.is_nan() { "nan".to_owned() } else { format!("{x}") }
}

/// Floats aligned at their points.
fn float_words(elements: &[f64], dtype: DType) -> Vec<String> {
    let finite = || elements.iter().copied().filter(|x| x.is_finite());
    let magnitudes = || finite().map(f64::abs).filter(|x| *x != 0.0);
    let largest = magnitudes().fold(0.0, f64::max);
    let smallest = magnitudes().fold(f64::INFINITY, f64::min);
    // NumPy compares in the dtype.
    let small = if dtype == DType::F64 { SMALL } else { f64::from(SMALL as f32) };
    let numbers: Vec<Shown> = if largest >= large(dtype, false)
        || smallest < small
        || ratio(largest, smallest, dtype) > MAX_RATIO
    {
        // All get the digits of the one that needs most.
        let digits = finite().map(|x| Decimal::of(x, dtype).digits.len() - 1).max().unwrap_or(0);
        finite().map(|x| Shown::scientific(x, dtype, digits)).collect()
    } else {
        finite().map(|x| Shown::positional(x, dtype)).collect()
    };

    let fraction = numbers.iter().map(|n| n.fraction.len()).max().unwrap_or(0);
    let after = 1 + fraction + numbers.first().map_or(0, |n| n.exponent.len());
    let names =
        elements.iter().filter(|x| !x.is_finite()).map(|x| non_finite(*x).len().saturating_sub(after));
    let whole = numbers.iter().map(|n| n.whole.len()).chain(names).max().unwrap_or(0);

    let mut numbers = numbers.iter();
    let word = |x: &f64| match x.is_finite().then(|| numbers.next()).flatten() {
        Some(n) => format!("{:>whole$}.{:<fraction$}{}", n.whole, n.fraction, n.exponent),
        None => format!("{:>width$}", non_finite(*x), width = whole + after),
    };
    elements.iter().map(word).collect()
}

/// A quotient rounded to the dtype.
fn ratio(a: f64, b: f64, dtype: DType) -> f64 {
    if dtype == DType::F64 { a / b } else { f64::from(a as f32 / b as f32) }
}

/// Brackets and line breaks around words.
struct Layout<'a> {
    shape: &'a [usize],
    summarise: bool,
}

impl Layout<'_> {
    /// Formats the next sub-tensor whose first axis is `axis` from `words`; later lines are indented to align with the
    /// first.
    fn axis<'w>(&self, axis: usize, words: &mut impl Iterator<Item = &'w String>) -> String {
        let length = self.shape[axis];
        let cut = self.summarise && length > 2 * EDGE;
        let shown = if cut { 2 * EDGE } else { length };
        let innermost = axis + 1 == self.shape.len();
        let indent = " ".repeat(axis + 1);

        let mut pieces: Vec<String> = Vec::with_capacity(shown + 1);
        for i in 0..shown {
            if cut && i == EDGE {
                pieces.push("...".to_owned());
            }
            pieces.push(if innermost {
                words.next().cloned().unwrap_or_default()
            } else {
                self.axis(axis + 1, words)
            });
        }
        if innermost {
            // The closing bracket of every axis needs a column.
            return format!("[{}]", fill(&pieces, &indent, LINE_WIDTH - (axis + 1).min(LINE_WIDTH)));
        }
        let separator = "\n".repeat(self.shape.len() - axis - 1) + &indent;
        format!("[{}]", pieces.join(&separator))
    }
}

/// Words separated by blanks, on lines that end before column `width`, indent included; the first line has no indent.
fn fill(words: &[String], indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = indent.len();
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            column += 1;
            if column + word.len() > width {
                out.truncate(out.trim_end().len());
                out.push('\n');
                out.push_str(indent);
                column = indent.len();
            } else {
                out.push(' ');
            }
        }
        out.push_str(word);
        column += word.len();
    }
    out
}
