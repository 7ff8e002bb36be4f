//! Random small programs, each one kernel with several results of the same types, compiled, against host evaluation.
//! `KERNELS=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{ArgReduce, DotGeneral, Extreme, ReduceMax, Tanh, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, Shape, TensorType};

/// Number of programs by default.
const PROGRAMS: usize = 6;

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
    super::check_programs("KERNELS", PROGRAMS, None, KERNELS, &SHAPES, &[], program);
}

/// Sums from one initial value, which IREE makes in the memory of one of them (Q27).
#[test]
fn sums_by_rows_are_told_apart() {
    super::check_programs("SUMS", 1, None, KERNELS, &[&[6, 3]], &[], |_| {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, &[6, 3][..]));
        let (y, z) = (b.apply(Unary(Tanh), &[x]), b.mul(x, x));
        let sums = [x, y, z].map(|v| b.sum(v, &[1]));
        b.finish(sums.to_vec())
    });
}
