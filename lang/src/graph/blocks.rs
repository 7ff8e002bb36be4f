//! Takes long sums, products and contractions in blocks, so that their error grows with the logarithm of the length.
//!
//! IREE 3.13 adds up whatever it is given in one chain, in which the mean of a million numbers 0.1 is 0.10096. So a long
//! sum is written as a sum of blocks, then as one of what these gave, until a short chain remains. The blocks of the
//! innermost axis are taken across it, many side by side: it is what a compiler makes vectors of.

use smallvec::SmallVec;

use super::{Builder, Equation, Graph, RULE, Var, Vars};
use crate::primitives::{DotGeneral, Primitive, ReduceProd, ReduceSum};
use crate::tensor::{DType, Shape, element_count};

/// The longest chain. One of numbers that are all alike, the worst in practice, is wrong by 1e-6 of its sum.
const CHAIN: usize = 128;

/// Number of elements in a block, where the length allows it.
const BLOCK: usize = 16;

/// The most that a block takes.
const LARGEST: usize = 64;

/// Lanes that fill a processor's vectors.
const VECTOR: usize = 16;

/// Least and greatest number of blocks of the innermost axis side by side.
const LANES: std::ops::RangeInclusive<usize> = 8..=128;

/// The longest contraction of matrices that is left as it is: with numbers of 0 to 1, its error is still below 2e-6.
const CONTRACTION: usize = 1024;

/// So few rows or columns make a product thin: blocks of it cost little, however short.
const THIN: usize = 8;

/// `graph` with each long reduction in blocks; `None` where there is none.
pub fn in_blocks(graph: &Graph) -> Option<Graph> {
    if !graph.equations.iter().any(|eqn| is_long(graph, eqn)) {
        return None;
    }
    let mut b = Builder::new();
    let mut map: Vec<Option<Var>> = vec![None; graph.types.len()];
    for var in &graph.inputs {
        map[var.index()] = Some(b.input(graph.ty(*var).clone()));
    }
    for eqn in &graph.equations {
        let operands: Vars = eqn.inputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
        b.span = eqn.span;
        let results = if is_long(graph, eqn) {
            smallvec::smallvec![blocked(&mut b, eqn, &operands)]
        } else {
            b.bind(eqn.op.clone(), &operands).expect(RULE)
        };
        for (var, result) in eqn.outputs.iter().zip(results) {
            map[var.index()] = Some(result);
        }
    }
    let outputs = graph.outputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
    Some(b.finish(outputs))
}

fn downcast<P: Primitive>(eqn: &Equation) -> Option<&P> {
    (eqn.op.as_ref() as &dyn std::any::Any).downcast_ref()
}

/// The operation on the elements, and its axes.
fn reduction(eqn: &Equation) -> Option<(Fold, &Shape)> {
    let sum = downcast::<ReduceSum>(eqn).map(|op| (Fold::Sum, &op.axes));
    sum.or_else(|| downcast::<ReduceProd>(eqn).map(|op| (Fold::Product, &op.axes)))
}

fn length(shape: &[usize], axes: &[usize]) -> usize {
    axes.iter().map(|a| shape[*a]).product()
}

fn is_long(graph: &Graph, eqn: &Equation) -> bool {
    let Some(ty) = eqn.inputs.first().map(|x| graph.ty(*x)) else { return false };
    if !ty.dtype.is_float() || graph.ty(eqn.outputs[0]).count() == 0 {
        return false;
    }
    if let Some((_, axes)) = reduction(eqn) {
        return length(&ty.shape, axes) > CHAIN;
    }
    downcast::<DotGeneral>(eqn).is_some_and(|op| {
        let contracted = length(&ty.shape, &op.contract[0]);
        contracted > if is_inner(graph, eqn, op) { CHAIN } else { CONTRACTION }
    })
}

/// True if a contraction leaves no axis of either operand but those of the batch.
fn is_inner(graph: &Graph, eqn: &Equation, op: &DotGeneral) -> bool {
    let batch: Shape = op.batch[0].iter().map(|a| graph.ty(eqn.inputs[0]).shape[*a]).collect();
    graph.ty(eqn.outputs[0]).count() == element_count(&batch)
}

/// The result of a long reduction. Those of 16-bit floats are added up in `f32` throughout, and rounded once.
fn blocked(b: &mut Builder, eqn: &Equation, operands: &[Var]) -> Var {
    let dtype = b.ty(operands[0]).dtype;
    let wide = if dtype.is_half() { DType::F32 } else { dtype };
    let operands: Vars = operands.iter().map(|x| b.convert(*x, wide)).collect();
    let result = match (reduction(eqn), downcast::<DotGeneral>(eqn)) {
        (Some((fold, axes)), _) => fold.blocks(b, operands[0], axes),
        (None, Some(op)) => contract(b, op, operands[0], operands[1]),
        (None, None) => unreachable!("no other equation is long"),
    };
    b.convert(result, dtype)
}

