//! The part of a test's cases that `make test` runs; `make nightly` runs all.

use crate::nightly;

/// One in `part` of these cases, beginning with the first.
pub fn sample<T>(cases: impl IntoIterator<Item = T>, part: usize) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(if nightly() { 1 } else { part })
}

/// A program with one in `part` of its cases, beginning with the case of number `first`. A case is a line that contains `mark`;
/// the other lines stay.
pub fn sample_lines(program: &str, mark: &str, part: usize, first: usize) -> String {
    let mut cases = 0;
    let kept = |line: &&str| {
        let is_case = line.contains(mark);
        let is_kept = !is_case || nightly() || cases % part == first;
        cases += usize::from(is_case);
        is_kept
    };
    program.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}
