//! Takes long sums, products and contractions in blocks, so that their error grows with the logarithm of the length.
//!
//! IREE adds up all elements in one chain (Q04), in which the mean of a million numbers 0.1 is 0.10096. A long
//! sum is therefore written as a sum of blocks, then as one of what these gave, until a short chain remains. The blocks
//! of the innermost axis are taken across it, many side by side: a compiler makes vectors of that axis.
//!
//! Many rows, each of which is added up, stay one chain each and one kernel, in which the sum is an `f64`.

use smallvec::SmallVec;

use super::{Builder, DefUse, Equation, Graph, RULE, Var, Vars, gains_by_tiles};
use crate::primitives::{
    Binary, Convert, Convolution, DotGeneral, Mul, OptimizationBarrier, Primitive, ReduceProd, ReduceSum,
    Reshape, ThinProduct, TiledReduction,
};
use crate::tensor::{DType, Shape, element_count};

/// Maximum length of a chain. One of numbers that are all alike, the worst in practice, is wrong by 1e-6 of its sum.
const CHAIN: usize = 128;

/// Number of elements in a block, if the length allows it.
const BLOCK: usize = 16;

/// Maximum number of elements in a block.
const MAX_BLOCK: usize = 64;

/// Lanes that fill a processor's vectors.
const VECTOR: usize = 16;

/// Minimum and maximum number of blocks of the innermost axis side by side.
const LANES: std::ops::RangeInclusive<usize> = 8..=128;

/// Maximum length of a contraction of matrices that is left as it is: with numbers of 0 to 1, its error is still below
/// 2e-6.
const CONTRACTION: usize = 1024;

/// Maximum products in a window of a convolution that is left as it is.
const WINDOW: usize = 8192;

/// Maximum rows or columns of a thin product: blocks of it cost little, however short.
const THIN: usize = 8;

/// Maximum pieces of a contraction whose length is not made of blocks: the compiler takes its time for each.
const PIECES: usize = 16;

/// Maximum length of a piece, except in convolutions.
const MAX_PIECE: usize = 4 * CONTRACTION;

/// Number of rows that fill vectors and processors: each may be one chain.
const ROWS: usize = 64;

/// Maximum length of a chain of fewer rows in `f64`, if a length is not made of blocks.
const FEW_ROWS: usize = 1 << 17;

/// Lengths of the rows that products are laid out in before they are added up.
const PRODUCTS: std::ops::RangeInclusive<usize> = CHAIN..=2048;

/// `graph` with each long reduction in blocks; `None` if there is none. `doubles` allows sums of `f32` in `f64`; `thin` leaves products
/// of a few vectors and a matrix, and sums of columns, to kernels.
pub fn in_blocks(graph: &Graph, doubles: bool, thin: bool) -> Option<Graph> {
    if !graph.equations.iter().any(|eqn| is_long(graph, eqn)) {
        return None;
    }
    let uses = DefUse::of(graph);
    let is_tiled = |eqn: &Equation| {
        let sum = eqn.op.downcast_ref::<ReduceSum>();
        sum.is_some_and(|op| TiledReduction::of(&uses, eqn.outputs[0], "stablehlo.add", &op.axes).is_some())
    };
    let in_kernel = |eqn: &Equation| thin && (ThinProduct::of(&uses, eqn).is_some() || is_tiled(eqn));
    let is_blocked = |eqn: &Equation| is_long(graph, eqn) && !in_kernel(eqn);
    let tiles = gains_by_tiles(graph);
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        if is_blocked(eqn) {
            let means = Means { doubles, tiles, products: adds_products(&uses, eqn) };
            smallvec::smallvec![blocked(&mut b, eqn, operands, means)]
        } else {
            b.bind(eqn.op.clone(), operands).expect(RULE)
        }
    });
    Some(b.finish(outputs))
}

/// Properties of the device, the program and the operand that decide on the form of a long reduction.
#[derive(Clone, Copy)]
struct Means {
    /// Sums of `f32` in `f64` are allowed.
    doubles: bool,
    /// The operands of products are packed into tiles.
    tiles: bool,
    /// The operand of a sum is a product.
    products: bool,
}

/// The operation on the elements, and its axes.
fn reduction(eqn: &Equation) -> Option<(Fold, &Shape)> {
    let sum = eqn.op.downcast_ref::<ReduceSum>().map(|op| (Fold::Sum, &op.axes));
    sum.or_else(|| eqn.op.downcast_ref::<ReduceProd>().map(|op| (Fold::Product, &op.axes)))
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
    if eqn.op.is::<Convolution>() {
        return is_long_convolution(graph, eqn);
    }
    eqn.op.downcast_ref::<DotGeneral>().is_some_and(|op| {
        let contracted = length(&ty.shape, &op.contract[0]);
        contracted > if is_inner(graph, eqn, op) { CHAIN } else { CONTRACTION }
    })
}

