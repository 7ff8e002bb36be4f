//! Random small programs, each one kernel with several results of the same types, compiled, against host evaluation.
//! `KERNELS=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{ArgReduce, DotGeneral, Extreme, ReduceMax, Tanh, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_runtime::{Runtime, Target};
use sheaf_toolchain::Compiler;

/// Number of programs by default.
const PROGRAMS: usize = 32;

/// Rows and columns of each matrix.
const SIZE: usize = 6;

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
        let mut input = |shape: &[usize]| builder.input(TensorType::new(DType::F32, shape));
        let matrices = vec![input(&[SIZE, SIZE]), input(&[SIZE, SIZE])];
        let (vectors, numbers) = (vec![input(&[SIZE])], vec![input(&[])]);
        Program { builder, random: Random(seed), matrices, vectors, numbers, positions: Vec::new() }
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
        let mut results: Vec<Var> = [&self.vectors, &self.numbers, &self.matrices, &self.positions]
            .iter()
            .flat_map(|all| all.iter().rev().take(4).copied())
            .filter(|_| self.random.below(4) > 0)
            .collect();
        results.truncate(12);
        self.builder.finish(results)
    }
}

#[test]
fn random_kernels_agree_with_host_evaluation() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let device = Runtime::new().expect("a runtime").device(Target::LocalSync).expect("a device");
    let count = std::env::var("KERNELS").map_or(PROGRAMS, |n| n.parse().expect("a number of programs"));
    let mut random = Random(7);
    let mut tensor = |shape: &[usize]| {
        let numbers: Vec<f32> =
            (0..shape.iter().product()).map(|_| random.uniform(-1.0, 1.0) as f32).collect();
        HostTensor::new(shape, numbers)
    };
    let operands = vec![tensor(&[SIZE, SIZE]), tensor(&[SIZE, SIZE]), tensor(&[SIZE]), tensor(&[])];
    let mut faults = Vec::new();
    for seed in 0..count as u64 {
        let graph = Program::new(1000 * seed).finish();
        if graph.outputs.is_empty() {
            continue;
        }
        let expected = evaluate(&graph, &operands);
        let model = Model::Kernels(KernelSize::Small);
        let calls = std::slice::from_ref(&operands);
        let result = super::execute(&graph, calls, &mut compiler, &device, model).and_then(|results| {
            let mut pairs = expected.iter().zip(&results[0]);
            pairs.try_for_each(|(host, compiled)| super::agree(host, compiled, 1e-5))
        });
        faults.extend(result.err().map(|fault| format!("program {seed}: {fault}\n{graph}")));
    }
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}
