//! The samples of every primitive: at least one in each domain where its rules differ.

use std::sync::Arc;

use smallvec::smallvec;

use super::registry::{
    Domain::{self, Any, AwayFromIntegers, Distinct, Index, NearOne, Positive, Small, Special},
    Sample,
};
#[allow(clippy::wildcard_imports)] // It names every primitive there is.
use super::*;
use crate::graph::{Builder, Graph, Op, Var};
use crate::tensor::DType::{self, BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32};
use crate::tensor::Shape;

/// A sample that is differentiable and exact to a few roundings.
fn smooth(op: impl Primitive, inputs: &[(DType, &[usize], Domain)]) -> Sample {
    let inputs =
        inputs.iter().map(|(dtype, shape, domain)| (TensorType::new(*dtype, *shape), *domain)).collect();
    Sample { op: Arc::new(op), inputs, tolerance: 2e-6, differentiable: true }
}

/// A sample without derivatives.
fn discrete(op: impl Primitive, inputs: &[(DType, &[usize], Domain)]) -> Sample {
    Sample { differentiable: false, ..smooth(op, inputs) }
}

/// The integers, and those with a sign.
const INTEGERS: [DType; 7] = [I8, I16, I32, I64, U8, U16, U32];
const SIGNED: [DType; 4] = [I8, I16, I32, I64];

pub(super) fn samples() -> Vec<Sample> {
    let mut all = unary();
    all.extend(binary());
    let elementwise = all.len();
    all.extend(reductions());
    all.extend(shapes());
    all.extend(indexing());
    all.extend(others());
    all.extend(convolutions());
    let more = other_floats(&all, elementwise);
    all.extend(more);
    all.extend(loops());
    all
}

/// The samples of `f32` in the other floats: of the first `all`, element-wise ones, each in `f64`; otherwise one of each
/// primitive, one with derivatives where there is one.
fn other_floats(samples: &[Sample], all: usize) -> Vec<Sample> {
    // Primitives with a dtype among their parameters list their own.
    let own = ["convert", "bitcast_convert", "iota", "constant", "custom_kernel", "custom_vjp"];
    let of_floats =
        |s: &&Sample| s.inputs.iter().any(|(ty, _)| ty.dtype == F32) && !own.contains(&s.op.name());
    let first = |s: &Sample| samples.iter().filter(of_floats).find(|t| t.op.name() == s.op.name());
    let mut more = Vec::new();
    for (i, sample) in samples.iter().enumerate().filter(|(_, s)| of_floats(s)) {
        let is_first = first(sample).is_some_and(|f| std::ptr::eq(f, sample));
        if is_first || i < all {
            more.push(sample.in_dtype(F64));
        }
        if is_first {
            more.extend([BF16, F16].map(|half| sample.in_dtype(half)));
        }
    }
    more
}

fn unary() -> Vec<Sample> {
    let mut all = Vec::new();
    macro_rules! float {
        ($($rule:expr, $domain:expr);* $(;)?) => {$(
            all.push(smooth(Unary($rule), &[(F32, &[3, 4], $domain)]));
            all.push(discrete(Unary($rule), &[(F32, &[40], Special)]));
        )*};
    }
    float!(Abs, Distinct; Ceil, AwayFromIntegers; Cos, Any; Erf, Any; ErfInv, Domain::Unit; Erfc, Any; Exp, Any; Expm1, Any;
        Floor, AwayFromIntegers; Log, Positive; Log1p, Positive; Logistic, Any; Neg, Any; Round, AwayFromIntegers;
        Rsqrt, Positive; Sign, Distinct; Sin, Any; Sqrt, Positive; Tanh, Any);
    all.push(discrete(Unary(Sin), &[(F32, &[100], Domain::Wide)]));
    all.push(discrete(Unary(Cos), &[(F32, &[100], Domain::Wide)]));
    for dtype in SIGNED {
        all.push(discrete(Unary(Abs), &[(dtype, &[9], Special)]));
        all.push(discrete(Unary(Sign), &[(dtype, &[9], Special)]));
    }
    for dtype in INTEGERS {
        all.push(discrete(Unary(Neg), &[(dtype, &[9], Special)]));
    }
    all.push(discrete(Unary(Not), &[(Bool, &[2, 3], Any)]));
    for dtype in INTEGERS {
        all.push(discrete(Unary(Not), &[(dtype, &[2, 3], Any)]));
    }
    all.push(discrete(Unary(IsFinite), &[(F32, &[2, 9], Special)]));
    // Trigonometric functions of infinities, and arguments beyond the range that the compiler's reduction keeps exact.
    all.retain(|s| !(matches!(s.op.name(), "sin" | "cos") && s.inputs[0].1 == Special));
    all
}

