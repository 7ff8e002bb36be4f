//! `threefry`: the random words of a range of counters under a key.
//!
//! The block cipher is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
//! 2011). A program computes each word where it is used, from positions that it counts itself: there is no tensor of
//! counters.

use rayon::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list};
use crate::tensor::{DType, Data, HostTensor, Shape, TensorType, element_count, strides};

/// The two words of the block for every position of a shape, in two tensors of `u32`. Operands are a key and the counter
/// of the first position, each of two words, the higher first; several keys and counters give as many tensors, stacked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Threefry {
    /// The positions: a counter's lower word is that of the first, plus the position in row-major order.
    pub shape: Shape,
}

const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
const PARITY: u32 = 0x1BD1_1BDA;

/// The cipher: one block under a key.
#[inline]
pub fn threefry_block(key: [u32; 2], mut x: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
    x = [x[0].wrapping_add(schedule[0]), x[1].wrapping_add(schedule[1])];
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[0] ^ x[1].rotate_left(rotation);
        }
        x[0] = x[0].wrapping_add(schedule[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(schedule[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    x
}

/// Positions that one thread takes at a time.
const PIECE: usize = 1 << 14;

/// `f` of each of the first `n` positions, by all processors.
pub fn by_position<T: Send + Clone + Default>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut all = vec![T::default(); n];
    all.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
        let first = piece * PIECE;
        out.iter_mut().enumerate().for_each(|(i, x)| *x = f(first + i));
    });
    all
}

/// The operations of a pair of words per position, written one by one.
struct Words<'a, 'b> {
    to: &'a mut Lowering<'b>,
    ty: TensorType,
}

impl Words<'_, '_> {
    fn number(&mut self, x: u32) -> String {
        self.to.splat(&self.ty, &x.to_string())
    }

    fn op(&mut self, operation: &str, x: &str, y: &str) -> String {
        self.to.value(&format!("stablehlo.{operation}"), &[x, y], &self.ty)
    }

    fn turned(&mut self, x: &str, by: u32) -> String {
        let (left, right) = (self.number(by), self.number(32 - by));
        let (left, right) =
            (self.op("shift_left", x, &left), self.op("shift_right_logical", x, &right));
        self.op("or", &left, &right)
    }

    /// Word `i` of operand `n`, for every position.
    fn word(&mut self, n: usize, i: usize) -> String {
        let from = self.to.operand_type(n).clone();
        let batch = &from.shape[..from.rank() - 1];
        let bounds: Vec<String> =
            batch.iter().map(|extent| format!("0:{extent}")).chain([format!("{i}:{}", i + 1)]).collect();
        let mut one = from.shape.clone();
        one[batch.len()] = 1;
        let (sliced, flat) = (from.with_shape(one).mlir(), from.with_shape(batch).mlir());
        let x = self.to.operand(n);
        let x = self.to.temporary(&format!(
            "stablehlo.slice {x} [{}] : ({}) -> {sliced}",
            bounds.join(", "),
            from.mlir()
        ));
        let x = self.to.temporary(&format!("stablehlo.reshape {x} : ({sliced}) -> {flat}"));
        let dims = dims_list(&(0..batch.len()).collect::<Vec<_>>());
        self.to.temporary(&format!(
            "stablehlo.broadcast_in_dim {x}, dims = {dims} : ({flat}) -> {}",
            self.ty.mlir()
        ))
    }

    /// `x` plus the position within the last axes, which are those of `shape`.
    fn plus_position(&mut self, mut x: String, shape: &[usize]) -> String {
        let before = self.ty.rank() - shape.len();
        for (axis, stride) in strides(shape).iter().enumerate().filter(|(axis, _)| shape[*axis] > 1) {
            let ty = self.ty.mlir();
            let mut index = self.to.temporary(&format!("stablehlo.iota dim = {} : {ty}", before + axis));
            if *stride > 1 {
                let stride = self.number(*stride as u32);
                index = self.op("multiply", &index, &stride);
            }
            x = self.op("add", &x, &index);
        }
        x
    }
}

impl Primitive for Threefry {
    fn name(&self) -> &'static str {
        "threefry"
    }

    fn parameters(&self) -> String {
        format!("shape={:?}", self.shape)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("threefry", args, 2)?;
        let [key, counter] = [args[0], args[1]];
        let pair = key.shape.split_last().filter(|(last, _)| **last == 2);
        let Some((_, batch)) = pair.filter(|_| key.dtype == DType::U32 && key == counter) else {
            return Err(TypeFault::new(format!("threefry of {key} and {counter}: both are pairs of u32")));
        };
        let shape: Shape = batch.iter().chain(&self.shape).copied().collect();
        Ok(SmallVec::from_elem(TensorType::new(DType::U32, shape), 2))
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let words = |x: &HostTensor| -> Vec<[u32; 2]> {
            let Data::U32(v) = x.data() else { unreachable!("the type rule wants u32") };
            v.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
        };
        let (keys, counters) = (words(args[0]), words(args[1]));
        let each = element_count(&self.shape);
        let pairs = by_position(keys.len() * each, |n| {
            let (i, position) = (n / each, (n % each) as u32);
            threefry_block(keys[i], [counters[i][0], counters[i][1].wrapping_add(position)])
        });
        let shape: Shape = args[0].shape().split_last().expect("pairs").1.iter().chain(&self.shape).copied().collect();
        let half = |i: usize| HostTensor::new(shape.clone(), pairs.iter().map(|pair| pair[i]).collect::<Vec<u32>>());
        smallvec![half(0), half(1)]
    }

    // Integers have no slope.
    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        b.apply_all(self.clone(), &args).into_iter().map(|var| (var, 0)).collect()
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let ty = to.result_type(0).clone();
        let mut words = Words { to, ty };
        let [k0, k1] = [0, 1].map(|i| words.word(0, i));
        let [high, low] = [0, 1].map(|i| words.word(1, i));
        let low = words.plus_position(low, &self.shape);
        let (mixed, parity) = (words.op("xor", &k0, &k1), words.number(PARITY));
        let k2 = words.op("xor", &mixed, &parity);
        let mut x0 = words.op("add", &high, &k0);
        let mut x1 = words.op("add", &low, &k1);
        let schedule = [k0, k1, k2];
        for round in 0..5 {
            for rotation in ROTATIONS[round % 2] {
                x0 = words.op("add", &x0, &x1);
                let turned = words.turned(&x1, rotation);
                x1 = words.op("xor", &x0, &turned);
            }
            let count = words.number(round as u32 + 1);
            x0 = words.op("add", &x0, &schedule[(round + 1) % 3]);
            x1 = words.op("add", &x1, &schedule[(round + 2) % 3]);
            x1 = words.op("add", &x1, &count);
        }
        to.name_results(&[x0, x1]);
    }

    fn cost(&self, _: &[&TensorType], outs: &[&TensorType]) -> u64 {
        /// Operations on words in a block.
        const BLOCK: u64 = 117;
        BLOCK * outs[0].count() as u64
    }
}
