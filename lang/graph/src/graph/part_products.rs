//! Parts products that a kernel would compute as one vector.
//!
//! Beside reductions, and beside products of other extents, IREE does not tile a product in a kernel: all its elementary products
//! are one vector, and it refuses vectors of 16 KiB ("large vector sizes", Q64).

use smallvec::{SmallVec, smallvec};

use super::{Builder, Equation, Graph, RULE, Var};
use crate::primitives::DotGeneral;

/// Maximum size in bytes of the elementary products of a part.
const PART_BYTES: usize = 8 << 10;

/// The free axis along which a product is parted.
struct Cut {
    /// The operand with the axis: 0 is the left.
    side: usize,
    /// The axis of the operand.
    axis: usize,
    /// The axis of the result.
    along: usize,
    extent: usize,
    /// Extent of a part; the last may have less.
    part: usize,
}

impl Cut {
    /// The cut of the longest free axis; `None` if an equation is no product, or small enough, or has no such axis.
    fn of(graph: &Graph, eqn: &Equation) -> Option<Cut> {
        let op = eqn.op.downcast_ref::<DotGeneral>()?;
        let shapes = [0, 1].map(|side| &graph.ty(eqn.inputs[side]).shape);
        let result = graph.ty(eqn.outputs[0]);
        let contracted: usize = op.contract[0].iter().map(|axis| shapes[0][*axis]).product();
        let bytes = result.count() * contracted * result.dtype.byte_width();
        if bytes <= PART_BYTES {
            return None;
        }
        let free = [0, 1].map(|side| op.free(side, shapes[side].len()));
        let first = [op.batch[0].len(), op.batch[0].len() + free[0].len()];
        // Rows are preferred to columns of the same number.
        let axes = [1, 0].into_iter().flat_map(|side| {
            free[side].iter().enumerate().map(move |(i, axis)| (side, *axis, first[side] + i))
        });
        let (side, axis, along) = axes.max_by_key(|(side, axis, _)| shapes[*side][*axis])?;
        let extent = shapes[side][axis];
        let mut part = extent;
        while part > 1 && bytes / extent * part > PART_BYTES {
            part = part.div_ceil(2);
        }
        (part < extent).then_some(Cut { side, axis, along, extent, part })
    }

    /// The product in parts.
    fn write(&self, b: &mut Builder, eqn: &Equation, operands: &[Var]) -> Var {
        let parts = (0..self.extent).step_by(self.part).map(|start| {
            let end = self.extent.min(start + self.part);
            let mut operands: SmallVec<[Var; 2]> = operands.into();
            operands[self.side] = b.slice_axis(operands[self.side], self.axis, start, end);
            b.bind(eqn.op.clone(), &operands).expect(RULE)[0]
        });
        let parts: Vec<Var> = parts.collect();
        b.concatenate(&parts, self.along)
    }
}

/// `graph` with its larger products as parts along a free axis, one after the other; `None` if there is none.
pub fn part_products(graph: &Graph) -> Option<Graph> {
    graph.equations.iter().find_map(|eqn| Cut::of(graph, eqn))?;
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        match Cut::of(graph, eqn) {
            Some(cut) => smallvec![cut.write(&mut b, eqn, operands)],
            None => b.bind(eqn.op.clone(), operands).expect(RULE),
        }
    });
    Some(b.finish(outputs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::evaluate;
    use crate::tensor::{DType, HostTensor, TensorType};

    fn numbers(shape: &[usize]) -> HostTensor {
        let count: usize = shape.iter().product();
        HostTensor::new(shape, (0..count).map(|i| (i % 13) as f32 - 6.0).collect::<Vec<f32>>())
    }

    fn product(left: &[usize], right: &[usize], op: DotGeneral) -> Graph {
        let mut b = Builder::new();
        let operands = [left, right].map(|shape| b.input(TensorType::new(DType::F32, shape)));
        let result = b.apply(op, &operands);
        b.finish(vec![result])
    }

    #[test]
    fn a_product_in_parts_is_the_product() {
        let contract = |left: usize, right: usize| [smallvec![left], smallvec![right]];
        let plain = DotGeneral { contract: contract(1, 0), batch: Default::default() };
        let turned = DotGeneral { contract: contract(0, 1), batch: Default::default() };
        let batched = DotGeneral { contract: contract(2, 1), batch: [smallvec![0], smallvec![0]] };
        let cases: [(&[usize], &[usize], DotGeneral, usize); 4] = [
            (&[64, 4], &[4, 16], plain.clone(), 2),
            (&[3, 70], &[70, 50], plain, 8),
            (&[4, 61], &[40, 4], turned, 8),
            (&[2, 30, 8], &[2, 8, 9], batched, 4),
        ];
        for (left, right, op, parts) in cases {
            let whole = product(left, right, op);
            let parted = part_products(&whole).expect("it is large");
            let products = parted.equations.iter().filter(|eqn| eqn.op.is::<DotGeneral>()).count();
            assert_eq!(products, parts, "{left:?} by {right:?}");
            let arguments = [numbers(left), numbers(right)];
            assert_eq!(evaluate(&whole, &arguments), evaluate(&parted, &arguments), "{left:?} by {right:?}");
            assert!(part_products(&parted).is_none());
        }
    }

    #[test]
    fn small_products_and_those_without_free_axes_stay_whole() {
        let over = |left: usize, right: usize| DotGeneral {
            contract: [smallvec![left], smallvec![right]],
            batch: Default::default(),
        };
        assert!(part_products(&product(&[32, 4], &[4, 16], over(1, 0))).is_none());
        assert!(part_products(&product(&[5000], &[5000], over(0, 0))).is_none());
    }
}
