//! Reductions of random shapes, axes and dtypes, compiled, against `f64` on the host: alone, as gradients, and in
//! loops. `REDUCTIONS=500` runs more of them.

use std::fmt;
use std::sync::Arc;

use sheaf_graph::graph::{Builder, Graph, Var, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{
    Convolution, Cumsum, Direction, DotGeneral, Exp, Log, ReduceMax, Scan, Sqrt, Unary, WhileLoop,
};
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType, element_count};
use sheaf_graph::transform::value_and_grad;
use sheaf_runtime::{Device, Runtime, Target};
use sheaf_toolchain::Compiler;

/// Number of cases by default.
const CASES: usize = 12;

/// Number of cases in one program.
const BATCH: usize = 24;

/// Iterations of loops around a reduction.
const STEPS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Var,
    Std,
    Norm,
    LogSumExp,
    Exponentials,
    Running,
    Gram,
    Image,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Alone,
    Gradient,
    Scan,
    While,
}

#[derive(Clone, Debug)]
struct Case {
    kind: Kind,
    place: Place,
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
    /// True if all numbers are equal, so that roundings do not cancel.
    alike: bool,
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { kind, place, dtype, shape, axes, alike, .. } = self;
        let numbers = if *alike { "alike" } else { "of 0 to 1" };
        write!(out, "{kind:?} {place:?} of {dtype}{shape:?} over {axes:?}, numbers {numbers}")
    }
}

impl Case {
    fn draw(seed: u64) -> Case {
        use Kind::{Exponentials, Gram, LogSumExp, Mean, Norm, Running, Std, Sum, Var};
        let mut random = Random(seed);
        let mut pick = |n: usize| random.below(n as u64) as usize;
        let dtype =
            [DType::F32, DType::F32, DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32][pick(7)];
        let kind = if matches!(dtype, DType::F32 | DType::F64) {
            [Sum, Mean, Var, Std, Norm, LogSumExp, Exponentials, Running, Gram][pick(9)]
        } else {
            Sum
        };
        let place = match (kind, dtype) {
            (_, DType::F32) => [Place::Alone, Place::Gradient, Place::Scan, Place::While][pick(4)],
            _ => Place::Alone,
        };
        let limit = if place == Place::Alone { 200_000 } else { 40_000 };
        let mut shape: Vec<usize> = (0..=pick(3))
            .map(|_| match pick(5) {
                0 => 1 + pick(8),
                1 => 1 + pick(300),
                2 => [64, 128, 256, 768, 1000, 1024][pick(6)],
                _ => 1 + pick(20_000),
            })
            .collect();
        while element_count(&shape) > limit {
            let widest = (0..shape.len()).max_by_key(|i| shape[*i]).expect("an axis");
            shape[widest] = shape[widest].div_ceil(2);
        }
        if kind == Gram {
            shape = vec![1 + pick(4000), 1 + pick(10)];
        }
        let chosen = 1 + pick((1 << shape.len()) - 1);
        let axes: Vec<usize> = (0..shape.len()).filter(|i| chosen >> i & 1 == 1).collect();
        // The variance of equal numbers is only rounding error.
        let alike = pick(2) == 0 && !matches!(kind, Var | Std | Gram);
        Case { kind, place, dtype, shape, axes, alike, seed }
    }

    /// The reduction.
    fn reduce(&self, b: &mut Builder, x: Var) -> Var {
        let axes = &self.axes;
        let count = axes.iter().map(|axis| self.shape[*axis]).product::<usize>() as f64;
        let kept: Vec<usize> = (0..self.shape.len()).filter(|i| !axes.contains(i)).collect();
        let mean = |b: &mut Builder, x: Var| {
            let sum = b.sum(x, axes);
            b.scale(sum, 1.0 / count)
        };
        let var = |b: &mut Builder| {
            let middle = mean(b, x);
            let middle = b.broadcast_in_dim(middle, &self.shape, &kept);
            let centred = b.sub(x, middle);
            let squares = b.mul(centred, centred);
            mean(b, squares)
        };
        match self.kind {
            Kind::Sum => b.sum(x, axes),
            Kind::Mean => mean(b, x),
            Kind::Var => var(b),
            Kind::Std => {
                let var = var(b);
                b.apply(Unary(Sqrt), &[var])
            }
            Kind::Norm => {
                let squares = b.mul(x, x);
                let sum = b.sum(squares, axes);
                b.apply(Unary(Sqrt), &[sum])
            }
            Kind::LogSumExp => {
                let top = b.apply(ReduceMax { axes: axes.as_slice().into() }, &[x]);
                let shift = b.broadcast_in_dim(top, &self.shape, &kept);
                let below = b.sub(x, shift);
                let powers = b.apply(Unary(Exp), &[below]);
                let sum = b.sum(powers, axes);
                let log = b.apply(Unary(Log), &[sum]);
                b.add(log, top)
            }
            Kind::Exponentials => {
                let powers = b.apply(Unary(Exp), &[x]);
                b.sum(powers, axes)
            }
            Kind::Running => b.apply(Cumsum { axis: axes[0], reverse: false }, &[x]),
            Kind::Gram => b.apply(contraction(0, 0), &[x, x]),
            Kind::Image => {
                let kernel = b.slice_axis(x, 1, 2, self.shape[1]);
                let kernel = b.slice_axis(kernel, 2, 2, self.shape[2]);
                let kernel = b.transpose(kernel, &[1, 2, 0, 3]);
                let x = b.transpose(x, &[3, 1, 2, 0]);
                b.apply(Convolution::plain(2), &[x, kernel])
            }
        }
    }