/// True for the gradient of a kernel: its window is as large as the tensor, and its channels are the batch.
fn is_long_convolution(graph: &Graph, eqn: &Equation) -> bool {
    let window = &graph.ty(eqn.inputs[1]).shape;
    let [.., channels, _] = window[..] else { return false };
    eqn.op.downcast_ref::<Convolution>().is_some_and(|op| op.groups == 1)
        && channels > 1
        && element_count(&window[..window.len() - 2]) > CHAIN
        && element_count(&window[..window.len() - 1]) > WINDOW
}

/// True if a contraction leaves no axis of either operand but those of the batch.
fn is_inner(graph: &Graph, eqn: &Equation, op: &DotGeneral) -> bool {
    let batch: Shape = op.batch[0].iter().map(|a| graph.ty(eqn.inputs[0]).shape[*a]).collect();
    graph.ty(eqn.outputs[0]).count() == element_count(&batch)
}

/// True for a long reduction that adds up rows in `f64`: IREE makes vectors of those only if it may change the order.
pub fn adds_rows(graph: &Graph, eqn: &Equation) -> bool {
    if !is_long(graph, eqn) {
        return false;
    }
    matches!(reduction(eqn), Some((Fold::Sum, axes)) if is_row(&graph.ty(eqn.inputs[0]).shape, axes))
}

/// True if a sum is one of products: in blocks, IREE takes it for a product of many matrices, and is slow.
fn adds_products(uses: &DefUse, eqn: &Equation) -> bool {
    let mut var = eqn.inputs[0];
    while let Some(maker) = uses.definition(var) {
        if !maker.op.is::<Reshape>() && !maker.op.is::<Convert>() {
            return maker.op.is::<Binary<Mul>>();
        }
        var = maker.inputs[0];
    }
    false
}

/// True if `axes` are the last ones, and a row of them is best added up in one chain.
fn is_row(shape: &[usize], axes: &[usize]) -> bool {
    let first = shape.len() - axes.len();
    let count = length(shape, axes);
    axes.iter().all(|axis| *axis >= first)
        && (element_count(&shape[..first]) >= ROWS || count <= FEW_ROWS && blocks_of(count, true).is_none())
}

/// The length of the rows that the products of the last axes are laid out in.
fn product_row(shape: &[usize], axes: &[usize]) -> Option<usize> {
    let count = length(shape, axes);
    let last = axes.iter().all(|axis| *axis >= shape.len() - axes.len());
    let dividing = PRODUCTS.filter(|row| last && count.is_multiple_of(*row));
    dividing.min_by_key(|row| row.abs_diff(PRODUCTS.end() / 2))
}

/// The sum over the last axes in `f64`, in one chain or, for products, in rows of chains.
fn doubled(b: &mut Builder, x: Var, axes: &[usize], row: Option<usize>) -> Var {
    let dtype = b.ty(x).dtype;
    let shape = b.shape(x);
    let kept = shape.len() - axes.len();
    let (x, axes): (Var, Shape) = match row {
        Some(row) => {
            let rows = [length(&shape, axes) / row, row];
            (b.reshape(x, &[&shape[..kept], &rows].concat()), [kept + 1].as_slice().into())
        }
        None => (x, axes.into()),
    };
    let x = b.convert(x, DType::F64);
    let mut sum = b.apply(ReduceSum { axes }, &[x]);
    if row.is_some() {
        sum = Fold::Sum.blocks(b, sum, &[kept]);
    }
    b.convert(sum, dtype)
}

