//! Products on a GPU of NVIDIA, with the tiles that their kernels work off. IREE's own choice for `f32` reads operands from memory again and
//! again, and gives a small result to a few of the GPU's processors: on an H100 a product of 1024 x 1024 takes 544 us by it and 74 so, one of
//! 128 x 784 by 784 x 256 takes 93 and 8. One tile serves all: of those measured it was within a tenth of the best at each of ten shapes.

use super::DotGeneral;
use crate::stablehlo::{Lowering, float, reduction};
use crate::tensor::{DType, TensorType};

/// Rows and columns of the result that a workgroup computes.
const TILE: usize = 32;

/// Rows and columns that a thread of it computes.
const THREAD: usize = 4;

/// Minimum rows and columns of a result in tiles: fewer are products by vectors.
const MIN_SIDE: usize = 8;

/// Minimum products of numbers: less is done in the time that a kernel takes to start.
const MIN_PRODUCTS: usize = 1 << 15;

/// Workgroups that keep a large GPU busy.
const WORKGROUPS: usize = 512;

/// Terms that a workgroup multiplies at a time are a multiple of this. Others are filled up with zeros, which IREE does wrongly
/// for matrices of a batch, or parts of sums, whose contracted axis is not their last.
const STEP: usize = 16;

/// Minimum terms of a part of a sum that is split among workgroups.
const MIN_TERMS: usize = 96;

/// A product of matrices `[m, k]` and `[k, n]`, or a batch of them.
pub(super) struct TiledProduct {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    /// Parts of each sum.
    parts: usize,
}

/// An operand of a product, in memory as `[batch, free, contracted]`, or turned: `[batch, contracted, free]`. Its shape may have
/// several axes for each of these.
pub(super) struct Operand {
    pub name: String,
    pub ty: TensorType,
    pub is_turned: bool,
}

/// A letter of an affine map, and its extent.
type Axis = (char, usize);

impl TiledProduct {
    /// The product of matrices of these sizes, if it is worth tiles, and for a GPU of NVIDIA.
    pub fn new(to: &Lowering<'_>, batch: usize, [m, n, k]: [usize; 3]) -> Option<Self> {
        let is_single = to.operand_type(0).dtype == DType::F32;
        let is_right = batch <= 1 || k.is_multiple_of(STEP);
        let is_worth_it = batch > 0 && m.max(n) >= MIN_SIDE && k > 1 && m * n * k >= MIN_PRODUCTS;
        if !to.is_for_cuda() || !is_single || !is_right || !is_worth_it {
            return None;
        }
        if m.min(n) < MIN_SIDE {
            return Some(TiledProduct { batch, m, n, k, parts: 1 });
        }
        let tiles = batch * m.div_ceil(TILE) * n.div_ceil(TILE);
        Some(TiledProduct { batch, m, n, k, parts: parts(tiles, k) })
    }

    /// The product that `op` is.
    pub fn of(op: &DotGeneral, to: &Lowering<'_>) -> Option<Self> {
        let [x, y] = [0, 1].map(|side| to.operand_type(side));
        let extent = |ty: &TensorType, axes: &[usize]| axes.iter().map(|axis| ty.shape[*axis]).product();
        let batch = extent(x, &op.batch[0]);
        let (m, n) = (extent(x, &op.free(0, x.rank())), extent(y, &op.free(1, y.rank())));
        TiledProduct::new(to, batch, [m, n, extent(x, &op.contract[0])])
    }

    /// Writes the result of `op`.
    pub fn write_dot(&self, op: &DotGeneral, to: &mut Lowering<'_>) {
        let operands = [0, 1].map(|side| Operand::of(op, to, side));
        self.write(to, operands);
    }

    /// Writes the result of the equation: the product of two operands.
    pub fn write(&self, to: &mut Lowering<'_>, operands: [Operand; 2]) {
        let several = |axes: &[Axis]| -> Vec<Axis> {
            // The compiler drops axes of one element, and with them their part in the tiles.
            axes.iter().copied().filter(|(_, extent)| *extent > 1).collect()
        };
        let (b, p) = (('b', self.batch), ('p', self.parts));
        let (m, n, k) = (('m', self.m), ('n', self.n), ('k', self.terms()));
        let all = several(&[b, p, m, n, k]);
        let [x, y] = operands;
        let [x, y] = [(x, m), (y, n)].map(|(operand, free)| {
            let axes = several(&if operand.is_turned { [b, p, k, free] } else { [b, free, p, k] });
            let ty = f32s(&axes);
            (to.with_shape(&operand.name, &operand.ty, &ty), axes, ty)
        });
        let result = several(&[b, p, m, n]);
        let ty = f32s(&result);
        let zero = to.temporary("arith.constant 0.0 : f32");
        let empty = to.temporary(&format!("tensor.empty() : {}", ty.mlir()));
        let zeros =
            to.temporary(&format!("linalg.fill ins({zero} : f32) outs({empty} : {0}) -> {0}", ty.mlir()));
        let maps =
            [&x.1, &y.1, &result].map(|axes| format!("affine_map<({}) -> ({})>", names(&all), names(axes)));
        let kinds = all.iter().map(|(name, _)| if *name == 'k' { "\"reduction\"" } else { "\"parallel\"" });
        let name = to.name_temporary();
        let head = format!(
            "linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({}, {} : {}, {}) outs({zeros} : {}) \
             {} ",
            maps.join(", "),
            kinds.collect::<Vec<_>>().join(", "),
            x.0,
            y.0,
            x.2.mlir(),
            y.2.mlir(),
            ty.mlir(),
            if self.is_thin() { String::new() } else { self.tiles(&all) },
        );
        let body = [
            "^bb0(%x: f32, %y: f32, %sum: f32):".to_owned(),
            "%product = arith.mulf %x, %y : f32".to_owned(),
            "%next = arith.addf %sum, %product : f32".to_owned(),
            "linalg.yield %next : f32".to_owned(),
        ];
        to.region(std::slice::from_ref(&name), &head, &body, &format!(" -> {}", ty.mlir()));
        let (mut product, mut from) = (name, ty);
        if let Some(axis) = result.iter().position(|(name, _)| *name == 'p') {
            let whole = f32s(&several(&[b, m, n]));
            let init = to.splat(&TensorType::scalar(DType::F32), &float(DType::F32, 0.0));
            product = to.temporary(&reduction("stablehlo.add", &init, &[axis], &product, &from, &whole));
            from = whole;
        }
        let into = to.result_type(0).clone();
        let shaped = to.with_shape(&product, &from, &into);
        to.name_results(&[shaped]);
    }

