//! Flags of the compiler that pay for some programs only, by the operations of their graphs.

use sheaf_graph::graph::{Equation, Graph, adds_rows};
use sheaf_graph::primitives::{Convolution, DotGeneral};
use sheaf_graph::tensor::element_count;

/// Operands of products are packed into tiles first. A 1024x1024 product takes 0.3 to 0.4 of the time with it, a small
/// or narrow one up to twice the time (`docs/benchmarks.md`).
const DATA_TILING: &str = "--iree-opt-data-tiling=true";

/// Convolutions become products of patches: 0.1 to 0.3 of the time, their gradients included.
const IM2COL: &str = "--iree-global-opt-use-im2col-for-convs";

/// Sums along the last axis are made of as many as a vector holds: 0.4 to 0.7 of the time, and they are more exact. All
/// that long ones add up is an `f64` (`sheaf_graph::graph::in_blocks`), which takes up to 1.7 times as long without it.
const REORDER: &str = "--iree-llvmcpu-reassociate-fp-reductions=true";

/// Minimum multiplications of a product that gains by tiles: 256x256 by 256x256.
const TILED_WORK: usize = 1 << 24;

/// Minimum extent of each side of the result of such a product.
const TILED_SIDE: usize = 64;

/// Maximum terms of an entry of the result. Longer products are taken in pieces, for each of which tiles are packed anew: one of
/// 8,192 terms gains nothing, one of 50,257 takes 1.2 to 1.4 times as long.
const TILED_TERMS: usize = 4096;

/// The sets of further flags to compile `graph` with, in the order in which to try them; empty if there is no choice.
/// The last set is empty: the compiler fails on some programs with any flag (Q42).
pub fn alternatives(graph: &Graph) -> Vec<Vec<String>> {
    let mut found = Found::default();
    graph.visit(&mut |function, eqn| found.look(function, eqn, !std::ptr::eq(function, graph)));
    let product = match found {
        // Convolutions are slower again with both.
        Found { convolution: true, .. } => Some(IM2COL),
        Found { large_product: true, product_of_higher_rank: false, product_in_loop: false, .. } => {
            Some(DATA_TILING)
        }
        Found { .. } => None,
    };
    let rows = found.rows.then_some(REORDER);
    let flags: Vec<String> = product.into_iter().chain(rows).map(str::to_owned).collect();
    if flags.is_empty() { Vec::new() } else { vec![flags, Vec::new()] }
}

/// Properties of a graph that decide on the flags.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
struct Found {
    convolution: bool,
    /// Long sums along the last axis.
    rows: bool,
    /// A product of two matrices that gains by tiles.
    large_product: bool,
    /// A product of operands of three axes and more. IREE refuses programs that have one beside element-wise
    /// operations, if it is to make tiles ("large vector sizes", Q39), after the time of a whole compilation.
    product_of_higher_rank: bool,
    /// A product in a loop, for which each step would pack its operands anew.
    product_in_loop: bool,
}

impl Found {
    fn look(&mut self, graph: &Graph, eqn: &Equation, in_loop: bool) {
        self.rows |= adds_rows(graph, eqn);
        let op = &eqn.op;
        self.convolution |= op.is::<Convolution>();
        let Some(product) = op.downcast_ref::<DotGeneral>() else { return };
        self.product_in_loop |= in_loop;
        let [left, right] = [0, 1].map(|side| graph.ty(eqn.inputs[side]));
        self.product_of_higher_rank |= left.rank() > 2 || right.rank() > 2;
        if let [rows, columns] = graph.ty(eqn.outputs[0]).shape[..] {
            let contracted = product.contract[0].iter().map(|axis| left.shape[*axis]);
            let terms = contracted.fold(1, usize::saturating_mul);
            let work = element_count(&[rows, columns]).saturating_mul(terms);
            let gains = rows.min(columns) >= TILED_SIDE && terms <= TILED_TERMS;
            self.large_product |= gains && work >= TILED_WORK;
        }
    }
}

#[cfg(test)]
mod tests {
    use sheaf_graph::graph::Builder;
    use sheaf_graph::primitives::{Convolution, DotGeneral};
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
    fn sums_of_many_long_rows_are_reordered() {
        let sum = |shape: &[usize], axes: &[usize]| {
            let mut b = Builder::new();
            let x = b.input(TensorType::new(DType::F32, shape));
            let sum = b.sum(x, axes);
            flags(&b.finish(vec![sum]))
        };
        assert_eq!(sum(&[64, 1000], &[1]), [vec![REORDER], vec![]]);
        assert_eq!(sum(&[8, 50_257], &[1]), [vec![REORDER], vec![]], "a length that is not made of blocks");
        assert!(sum(&[64, 128], &[1]).is_empty(), "short rows");
        assert!(sum(&[1000, 64], &[0]).is_empty(), "columns");
        assert!(sum(&[2, 1024], &[1]).is_empty(), "few rows");
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