    /// The graph of the argument, in `dtype`.
    fn graph(&self, dtype: DType) -> Graph {
        let ty = |shape: &[usize]| TensorType::new(dtype, shape);
        let mut b = Builder::new();
        let x = b.input(ty(&self.shape));
        if self.place == Place::Alone {
            let result = self.reduce(&mut b, x);
            return b.finish(vec![result]);
        }
        if self.place == Place::Gradient {
            let result = self.reduce(&mut b, x);
            let squares = b.mul(result, result);
            let all: Vec<usize> = (0..b.ty(squares).rank()).collect();
            let loss = b.sum(squares, &all);
            let graph = value_and_grad(&b.finish(vec![loss]), 0, &[0]);
            return Graph { outputs: graph.outputs[1..].to_vec(), ..graph };
        }
        let mut of = Builder::new();
        let one = of.input(ty(&self.shape));
        let result = self.reduce(&mut of, one);
        let shape: Shape = of.shape(result);
        let zero = b.full(&ty(&shape), 0.0);
        let result = if self.place == Place::Scan {
            let mut body = Builder::new();
            let state = body.input(ty(&shape));
            let row = body.input(ty(&self.shape));
            let reduced = self.reduce(&mut body, row);
            let next = body.add(state, reduced);
            let body = Arc::new(body.finish(vec![next]));
            let rows = b.broadcast_in_dim(
                x,
                &[&[STEPS], &self.shape[..]].concat(),
                &(1..=self.shape.len()).collect::<Vec<_>>(),
            );
            b.apply(Scan { body, length: STEPS, constants: 0, states: 1, reverse: false }, &[zero, rows])
        } else {
            let count = TensorType::new(DType::I32, [].as_slice());
            let mut condition = Builder::new();
            condition.input(ty(&self.shape));
            let i = condition.input(count.clone());
            condition.input(ty(&shape));
            let bound = condition.full_like(i, STEPS as f64);
            let goes_on = condition.compare(Direction::Lt, i, bound);
            let mut body = Builder::new();
            let x_inside = body.input(ty(&self.shape));
            let i = body.input(count);
            let state = body.input(ty(&shape));
            let one = body.full_like(i, 1.0);
            let next = body.add(i, one);
            let reduced = self.reduce(&mut body, x_inside);
            let sum = body.add(state, reduced);
            let condition = Arc::new(condition.finish(vec![goes_on]));
            let body = Arc::new(body.finish(vec![next, sum]));
            let start = b.scalar(DType::I32, 0.0);
            b.apply_all(WhileLoop { condition, body, constants: 1 }, &[x, start, zero])[1]
        };
        b.finish(vec![result])
    }

    /// The argument, in the case's dtype and in `f64`.
    fn argument(&self) -> [HostTensor; 2] {
        let mut random = Random(self.seed + 1);
        let top = if self.dtype == DType::I32 { 1000.0 } else { 1.0 };
        let same = self.alike.then(|| random.uniform(0.05, top));
        let numbers: Vec<f64> = (0..element_count(&self.shape))
            .map(|_| same.unwrap_or_else(|| random.uniform(0.0, top)))
            .collect();
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F64, self.shape.as_slice()));
        let narrow = b.convert(x, self.dtype);
        let exact = b.convert(narrow, DType::F64);
        let graph = b.finish(vec![narrow, exact]);
        let results = evaluate(&graph, &[HostTensor::new(self.shape.as_slice(), numbers)]);
        results.try_into().expect("two")
    }

    /// Maximum error of a result, relative to the sum of magnitudes.
    fn tolerance(&self) -> f64 {
        let linear = matches!(
            self.kind,
            Kind::Sum | Kind::Mean | Kind::Running | Kind::Gram | Kind::Image | Kind::Exponentials
        );
        match self.dtype {
            DType::F64 => 1e-12,
            DType::F16 => 1.001 / f64::from(1 << 11),
            DType::BF16 => 1.001 / f64::from(1 << 8),
            DType::I32 => 0.0,
            // Other operations add roundings of their own.
            _ if self.place == Place::Gradient => 1e-5,
            _ if linear => 2e-6,
            _ => 1e-5,
        }
    }
}

