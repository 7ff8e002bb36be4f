//! Programs whose products gain if the compiler packs their operands into tiles first (`--iree-opt-data-tiling=true`).

use super::{Equation, Graph};
use crate::primitives::{Convolution, DotGeneral};
use crate::tensor::element_count;

/// Minimum multiplications of a product that gains by tiles: 256x256 by 256x256.
const WORK: usize = 1 << 24;

/// Minimum extent of each side of the result of such a product.
const SIDE: usize = 64;

/// Maximum terms of an entry of the result. Longer products are taken in pieces, for each of which tiles are packed anew: one of
/// 8,192 terms gains nothing, one of 50,257 takes 1.2 to 1.4 times as long.
const TERMS: usize = 4096;

/// True if a 1024x1024 product or the like gains by tiles, and nothing in the program forbids them:
///
/// - convolutions become products of patches, and are slower again with both;
/// - IREE refuses programs with a product of three axes and more beside element-wise operations ("large vector sizes",
///   Q39), after the time of a whole compilation;
/// - a loop would pack the operands of its products in each iteration.
pub fn gains_by_tiles(graph: &Graph) -> bool {
    let (mut gains, mut forbidden) = (false, false);
    graph.visit(&mut |function, eqn| {
        forbidden |= eqn.op.is::<Convolution>();
        let Some(product) = eqn.op.downcast_ref::<DotGeneral>() else { return };
        gains |= is_large(function, eqn, product);
        forbidden |= !std::ptr::eq(function, graph) || eqn.inputs.iter().any(|x| function.ty(*x).rank() > 2);
    });
    gains && !forbidden
}

fn is_large(graph: &Graph, eqn: &Equation, product: &DotGeneral) -> bool {
    let [rows, columns] = graph.ty(eqn.outputs[0]).shape[..] else { return false };
    let left = &graph.ty(eqn.inputs[0]).shape;
    let terms = product.contract[0].iter().map(|axis| left[*axis]).fold(1, usize::saturating_mul);
    let work = element_count(&[rows, columns]).saturating_mul(terms);
    rows.min(columns) >= SIDE && terms <= TERMS && work >= WORK
}
