//! Host evaluation of reductions: in blocks of blocks, so that the error of a sum grows with the logarithm of its length,
//! and in the order in which elements lie in memory.

use std::ops::Range;

use super::Ring;
use crate::tensor::{Shape, element_count};

/// Number of elements that one accumulator takes in turn.
const CHAIN: usize = 16;

/// Number of accumulators side by side; a processor's vectors hold no more.
const LANES: usize = 16;

/// Number of terms of a sum of products added up in turn.
pub const TERMS: usize = 64;

/// The elements of a tensor of `shape` reduced over `axes`, which ascend, by an associative and commutative `f` with the
/// neutral element `neutral`.
pub fn fold<T: Copy>(
    shape: &[usize],
    axes: &[usize],
    elements: &[T],
    neutral: T,
    f: impl Fn(T, T) -> T + Copy,
) -> Vec<T> {
    let mut shape = Shape::from_slice(shape);
    let mut folded: Option<Vec<T>> = None;
    // The axes from the last on, those that lie side by side as one.
    let mut axes = axes;
    while let Some(last) = axes.last() {
        let run = (1..=axes.len()).take_while(|i| axes[axes.len() - i] + i == last + 1).count();
        let first = last + 1 - run;
        let sizes = [&shape[..first], &shape[first..=*last], &shape[last + 1..]].map(element_count);
        folded = Some(middle(folded.as_deref().unwrap_or(elements), sizes, neutral, f));
        shape.drain(first..=*last);
        axes = &axes[..axes.len() - run];
    }
    folded.unwrap_or_else(|| elements.to_vec())
}

/// The elements of a tensor of three axes reduced over the middle one.
fn middle<T: Copy>(
    elements: &[T],
    [outer, count, inner]: [usize; 3],
    neutral: T,
    f: impl Fn(T, T) -> T + Copy,
) -> Vec<T> {
    let mut out = vec![neutral; outer * inner];
    if count == 0 || out.is_empty() {
        return out;
    }
    let groups = elements.chunks_exact(count * inner);
    if inner == 1 {
        out.iter_mut().zip(groups).for_each(|(out, group)| *out = run(group, neutral, f));
        return out;
    }
    let mut scratch = vec![neutral; inner * depth(count, CHAIN)];
    for (out, group) in out.chunks_exact_mut(inner).zip(groups) {
        rows(group, neutral, f, out, &mut scratch);
    }
    out
}

/// Elements side by side in memory reduced to one.
fn run<T: Copy>(elements: &[T], neutral: T, f: impl Fn(T, T) -> T + Copy) -> T {
    const BLOCK: usize = 2 * CHAIN * LANES;
    if elements.len() <= CHAIN {
        return elements.iter().fold(neutral, |sum, x| f(sum, *x));
    }
    if elements.len() > BLOCK {
        let half = (elements.len() / 2).next_multiple_of(BLOCK);
        let (left, right) = elements.split_at(half);
        return f(run(left, neutral, f), run(right, neutral, f));
    }
    let mut lanes = [neutral; LANES];
    let (whole, rest) = elements.as_chunks::<LANES>();
    for chunk in whole {
        (0..LANES).for_each(|i| lanes[i] = f(lanes[i], chunk[i]));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = f(*lane, *x));
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        (0..width).for_each(|i| lanes[i] = f(lanes[i], lanes[i + width]));
    }
    lanes[0]
}

/// Rows reduced to one; `out` is neutral.
fn rows<T: Copy>(elements: &[T], neutral: T, f: impl Fn(T, T) -> T + Copy, out: &mut [T], scratch: &mut [T]) {
    let inner = out.len();
    let count = elements.len() / inner;
    if count <= CHAIN {
        for row in elements.chunks_exact(inner) {
            out.iter_mut().zip(row).for_each(|(sum, x)| *sum = f(*sum, *x));
        }
        return;
    }
    let (left, right) = elements.split_at(count / 2 * inner);
    rows(left, neutral, f, out, scratch);
    let (own, scratch) = scratch.split_at_mut(inner);
    own.fill(neutral);
    rows(right, neutral, f, own, scratch);
    out.iter_mut().zip(own).for_each(|(sum, x)| *sum = f(*sum, *x));
}

/// The sum of the products of two rows, element by element.
pub fn sum_of_products<T: Ring>(x: &[T], y: &[T]) -> T {
    let products: Vec<T> = x.iter().zip(y).map(|(a, b)| a.times(*b)).collect();
    run(&products, T::ZERO, T::plus)
}

/// Number of halvings of `count` until no part is longer than `chain`.
fn depth(count: usize, chain: usize) -> usize {
    let mut depth = 0;
    let mut longest = count;
    while longest > chain {
        longest = longest.div_ceil(2);
        depth += 1;
    }
    depth
}

/// Rows of sums of products: `add` adds a range of the terms to a row.
pub struct Terms<T> {
    scratch: Vec<T>,
}

impl<T: Ring> Terms<T> {
    /// Room for sums of as many terms as `most` in rows of `width`.
    pub fn new(most: usize, width: usize) -> Self {
        Terms { scratch: vec![T::ZERO; width * depth(most, TERMS)] }
    }

    /// Terms `0..count`, added up to `out`, which is zero.
    pub fn sum(&mut self, count: usize, out: &mut [T], mut add: impl FnMut(Range<usize>, &mut [T])) {
        halves(0..count, out, &mut self.scratch, &mut add);
    }
}

fn halves<T: Ring>(
    terms: Range<usize>,
    out: &mut [T],
    scratch: &mut [T],
    add: &mut impl FnMut(Range<usize>, &mut [T]),
) {
    if terms.len() <= TERMS || out.is_empty() {
        return add(terms, out);
    }
    let half = terms.start + terms.len() / 2;
    halves(terms.start..half, out, scratch, add);
    let (own, scratch) = scratch.split_at_mut(out.len());
    own.fill(T::ZERO);
    halves(half..terms.end, own, scratch, add);
    out.iter_mut().zip(own).for_each(|(sum, x)| *sum = sum.plus(*x));
}

/// Each element of a line becomes the sum of those up to it.
pub fn running_sums<T: Ring>(line: &mut [T]) {
    for block in line.chunks_mut(CHAIN) {
        (1..block.len()).for_each(|i| block[i] = block[i - 1].plus(block[i]));
    }
    if line.len() <= CHAIN {
        return;
    }
    let mut totals: Vec<T> = line.chunks_exact(CHAIN).map(|block| block[CHAIN - 1]).collect();
    running_sums(&mut totals);
    for (block, before) in line[CHAIN..].chunks_mut(CHAIN).zip(totals) {
        block.iter_mut().for_each(|x| *x = before.plus(*x));
    }
}