fn binary() -> Vec<Sample> {
    let mut all = Vec::new();
    macro_rules! float {
        ($($rule:expr, $x:expr, $y:expr);* $(;)?) => {$(
            all.push(smooth(Binary($rule), &[(F32, &[2, 3], $x), (F32, &[2, 3], $y)]));
            all.push(discrete(Binary($rule), &[(F32, &[60], Special), (F32, &[60], Special)]));
        )*};
    }
    float!(Add, Any, Any; Atan2, Any, Positive; Div, Any, Positive; Max, Distinct, Distinct; Min, Distinct, Distinct;
        Mul, Any, Any; Pow, Positive, Any; Rem, AwayFromIntegers, NearOne; Sub, Any, Any);
    all.push(discrete(Binary(Pow), &[(F32, &[40], Any), (F32, &[40], Small)]));
    all.push(discrete(Binary(Rem), &[(F32, &[40], Small), (F32, &[40], Any)]));
    macro_rules! integer {
        ($($rule:expr, $domain:expr);* $(;)?) => {$(
            for dtype in INTEGERS {
                all.push(discrete(Binary($rule), &[(dtype, &[40], Special), (dtype, &[40], $domain)]));
            }
        )*};
    }
    integer!(Add, Special; And, Special; Div, Special; Max, Special; Min, Special; Mul, Special; Or, Special;
        Pow, Small; Rem, Special; Sub, Special; Xor, Special; ShiftLeft, Index { limit: 70 };
        ShiftRightArithmetic, Index { limit: 70 }; ShiftRightLogical, Index { limit: 70 });
    for op in [Arc::new(Binary(And)) as Op, Arc::new(Binary(Or)), Arc::new(Binary(Xor))] {
        all.push(Sample { op, ..discrete(Select, &[(Bool, &[9], Any), (Bool, &[9], Any)]) });
    }
    all
}

fn reductions() -> Vec<Sample> {
    let mut all = Vec::new();
    let axes: [&[usize]; 3] = [&[1], &[0, 2], &[0, 1, 2]];
    for axes in axes.map(Shape::from_slice) {
        let shape: &[usize] = &[2, 3, 4];
        macro_rules! over {
            ($($op:ident, $domain:expr);*) => {$(
                all.push(smooth($op { axes: axes.clone() }, &[(F32, shape, $domain)]));
            )*};
        }
        over!(ReduceSum, Any; ReduceMax, Distinct; ReduceMin, Distinct; ReduceProd, NearOne);
        all.push(discrete(ReduceAnd { axes: axes.clone() }, &[(Bool, shape, Any)]));
        all.push(discrete(ReduceOr { axes }, &[(Bool, shape, Any)]));
    }
    let last = || Shape::from_slice(&[1]);
    // Zeros among the factors.
    all.push(smooth(ReduceProd { axes: last() }, &[(F32, &[5, 3], Small)]));
    for dtype in [F32].into_iter().chain(INTEGERS) {
        let inputs: &[(DType, &[usize], Domain)] = &[(dtype, &[6, 3], Special)];
        all.push(discrete(ReduceSum { axes: last() }, inputs));
        all.push(discrete(ReduceMax { axes: last() }, inputs));
        all.push(discrete(ReduceMin { axes: last() }, inputs));
        all.push(discrete(ReduceProd { axes: last() }, inputs));
        for extreme in [Extreme::Max, Extreme::Min] {
            all.push(discrete(ArgReduce { axis: 1, extreme }, inputs));
            all.push(discrete(ArgReduce { axis: 0, extreme }, &[(dtype, &[4, 3, 2], Small)]));
        }
    }
    // Axes of extent 1 are reshapes.
    all.push(smooth(ReduceSum { axes: last() }, &[(F32, &[3, 1], Any)]));
    all.push(smooth(ReduceMax { axes: last() }, &[(F32, &[3, 1], Any)]));
    all.push(discrete(ArgReduce { axis: 1, extreme: Extreme::Max }, &[(F32, &[3, 1], Any)]));
    for reverse in [false, true] {
        all.push(smooth(Cumsum { axis: 1, reverse }, &[(F32, &[2, 5, 2], Any)]));
        for dtype in [I8, I32, I64, U16] {
            all.push(discrete(Cumsum { axis: 0, reverse }, &[(dtype, &[7], Special)]));
        }
    }
    all.push(smooth(Cumsum { axis: 0, reverse: false }, &[(F32, &[1], Any)]));
    all
}

