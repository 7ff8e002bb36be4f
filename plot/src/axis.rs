//! Axes: a range of numbers, its marks, and their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::DrawError;

/// Maximum marks of an axis that has the room.
pub const MAX_MARKS: u32 = 8;

/// Minimum width of a range, as a part of its greatest number: the digits of `f64` end there.
const MIN_WIDTH: f64 = 1e-9;

/// Part of the range that is left free on both sides.
const MARGIN: f64 = 0.04;

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    marks: Vec<f64>,
    /// The distance of the marks; 0 if they are powers and their multiples.
    step: f64,
}

/// The wanted kind of an axis.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// True if it is logarithmic; numbers that are not positive have no place on it.
    pub log: bool,
    /// True if there is no space beside the numbers.
    pub tight: bool,
    /// True if it begins at 0.
    pub from_zero: bool,
    /// Maximum marks.
    pub marks: u32,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { log: false, tight: false, from_zero: false, marks: MAX_MARKS }
    }
}

impl Axis {
    /// The axis for these numbers.
    pub fn of(numbers: impl Iterator<Item = f64>, wanted: Wanted) -> Result<Axis, DrawError> {
        let shown = |x: &f64| x.is_finite() && (!wanted.log || *x > 0.0);
        let (mut low, mut high, mut whole) = (f64::INFINITY, f64::NEG_INFINITY, true);
        for x in numbers.filter(shown) {
            (low, high) = (low.min(x), high.max(x));
            whole &= x == x.trunc();
        }
        if low > high {
            (low, high) = if wanted.log { (0.1, 1.0) } else { (0.0, 1.0) };
            whole = false;
        }
        if wanted.from_zero {
            low = low.min(0.0);
        }
        if wanted.log {
            return Ok(Axis::logarithmic(low, high, wanted.marks));
        }
        if !(high - low).is_finite() {
            return Err(DrawError::Range(low, high));
        }
        let size = low.abs().max(high.abs());
        let least = (size * MIN_WIDTH).max(f64::MIN_POSITIVE * 1e6);
        if high - low < least {
            // A single number stands in the middle.
            let beside = if size > 0.0 { (size * 0.1).max(least) } else { 1.0 };
            (low, high) = (low - beside, high + beside);
        } else if !wanted.tight {
            let beside = (high - low) * MARGIN;
            low -= if wanted.from_zero && low == 0.0 { 0.0 } else { beside };
            high += beside;
        }
        let mut step = nice((high - low) / f64::from(wanted.marks));
        if whole {
            step = step.max(1.0);
        }
        Ok(Axis { low, high, log: false, marks: multiples(step, low, high), step })
    }

    fn logarithmic(low: f64, high: f64, most: u32) -> Axis {
        let (mut from, mut to) = (low.log10(), high.log10());
        let beside = ((to - from) * MARGIN).max(0.02);
        (from, to) = (from - beside, to + beside);
        let powers = |every: i32, factors: &[f64]| -> Vec<f64> {
            (from.floor() as i32..=to.ceil() as i32)
                .filter(|power| (power - from.ceil() as i32) % every == 0)
                .flat_map(|power| factors.iter().map(move |m| m * 10_f64.powi(power)))
                .filter(|x| (from..=to).contains(&x.log10()))
                .collect()
        };
        let fine = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let all = to.floor() - from.ceil() + 1.0;
        let every = (all / f64::from(most)).ceil().max(1.0) as i32;
        let choices = [powers(1, &fine), powers(1, &[1.0, 2.0, 5.0]), powers(every, &[1.0])];
        let marks = choices.into_iter().find(|marks| marks.len() <= most as usize).unwrap_or_default();
        let (low, high) = (10_f64.powf(from), 10_f64.powf(to));
        if marks.len() > 1 || to - from > 1.0 {
            return Axis { low, high, log: true, marks, step: 0.0 };
        }
        // Within less than a power, the marks of a linear axis.
        let step = nice((high - low) / f64::from(most));
        Axis { low, high, log: true, marks: multiples(step, low, high), step }
    }

    /// The label of a mark.
    pub fn label(&self, x: f64) -> String {
        if x == 0.0 {
            return "0".into();
        }
        let size = self.low.abs().max(self.high.abs());
        let power = x.abs().log10().floor() as i32;
        if self.step == 0.0 {
            return if (-4..6).contains(&power) { format!("{x}") } else { format!("{x:e}") };
        }
        // The decimals that tell two marks apart.
        let last = (self.step.log10() + 1e-9).floor() as i32;
        if (1e-4..1e7).contains(&size) {
            let digits = (-last).clamp(0, 15) as usize;
            return format!("{x:.digits$}");
        }
        let digits = (power - last).clamp(0, 15) as usize;
        format!("{x:.digits$e}")
    }