fn contraction(left: usize, right: usize) -> DotGeneral {
    DotGeneral { contract: [[left].as_slice().into(), [right].as_slice().into()], ..DotGeneral::default() }
}

/// Faults of these cases, compiled as one program.
fn faults(cases: &[Case], compiler: &mut Compiler, device: &Device) -> Vec<String> {
    let mut b = Builder::new();
    let inputs: Vec<Var> =
        cases.iter().map(|case| b.input(TensorType::new(case.dtype, case.shape.as_slice()))).collect();
    let results: Vec<Var> =
        cases.iter().zip(inputs).map(|(case, x)| b.inline(&case.graph(case.dtype), &[x])[0]).collect();
    let program = b.finish(results);
    let arguments: Vec<[HostTensor; 2]> = cases.iter().map(Case::argument).collect();
    let operands: Vec<HostTensor> = arguments.iter().map(|[x, _]| x.clone()).collect();
    let results =
        super::execute(&program, &[operands], compiler, device, Model::Hal).expect("a run").remove(0);
    let mut faults = Vec::new();
    for ((case, result), [x, exact]) in cases.iter().zip(&results).zip(arguments) {
        let right = if case.dtype.is_float() {
            evaluate(&case.graph(DType::F64), &[exact])
        } else {
            evaluate(&case.graph(case.dtype), &[x])
        };
        let right = &right[0];
        // A gradient's entries are of similar size, or sums that nearly cancel.
        let largest = (0..right.count()).map(|i| right.element_f64(i).abs()).fold(0.0, f64::max);
        for i in 0..right.count() {
            let (got, right) = (result.element_f64(i), right.element_f64(i));
            let size = if case.place == Place::Gradient { largest } else { right.abs() };
            // An overflowing sum is infinite.
            let infinite = case.dtype == DType::F16 && right > 65_000.0;
            let near = (got - right).abs() <= case.tolerance() * size;
            if !infinite && !near {
                faults.push(format!("{case}: entry {i} is {got:?} instead of {right:?}, seed {}", case.seed));
                break;
            }
        }
    }
    faults
}

fn check(cases: &[Case], target: Target) {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let device = Runtime::new().expect("a runtime").device(target).expect("a device");
    let faults: Vec<String> =
        cases.chunks(BATCH).flat_map(|batch| faults(batch, &mut compiler, &device)).collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

fn count() -> usize {
    sheaf_tests::random_cases("REDUCTIONS", CASES)
}

#[test]
fn random_reductions_agree_with_doubles() {
    let cases: Vec<Case> = (0..count() as u64).map(|seed| Case::draw(1000 * seed)).collect();
    check(&cases, Target::LocalSync);
}

/// Realistic reductions: classes of a language model, layer norm, gradients of products and convolutions.
#[test]
fn large_reductions_agree_with_doubles() {
    let case = |kind, shape: &[usize], axes: &[usize]| Case {
        kind,
        place: Place::Alone,
        dtype: DType::F32,
        shape: shape.to_vec(),
        axes: axes.to_vec(),
        alike: false,
        seed: 7,
    };
    let cases = [
        case(Kind::LogSumExp, &[64, 50_257], &[1]),
        case(Kind::Exponentials, &[3, 50_257], &[1]),
        case(Kind::Norm, &[1_000_000], &[0]),
        case(Kind::Var, &[1024, 768], &[1]),
        case(Kind::Mean, &[1024, 768], &[0]),
        case(Kind::Gram, &[50_257, 9], &[0]),
        case(Kind::Gram, &[100_003, 3], &[0]),
        case(Kind::Image, &[10, 34, 34, 4], &[0]),
        case(Kind::Sum, &[1 << 12, 1 << 12], &[1]),
        case(Kind::Sum, &[1 << 12, 1 << 12], &[0]),
    ];
    check(&cases, Target::LocalSync);
}