fn shapes() -> Vec<Sample> {
    let shape = |extents: &[usize]| Shape::from_slice(extents);
    let mut all = vec![
        smooth(BroadcastInDim { shape: shape(&[2, 3, 4]), dims: shape(&[1]) }, &[(F32, &[3], Any)]),
        smooth(BroadcastInDim { shape: shape(&[2, 3, 4]), dims: shape(&[0, 2]) }, &[(F32, &[1, 4], Any)]),
        smooth(BroadcastInDim { shape: shape(&[2, 3]), dims: shape(&[]) }, &[(F32, &[], Any)]),
        smooth(Reshape { shape: shape(&[3, 2, 2]) }, &[(F32, &[4, 3], Any)]),
        smooth(Reshape { shape: shape(&[]) }, &[(F32, &[1, 1], Any)]),
        smooth(Transpose { permutation: shape(&[2, 0, 1]) }, &[(F32, &[2, 3, 4], Any)]),
        smooth(Reverse { axes: shape(&[0, 2]) }, &[(F32, &[2, 3, 4], Any)]),
        smooth(Slice { start: shape(&[1, 0]), limit: shape(&[3, 2]) }, &[(F32, &[4, 2], Any)]),
        smooth(Pad { low: shape(&[1, 0]), high: shape(&[2, 1]) }, &[(F32, &[2, 3], Any), (F32, &[], Any)]),
        smooth(Concatenate { axis: 1 }, &[(F32, &[2, 1], Any), (F32, &[2, 3], Any), (F32, &[2, 2], Any)]),
        smooth(Concatenate { axis: 0 }, &[(F32, &[2], Any)]),
        smooth(Split { axis: 1, sizes: smallvec![2, 1, 3] }, &[(F32, &[2, 6], Any)]),
        smooth(Split { axis: 0, sizes: smallvec![1, 1] }, &[(F32, &[2], Any)]),
    ];
    for dtype in [Bool].into_iter().chain(INTEGERS) {
        all.push(discrete(
            BroadcastInDim { shape: shape(&[3, 2]), dims: shape(&[1]) },
            &[(dtype, &[2], Any)],
        ));
        all.push(discrete(Reshape { shape: shape(&[6]) }, &[(dtype, &[2, 3], Any)]));
        all.push(discrete(Transpose { permutation: shape(&[1, 0]) }, &[(dtype, &[2, 3], Any)]));
        all.push(discrete(Reverse { axes: shape(&[1]) }, &[(dtype, &[2, 3], Any)]));
        all.push(discrete(Slice { start: shape(&[1]), limit: shape(&[4]) }, &[(dtype, &[5], Any)]));
        all.push(discrete(
            Pad { low: shape(&[0]), high: shape(&[3]) },
            &[(dtype, &[2], Any), (dtype, &[], Any)],
        ));
        all.push(discrete(Concatenate { axis: 0 }, &[(dtype, &[2, 2], Any), (dtype, &[1, 2], Any)]));
        all.push(discrete(Split { axis: 0, sizes: smallvec![1, 2] }, &[(dtype, &[3, 2], Any)]));
    }
    for dtype in DType::ALL.into_iter().filter(|d| *d != Bool) {
        all.push(discrete(Iota { dtype, shape: shape(&[2, 5]), dimension: 1 }, &[]));
    }
    for (positions, batch) in [(&[3, 1, 5][..], &[2][..]), (&[], &[3, 2])] {
        let op = Threefry { shape: shape(positions) };
        all.push(discrete(op, &[(U32, batch, Any), (U32, batch, Any)]));
    }
    for value in [HostTensor::scalar(0.1_f32), HostTensor::scalar(-7_i32), HostTensor::scalar(true)] {
        all.push(discrete(Full { value: value.clone(), shape: shape(&[2, 5]) }, &[]));
        all.push(discrete(Full { value, shape: shape(&[0, 3]) }, &[]));
    }
    all
}