/// The result of a long reduction. Those of 16-bit floats are added up in `f32` throughout, and rounded once.
fn blocked(b: &mut Builder, eqn: &Equation, operands: &[Var], means: Means) -> Var {
    let dtype = b.ty(operands[0]).dtype;
    let wide = if dtype.is_half() { DType::F32 } else { dtype };
    let operands: Vars = operands.iter().map(|x| b.convert(*x, wide)).collect();
    let result = if let Some((fold, axes)) = reduction(eqn) {
        fold.reduce(b, operands[0], axes, means)
    } else if let Some(op) = eqn.op.downcast_ref::<DotGeneral>() {
        contract(b, op, operands[0], operands[1], means)
    } else {
        let op = eqn.op.downcast_ref::<Convolution>().expect("no other equation is long");
        let window = b.shape(operands[1]);
        let axes = [window.len() - 1, window.len() - 2];
        let least = MAX_PIECE / element_count(&window[..axes[1]]);
        in_pieces(b, op, [operands[0], operands[1]], axes, least.max(1), true)
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

    /// `x` reduced over `axes`, in blocks or in `f64`.
    fn reduce(self, b: &mut Builder, x: Var, axes: &[usize], means: Means) -> Var {
        let shape = b.shape(x);
        match self {
            Fold::Sum if means.doubles && is_row(&shape, axes) => doubled(b, x, axes, None),
            Fold::Sum if means.doubles && means.products => match product_row(&shape, axes) {
                Some(row) => doubled(b, x, axes, Some(row)),
                None => self.blocks(b, x, axes),
            },
            _ => self.blocks(b, x, axes),
        }
    }

    /// `x` reduced over `axes`. The computation of `x` goes into the kernel of the first blocks, which therefore split
    /// axes and join none if they can: a kernel ends where axes are joined of which only one is repeated.
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

/// Elements in a block and blocks side by side, for an axis that is split without a remainder.
fn blocks_of(extent: usize, innermost: bool) -> Option<(usize, usize)> {
    let dividing =
        |n: usize, sizes: std::ops::RangeInclusive<usize>| sizes.filter(move |i| n.is_multiple_of(*i));
    if !innermost {
        return dividing(extent, BLOCK / 2..=MAX_BLOCK)
            .min_by_key(|block| block.abs_diff(BLOCK))
            .map(|block| (block, 1));
    }
    // All at once if it is not too much; full vectors rather than others, but no more of them than needed.
    let lanes = dividing(extent, LANES)
        .min_by_key(|lanes| (!lanes.is_multiple_of(VECTOR), lanes.abs_diff(2 * VECTOR)));
    lanes.into_iter().find_map(|lanes| {
        let blocks = extent / lanes;
        let block = if blocks <= MAX_BLOCK {
            Some(blocks)
        } else {
            dividing(blocks, BLOCK / 2..=MAX_BLOCK).min_by_key(|block| block.abs_diff(BLOCK))
        };
        block.map(|block| (block, lanes))
    })
}

/// A long contraction: as a sum of products if no axis is left, otherwise as a batch of short contractions.
fn contract(b: &mut Builder, op: &DotGeneral, x: Var, y: Var, means: Means) -> Var {
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
        let sum = Fold::Sum.reduce(b, products, &axes, Means { products: true, ..means });
        let shape: Vec<usize> = result.iter().copied().chain(free.iter().flatten().map(|_| 1)).collect();
        return b.reshape(sum, &shape);
    }
    let longest = (0..op.contract[0].len()).max_by_key(|i| left[op.contract[0][*i]]).expect("an axis");
    let extent = left[op.contract[0][longest]];
    let others = length(&left, &op.contract[0]) / extent;
    // The blocks' results take no more memory than a few times the operands, and little if a side has few rows.
    let [rows, columns] = [length(&left, &free[0]), length(&right, &free[1])];
    let thin = rows.min(columns) <= THIN;
    let shortest = if thin { CHAIN } else { CONTRACTION / 2 };
    // So few blocks that one chain adds up their results, unless they would be too long for it: a kernel less.
    let few = extent.div_ceil(CHAIN).min(CONTRACTION * 3 / 4);
    let wanted = (shortest.max(few).max(rows * columns / (rows + columns) / 4) / others).max(BLOCK);
    if extent < 2 * wanted {
        return b.apply(op.clone(), &[x, y]);
    }
    let axes = [op.contract[0][longest], op.contract[1][longest]];
    let dividing = (wanted / 2..=2 * wanted).filter(|block| extent.is_multiple_of(*block));
    let Some(block) = dividing.min_by_key(|block| block.abs_diff(wanted)) else {
        if !thin && extent <= PIECES * MAX_PIECE {
            return in_pieces(b, op, [x, y], axes, 2 * wanted, means.tiles);
        }
        let [main, rest] = [0..extent / wanted * wanted, extent / wanted * wanted..extent].map(|part| {
            [(x, axes[0]), (y, axes[1])].map(|(x, axis)| b.slice_axis(x, axis, part.start, part.end))
        });
        let main = contract(b, op, main[0], main[1], means);
        let rest = b.apply(op.clone(), &rest);
        return b.add(main, rest);
    };
    let [main_x, main_y] = [(x, axes[0]), (y, axes[1])].map(|(x, axis)| {
        let mut shape = b.shape(x);
        shape[axis] = block;
        shape.insert(axis, extent / block);
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
    Fold::Sum.blocks(b, partial, &[0])
}

/// A sum of products as the sum of those of pieces of an axis, of at least `least` each. `copied` pieces lie in memory
/// of their own: IREE refuses a kernel that makes tiles or patches of a part.
fn in_pieces(
    b: &mut Builder,
    op: &(impl Primitive + Clone),
    operands: [Var; 2],
    axes: [usize; 2],
    least: usize,
    copied: bool,
) -> Var {
    let extent = b.shape(operands[0])[axes[0]];
    let piece = least.max(extent.div_ceil(PIECES));
    let mut sums: Vec<Var> = (0..extent)
        .step_by(piece)
        .map(|start| {
            let end = extent.min(start + piece);
            let parts = [0, 1].map(|side| b.slice_axis(operands[side], axes[side], start, end));
            let parts =
                if copied { b.apply_all(OptimizationBarrier, &parts) } else { Vars::from_slice(&parts) };
            b.apply(op.clone(), &parts)
        })
        .collect();
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|two| if let [x, y] = two { b.add(*x, *y) } else { two[0] }).collect();
    }
    sums[0]
}
