//! Simplification takes linear time: the same layers, in increasing number.

use sheaf_benches::median;
use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::simplify::simplify;
use sheaf_graph::tensor::{DType, TensorType};

const RUNS: usize = 7;

fn main() {
    println!("simplify; medians of {RUNS}");
    for layers in [500, 1_000, 2_000, 4_000, 8_000, 16_000] {
        let graph = layered(layers);
        let equations = graph.equations.len();
        let mut left = 0;
        let time = median(RUNS, || left = simplify(&graph).equations.len());
        println!(
            "  {equations:7} equations, {left:6} left: {:7.1} ms, {:.2} us for each",
            time.as_secs_f64() * 1e3,
            time.as_secs_f64() * 1e6 / equations as f64
        );
    }
}

/// Layers with work for most rules: equal and dead equations, constants, neutral numbers, reshapes and transposes that
/// cancel.
fn layered(layers: usize) -> Graph {
    let mut b = Builder::new();
    let mut h: Var = b.input(TensorType::new(DType::F32, [8, 8].as_slice()));
    for _ in 0..layers {
        let ones = b.full_like(h, 1.0);
        let product = b.mul(h, ones);
        let turned = b.transpose(product, &[1, 0]);
        let back = b.transpose(turned, &[1, 0]);
        let flat = b.reshape(back, &[64]);
        let square = b.reshape(flat, &[8, 8]);
        let (sum, same) = (b.add(square, h), b.add(square, h));
        let _dead = b.mul(sum, same);
        let half = b.scale(same, 0.5);
        h = b.max(half, sum);
    }
    b.finish(vec![h])
}
