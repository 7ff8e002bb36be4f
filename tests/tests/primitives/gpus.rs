//! Programs for CUDA, compiled for a processor: what they say is right, whatever a GPU's code makes of it. Tiles are left out, which are the
//! GPU's alone.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{ArgReduce, Convolution, DotGeneral, Extreme, Sort};
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};

use super::check_programs;

/// The text of a program without the tiles of its products.
pub fn without_tiles(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("attrs = {compilation_info = ") {
        kept.push_str(before);
        rest = after.split_once("subgroup_size = 32>>}").expect("the end of the tiles").1;
    }
    kept + rest
}

#[test]
#[ignore = "long: make nightly runs it"]
fn programs_for_cuda_agree_with_host_evaluation() {
    super::check(Model::Cuda, super::BATCH, 1);
}

/// Products in tiles, with parts of sums and in batches, and by vectors; each operand in either layout.
#[test]
fn products_agree_with_host_evaluation() {
    for [batch, m, n, k] in [
        [1, 33, 50, 27],
        [1, 8, 9, 700],
        [1, 17, 33, 1024],
        [3, 40, 50, 32],
        [4, 33, 40, 100],
        [1, 1, 300, 200],
    ] {
        let shapes = [[batch, m, k], [batch, k, m], [batch, k, n], [batch, n, k]];
        let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
        agrees(&shapes, &[], |b, x| {
            let mut products = Vec::new();
            for (left, k_left) in [(x[0], 2), (x[1], 1)] {
                for (right, k_right) in [(x[2], 1), (x[3], 2)] {
                    let op = DotGeneral {
                        contract: [[k_left].as_slice().into(), [k_right].as_slice().into()],
                        batch: [[0].as_slice().into(), [0].as_slice().into()],
                    };
                    products.push(b.apply(op, &[left, right]));
                }
            }
            products
        });
    }
}

#[test]
fn convolutions_agree_with_host_evaluation() {
    let plain = Convolution::plain(2);
    let strided = Convolution {
        strides: [2, 1].as_slice().into(),
        padding: [(1, 2), (0, 1)].as_slice().into(),
        kernel_dilation: [1, 2].as_slice().into(),
        ..Convolution::plain(2)
    };
    let spread = Convolution {
        input_dilation: [2, 2].as_slice().into(),
        padding: [(-1, 2), (2, 0)].as_slice().into(),
        ..Convolution::plain(2)
    };
    agrees(&[&[2, 14, 13, 8], &[3, 3, 8, 16]], &[], |b, x| {
        [&plain, &strided, &spread].map(|op| b.apply(op.clone(), x)).to_vec()
    });
}

/// Sorts, rows added at sorted places, boxes at computed places, and reductions along long axes.
#[test]
fn loops_of_threads_agree_with_host_evaluation() {
    let mut random = Random(3);
    let mut draw =
        |count: usize, below: u64| (0..count).map(|_| random.below(below) as i32).collect::<Vec<_>>();
    let places = HostTensor::new([400].as_slice(), draw(400, 9));
    let few = HostTensor::new([7].as_slice(), draw(7, 9));
    let starts = [3, 70].map(|start| HostTensor::new([].as_slice(), vec![start]));
    let further = [&[places, few][..], &starts].concat();
    agrees(&[&[3, 500], &[9, 5], &[400, 5], &[7, 5], &[4, 90], &[2, 3]], &further, |b, x| {
        let integers = b.scale(x[0], 20.0);
        let integers = b.convert(integers, DType::I32);
        let narrow = b.convert(integers, DType::I8);
        let unsigned = b.convert(integers, DType::U32);
        let mut results = Vec::new();
        for key in [x[0], integers, narrow, unsigned] {
            let positions = b.iota(DType::I32, &[3, 500], 1);
            results.extend(b.apply_all(Sort { axis: 1 }, &[key, positions]));
            results.push(b.apply(ArgReduce { extreme: Extreme::Max, axis: 1 }, &[key]));
            results.push(b.apply(ArgReduce { extreme: Extreme::Min, axis: 1 }, &[key]));
        }
        results.push(b.scatter_add(x[1], x[6], x[2]));
        results.push(b.scatter_add(x[1], x[7], x[3]));
        let unsigned = [x[1], x[2]].map(|x| {
            let scaled = b.scale(x, 9.0);
            let size = b.abs(scaled);
            b.convert(size, DType::U32)
        });
        results.push(b.scatter_add(unsigned[0], x[6], unsigned[1]));
        results.push(b.dynamic_slice(x[4], &x[8..10], &[2, 30]));
        results.push(b.dynamic_update_slice(x[4], x[5], &x[8..10]));
        results.push(b.sum(x[0], &[1]));
        results
    });
}

/// Asserts that a program for CUDA of such floats gives what the host gives.
fn agrees(shapes: &[&[usize]], further: &[HostTensor], program: impl Fn(&mut Builder, &[Var]) -> Vec<Var>) {
    let graph = |_| -> Graph {
        let mut builder = Builder::new();
        let floats = shapes.iter().map(|shape| TensorType::new(DType::F32, *shape));
        let types = floats.chain(further.iter().map(|tensor| tensor.ty().clone()));
        let inputs: Vec<Var> = types.map(|ty| builder.input(ty)).collect();
        let results = program(&mut builder, &inputs);
        builder.finish(results)
    };
    check_programs("PROGRAMS_FOR_CUDA", 1, None, Model::Cuda, shapes, further, graph);
}
