//! Operands of batches of products, which IREE packs into tiles wrongly (Q62).

use crate::primitives::DotGeneral;
use crate::stablehlo::Lowering;
use crate::tensor::element_count;

/// Rows of a tile.
const TILE: usize = 8;

/// The names of the operands of a product. Those of a batch of products are in memory if they are computed and their last tile has 3, 5, 6
/// or 7 rows (Q62).
pub fn apart_for_packing(to: &mut Lowering<'_>, product: &DotGeneral) -> [String; 2] {
    [0, 1].map(|side| {
        let ty = to.operand_type(side).clone();
        let free: Vec<usize> =
            product.free(side, ty.shape.len()).iter().map(|axis| ty.shape[*axis]).collect();
        let rows = element_count(&free) % TILE;
        let is_apart = to.is_for_processor()
            && !to.in_kernel()
            && !product.batch[side].is_empty()
            && rows > 0
            && !rows.is_power_of_two()
            && to.recorded.definition(to.sources[side]).is_some();
        let operand = to.operand(side);
        if is_apart { to.value("stablehlo.optimization_barrier", &[&operand], &ty) } else { operand }
    })
}
