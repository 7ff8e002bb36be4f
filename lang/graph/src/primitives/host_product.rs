//! Host evaluation of products: sums of products over contracted axes.

use std::borrow::Cow;

use super::{Ring, TERMS, Terms, gather_offsets, sum_of_products};
use crate::tensor::{HostTensor, Shape, element_count, strides};

/// The offsets of all combinations of indices along some axes of a tensor, in row-major order.
pub fn offsets(tensor: &HostTensor, axes: &[usize]) -> Vec<usize> {
    let own = strides(tensor.shape());
    let shape: Shape = axes.iter().map(|a| tensor.shape()[*a]).collect();
    let steps: Shape = axes.iter().map(|a| own[*a]).collect();
    gather_offsets(&shape, &steps)
}

/// Rows of a tensor: for each combination of indices along the outer axes a row along the inner ones.
pub struct Rows {
    count: usize,
    width: usize,
    places: Places,
}

enum Places {
    /// Side by side in memory, in order.
    InOrder,
    /// The sum of an offset of a row and one within it.
    At([Vec<usize>; 2]),
}

impl Rows {
    /// Rows of `tensor` by its axes `outer` and `inner`.
    pub fn new(tensor: &HostTensor, outer: &[usize], inner: &[usize]) -> Rows {
        let own = strides(tensor.shape());
        let mut next = 1;
        let in_order = outer.iter().chain(inner).rev().all(|axis| {
            let extent = tensor.shape()[*axis];
            let follows = extent == 1 || own[*axis] == next;
            next *= extent;
            follows
        });
        let extent =
            |axes: &[usize]| element_count(&axes.iter().map(|a| tensor.shape()[*a]).collect::<Shape>());
        Rows {
            count: extent(outer),
            width: extent(inner),
            places: if in_order {
                Places::InOrder
            } else {
                Places::At([outer, inner].map(|axes| offsets(tensor, axes)))
            },
        }
    }

    /// The elements side by side, without a copy where they are so.
    fn elements<'a, T: Copy>(&self, from: &'a [T], start: usize) -> Cow<'a, [T]> {
        match &self.places {
            Places::InOrder => Cow::Borrowed(&from[start..start + self.count * self.width]),
            Places::At([outer, inner]) => {
                let mut elements = Vec::with_capacity(self.count * self.width);
                for row in outer {
                    elements.extend(inner.iter().map(|i| from[start + row + i]));
                }
                Cow::Owned(elements)
            }
        }
    }
}

/// A product of two tensors, by the places of their elements.
pub struct HostProduct {
    /// Offsets into both operands for each combination of batch indices.
    pub batch: Vec<(usize, usize)>,
    /// Offsets for each combination of the left operand's free indices.
    pub left: Vec<usize>,
    /// The left operand's contracted elements.
    pub left_rows: Rows,
    /// The right operand's rows along its free axes, one for each contracted element.
    pub right_rows: Rows,
}

impl HostProduct {
    /// The result's elements. The innermost loop runs over the right operand's free axes.
    pub fn run<T: Ring>(&self, x: &[T], y: &[T]) -> Vec<T> {
        let (count, width) = (self.right_rows.count, self.right_rows.width);
        let mut out = Vec::with_capacity(self.batch.len() * self.left.len() * width);
        let mut terms = Terms::new(count, width);
        for (x0, y0) in &self.batch {
            let rows = self.right_rows.elements(y, *y0);
            for left in &self.left {
                let factors = self.left_rows.elements(x, x0 + left);
                if width == 1 && count > TERMS {
                    out.push(sum_of_products(&factors, &rows));
                    continue;
                }
                let start = out.len();
                out.resize(start + width, T::ZERO);
                terms.sum(count, &mut out[start..], |range, result| {
                    for k in range {
                        for (acc, b) in result.iter_mut().zip(&rows[k * width..(k + 1) * width]) {
                            *acc = acc.plus(factors[k].times(*b));
                        }
                    }
                });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(shape: &[usize]) -> HostTensor {
        let count = element_count(shape) as i32;
        HostTensor::new(shape, (0..count).collect::<Vec<i32>>())
    }

    fn rows(shape: &[usize], outer: &[usize], inner: &[usize], start: usize) -> (Vec<i32>, bool) {
        let tensor = counting(shape);
        let rows = Rows::new(&tensor, outer, inner);
        let all: Vec<i32> = (0..element_count(shape) as i32).collect();
        let elements = rows.elements(&all, start);
        (elements.to_vec(), matches!(elements, Cow::Borrowed(_)))
    }

    #[test]
    fn rows_in_order_are_not_copied() {
        assert_eq!(rows(&[2, 3], &[0], &[1], 0), (vec![0, 1, 2, 3, 4, 5], true));
        assert_eq!(rows(&[2, 3], &[1], &[0], 0), (vec![0, 3, 1, 4, 2, 5], false));
        assert_eq!(rows(&[2, 3], &[1], &[], 3), (vec![3, 4, 5], true));
        assert_eq!(rows(&[2, 3], &[0], &[], 1), (vec![1, 4], false));
        assert_eq!(rows(&[3, 1], &[1], &[0], 0), (vec![0, 1, 2], true));
        assert_eq!(rows(&[2, 2, 2], &[0], &[2], 2), (vec![2, 3, 6, 7], false));
        assert_eq!(rows(&[2, 0], &[0], &[1], 0), (vec![], true));
    }

    #[test]
    fn a_sum_of_a_million_products_keeps_its_digits() {
        let tensor = |x: f32| HostTensor::new([1_000_000_usize].as_slice(), vec![x; 1_000_000]);
        let (x, y) = (tensor(0.1), tensor(0.3));
        let one = |t: &HostTensor| Rows::new(t, &[0], &[]);
        let product =
            HostProduct { batch: vec![(0, 0)], left: vec![0], left_rows: one(&x), right_rows: one(&y) };
        let [x, y] = [0.1_f32, 0.3].map(|x| vec![x; 1_000_000]);
        let found = f64::from(product.run(&x, &y)[0]);
        let right = 1e6 * f64::from(0.1_f32 * 0.3_f32);
        assert!((found - right).abs() < 1e-6 * right, "{found} for {right}");
    }
}
