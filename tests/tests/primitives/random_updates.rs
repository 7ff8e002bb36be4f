//! Random programs of updates, concatenations and slices of values that are read again, compiled, against host
//! evaluation. `UPDATES=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{Tanh, Unary};
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};

/// Number of programs by default.
const PROGRAMS: usize = 4;

/// Rows and columns of each matrix.
const SIZE: usize = 4;

/// The matrices and rows of a program so far.
struct Program {
    builder: Builder,
    random: Random,
    matrices: Vec<Var>,
    rows: Vec<Var>,
    index: Var,
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut builder = Builder::new();
        let ty = |shape: &[usize]| TensorType::new(DType::F32, shape);
        let matrices = vec![builder.input(ty(&[SIZE, SIZE])), builder.input(ty(&[SIZE, SIZE]))];
        let rows = vec![builder.input(ty(&[1, SIZE])), builder.input(ty(&[1, SIZE]))];
        let index = builder.input(TensorType::scalar(DType::I32));
        Program { builder, random: Random(seed), matrices, rows, index }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn matrix(&mut self) -> Var {
        let i = self.below(self.matrices.len());
        self.matrices[i]
    }

    fn row(&mut self) -> Var {
        let i = self.below(self.rows.len());
        self.rows[i]
    }

    /// A row index: a constant, or the last argument.
    fn place(&mut self) -> Var {
        let i = self.below(SIZE + 1);
        if i == SIZE { self.index } else { self.builder.scalar(DType::I32, i as f64) }
    }

    fn step(&mut self) {
        let (x, y, row, other) = (self.matrix(), self.matrix(), self.row(), self.row());
        let first = self.below(SIZE);
        let b = &mut self.builder;
        match self.random.below(11) {
            0 => self.matrices.push(b.apply(Unary(Tanh), &[x])),
            1 => self.matrices.push(b.add(x, y)),
            2 => self.rows.push(b.apply(Unary(Tanh), &[row])),
            3 => self.rows.push(b.slice_axis(x, 0, first, first + 1)),
            4 => {
                let joined = b.concatenate(&[x, y], 0);
                self.matrices.push(b.slice_axis(joined, 0, first, first + SIZE));
            }
            5 => {
                let rest = b.slice_axis(x, 0, 1, SIZE);
                self.matrices.push(b.concatenate(&[row, rest], 0));
            }
            6 => self.matrices.push(b.concatenate(&[row, other, other, row], 0)),
            7 => {
                let padded = b.pad(row, 0.0, &[first, 0], &[SIZE - 1 - first, 0]);
                self.matrices.push(padded);
            }
            8 => {
                let index = b.reshape(self.index, &[1]);
                self.matrices.push(b.scatter_add(x, index, row));
            }
            _ => {
                let place = self.place();
                let column = self.builder.scalar(DType::I32, 0.0);
                self.matrices.push(self.builder.dynamic_update_slice(x, row, &[place, column]));
            }
        }
    }

    fn finish(mut self) -> Graph {
        for _ in 0..4 + self.below(10) {
            self.step();
        }
        let mut results = Vec::new();
        for _ in 0..2 + self.below(5) {
            let (x, y) = (self.matrix(), self.matrix());
            results.push(if self.below(3) == 0 { x } else { self.builder.concatenate(&[x, y], 0) });
        }
        self.builder.finish(results)
    }
}

#[test]
fn random_updates_agree_with_host_evaluation() {
    let shapes: [&[usize]; 4] = [&[SIZE, SIZE], &[SIZE, SIZE], &[1, SIZE], &[1, SIZE]];
    let index = HostTensor::new([].as_slice(), vec![2_i32]);
    let program = |seed| Program::new(seed).finish();
    super::check_programs("UPDATES", PROGRAMS, None, Model::Hal, &shapes, &[index], program);
}