/// An operation that joins two numbers to one, in any order.
#[derive(Clone, Copy)]
enum Fold {
    Sum,
    Product,
}

impl Fold {
    fn join(self, b: &mut Builder, x: Var, y: Var) -> Var {
        match self {
            Fold::Sum => b.add(x, y),
            Fold::Product => b.mul(x, y),
        }
    }

    /// One chain over all of `axes`.
    fn chain(self, b: &mut Builder, x: Var, axes: &[usize]) -> Var {
        let axes: Shape = axes.into();
        match self {
            Fold::Sum => b.apply(ReduceSum { axes }, &[x]),
            Fold::Product => b.apply(ReduceProd { axes }, &[x]),
        }
    }

    /// `x` reduced over `axes`. Whatever computes `x` goes into the kernel of the first blocks, which therefore split axes
    /// and join none if they can: a kernel ends where axes are joined of which only one is repeated.
    fn blocks(self, b: &mut Builder, x: Var, axes: &[usize]) -> Var {
        let shape = b.shape(x);
        if length(&shape, axes) <= CHAIN {
            return self.chain(b, x, axes);
        }
        let best = axes.iter().copied().rev().find(|a| shape[*a] >= BLOCK);
        match best {
            Some(axis) => self.level(b, x, axes, axis),
            None => self.joined(b, x, axes),
        }
    }

    /// The results of blocks, reduced further over `axes`.
    fn joined(self, b: &mut Builder, x: Var, axes: &[usize]) -> Var {
        let shape = b.shape(x);
        let (mut to, mut reduced) = (Shape::new(), Shape::new());
        for (axis, extent) in shape.iter().enumerate() {
            let with_last = axis > 0 && axes.contains(&axis) == axes.contains(&(axis - 1));
            match to.last_mut().filter(|_| with_last) {
                Some(last) => *last *= extent,
                None => to.push(*extent),
            }
            if axes.contains(&axis) && !reduced.contains(&(to.len() - 1)) {
                reduced.push(to.len() - 1);
            }
        }
        let kept: Shape = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        let x = b.reshape(x, &to);
        let result = match reduced.iter().copied().rev().find(|a| to[*a] >= BLOCK) {
            _ if length(&to, &reduced) <= CHAIN => self.chain(b, x, &reduced),
            Some(axis) => self.level(b, x, &reduced, axis),
            None => {
                let (rest, axis) = (&reduced[..reduced.len() - 1], reduced[reduced.len() - 1]);
                let x = self.chain(b, x, &[axis]);
                self.joined(b, x, rest)
            }
        };
        b.reshape(result, &kept)
    }

    /// Blocks along one of the axes, and the rest of the reduction.
    fn level(self, b: &mut Builder, x: Var, axes: &[usize], axis: usize) -> Var {
        let shape = b.shape(x);
        let extent = shape[axis];
        if extent <= CHAIN {
            let x = self.chain(b, x, &[axis]);
            let rest: Shape =
                axes.iter().filter(|a| **a != axis).map(|a| a - usize::from(*a > axis)).collect();
            return self.joined(b, x, &rest);
        }
        let innermost = element_count(&shape[axis + 1..]) == 1;
        match blocks_of(extent, innermost) {
            Some((block, lanes)) => {
                let parts = [extent / (block * lanes), block, lanes];
                let split = b.reshape(x, &[&shape[..axis], &parts, &shape[axis + 1..]].concat());
                let x = self.chain(b, split, &[axis + 1]);
                let x = b.reshape(x, &[&shape[..axis], &[extent / block], &shape[axis + 1..]].concat());
                self.joined(b, x, axes)
            }
            None => self.slices(b, x, axes, axis),
        }
    }

    /// The halves of the axis joined, those joined and so on, in one kernel for a length that is not made of blocks.
    fn slices(self, b: &mut Builder, x: Var, axes: &[usize], axis: usize) -> Var {
        let extent = b.shape(x)[axis];
        let part = extent / BLOCK;
        let mut parts: SmallVec<[Var; BLOCK]> =
            (0..BLOCK).map(|i| b.slice_axis(x, axis, i * part, (i + 1) * part)).collect();
        while parts.len() > 1 {
            parts = parts.chunks(2).map(|two| self.join(b, two[0], two[1])).collect();
        }
        let sum = self.joined(b, parts[0], axes);
        if BLOCK * part == extent {
            return sum;
        }
        let rest = b.slice_axis(x, axis, BLOCK * part, extent);
        let rest = self.joined(b, rest, axes);
        self.join(b, sum, rest)
    }
}

