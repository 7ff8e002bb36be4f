//! Random small programs, each one kernel with several results of the same types, compiled, against host evaluation.
//! `KERNELS=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{ArgReduce, DotGeneral, Extreme, ReduceMax, Tanh, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, Shape, TensorType};

/// Number of programs by default.
const PROGRAMS: usize = 32;

/// Rows and columns of each matrix.
const SIZE: usize = 6;

/// Shapes of the arguments.
const SHAPES: [&[usize]; 4] = [&[SIZE, SIZE], &[SIZE, SIZE], &[SIZE], &[]];

const KERNELS: Model = Model::Kernels(KernelSize::Small);

/// The values of a program so far, by type.
struct Program {
    builder: Builder,
    random: Random,
    matrices: Vec<Var>,
    vectors: Vec<Var>,
    numbers: Vec<Var>,
    positions: Vec<Var>,
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut builder = Builder::new();
        let [a, b, vector, number] = SHAPES.map(|shape| builder.input(TensorType::new(DType::F32, shape)));
        Program {
            builder,
            random: Random(seed),
            matrices: vec![a, b],
            vectors: vec![vector],
            numbers: vec![number],
            positions: Vec::new(),
        }
    }

    fn one_of(&mut self, all: impl Fn(&Program) -> &Vec<Var>) -> Var {
        let i = self.random.below(all(self).len() as u64) as usize;
        all(self)[i]
    }

    fn step(&mut self) {
        let (x, y) = (self.one_of(|p| &p.matrices), self.one_of(|p| &p.matrices));
        let (v, w) = (self.one_of(|p| &p.vectors), self.one_of(|p| &p.vectors));
        let (a, c) = (self.one_of(|p| &p.numbers), self.one_of(|p| &p.numbers));
        let axis = self.random.below(2) as usize;
        let axes = |axes: &[usize]| Shape::from_slice(axes);
        let product = |left: usize, right: usize| DotGeneral {
            contract: [axes(&[left]), axes(&[right])],
            batch: [axes(&[]), axes(&[])],
        };
        let b = &mut self.builder;
        match self.random.below(17) {
            0 => self.matrices.push(b.apply(Unary(Tanh), &[x])),
            1 => self.matrices.push(b.add(x, y)),
            2 => self.matrices.push(b.apply(product(1, axis), &[x, y])),
            3 => self.matrices.push(b.transpose(x, &[1, 0])),
            4 => self.matrices.push(b.broadcast_in_dim(v, &[SIZE, SIZE], &[axis])),
            5..=7 => {
                let x = if axis == 0 { b.apply(Unary(Tanh), &[x]) } else { x };
                self.vectors.push(b.sum(x, &[1]));
            }
            8 => self.vectors.push(b.apply(ReduceMax { axes: axes(&[axis]) }, &[x])),
            9 => self.vectors.push(b.apply(product(axis, 0), &[x, v])),
            10 => self.vectors.push(b.mul(v, w)),
            11 => self.vectors.push(b.broadcast_scalar(a, &[SIZE])),
            12 => {
                let elements = [a, c, a, c, c, a].map(|n| b.reshape(n, &[1]));
                self.vectors.push(b.concatenate(&elements, 0));
            }
            13 => self.numbers.push(b.sum(x, &[0, 1])),
            14 => self.numbers.push(b.apply(product(0, 0), &[v, w])),
            15 => self.numbers.push(b.mul(a, c)),
            _ => {
                let extreme = if axis == 0 { Extreme::Max } else { Extreme::Min };
                self.positions.push(b.apply(ArgReduce { axis, extreme }, &[x]));
            }
        }
    }

    fn finish(mut self) -> Graph {
        for _ in 0..4 + self.random.below(12) {
            self.step();
        }
        // Results that start from one initial value.
        for _ in 0..3 {
            let x = self.one_of(|p| &p.matrices);
            self.vectors.push(self.builder.sum(x, &[1]));
        }
        let mut results: Vec<Var> = [&self.vectors, &self.numbers, &self.matrices, &self.positions]
            .iter()
            .flat_map(|all| all.iter().rev().take(4).copied())
            .filter(|_| self.random.below(4) > 0)
            .collect();
        results.truncate(12);
        results.push(self.matrices[0]);
        self.builder.finish(results)
    }
}

#[test]
fn random_kernels_agree_with_host_evaluation() {
    let program = |seed| Program::new(seed).finish();
    super::check_programs("KERNELS", PROGRAMS, KERNELS, &SHAPES, &[], program);
}