fn indexing() -> Vec<Sample> {
    let sizes = || Shape::from_slice(&[2, 3]);
    let at: (DType, &[usize], Domain) = (I32, &[], Index { limit: 3 });
    let mut all = vec![
        smooth(GatherRows, &[(F32, &[4, 3], Any), (I32, &[2, 3], Index { limit: 4 })]),
        smooth(GatherRows, &[(F32, &[4, 2, 3], Any), (I32, &[], Index { limit: 4 })]),
        smooth(GatherRows, &[(F32, &[5], Any), (I32, &[6], Index { limit: 5 })]),
        smooth(
            ScatterAdd,
            &[(F32, &[4, 3], Any), (I32, &[2, 3], Index { limit: 4 }), (F32, &[2, 3, 3], Any)],
        ),
        smooth(ScatterAdd, &[(F32, &[4, 2], Any), (I32, &[], Index { limit: 4 }), (F32, &[2], Any)]),
        smooth(ScatterAdd, &[(F32, &[3], Any), (I32, &[8], Index { limit: 3 }), (F32, &[8], Any)]),
        smooth(DynamicSlice { sizes: sizes() }, &[(F32, &[4, 3], Any), at, at]),
        smooth(DynamicSlice { sizes: Shape::from_slice(&[2]) }, &[(F32, &[5], Any), at]),
        smooth(DynamicUpdateSlice, &[(F32, &[4, 5], Any), (F32, &[2, 3], Any), at, at]),
        smooth(DynamicUpdateSlice, &[(F32, &[5], Any), (F32, &[2], Any), at]),
        smooth(Sort { axis: 1 }, &[(F32, &[3, 5], Distinct)]),
        smooth(Sort { axis: 0 }, &[(F32, &[4, 2], Distinct), (F32, &[4, 2], Any), (I32, &[4, 2], Any)]),
        discrete(Sort { axis: 0 }, &[(F32, &[40], Special), (I32, &[40], Any)]),
        // Long enough for a sort by digits, and for wide digits.
        discrete(Sort { axis: 0 }, &[(F32, &[100, 2], Special), (F32, &[100, 2], Any)]),
        discrete(
            Sort { axis: 1 },
            &[(U32, &[2, 128], Special), (I32, &[2, 128], Any), (Bool, &[2, 128], Any)],
        ),
        discrete(Sort { axis: 0 }, &[(I32, &[65], Special)]),
        discrete(Sort { axis: 1 }, &[(F32, &[2, 2100], Special), (I32, &[2, 2100], Any)]),
        discrete(Sort { axis: 0 }, &[(I16, &[2100], Special), (I32, &[2100], Any)]),
        // More rows than workgroups.
        discrete(Sort { axis: 1 }, &[(F32, &[70, 40], Any), (I32, &[70, 40], Any)]),
    ];
    all.extend([
        discrete(TopK { k: 3 }, &[(F32, &[2, 5], Distinct)]),
        discrete(TopK { k: 0 }, &[(F32, &[2, 5], Any)]),
        discrete(TopK { k: 40 }, &[(F32, &[40], Special)]),
        // Some vectors, and more rows than workgroups; of the sorted rows.
        discrete(TopK { k: 7 }, &[(F32, &[70, 150], Any)]),
        discrete(TopK { k: 130 }, &[(F32, &[2, 140], Special)]),
    ]);
    for dtype in [F16, BF16, F64] {
        all.push(discrete(TopK { k: 6 }, &[(dtype, &[2, 100], Special)]));
        all.push(discrete(Sort { axis: 0 }, &[(dtype, &[40], Special), (I32, &[40], Any)]));
    }
    for dtype in INTEGERS {
        all.push(discrete(TopK { k: 6 }, &[(dtype, &[2, 100], Small)]));
        // Many ties: stability shows in the second operand.
        all.push(discrete(Sort { axis: 0 }, &[(dtype, &[30], Small), (F32, &[30], Any)]));
        all.push(discrete(Sort { axis: 0 }, &[(dtype, &[30], Special)]));
        all.push(discrete(Sort { axis: 0 }, &[(dtype, &[40], Small), (F32, &[40], Any)]));
        all.push(discrete(Sort { axis: 0 }, &[(dtype, &[40], Special)]));
        all.push(discrete(GatherRows, &[(dtype, &[4, 2], Any), (I32, &[3], Index { limit: 4 })]));
        all.push(discrete(
            ScatterAdd,
            &[(dtype, &[4], Any), (I32, &[7], Index { limit: 4 }), (dtype, &[7], Any)],
        ));
    }
    all.push(discrete(GatherRows, &[(Bool, &[4, 2], Any), (I32, &[3], Index { limit: 4 })]));
    all.push(discrete(TopK { k: 50 }, &[(Bool, &[100], Any)]));
    all.push(discrete(Sort { axis: 0 }, &[(Bool, &[9], Any), (I32, &[9], Any)]));
    all.push(discrete(Sort { axis: 0 }, &[(Bool, &[40], Any), (I32, &[40], Any)]));
    all.push(discrete(DynamicSlice { sizes: sizes() }, &[(Bool, &[4, 3], Any), at, at]));
    all.push(discrete(DynamicUpdateSlice, &[(U32, &[4], Any), (U32, &[3], Any), at]));
    all
}

