//! Large graphs: transformations, checks and emission are iterative, so they take linear time and constant stack.

use sheaf_graph::graph::{Builder, Graph, evaluate, prune, verify};
use sheaf_graph::primitives::{Tanh, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model, emit};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_graph::transform::{jvp, value_and_grad, vmap};

/// Equations of the graph.
const LENGTH: usize = 100_000;

/// The thread's stack: too small for a recursion over the equations.
const STACK_BYTES: usize = 512 << 10;

/// `x -> x + sum of tanh(tanh(...x))`: a chain in which every second equation also reads its start.
fn chain() -> Graph {
    let mut b = Builder::new();
    let x = b.input(TensorType::new(DType::F32, [].as_slice()));
    let mut y = x;
    for _ in 0..LENGTH / 2 {
        let bent = b.apply(Unary(Tanh), &[y]);
        y = b.add(bent, x);
    }
    b.finish(vec![y])
}

#[test]
fn a_graph_of_a_hundred_thousand_equations() {
    let work = || {
        let graph = chain();
        assert_eq!(graph.equations.len(), LENGTH);
        assert_eq!(verify(&graph), Ok(()));
        let [y] = evaluate(&graph, &[HostTensor::scalar(0.5_f32)]).try_into().expect("one result");

        // The fixed point of y = tanh(y) + x, and its derivative 1 / (1 - tanh'(y)).
        let y = y.element_f64(0);
        assert!((y.tanh() + 0.5 - y).abs() < 1e-6, "{y}");
        let derivative = 1.0 / y.tanh().powi(2);

        let gradient = prune(value_and_grad(&graph, 0, &[0]));
        assert!(gradient.equations.len() > 2 * LENGTH);
        assert_eq!(verify(&gradient), Ok(()));
        let found = evaluate(&gradient, &[HostTensor::scalar(0.5_f32)]);
        assert!((found[1].element_f64(0) - derivative).abs() < 1e-4, "{derivative}");

        let tangents = prune(jvp(&graph, &[0]));
        assert_eq!(verify(&tangents), Ok(()));

        let batched = prune(vmap(&gradient, &[Some(0)], 3));
        assert_eq!(verify(&batched), Ok(()));
        let xs = HostTensor::new([3_usize].as_slice(), vec![0.5_f32, 0.5, 0.5]);
        let found = evaluate(&batched, &[xs]);
        assert!((found[1].element_f64(2) - derivative).abs() < 1e-4);

        for model in [Model::Kernels(KernelSize::Small), Model::Hal] {
            let text = emit(&batched, model).text;
            assert!(text.lines().count() > batched.equations.len() && text.ends_with("}\n"));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
