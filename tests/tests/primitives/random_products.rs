//! Random kernels of products of matrices, compiled, against host evaluation. `PRODUCTS=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{DotGeneral, Tanh, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, Shape, TensorType};

use super::check_programs;

/// Number of programs by default.
const PROGRAMS: usize = 6;

/// Shapes of the arguments: extents of less than a vector, of one, and of more.
const SHAPES: [&[usize]; 8] = [&[3, 4], &[3, 4], &[3, 4], &[4, 4], &[20, 9], &[20, 9], &[20, 12], &[20, 12]];

/// Shapes of arguments with products of more than 16 KiB of elementary products, which are refused whole (Q64).
const LARGE: [&[usize]; 8] =
    [&[64, 4], &[64, 4], &[16, 4], &[16, 4], &[64, 16], &[64, 16], &[24, 16], &[41, 24]];

const KERNELS: Model = Model::Kernels(KernelSize::Small);

/// The matrices of a program so far.
struct Program {
    builder: Builder,
    random: Random,
    matrices: Vec<Var>,
}

impl Program {
    fn new(seed: u64, shapes: &[&[usize]]) -> Program {
        let mut builder = Builder::new();
        let argument = |shape: &&[usize]| builder.input(TensorType::new(DType::F32, *shape));
        let matrices = shapes.iter().map(argument).collect();
        Program { builder, random: Random(seed), matrices }
    }

    /// The matrices so far times a quarter, so that sums of many products, and their rounding errors, stay small.
    fn quartered(mut self) -> Program {
        for matrix in &mut self.matrices {
            let quarter = self.builder.full_like(*matrix, 0.25);
            *matrix = self.builder.mul(*matrix, quarter);
        }
        self
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    /// One of the matrices whose shape has a property, if there are any.
    fn one_with(&mut self, property: impl Fn(&[usize]) -> bool) -> Option<Var> {
        let all = self.matrices.iter().copied();
        let found: Vec<Var> = all.filter(|v| property(&self.builder.ty(*v).shape)).collect();
        (!found.is_empty()).then(|| found[self.below(found.len())])
    }

    /// One of the matrices with the shape of `x`.
    fn like(&mut self, x: Var) -> Var {
        let shape = self.builder.ty(x).shape.clone();
        self.one_with(|other| *other == *shape).unwrap_or(x)
    }

    fn step(&mut self) {
        let place = self.below(self.matrices.len());
        let x = self.matrices[place];
        let shape = self.builder.ty(x).shape.clone();
        let (left, right) = (self.below(2), self.below(2));
        let made = match self.below(8) {
            0 => self.builder.apply(Unary(Tanh), &[x]),
            1 | 2 => {
                let y = self.like(x);
                self.builder.add(x, y)
            }
            3 => self.builder.transpose(x, &[1, 0]),
            4 => {
                let sums = self.builder.sum(x, &[1 - left]);
                self.builder.broadcast_in_dim(sums, &shape, &[left])
            }
            _ => {
                let Some(y) = self.one_with(|other| other[right] == shape[left]) else { return };
                let one = self.builder.apply(product(left, right), &[x, y]);
                if self.below(2) == 0 { self.sum_of_products(one, x, y, left, right) } else { one }
            }
        };
        self.matrices.push(made);
    }

    /// The sum of a product of `x` and `y` and another one of such matrices, as in the gradient by weights that are used twice.
    fn sum_of_products(&mut self, one: Var, x: Var, y: Var, left: usize, right: usize) -> Var {
        let (x, y, turns) = (self.like(x), self.like(y), self.below(2) == 0);
        let b = &mut self.builder;
        let computed = b.apply(Unary(Tanh), &[x]);
        let products = [one, b.apply(product(left, right), &[computed, y])];
        let [one, other] = if turns { products.map(|v| b.transpose(v, &[1, 0])) } else { products };
        b.add(one, other)
    }

    /// The last matrix and some of the two before are results.
    fn finish(mut self) -> Graph {
        for _ in 0..6 + self.below(14) {
            self.step();
        }
        let mut results = self.matrices.split_off(SHAPES.len().max(self.matrices.len() - 3));
        let last = results.pop();
        results.retain(|_| self.random.below(2) == 0);
        results.extend(last);
        self.builder.finish(results)
    }
}

/// The product of two matrices by one axis of each.
fn product(left: usize, right: usize) -> DotGeneral {
    let axes = [left, right].map(|axis| Shape::from_slice(&[axis]));
    DotGeneral { contract: axes, batch: [Shape::new(), Shape::new()] }
}

#[test]
fn random_products_agree_with_host_evaluation() {
    let program = |seed| Program::new(seed, &SHAPES).finish();
    check_programs("PRODUCTS", PROGRAMS, None, KERNELS, &SHAPES, &[], program);
}

#[test]
fn random_products_in_parts_agree_with_host_evaluation() {
    let parted = Model::Kernels(KernelSize::Parted);
    let program = |seed| Program::new(seed, &LARGE).quartered().finish();
    check_programs("PRODUCTS", PROGRAMS, None, parted, &LARGE, &[], program);
}

/// A gradient by weights that are used twice: a sum of two products, the left factor of one being computed (Q44).
#[test]
fn sums_of_transposed_products_are_right() {
    check_programs("TWICE", 1, None, KERNELS, &[[3, 4].as_slice(); 5], &[], |_| {
        let mut b = Builder::new();
        let [v, w, x, y, z] = [(); 5].map(|()| b.input(TensorType::new(DType::F32, &[3, 4][..])));
        let computed = b.add(v, w);
        let products = [(computed, x), (y, z)].map(|(left, right)| b.apply(product(0, 0), &[left, right]));
        let [one, other] = products.map(|product| b.transpose(product, &[1, 0]));
        let sum = b.add(one, other);
        b.finish(vec![sum])
    });
}
