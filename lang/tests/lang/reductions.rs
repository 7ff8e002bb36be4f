//! Sums are exact to a few roundings at any length, on the host and in emitted programs.

use proptest::prelude::*;
use sheaf_graph::graph::{Builder, Graph, evaluate, in_blocks};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{Convolution, Cumsum, DotGeneral, ReduceProd, ReduceSum};
use sheaf_graph::stablehlo::{Model, emit};
use sheaf_graph::tensor::{DType, HostTensor, TensorType, element_count};

/// Maximum error, relative to the sum of magnitudes.
const BOUND: f64 = 2e-6;

/// Maximum length of an emitted chain of additions.
const CHAIN: usize = 128;

/// Equal numbers, whose roundings do not cancel, or numbers of 0 to 1.
fn numbers(shape: &[usize], seed: u64) -> HostTensor {
    let mut random = Random(seed);
    let alike = seed.is_multiple_of(2).then(|| random.uniform(0.05, 1.0) as f32);
    let one = |random: &mut Random| alike.unwrap_or_else(|| random.uniform(0.0, 1.0) as f32);
    let elements: Vec<f32> = (0..element_count(shape)).map(|_| one(&mut random)).collect();
    HostTensor::new(shape, elements)
}

fn graph_of(
    shapes: &[&[usize]],
    dtype: DType,
    f: impl Fn(&mut Builder, &[sheaf_graph::graph::Var]) -> sheaf_graph::graph::Var,
) -> Graph {
    let mut b = Builder::new();
    let inputs: Vec<_> = shapes.iter().map(|shape| b.input(TensorType::new(dtype, *shape))).collect();
    let result = f(&mut b, &inputs);
    b.finish(vec![result])
}

/// Checks the results of positive `f32` operands, plain and in blocks, against those in `f64`.
fn holds(
    shapes: &[&[usize]],
    seed: u64,
    f: impl Fn(&mut Builder, &[sheaf_graph::graph::Var]) -> sheaf_graph::graph::Var,
) {
    let operands: Vec<HostTensor> =
        shapes.iter().enumerate().map(|(i, shape)| numbers(shape, seed + 2 * i as u64)).collect();
    let doubles: Vec<HostTensor> = operands
        .iter()
        .map(|x| HostTensor::new(x.shape(), (0..x.count()).map(|i| x.element_f64(i)).collect::<Vec<_>>()))
        .collect();
    let exact = &evaluate(&graph_of(shapes, DType::F64, &f), &doubles)[0];
    let plain = graph_of(shapes, DType::F32, &f);
    for graph in
        [in_blocks(&plain, false, false), in_blocks(&plain, true, false), Some(plain)].iter().flatten()
    {
        let result = &evaluate(graph, &operands)[0];
        assert_eq!(result.shape(), exact.shape());
        for i in 0..exact.count() {
            let (got, right) = (result.element_f64(i), exact.element_f64(i));
            assert!((got - right).abs() <= BOUND * right, "{shapes:?} {i}: {got} instead of {right}");
        }
    }
}

/// The lengths of the chains of additions.
fn chains(graph: &Graph) -> Vec<usize> {
    let chain = |eqn: &sheaf_graph::graph::Equation| {
        let op = &eqn.op;
        let axes = op
            .downcast_ref::<ReduceSum>()
            .map(|op| &op.axes)
            .or_else(|| op.downcast_ref::<ReduceProd>().map(|op| &op.axes))?;
        Some(axes.iter().map(|axis| graph.ty(eqn.inputs[0]).shape[*axis]).product())
    };
    graph.equations.iter().filter_map(chain).collect()
}