/// sin(x) w for three x and one w, with the derivative that it has.
fn scaled_sine() -> CustomVjp {
    let row = TensorType::new(F32, [3].as_slice());
    let number = TensorType::new(F32, [].as_slice());
    let mut f = Builder::new();
    let (x, w) = (f.input(row.clone()), f.input(number.clone()));
    let (sine, wide) = (f.apply(Unary(Sin), &[x]), f.broadcast_scalar(w, &[3]));
    let out = f.mul(sine, wide);
    let mut g = Builder::new();
    let (x, w, _) = (g.input(row.clone()), g.input(number), g.input(row.clone()));
    let c = g.input(row);
    let (sine, cosine, wide) =
        (g.apply(Unary(Sin), &[x]), g.apply(Unary(Cos), &[x]), g.broadcast_scalar(w, &[3]));
    let (by_sine, slope) = (g.mul(c, sine), g.mul(c, cosine));
    let (for_x, for_w) = (g.mul(slope, wide), g.sum(by_sine, &[0]));
    let (forward, backward) = (Arc::new(f.finish(vec![out])), Arc::new(g.finish(vec![for_x, for_w])));
    CustomVjp { name: "scaled_sine".into(), forward, backward }
}

/// Lower triangular systems of `n` rows with `m` right sides, or their transposes, as a kernel solves them: row by row, written out.
fn systems(kernel: Kernel, dtype: DType, n: usize, m: usize) -> CustomKernel {
    let mut b = Builder::new();
    let l = b.input(TensorType::new(dtype, [n, n].as_slice()));
    let right = b.input(TensorType::new(dtype, [n, m].as_slice()));
    let is_transposed = kernel == Kernel::BackSubstitution;
    let place = |i: usize| if is_transposed { n - 1 - i } else { i };
    let mut rows: Vec<Var> = Vec::new();
    for i in 0..n {
        let element = |b: &mut Builder, j: usize| {
            let [row, column] = if is_transposed { [place(j), place(i)] } else { [i, j] };
            let element = b.slice(l, &[row, column], &[row + 1, column + 1]);
            b.broadcast_in_dim(element, &[1, m], &[0, 1])
        };
        let mut left = b.slice_axis(right, 0, place(i), place(i) + 1);
        for (j, row) in rows.iter().enumerate() {
            let factor = element(&mut b, j);
            let known = b.mul(factor, *row);
            left = b.sub(left, known);
        }
        let diagonal = element(&mut b, i);
        rows.push(b.div(left, diagonal));
    }
    if is_transposed {
        rows.reverse();
    }
    let solution = b.concatenate(&rows, 0);
    CustomKernel { kernel, body: Arc::new(b.finish(vec![solution])) }
}

