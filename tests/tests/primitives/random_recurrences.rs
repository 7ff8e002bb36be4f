//! Random loops over a batch whose rows do not depend on each other, each one kernel, and their gradients, compiled, against
//! host evaluation. `RECURRENCES=500` runs more of them.

use std::sync::Arc;

use sheaf_graph::graph::{Builder, Graph, Op, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{
    Binary, Compare, Direction, DotGeneral, Logistic, Max, Scan, Tanh, Unary, is_by_rows,
};
use sheaf_graph::simplify::simplify;
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, Shape, TensorType};
use sheaf_graph::transform::value_and_grad;

/// Number of programs of each size by default.
const PROGRAMS: usize = 3;

/// Constants of a loop.
const CONSTANTS: usize = 5;

/// States of a loop.
const STATES: usize = 2;

/// The size of a loop.
#[derive(Clone, Copy)]
struct Size {
    steps: usize,
    batch: usize,
    width: usize,
}

impl Size {
    /// Shapes of the operands: two square weights and wide ones, a vector, a number, two states, rows of the batch and shared ones.
    fn shapes(self) -> [Vec<usize>; CONSTANTS + STATES + 2] {
        let Size { steps, batch, width } = self;
        let state = vec![batch, width];
        let weights = vec![width, width];
        let wide = vec![width, 2 * width];
        let rows = vec![steps, batch, width];
        [weights.clone(), weights, wide, vec![width], vec![], state.clone(), state, rows, vec![steps, width]]
    }
}

/// The values of a step so far.
struct Step {
    builder: Builder,
    random: Random,
    size: Size,
    constants: Vec<Var>,
    /// Values with the width of the state, and with twice that.
    values: [Vec<Var>; 2],
    shared: Var,
}

