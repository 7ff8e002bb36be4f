//! Tensors as columns of matrices.

use crate::tensor::TensorType;

/// A tensor as a batch of matrices whose columns are reduced, each of which is some blocks of rows. Axes are numbered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub batch: usize,
    pub blocks: usize,
    /// Of a block.
    pub rows: usize,
    pub columns: usize,
}

/// The axis of the rows of a block, along which there are sums.
pub(super) const ROWS: usize = 2;

/// True for the batch, the rows and the columns if a tensor has them; it is the same along the others.
pub(super) type Has = [bool; 3];

impl View {
    /// The view of a tensor of `shape` reduced along `axes`, if they lie next to each other, before others.
    pub fn of(shape: &[usize], axes: &[usize]) -> Option<View> {
        let mut view = View { batch: 1, blocks: 1, rows: 1, columns: 1 };
        for (axis, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
            match (axes.contains(&axis), view.rows, view.columns) {
                (true, _, 1) => view.rows *= extent,
                (true, ..) => return None,
                (false, 1, _) => view.batch *= extent,
                (false, ..) => view.columns *= extent,
            }
        }
        (view.rows > 1 && view.columns > 1).then_some(view)
    }

    fn extents(self) -> [usize; 4] {
        [self.batch, self.blocks, self.rows, self.columns]
    }

    /// Number of elements.
    pub fn elements(self) -> usize {
        self.extents().iter().product()
    }

    /// The axes of a tensor that has these; batches and blocks of one are none, as the compiler would fold them, and lose the tiles.
    pub fn axes(self, [batch, rows, columns]: Has) -> Vec<usize> {
        let has = [batch && self.batch > 1, rows && self.blocks > 1, rows, columns];
        (0..4).filter(|axis| has[*axis]).collect()
    }

    /// The axes that remain.
    pub fn kept(self) -> Vec<usize> {
        self.axes([true; 3]).into_iter().filter(|axis| *axis != ROWS).collect()
    }

    /// The shape of a tensor with some of the axes.
    pub fn shape(self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|axis| self.extents()[*axis]).collect()
    }

    /// The axes of an operand of type `from` that is broadcast along `dims` to type `ty`; `None` if it has a part of one.
    pub fn along(self, ty: &TensorType, from: &TensorType, dims: &[usize]) -> Option<Has> {
        let is_read =
            |axis: usize| dims.iter().position(|dim| *dim == axis).is_some_and(|i| from.shape[i] != 1);
        let extents = (0..ty.rank()).rev().map(|axis| (ty.shape[axis], is_read(axis)));
        let mut axes = extents.filter(|(extent, _)| *extent != 1);
        let (mut part, mut has) = ((1, false), [false; 3]);
        for (axis, extent) in
            [self.batch, self.blocks * self.rows, self.columns].into_iter().enumerate().rev()
        {
            let (mut open, mut found) = (extent, None);
            while open > 1 {
                if part.0 == 1 {
                    part = axes.next()?;
                }
                let common = if open.is_multiple_of(part.0) { part.0 } else { open };
                if !part.0.is_multiple_of(common) || found.is_some_and(|found| found != part.1) {
                    return None;
                }
                found = Some(part.1);
                (open, part.0) = (open / common, part.0 / common);
            }
            has[axis] = found.unwrap_or(false);
        }
        Some(has)
    }
}