fn others() -> Vec<Sample> {
    let pairs = |left: &[usize], right: &[usize]| [Shape::from_slice(left), Shape::from_slice(right)];
    let dot = |contract, batch| DotGeneral { contract, batch };
    let mut all = vec![
        smooth(scaled_sine(), &[(F32, &[3], Any), (F32, &[], Any)]),
        smooth(systems(Kernel::Substitution, F32, 3, 2), &[(F32, &[3, 3], Positive), (F32, &[3, 2], Any)]),
        smooth(systems(Kernel::Substitution, F64, 3, 20), &[(F64, &[3, 3], Positive), (F64, &[3, 20], Any)]),
        smooth(
            systems(Kernel::BackSubstitution, F32, 7, 2),
            &[(F32, &[7, 7], Positive), (F32, &[7, 2], Any)],
        ),
        discrete(
            systems(Kernel::Substitution, BF16, 1, 2),
            &[(BF16, &[1, 1], Positive), (BF16, &[1, 2], Any)],
        ),
        smooth(dot(pairs(&[1], &[0]), pairs(&[], &[])), &[(F32, &[2, 3], Any), (F32, &[3, 4], Any)]),
        smooth(dot(pairs(&[0], &[1]), pairs(&[], &[])), &[(F32, &[3, 2], Any), (F32, &[4, 3], Any)]),
        smooth(dot(pairs(&[0], &[0]), pairs(&[], &[])), &[(F32, &[5], Any), (F32, &[5], Any)]),
        smooth(dot(pairs(&[2], &[1]), pairs(&[0], &[0])), &[(F32, &[2, 3, 4], Any), (F32, &[2, 4, 2], Any)]),
        smooth(
            dot(pairs(&[0, 2], &[1, 0]), pairs(&[], &[])),
            &[(F32, &[2, 3, 4], Any), (F32, &[4, 2, 3], Any)],
        ),
        smooth(dot(pairs(&[], &[]), pairs(&[], &[])), &[(F32, &[2], Any), (F32, &[3], Any)]),
        // A kernel of its own, by columns and by rows.
        discrete(dot(pairs(&[1], &[0]), pairs(&[], &[])), &[(F64, &[1, 521], Any), (F64, &[521, 130], Any)]),
        discrete(dot(pairs(&[1], &[0]), pairs(&[], &[])), &[(F64, &[257, 259], Any), (F64, &[259], Any)]),
        smooth(Select, &[(Bool, &[3, 4], Any), (F32, &[3, 4], Any), (F32, &[3, 4], Any)]),
        discrete(Select, &[(Bool, &[9], Any), (Bool, &[9], Any), (Bool, &[9], Any)]),
        smooth(OptimizationBarrier, &[(F32, &[2, 3], Any), (I32, &[2], Any), (F32, &[], Any)]),
        discrete(StopGradient, &[(F32, &[3], Any)]),
        smooth(Convert { dtype: F32, weak: false }, &[(F32, &[3], Any)]),
    ];
    for dtype in INTEGERS {
        let inputs: &[(DType, &[usize], Domain)] = &[(dtype, &[2, 3], Any), (dtype, &[3, 2], Any)];
        all.push(discrete(dot(pairs(&[1], &[0]), pairs(&[], &[])), inputs));
        let inputs: &[(DType, &[usize], Domain)] =
            &[(Bool, &[9], Any), (dtype, &[9], Any), (dtype, &[9], Any)];
        all.push(discrete(Select, inputs));
    }
    for to in DType::ALL {
        for from in DType::ALL {
            all.push(discrete(Convert { dtype: to, weak: false }, &[(from, &[30], Special)]));
        }
        let ty: &[usize] = &[2, 2];
        all.push(discrete(Constant { value: sample_constant(to, ty), weak: false }, &[]));
    }
    for (to, from) in
        [(F32, U32), (F32, I32), (I32, U32), (F64, I64), (F16, U16), (BF16, I16), (F16, BF16), (I8, U8)]
    {
        all.push(discrete(BitcastConvert { dtype: to }, &[(from, &[9], Any)]));
        all.push(discrete(BitcastConvert { dtype: from }, &[(to, &[9], Any)]));
    }
    for direction in
        [Direction::Eq, Direction::Ne, Direction::Lt, Direction::Le, Direction::Gt, Direction::Ge]
    {
        all.push(discrete(Compare { direction }, &[(F32, &[60], Special), (F32, &[60], Special)]));
    }
    for dtype in [Bool].into_iter().chain(INTEGERS) {
        let direction = Direction::Lt;
        all.push(discrete(Compare { direction }, &[(dtype, &[40], Special), (dtype, &[40], Special)]));
    }
    all
}

