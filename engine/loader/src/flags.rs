//! Flags of the compiler that pay for some programs only, by the operations of their graphs.

use sheaf_artifacts::TuningFlag;
use sheaf_graph::graph::{Graph, gains_by_order, gains_by_tiles};
use sheaf_graph::primitives::Convolution;
use sheaf_target::NO_HOISTING;

/// Packed operands: a 1024x1024 product takes 0.3 to 0.4 of the time, a small or narrow one up to twice the time
/// (`docs/benchmarks.md`).
const DATA_TILING: &str = TuningFlag::DataTiling.flag();

/// Products of patches: convolutions take 0.1 to 0.3 of the time, their gradients included.
const IM2COL: &str = TuningFlag::Im2col.flag();

/// Sums of vectors along the last axis: 0.2 to 0.8 of the time, and they are more exact. All that long ones add up is an `f64`
/// (`sheaf_graph::graph::in_blocks`), which takes up to 1.7 times as long without it.
const REORDER: &str = TuningFlag::ReassociateReductions.flag();

/// Maximum scalar operations on constants that are left to each call.
const LEFT_TO_CALLS: u64 = 50_000;

/// The flag for a program that computes little from constants. The compiler hoists constant expressions, such as positions of
/// random draws, out of a program, compiles them apart by all of its passes and runs them: a sixth to a fourth of the first runs of three
/// training programs with random draws (`docs/benchmarks.md`), whose calls are as quick with them in their kernels.
pub fn hoisting(graph: &Graph) -> Option<&'static str> {
    (graph.constant_cost() <= LEFT_TO_CALLS).then_some(NO_HOISTING)
}

/// The sets of further flags to compile `graph` with, in the order in which to try them; empty if there is no choice.
/// The last set is empty: the compiler fails on some programs with any flag (Q42).
pub fn alternatives(graph: &Graph) -> Vec<Vec<String>> {
    let mut convolution = false;
    graph.visit(&mut |_, eqn| convolution |= eqn.op.is::<Convolution>());
    let product = if convolution { Some(IM2COL) } else { gains_by_tiles(graph).then_some(DATA_TILING) };
    let flags: Vec<String> =
        product.into_iter().chain(gains_by_order(graph).then_some(REORDER)).map(str::to_owned).collect();
    if flags.is_empty() { Vec::new() } else { vec![flags, Vec::new()] }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sheaf_graph::graph::Builder;
    use sheaf_graph::primitives::{DotGeneral, Iota, Scan, Sin, Unary};
    use sheaf_graph::tensor::{DType, Shape, TensorType};

    use super::*;

    /// The graph of a product of operands of these shapes, contracted over the last axis of the left one.
    fn product(left: &[usize], right: &[usize]) -> Graph {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, left));
        let y = b.input(TensorType::new(DType::F32, right));
        let contract = [Shape::from_slice(&[left.len() - 1]), Shape::from_slice(&[0])];
        let z = b.apply(DotGeneral { contract, ..DotGeneral::default() }, &[x, y]);
        b.finish(vec![z])
    }

    fn flags(graph: &Graph) -> Vec<Vec<String>> {
        alternatives(graph)
    }

    #[test]
    fn large_products_of_matrices_are_tiled() {
        assert_eq!(flags(&product(&[1024, 1024], &[1024, 1024])), [vec![DATA_TILING], vec![]]);
        assert_eq!(flags(&product(&[128, 784], &[784, 256])), [vec![DATA_TILING], vec![]]);
    }

    #[test]
    fn small_narrow_long_and_nested_products_are_not() {
        for (left, right) in [
            (&[128, 128][..], &[128, 128][..]),
            (&[1, 4096], &[4096, 4096]),
            (&[4096, 32], &[32, 32]),
            (&[12, 64, 1024], &[1024, 1024]),
            (&[64, 50_257], &[50_257, 64]),
        ] {
            assert!(flags(&product(left, right)).is_empty(), "{left:?} by {right:?}");
        }
    }

    #[test]
    fn sums_of_many_rows_are_reordered() {
        let sum = |shape: &[usize], axes: &[usize]| {
            let mut b = Builder::new();
            let x = b.input(TensorType::new(DType::F32, shape));
            let sum = b.sum(x, axes);
            flags(&b.finish(vec![sum]))
        };
        assert_eq!(sum(&[64, 1000], &[1]), [vec![REORDER], vec![]]);
        assert_eq!(sum(&[8, 50_257], &[1]), [vec![REORDER], vec![]], "a length that is not made of blocks");
        assert_eq!(sum(&[2048, 128], &[1]), [vec![REORDER], vec![]], "many short rows");
        assert_eq!(sum(&[64, 32, 8, 8], &[2, 3]), [vec![REORDER], vec![]], "two axes are a row");
        assert!(sum(&[64, 128], &[1]).is_empty(), "few short rows");
        assert!(sum(&[20_000, 16], &[1]).is_empty(), "very short rows");
        assert!(sum(&[2048, 100], &[1]).is_empty(), "rows of no whole vectors");
        assert!(sum(&[1000, 64], &[0]).is_empty(), "columns");
        assert!(sum(&[2, 1024], &[1]).is_empty(), "few rows");
    }

    #[test]
    fn short_rows_of_squares_keep_their_order() {
        let sum = |square: bool| {
            let mut b = Builder::new();
            let x = b.input(TensorType::new(DType::F32, [2048, 64].as_slice()));
            let y = b.input(TensorType::new(DType::F32, [2048, 64].as_slice()));
            let products = b.mul(x, if square { x } else { y });
            let sum = b.sum(products, &[1]);
            flags(&b.finish(vec![sum]))
        };
        assert!(sum(true).is_empty());
        assert_eq!(sum(false), [vec![REORDER], vec![]]);
    }

    #[test]
    fn large_constant_expressions_are_hoisted() {
        assert_eq!(hoisting(&with_sines(100)), Some(NO_HOISTING));
        assert_eq!(hoisting(&with_sines(1_000_000)), None);
    }

    #[test]
    fn constant_expressions_in_a_loop_are_hoisted_earlier() {
        let in_loop = |count: usize| {
            let mut b = Builder::new();
            let start = b.input(TensorType::new(DType::F32, [count].as_slice()));
            let body = Arc::new(with_sines(count));
            let state = b.apply(Scan { body, length: 3, constants: 0, states: 1, reverse: false }, &[start]);
            hoisting(&b.finish(vec![state]))
        };
        assert_eq!(in_loop(100), Some(NO_HOISTING));
        assert_eq!(hoisting(&with_sines(10_000)), Some(NO_HOISTING));
        assert_eq!(in_loop(10_000), None);
    }

    /// The graph of a product by the sines of positions.
    fn with_sines(count: usize) -> Graph {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, [count].as_slice()));
        let iota = Iota { dtype: DType::F32, shape: Shape::from_slice(&[count]), dimension: 0 };
        let positions = b.apply(iota, &[]);
        let sines = b.apply(Unary(Sin), &[positions]);
        let y = b.mul(x, sines);
        b.finish(vec![y])
    }

    #[test]
    fn convolutions_are_products_of_patches() {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, [1, 8, 8, 3].as_slice()));
        let k = b.input(TensorType::new(DType::F32, [3, 3, 3, 4].as_slice()));
        let y = b.apply(Convolution::plain(2), &[x, k]);
        assert_eq!(flags(&b.finish(vec![y])), [vec![IM2COL], vec![]]);
    }
}