/// Some of the axes of a shape.
fn shapes_and_axes(largest: usize) -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let extent = prop_oneof![1_usize..8, 1_usize..300, Just(64), Just(128), Just(1000), 1_usize..20_000];
    (prop::collection::vec(extent, 1..4), any::<u8>()).prop_map(move |(mut shape, chosen)| {
        while element_count(&shape) > largest {
            let widest = (0..shape.len()).max_by_key(|i| shape[*i]).expect("an axis");
            shape[widest] = shape[widest].div_ceil(2);
        }
        let axes = (0..shape.len()).filter(|i| chosen >> i & 1 == 1).collect();
        (shape, axes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn sums_are_exact_to_a_few_roundings((shape, axes) in shapes_and_axes(100_000), seed in 0_u64..1000) {
        holds(&[&shape], seed, |b, x| b.sum(x[0], &axes));
    }

    #[test]
    fn no_chain_is_long((shape, axes) in shapes_and_axes(1 << 24)) {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            let sum = graph_of(&[&shape], dtype, |b, x| b.sum(x[0], &axes));
            let product = graph_of(&[&shape], dtype, |b, x| {
                b.apply(ReduceProd { axes: axes.as_slice().into() }, x)
            });
            for plain in [sum, product] {
                let graph = in_blocks(&plain, false, false).unwrap_or(plain);
                prop_assert!(chains(&graph).iter().all(|chain| *chain <= CHAIN), "{shape:?} {axes:?}\n{graph}");
                prop_assert_eq!(graph.ty(graph.outputs[0]).dtype, dtype);
            }
        }
    }

    #[test]
    fn contractions_are_exact_to_a_few_roundings(
        rows in 1_usize..4,
        columns in 1_usize..4,
        count in prop_oneof![1_usize..300, 1_usize..20_000],
        batch in 1_usize..3,
        seed in 0_u64..1000,
    ) {
        let op = DotGeneral {
            contract: [[2].as_slice().into(), [1].as_slice().into()],
            batch: [[0].as_slice().into(), [0].as_slice().into()],
        };
        holds(&[&[batch, rows, count], &[batch, count, columns]], seed, |b, x| b.apply(op.clone(), x));
    }

    #[test]
    fn running_sums_are_exact_to_a_few_roundings(
        count in 1_usize..20_000,
        inner in 1_usize..4,
        reverse in any::<bool>(),
        seed in 0_u64..1000,
    ) {
        holds(&[&[2, count, inner]], seed, |b, x| b.apply(Cumsum { axis: 1, reverse }, x));
    }
}

/// The kernel is as large as the input, as in the gradient of a kernel.
#[test]
fn convolutions_are_exact_to_a_few_roundings() {
    for seed in 0..4 {
        holds(&[&[1, 60, 60, 20], &[58, 60, 20, 2]], seed, |b, x| b.apply(Convolution::plain(2), x));
    }
}

#[test]
fn sums_of_sixteen_million_numbers() {
    for shape in [&[1 << 24][..], &[1 << 12, 1 << 12], &[1 << 20, 16]] {
        holds(&[shape], 2, |b, x| b.sum(x[0], &[0]));
    }
}

/// Sums of 16-bit floats accumulate in `f32` over all blocks.
#[test]
fn sums_of_halves_are_rounded_once() {
    for dtype in [DType::BF16, DType::F16] {
        let x = numbers(&[40_000], 1);
        let x = evaluate(&graph_of(&[&[40_000]], DType::F32, |b, x| b.convert(x[0], dtype)), &[x]).remove(0);
        let plain = graph_of(&[&[40_000]], dtype, |b, x| b.sum(x[0], &[0]));
        let right: f64 = (0..x.count()).map(|i| x.element_f64(i)).sum();
        let right = HostTensor::new([].as_slice(), vec![right as f32]);
        let right = evaluate(&graph_of(&[&[]], DType::F32, |b, x| b.convert(x[0], dtype)), &[right]);
        let [blocks, doubles] =
            [false, true].map(|doubles| in_blocks(&plain, doubles, false).expect("a long sum"));
        for graph in [blocks, doubles, plain] {
            assert_eq!(evaluate(&graph, std::slice::from_ref(&x)), right);
        }
    }
}

/// Lengths that are not divisible into equal blocks, and empty tensors.
#[test]
fn lengths_of_all_kinds() {
    for count in [0, 1, 127, 128, 129, 131, 1009, 65_537, 99_991] {
        holds(&[&[2, count]], 2, |b, x| b.sum(x[0], &[1]));
        holds(&[&[count, 2]], 2, |b, x| b.sum(x[0], &[0]));
        holds(&[&[count, 2]], 2, |b, x| b.sum(x[0], &[0, 1]));
    }
    assert!(in_blocks(&graph_of(&[&[0, 1000]], DType::F32, |b, x| b.sum(x[0], &[1])), true, false).is_none());
}

/// Rows are summed in doubles on devices with fast doubles.
#[test]
fn doubles_are_for_processors() {
    let mut b = Builder::new();
    let x = b.input(TensorType::new(DType::F32, [64, 1000].as_slice()));
    let sum = b.sum(x, &[1]);
    let graph = b.finish(vec![sum]);
    assert!(emit(&graph, Model::Hal).text.contains("f64"));
    let text = emit(&graph, Model::Cuda).text;
    assert!(!text.contains("f64") && text.matches("stablehlo.reduce").count() > 1, "{text}");
}