fn convolutions() -> Vec<Sample> {
    let axes = |extents: &[usize]| Shape::from_slice(extents);
    let (line, plane) = (Convolution::plain(1), Convolution::plain(2));
    let float =
        |op: Convolution, x: &[usize], kernel: &[usize]| smooth(op, &[(F32, x, Any), (F32, kernel, Any)]);
    let mut all = vec![
        float(line.clone(), &[2, 5, 2], &[3, 2, 3]),
        float(
            Convolution { strides: axes(&[2]), padding: smallvec![(1, 2)], ..line.clone() },
            &[2, 6, 1],
            &[3, 1, 2],
        ),
        // A stride that leaves elements over, and more padding than the window is wide.
        float(
            Convolution { strides: axes(&[3]), padding: smallvec![(3, 4)], ..line.clone() },
            &[1, 7, 2],
            &[2, 2, 2],
        ),
        float(
            Convolution { padding: smallvec![(-1, 2)], input_dilation: axes(&[2]), ..line.clone() },
            &[1, 4, 2],
            &[3, 2, 2],
        ),
        float(Convolution { kernel_dilation: axes(&[2]), ..line.clone() }, &[1, 6, 1], &[3, 1, 2]),
        float(Convolution { groups: 2, ..line.clone() }, &[2, 4, 4], &[2, 2, 6]),
        // One channel of its own for each feature.
        float(Convolution { groups: 3, ..line.clone() }, &[1, 4, 3], &[2, 1, 3]),
        // The window does not fit: nothing comes out.
        float(line.clone(), &[1, 2, 1], &[3, 1, 2]),
        float(
            Convolution { padding: smallvec![(1, 1), (1, 1)], ..plane.clone() },
            &[2, 3, 4, 2],
            &[3, 3, 2, 2],
        ),
        float(
            Convolution {
                strides: axes(&[2, 1]),
                padding: smallvec![(1, 0), (0, 2)],
                kernel_dilation: axes(&[1, 2]),
                groups: 2,
                ..plane.clone()
            },
            &[1, 4, 5, 2],
            &[2, 2, 1, 4],
        ),
        float(plane.clone(), &[1, 3, 3, 1], &[1, 1, 1, 2]),
        // A kernel of its own. Its sums have 80 products, and are rounded as often as these.
        Sample {
            tolerance: 1e-5,
            ..discrete(
                Convolution {
                    strides: axes(&[2]),
                    padding: smallvec![(9, 1)],
                    kernel_dilation: axes(&[3]),
                    ..line.clone()
                },
                &[(F32, &[3, 150, 16], Any), (F32, &[5, 16, 48], Any)],
            )
        },
    ];
    for dtype in INTEGERS {
        all.push(discrete(line.clone(), &[(dtype, &[1, 4, 2], Any), (dtype, &[2, 2, 2], Any)]));
    }
    all
}