/// Shapes of the arguments of [`products`]: extents of less than a vector, of one, and of more.
const MATRICES: [&[usize]; 8] =
    [&[3, 4], &[3, 4], &[3, 4], &[4, 4], &[20, 9], &[20, 9], &[20, 12], &[20, 12]];

/// Products of matrices of several extents by any of their axes, with element-wise operations between them.
fn products(seed: u64) -> Graph {
    let mut random = Random(seed);
    let mut b = Builder::new();
    let mut known: Vec<Var> = MATRICES.iter().map(|s| b.input(TensorType::new(DType::F32, *s))).collect();
    let arguments = known.len();
    for _ in 0..6 + random.below(14) {
        let mut below = |n: usize| random.below(n as u64) as usize;
        let x = known[below(known.len())];
        let shape = b.ty(x).shape.clone();
        let alike = |b: &Builder, axis: usize, extent: usize, known: &[Var]| -> Vec<Var> {
            known.iter().copied().filter(|v| b.ty(*v).shape[axis] == extent).collect()
        };
        let (left, right) = (below(2), below(2));
        let made = match below(8) {
            0 => b.apply(Unary(Tanh), &[x]),
            1 | 2 => {
                let same: Vec<Var> = known.iter().copied().filter(|v| b.ty(*v).shape == shape).collect();
                let y = same[below(same.len())];
                b.add(x, y)
            }
            3 => b.transpose(x, &[1, 0]),
            4 => {
                let sums = b.sum(x, &[1 - left]);
                b.broadcast_in_dim(sums, &shape, &[left])
            }
            _ => {
                let fitting = alike(&b, right, shape[left], &known);
                if fitting.is_empty() {
                    continue;
                }
                let y = fitting[below(fitting.len())];
                let axes = |axes: &[usize]| Shape::from_slice(axes);
                let product =
                    DotGeneral { contract: [axes(&[left]), axes(&[right])], batch: [axes(&[]), axes(&[])] };
                let mut made = b.apply(product.clone(), &[x, y]);
                if below(2) == 0 {
                    // As in the gradient by weights that are used twice.
                    let mut like = |b: &Builder, v: Var| {
                        let alike: Vec<Var> =
                            known.iter().copied().filter(|w| b.ty(*w).shape == b.ty(v).shape).collect();
                        alike[below(alike.len())]
                    };
                    let (x, y) = (like(&b, x), like(&b, y));
                    let bent = b.apply(Unary(Tanh), &[x]);
                    let mut other = b.apply(product, &[bent, y]);
                    if below(2) == 0 {
                        [made, other] = [made, other].map(|v| b.transpose(v, &[1, 0]));
                    }
                    made = b.add(made, other);
                }
                made
            }
        };
        known.push(made);
    }
    let mut results = known.split_off(arguments.max(known.len() - 3));
    let last = results.pop();
    results.retain(|_| random.below(2) == 0);
    results.extend(last);
    b.finish(results)
}

#[test]
fn products_in_kernels_agree_with_host_evaluation() {
    super::check_programs("PRODUCTS", PROGRAMS, KERNELS, &MATRICES, &[], products);
}

/// A gradient by weights that are used twice: a sum of two products, the left factor of one being computed (Q44).
#[test]
fn sums_of_transposed_products_are_right() {
    super::check_programs("TWICE", 1, KERNELS, &[[3, 4].as_slice(); 5], &[], |_| {
        let mut b = Builder::new();
        let [v, w, x, y, z] = [(); 5].map(|()| b.input(TensorType::new(DType::F32, &[3, 4][..])));
        let axes = || [Shape::from_slice(&[0]), Shape::from_slice(&[0])];
        let by_rows = || DotGeneral { contract: axes(), batch: [Shape::new(), Shape::new()] };
        let computed = b.add(v, w);
        let products = [(computed, x), (y, z)].map(|(left, right)| b.apply(by_rows(), &[left, right]));
        let [one, other] = products.map(|product| b.transpose(product, &[1, 0]));
        let sum = b.add(one, other);
        b.finish(vec![sum])
    });
}

/// Sums from one initial value, which IREE makes in the memory of one of them (Q27).
#[test]
fn sums_by_rows_are_told_apart() {
    super::check_programs("SUMS", 1, KERNELS, &[&[6, 3]], &[], |_| {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, &[6, 3][..]));
        let (y, z) = (b.apply(Unary(Tanh), &[x]), b.mul(x, x));
        let sums = [x, y, z].map(|v| b.sum(v, &[1]));
        b.finish(sums.to_vec())
    });
}