    /// True if a number has a place.
    pub fn holds(&self, x: f64) -> bool {
        x.is_finite() && (!self.log || x > 0.0)
    }

    /// Number of marks.
    pub fn count(&self) -> u32 {
        self.marks.len() as u32
    }

    /// The part of the axis, from 0 to 1, where a number stands.
    pub fn part(&self, x: f64) -> f64 {
        if self.log {
            return (x.log10() - self.low.log10()) / (self.high.log10() - self.low.log10());
        }
        (x - self.low) / (self.high - self.low)
    }

    /// Characters of the longest label.
    pub fn widest(&self) -> u32 {
        self.marks.iter().map(|x| self.label(*x).chars().count() as u32).max().unwrap_or(1)
    }
}

/// The multiples of `step` from `low` to `high`.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first + 1.0).clamp(0.0, 2.0 * f64::from(MAX_MARKS)) as u32;
    (0..count).map(|i| (first + f64::from(i)) * step).collect()
}

/// The least of 1, 2 and 5 times a power of ten that is at least `x`.
fn nice(x: f64) -> f64 {
    let power = 10_f64.powf(x.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    steps.into_iter().find(|step| *step >= x * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = self.part(*value);
        // Numbers outside of the range lie beyond the border, not at the end of the integers.
        from + (f64::from(to - from) * part.clamp(-10.0, 10.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(numbers: &[f64], wanted: Wanted) -> String {
        let axis = Axis::of(numbers.iter().copied(), wanted).expect("an axis");
        axis.marks.iter().map(|x| axis.label(*x)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn marks_are_round_and_as_many_digits_as_needed() {
        let linear = Wanted::default();
        assert_eq!(labels(&[0.0, 1.0], linear), "0 1");
        assert_eq!(labels(&[0.0, 0.5, 1.0], linear), "0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(&[0.0, 1000.0], linear), "0 200 400 600 800 1000");
        assert_eq!(labels(&[2.31, 2.35], linear), "2.31 2.32 2.33 2.34 2.35");
        assert_eq!(labels(&[-3e-9, 4e-9], linear), "-3e-9 -2e-9 -1e-9 0 1e-9 2e-9 3e-9 4e-9");
        assert_eq!(labels(&[1e12, 3e12], linear), "1.0e12 1.5e12 2.0e12 2.5e12 3.0e12");
        assert_eq!(labels(&[5.5], linear), "5.0 5.2 5.4 5.6 5.8 6.0");
        assert_eq!(labels(&[], linear), "0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(&[f64::NAN, 1.0, f64::INFINITY], linear), "1");
    }

    #[test]
    fn logarithmic_marks_are_powers_or_their_multiples() {
        let log = Wanted { log: true, ..Wanted::default() };
        assert_eq!(labels(&[0.001, 1000.0], log), "0.001 0.01 0.1 1 10 100 1000");
        assert_eq!(labels(&[1e-12, 1e3], log), "1e-12 1e-10 1e-8 1e-6 0.0001 0.01 1 100");
        assert_eq!(labels(&[0.5, 20.0], log), "0.5 1 2 5 10 20");
        assert_eq!(labels(&[2.0, 4.0], log), "2 3 4");
        assert_eq!(labels(&[-1.0, 0.0], log), "0.1 0.2 0.5 1");
        // Less than a power is marked as on a linear axis.
        assert_eq!(labels(&[2.11, 2.38], log), "2.1 2.2 2.3 2.4");
    }

    #[test]
    fn little_room_has_few_marks() {
        let few = Wanted { marks: 2, ..Wanted::default() };
        assert_eq!(labels(&[0.0, 0.5, 1.0], few), "0 1");
        assert_eq!(labels(&[0.0, 1000.0], few), "0 1000");
        assert_eq!(labels(&[0.001, 1000.0], Wanted { log: true, ..few }), "0.001 10");
        assert_eq!(labels(&[0.4, 3.7], Wanted { marks: 1, ..few }), "");
    }

    #[test]
    fn extreme_ranges_end() {
        for numbers in
            [[f64::MIN_POSITIVE, 0.0], [1e300, 1e300], [0.0, f64::MAX], [5e-324, 1e-323], [1e16, 1e16 + 2.0]]
        {
            for log in [false, true] {
                let axis =
                    Axis::of(numbers.into_iter(), Wanted { log, ..Wanted::default() }).expect("an axis");
                assert!(axis.marks.len() < 40, "{numbers:?}: {axis:?}");
                axis.marks.iter().for_each(|x| drop(axis.label(*x)));
            }
        }
        assert!(Axis::of([f64::MIN, f64::MAX].into_iter(), Wanted::default()).is_err());
    }
}