/// A graph of these parameters.
fn region(inputs: &[(DType, &[usize])], f: impl Fn(&mut Builder, &[Var]) -> Vec<Var>) -> Arc<Graph> {
    let mut b = Builder::new();
    let inputs: Vec<Var> =
        inputs.iter().map(|(dtype, shape)| b.input(TensorType::new(*dtype, *shape))).collect();
    let outputs = f(&mut b, &inputs);
    Arc::new(b.finish(outputs))
}

fn loops() -> Vec<Sample> {
    let vector: (DType, &[usize]) = (F32, &[3]);
    let product = region(&[vector, vector], |b, x| vec![b.mul(x[0], x[1])]);
    let waves = region(&[vector, vector], |b, x| {
        let y = b.apply(Unary(Sin), &[x[0]]);
        vec![b.add(y, x[1])]
    });
    // A constant, a state of a float and a count, rows of floats and integers; a row of floats and one of integers.
    let body = region(&[vector, vector, (I32, &[]), vector, (I32, &[2])], |b, x| {
        let y = b.mul(x[1], x[3]);
        let y = b.apply(Unary(Tanh), &[y]);
        let next = b.add(y, x[0]);
        let one = b.full_like(x[2], 1.0);
        let count = b.add(x[2], one);
        let shifted = b.broadcast_in_dim(x[2], &[2], &[]);
        let row = b.add(shifted, x[4]);
        let total = b.sum(y, &[0]);
        vec![next, count, total, row]
    });
    let scan = |length, reverse| Scan { body: Arc::clone(&body), length, constants: 1, states: 2, reverse };
    let operands = |n: &'static [usize; 4]| {
        [
            (F32, &n[1..2], Any),
            (F32, &n[1..2], Any),
            (I32, &n[..0], Small),
            (F32, &n[..2], Any),
            (I32, &n[2..4], Small),
        ]
    };
    let below = region(&[vector, vector, (I32, &[])], |b, x| {
        let bound = b.full_like(x[2], 3.0);
        vec![b.compare(Direction::Lt, x[2], bound)]
    });
    let step = region(&[vector, vector, (I32, &[])], |b, x| {
        let y = b.mul(x[0], x[1]);
        let one = b.full_like(x[2], 1.0);
        vec![y, b.add(x[2], one)]
    });
    let counting = WhileLoop { condition: below, body: step, constants: 1 };
    // The limit, a constant, the count and a state that no step reads.
    let inputs: [(DType, &[usize]); 4] = [(I32, &[]), vector, (I64, &[]), vector];
    let below = region(&inputs, |b, x| {
        let count = b.convert(x[2], I32);
        vec![b.compare(Direction::Lt, count, x[0])]
    });
    let step = region(&inputs, |b, x| {
        let one = b.full_like(x[2], 1.0);
        let count = b.convert(x[2], F32);
        let counts = b.broadcast_scalar(count, &[3]);
        vec![b.add(x[2], one), b.mul(counts, x[1])]
    });
    let forgetful = WhileLoop { condition: below, body: step, constants: 2 };
    vec![
        discrete(forgetful, &[(I32, &[], Small), (F32, &[3], Any), (I64, &[], Small), (F32, &[3], Any)]),
        smooth(Checkpoint { body: Arc::clone(&waves) }, &[(F32, &[3], Any), (F32, &[3], Any)]),
        smooth(
            Cond { on_true: product, on_false: waves },
            &[(Bool, &[], Any), (F32, &[3], Any), (F32, &[3], Any)],
        ),
        smooth(scan(4, false), &operands(&[4, 3, 4, 2])),
        smooth(scan(1, true), &operands(&[1, 3, 1, 2])),
        smooth(scan(3, true), &operands(&[3, 3, 3, 2])),
        discrete(counting, &[(F32, &[3], Any), (F32, &[3], Any), (I32, &[], Small)]),
    ]
}

fn sample_constant(dtype: DType, shape: &[usize]) -> HostTensor {
    let sample = discrete(StopGradient, &[(dtype, shape, Special)]);
    sample.draw(7).remove(0)
}