    /// True for a product by a few vectors. It has no tiles, and is written out so that no operand is transposed.
    pub fn is_thin(&self) -> bool {
        self.m.min(self.n) < MIN_SIDE
    }

    /// Terms of a part of a sum.
    fn terms(&self) -> usize {
        self.k / self.parts
    }

    /// The attribute with the tiles, for the compiler's pipeline `TileAndFuse`.
    fn tiles(&self, axes: &[Axis]) -> String {
        let terms = self.terms();
        let step =
            if terms.is_multiple_of(STEP) && !terms.is_multiple_of(2 * STEP) { STEP } else { 2 * STEP };
        let list = |side: usize, terms: usize, other: usize| {
            let tile = |(name, _): &Axis| match name {
                'm' | 'n' => side,
                'k' => terms,
                _ => other,
            };
            axes.iter().map(|axis| tile(axis).to_string()).collect::<Vec<_>>().join(", ")
        };
        let is_even =
            [self.m, self.n].iter().all(|side| side.is_multiple_of(TILE)) && terms.is_multiple_of(step);
        let padding = if is_even { String::new() } else { format!(", padding = [{}]", list(TILE, step, 1)) };
        format!(
            "attrs = {{compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{{reduction = [{}], \
             thread = [{}], workgroup = [{}], promote_operands = [0, 1]{padding}}}>, translation_info = \
             #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [{}, 1, 1] subgroup_size = 32>>}}",
            list(0, step, 0),
            list(THREAD, 0, 1),
            list(TILE, 0, 1),
            (TILE / THREAD) * (TILE / THREAD),
        )
    }
}

fn names(axes: &[Axis]) -> String {
    axes.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(", ")
}

fn f32s(axes: &[Axis]) -> TensorType {
    let shape: Vec<usize> = axes.iter().map(|(_, extent)| *extent).collect();
    TensorType::new(DType::F32, shape.as_slice())
}

impl Operand {
    /// Operand `side` of `op`, transposed if neither order of its axes is that in memory.
    fn of(op: &DotGeneral, to: &mut Lowering<'_>, side: usize) -> Operand {
        let (name, ty) = (to.operand(side), to.operand_type(side).clone());
        let (batch, free, contract) =
            (&op.batch[side][..], &op.free(side, ty.rank())[..], &op.contract[side][..]);
        if [batch, contract, free].concat().is_sorted() {
            return Operand { name, ty, is_turned: true };
        }
        let order = [batch, free, contract].concat();
        if order.is_sorted() {
            return Operand { name, ty, is_turned: false };
        }
        let shape: Vec<usize> = order.iter().map(|axis| ty.shape[*axis]).collect();
        let into = ty.with_shape(shape.as_slice());
        let text =
            format!("stablehlo.transpose {name}, dims = {order:?} : ({}) -> {}", ty.mlir(), into.mlir());
        Operand { name: to.temporary(&text), ty: into, is_turned: false }
    }
}

/// Parts of each sum of `terms`, for a result of so many tiles.
fn parts(tiles: usize, terms: usize) -> usize {
    let fits = |parts: &usize| {
        let part = terms / parts;
        terms.is_multiple_of(*parts) && part.is_multiple_of(STEP) && part >= MIN_TERMS
    };
    (2..=WORKGROUPS / tiles.min(WORKGROUPS)).rev().find(fits).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_sums_are_whole_and_even() {
        assert_eq!(parts(32, 784), 7);
        assert_eq!(parts(1, 25_088), 224);
        assert_eq!(parts(4, 700), 1);
        assert_eq!(parts(1024, 4096), 1);
        for terms in 2..3000 {
            for tiles in [1, 3, 32, 300] {
                let parts = parts(tiles, terms);
                assert_eq!(terms % parts, 0, "{terms} in {parts}");
                assert!(parts == 1 || (terms / parts).is_multiple_of(STEP), "{terms} in {parts}");
            }
        }
    }
}