/// How many elements are a block, and how many blocks lie side by side, for an axis that is split without a remainder.
fn blocks_of(extent: usize, innermost: bool) -> Option<(usize, usize)> {
    let dividing =
        |n: usize, sizes: std::ops::RangeInclusive<usize>| sizes.filter(move |i| n.is_multiple_of(*i));
    if !innermost {
        return dividing(extent, BLOCK / 2..=LARGEST)
            .min_by_key(|block| block.abs_diff(BLOCK))
            .map(|block| (block, 1));
    }
    // All at once if it is not too much; full vectors rather than others, but no more of them than needed.
    let lanes = dividing(extent, LANES)
        .min_by_key(|lanes| (!lanes.is_multiple_of(VECTOR), lanes.abs_diff(2 * VECTOR)));
    lanes.into_iter().find_map(|lanes| {
        let blocks = extent / lanes;
        let block = if blocks <= LARGEST {
            Some(blocks)
        } else {
            dividing(blocks, BLOCK / 2..=LARGEST).min_by_key(|block| block.abs_diff(BLOCK))
        };
        block.map(|block| (block, lanes))
    })
}

/// A long contraction: as a sum of products where no axis is left, as a batch of short contractions elsewhere.
fn contract(b: &mut Builder, op: &DotGeneral, x: Var, y: Var) -> Var {
    let ranks = [b.ty(x).rank(), b.ty(y).rank()];
    let free = [0, 1].map(|side| op.free(side, ranks[side]));
    let (left, right) = (b.shape(x), b.shape(y));
    if length(&left, &free[0]) * length(&right, &free[1]) == 1 {
        let result: Shape = op.batch[0].iter().map(|a| left[*a]).collect();
        let shape: Shape = op.batch[0].iter().chain(&op.contract[0]).map(|a| left[*a]).collect();
        let [x, y] = [(x, 0), (y, 1)].map(|(x, side)| {
            let order: Vec<usize> =
                op.batch[side].iter().chain(&free[side]).chain(&op.contract[side]).copied().collect();
            let x = b.transpose(x, &order);
            b.reshape(x, &shape)
        });
        let products = b.mul(x, y);
        let axes: Shape = (result.len()..shape.len()).collect();
        let sum = Fold::Sum.blocks(b, products, &axes);
        let shape: Vec<usize> = result.iter().copied().chain(free.iter().flatten().map(|_| 1)).collect();
        return b.reshape(sum, &shape);
    }
    let longest = (0..op.contract[0].len()).max_by_key(|i| left[op.contract[0][*i]]).expect("an axis");
    let extent = left[op.contract[0][longest]];
    let others = length(&left, &op.contract[0]) / extent;
    // What the blocks give takes no more memory than a few times the operands, and is little where a side has few rows.
    let [rows, columns] = [length(&left, &free[0]), length(&right, &free[1])];
    let shortest = if rows.min(columns) <= THIN { CHAIN } else { CONTRACTION / 2 };
    let wanted = (shortest.max(rows * columns / (rows + columns) / 4) / others).max(BLOCK);
    let dividing = (wanted / 2..=2 * wanted).filter(|block| extent.is_multiple_of(*block));
    let block = dividing.min_by_key(|block| block.abs_diff(wanted)).unwrap_or(wanted);
    let batches = extent / block;
    if batches < 2 {
        return b.apply(op.clone(), &[x, y]);
    }
    let axes = [op.contract[0][longest], op.contract[1][longest]];
    let part = |b: &mut Builder, start: usize, end: usize| {
        [(x, axes[0]), (y, axes[1])].map(|(x, axis)| b.slice_axis(x, axis, start, end))
    };
    let [main_x, main_y] = part(b, 0, batches * block);
    let [main_x, main_y] = [(main_x, axes[0]), (main_y, axes[1])].map(|(x, axis)| {
        let mut shape = b.shape(x);
        shape[axis] = block;
        shape.insert(axis, batches);
        b.reshape(x, &shape)
    });
    let split = |side: usize, list: &Shape| -> Shape {
        list.iter().map(|a| a + usize::from(*a >= axes[side])).collect()
    };
    let batch =
        |side: usize| -> Shape { std::iter::once(axes[side]).chain(split(side, &op.batch[side])).collect() };
    let blocks = DotGeneral {
        contract: [split(0, &op.contract[0]), split(1, &op.contract[1])],
        batch: [batch(0), batch(1)],
    };
    let partial = b.apply(blocks, &[main_x, main_y]);
    let sum = Fold::Sum.blocks(b, partial, &[0]);
    if batches * block == extent {
        return sum;
    }
    let [x, y] = part(b, batches * block, extent);
    let rest = b.apply(op.clone(), &[x, y]);
    b.add(sum, rest)
}