impl Step {
    fn new(size: Size, seed: u64) -> Step {
        let mut builder = Builder::new();
        let shapes = size.shapes();
        let input = |(i, shape): (usize, &Vec<usize>)| {
            let row = if i < CONSTANTS + STATES { &shape[..] } else { &shape[1..] };
            builder.input(TensorType::new(DType::F32, row))
        };
        let inputs: Vec<Var> = shapes.iter().enumerate().map(input).collect();
        let values = [inputs[CONSTANTS..=CONSTANTS + STATES].to_vec(), Vec::new()];
        let (constants, shared) = (inputs[..CONSTANTS].to_vec(), inputs[CONSTANTS + STATES + 1]);
        Step { builder, random: Random(seed), size, constants, values, shared }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn value(&mut self, wide: usize) -> Var {
        let i = self.below(self.values[wide].len());
        self.values[wide][i]
    }

    /// A product of a value and of weights, with results of about one.
    fn product(&mut self, weights: usize, axis: usize) -> Var {
        let x = self.value(0);
        let contract = [Shape::from_slice(&[1]), Shape::from_slice(&[axis])];
        let y = self
            .builder
            .apply(DotGeneral { contract, ..DotGeneral::default() }, &[x, self.constants[weights]]);
        self.builder.scale(y, 2.0 / (self.size.width as f64).sqrt())
    }

    fn step(&mut self) {
        let Size { batch, width, .. } = self.size;
        let chosen = self.below(16);
        let wide = usize::from(chosen.is_multiple_of(2));
        let (x, y) = (self.value(wide), self.value(wide));
        let shape = [batch, width * (1 + wide)];
        let first = self.below(width + 1);
        let (vector, number, shared) = (self.constants[3], self.constants[4], self.shared);
        let b = &mut self.builder;
        let made = match chosen {
            0 | 1 => b.apply(Unary(Tanh), &[x]),
            2 | 3 => b.apply(Unary(Logistic), &[x]),
            4 | 5 => b.add(x, y),
            6 | 7 => {
                let product = b.mul(x, y);
                b.apply(Unary(Tanh), &[product])
            }
            8 => b.apply(Binary(Max), &[x, y]),
            9 => {
                let vector = b.broadcast_in_dim(vector, &shape, &[1]);
                b.sub(x, vector)
            }
            10 => {
                let number = b.broadcast_scalar(number, &shape);
                let less = b.apply(Compare { direction: Direction::Lt }, &[x, number]);
                b.select(less, y, number)
            }
            11 => {
                let shared = b.broadcast_in_dim(shared, &shape, &[1]);
                b.mul(x, shared)
            }
            12 | 14 => {
                let made = if chosen == 12 { self.product(2, 0) } else { self.joined() };
                return self.values[1].push(made);
            }
            13 => {
                let axis = self.below(2);
                self.product(axis, axis)
            }
            _ => {
                let x = self.value(1);
                self.builder.slice_axis(x, 1, first, first + width)
            }
        };
        self.values[wide].push(made);
    }

    fn joined(&mut self) -> Var {
        let parts = [self.value(0), self.value(0)];
        self.builder.concatenate(&parts, 1)
    }

    /// The loop, with a product at least.
    fn finish(mut self) -> Scan {
        let joined = self.joined();
        self.values[1].push(joined);
        for _ in 0..8 + self.below(10) {
            self.step();
        }
        let (product, wide) = (self.product(2, 0), self.value(1));
        let all = self.builder.add(product, wide);
        let mut outputs = Vec::new();
        for i in 0..STATES {
            let part = self.builder.slice_axis(all, 1, i * self.size.width, (i + 1) * self.size.width);
            let other = *self.values[0].iter().rev().nth(i).expect("a value");
            let sum = self.builder.add(part, other);
            outputs.push(self.builder.apply(Unary(Tanh), &[sum]));
        }
        outputs.push(all);
        outputs.push(self.value(0));
        let reverse = self.below(2) == 1;
        let body = Arc::new(simplify(&self.builder.finish(outputs)));
        Scan { body, length: self.size.steps, constants: CONSTANTS, states: STATES, reverse }
    }
}

/// A loop that is taken by rows.
fn by_rows(size: Size, seed: u64) -> Scan {
    let scan = Step::new(size, seed).finish();
    let op: Op = Arc::new(scan.clone());
    assert!(is_by_rows(&op), "a loop that is not taken by rows:\n{}", scan.body);
    scan
}

/// A graph's operands.
fn operands(size: Size) -> (Builder, Vec<Var>) {
    let mut b = Builder::new();
    let input = |shape: &Vec<usize>| b.input(TensorType::new(DType::F32, shape.as_slice()));
    let inputs = size.shapes().iter().map(input).collect();
    (b, inputs)
}

/// The program of a loop whose step is such a loop, begun from the states that the last one gave.
fn nested(size: Size, seed: u64) -> Graph {
    let (mut b, inputs) = operands(size);
    let inner = by_rows(size, seed);
    let body = {
        let (mut b, inputs) = operands(size);
        // The rows are constants of the outer loop, which stand before its states.
        let results = b.apply_all(inner, &inputs);
        let mut body = b.finish(results[..STATES].to_vec());
        body.inputs[CONSTANTS..].rotate_left(STATES);
        body
    };
    let (length, constants) = (3, inputs.len() - STATES);
    let outer = Scan { body: Arc::new(body), length, constants, states: STATES, reverse: false };
    let mut operands = inputs;
    operands[CONSTANTS..].rotate_left(STATES);
    let results = b.apply_all(outer, &operands).to_vec();
    simplify(&b.finish(results))
}

/// The program of a loop, and of its gradient by all but the states if asked for.
fn program(size: Size, seed: u64, gradient: bool) -> Graph {
    let (mut b, inputs) = operands(size);
    let mut results = b.apply_all(by_rows(size, seed), &inputs).to_vec();
    if !gradient {
        return simplify(&b.finish(results));
    }
    for x in &mut results {
        let axes: Vec<usize> = (0..b.ty(*x).rank()).collect();
        let count = b.ty(*x).count();
        let square = b.mul(*x, *x);
        let sum = b.sum(square, &axes);
        *x = b.scale(sum, 1.0 / count as f64);
    }
    let sum = results.into_iter().reduce(|x, y| b.add(x, y)).expect("a result");
    let graph = value_and_grad(&b.finish(vec![sum]), 0, &[0, 1, 2, 3, 7]);
    simplify(&graph)
}

fn check(size: Size, program: impl Fn(u64) -> Graph) {
    let shapes = size.shapes();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    super::check_programs("RECURRENCES", PROGRAMS, None, Model::Hal, &shapes, &[], program);
}

#[test]
fn loops_by_rows_agree_with_host_evaluation() {
    for (steps, batch, width) in sheaf_tests::sample([(3, 33, 70), (1, 5, 131), (4, 2, 160)], 2) {
        let size = Size { steps, batch, width };
        check(size, |seed| program(size, seed, false));
    }
}

#[test]
fn loops_by_rows_within_a_loop_agree_with_host_evaluation() {
    let size = Size { steps: 3, batch: 9, width: 70 };
    check(size, |seed| nested(size, seed));
}

#[test]
fn gradients_of_loops_by_rows_agree_with_host_evaluation() {
    for (steps, batch, width) in sheaf_tests::sample([(2, 12, 75), (3, 17, 64)], 2) {
        let size = Size { steps, batch, width };
        check(size, |seed| program(size, seed, true));
    }
}
