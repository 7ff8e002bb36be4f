//! Reductions of large tensors along axes that others lie behind, as columns of a matrix, on processors: with tiles given, which take some
//! rows at a time through all columns.
//!
//! IREE takes 32 columns at a time through all rows: of each row it reads two cache lines, which a processor does not see coming, and it
//! makes no vectors of columns whose number is not a multiple of 32. Its kernel and this one on two cores of an AMD EPYC, ms: sum of squares
//! along the columns of 4000x4000 23 and 5.5, of 4000x4001 94 and 7.4, along the middle axis of 16x1000x1000 67 and 6.6.
//!
//! Tiles are the reduction's alone: one that the compiler joins with other operations loses them. Element-wise operations that lead to
//! the operand are therefore written into its body, and those that follow are apart. Long sums are `f64`, which costs a tenth here, and so
//! need no blocks (Q04).

mod expression;
#[cfg(test)]
mod tests;
mod view;

use self::expression::{Element, Expression};
use self::view::View;
use crate::graph::{DefUse, Var};
use crate::stablehlo::{LoopNest, Lowering, list, processor_lanes, reduction};
use crate::tensor::{DType, TensorType};

/// Operation of a sum.
const ADDITION: &str = "arith.addf";

/// Minimum elements of the operand: below, a kernel of its own takes as long as its tiles save.
const LARGE: usize = 1 << 16;

/// Maximum terms of a sum in the operand's dtype, which is one chain: of `f32`, and of `f64`.
const CHAINS: [usize; 2] = [128, 8192];

/// Rows that are taken through the columns one after the other.
const ROWS: usize = 8;

/// Minimum columns of a workgroup, if there are as many.
const NARROW: usize = 192;

/// Maximum bytes of a workgroup's totals: the wider its part of a row, the quicker it is read, but IREE begins with all totals in one vector,
/// and has a limit for these.
const TOTALS: usize = 8 << 10;

/// Workgroups that share the memory's bandwidth.
const GROUPS: usize = 4;

/// Maximum parts of rows with few columns.
const PARTS: usize = 16;

/// Minimum elements of a workgroup.
const SHARE: usize = 1 << 14;

/// Such a reduction.
pub struct TiledReduction {
    view: View,
    operand: Expression,
    dtype: DType,
    /// Of `StableHLO` and of MLIR.
    operation: [&'static str; 2],
    /// Dtype of totals. A vector of truth values would be one of bits, which take long to be joined and taken apart.
    total: DType,
}

impl TiledReduction {
    /// The reduction that gives `result` along `axes`, by an operation of `StableHLO`, if it is such a one.
    pub fn of(uses: &DefUse<'_>, result: Var, operation: &str, axes: &[usize]) -> Option<TiledReduction> {
        let reduction = uses.maker(result)?;
        let TensorType { shape, dtype, .. } = uses.graph.ty(uses.graph.equations[reduction].inputs[0]);
        let (operation, total) = match (operation, dtype) {
            ("stablehlo.add", DType::F32 | DType::F64) => (["stablehlo.add", ADDITION], *dtype),
            ("stablehlo.maximum", DType::F32 | DType::F64) => {
                (["stablehlo.maximum", "arith.maximumf"], *dtype)
            }
            ("stablehlo.minimum", DType::F32 | DType::F64) => {
                (["stablehlo.minimum", "arith.minimumf"], *dtype)
            }
            ("stablehlo.and", DType::Bool) => (["stablehlo.and", "arith.andi"], DType::I32),
            ("stablehlo.or", DType::Bool) => (["stablehlo.or", "arith.ori"], DType::I32),
            _ => return None,
        };
        let view = in_parts(View::of(shape, axes)?);
        let is_large =
            view.elements() >= LARGE && view.rows >= ROWS && view.columns >= processor_lanes(DType::F32);
        let is_sum = operation[1] == ADDITION;
        let is_exact = !is_sum || *dtype == DType::F32 || view.rows <= CHAINS[1];
        if !is_large || !is_exact {
            return None;
        }
        let total = if is_sum && view.rows > CHAINS[0] { DType::F64 } else { total };
        let operand = Expression::of(uses, reduction, view);
        Some(TiledReduction { view, operand, dtype: *dtype, operation, total })
    }

    /// Writes the reduction, which begins with `init`, as MLIR writes it.
    pub fn write(&self, to: &mut Lowering<'_>, init: &str) {
        let init = match (init, self.total) {
            ("true", _) => "1",
            ("false", _) => "0",
            (_, DType::F64) if self.dtype == DType::F32 => "0.0",
            (init, _) => init,
        };
        if self.total == DType::F64 {
            to.keep_doubles();
        }
        let (mut name, mut ty) = self.kernel(to, init);
        if self.view.blocks > 1 {
            let from = ty.with_shape([self.view.batch, self.view.blocks, self.view.columns].as_slice());
            let into = ty.with_shape([self.view.batch, self.view.columns].as_slice());
            let init = to.splat(&TensorType::scalar(self.total), init);
            name = to.with_shape(&name, &ty, &from);
            name = to.temporary(&reduction(self.operation[0], &init, &[1], &name, &from, &into));
            ty = into;
        }
        let into = to.result_type(0).clone();
        let shaped = ty.with_shape(into.shape.clone());
        name = to.with_shape(&name, &ty, &shaped);
        if into.dtype != self.total {
            name =
                to.temporary(&format!("stablehlo.convert {name} : ({}) -> {}", shaped.mlir(), into.mlir()));
        }
        to.name_results(&[name]);
    }

    /// Writes the kernel; name and type of the totals.
    fn kernel(&self, to: &mut Lowering<'_>, init: &str) -> (String, TensorType) {
        let (view, number) = (self.view, self.total.mlir());
        let mut operands = Vec::new();
        for source in &self.operand.sources {
            let from = to.ty(source.var).clone();
            let ty = from.with_shape(view.shape(&view.axes(source.has)).as_slice());
            let name = to.name(source.var).to_owned();
            operands.push((to.with_shape(&name, &from, &ty), ty));
        }
        let kept = view.kept();
        let totals = TensorType::new(self.total, view.shape(&kept).as_slice());
        let (name, ty) = (to.name_temporary(), totals.mlir());
        // A region of its own, as what follows would be one kernel with it, in which all columns of a workgroup are one vector.
        to.raw(&format!("{name} = flow.dispatch.region -> ({ty}) {{"));
        let init = to.temporary(&format!("arith.constant {init} : {number}"));
        let empty = to.temporary(&format!("tensor.empty() : {ty}"));
        let start = to.temporary(&format!("linalg.fill ins({init} : {number}) outs({empty} : {ty}) -> {ty}"));

        let loops: Vec<usize> = kept.iter().copied().chain([view::ROWS]).collect();
        let maps = self.operand.sources.iter().map(|source| map(&loops, &view.axes(source.has)));
        let kinds =
            loops.iter().map(|axis| if *axis == view::ROWS { "\"reduction\"" } else { "\"parallel\"" });
        let made = to.name_temporary();
        to.raw(&format!(
            "{made} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs({start} : {ty}) {} {{",
            list(maps.chain([map(&loops, &kept)])),
            list(kinds),
            list(operands.iter().map(|(name, _)| name.clone())),
            list(operands.iter().map(|(_, ty)| ty.mlir())),
            self.tiles(&loops),
        ));
        let names =
            operands.iter().enumerate().map(|(i, (_, ty))| format!("%element{i}: {}", ty.dtype.mlir()));
        to.raw(&format!("^bb0({}):", list(names.chain([format!("%total: {number}")]))));
        self.body(number).lines().iter().for_each(|line| to.raw(line));
        to.raw(&format!("}} -> {ty}"));
        to.raw(&format!("flow.return {made} : {ty}"));
        to.raw("}");
        (name, totals)
    }

    /// The operand's element, and its addition to the total, which is of type `number`.
    fn body(&self, number: &str) -> LoopNest {
        let mut nest = LoopNest::default();
        let mut values: Vec<String> = Vec::new();
        for element in &self.operand.elements {
            let value = match element {
                Element::Of(source) => format!("%element{source}"),
                Element::Number(number) => nest.number(number, DType::F32),
                Element::Applied { operation, operands, dtype } => {
                    let operands: Vec<String> = operands.iter().map(|i| values[*i].clone()).collect();
                    operation.write(&mut nest, &operands, *dtype, None)
                }
            };
            values.push(value);
        }
        let mut value = values.pop().expect("an operand has an element");
        value = match (self.total, self.dtype) {
            (DType::I32, _) => nest.value(&format!("arith.extui {value} : i1 to {number}")),
            // IREE takes a sum of products for one of matrices, which is three times as slow. LLVM sees that this is the product.
            (_, DType::F32) if self.operation[1] == ADDITION => {
                nest.binary("math.copysign", &value, &value, DType::F32.mlir())
            }
            _ => value,
        };
        if (self.total, self.dtype) == (DType::F64, DType::F32) {
            value = nest.value(&format!("arith.extf {value} : f32 to {number}"));
        }
        let total = nest.binary(self.operation[1], "%total", &value, number);
        nest.line(&format!("linalg.yield {total} : {number}"));
        nest
    }

    /// The attribute with the tiles, for the compiler's pipeline `DoubleTilingExpert`: for each level, from the outside in, one for each loop.
    fn tiles(&self, loops: &[usize]) -> String {
        let view = self.view;
        let lanes = processor_lanes(if self.total == DType::F64 { DType::F64 } else { DType::F32 });
        let matrices = view.batch * view.blocks;
        let most = TOTALS / if self.total == DType::F64 { 8 } else { 4 };
        let width = view.columns.div_ceil(GROUPS.div_ceil(matrices)).clamp(NARROW, most).min(view.columns);
        let width = width.next_multiple_of(lanes);
        let share = (SHARE / (view.rows * view.columns)).min(most / width);
        let several = share.clamp(1, matrices.div_ceil(GROUPS));
        // Of the batch and the blocks, those further inside.
        let inner = loops.iter().copied().rfind(|axis| *axis < view::ROWS);
        let tiles = |matrices: usize, rows: usize, columns: usize| {
            list(loops.iter().map(|axis| match *axis {
                axis if Some(axis) == inner => matrices.to_string(),
                view::ROWS => rows.to_string(),
                axis if axis > view::ROWS => columns.to_string(),
                _ => matrices.min(1).to_string(),
            }))
        };
        let one =
            if several > 1 { format!("cache_parallel = [{}], ", tiles(1, 0, 0)) } else { String::new() };
        format!(
            "attrs = {{compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<distribution = \
             [{}], {one}cache_reduction = [{}], vector_common_parallel = [{}], vector_reduction = [{}]>, translation_info = \
             #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>, {{enable_loop_peeling}}>>}}",
            tiles(several, 0, width),
            tiles(0, ROWS, 0),
            tiles(1, 0, lanes),
            tiles(0, 1, 0),
        )
    }
}

/// The view with rows in parts, if there are too few matrices and columns for the workgroups.
fn in_parts(view: View) -> View {
    let is_narrow = view.batch * view.columns.div_ceil(NARROW) < GROUPS;
    let parts =
        (2..=PARTS).rev().find(|parts| view.rows.is_multiple_of(*parts) && view.rows / parts >= PARTS);
    match parts.filter(|_| is_narrow) {
        Some(blocks) => View { blocks, rows: view.rows / blocks, ..view },
        None => view,
    }
}

/// The map from the loops to the axes of a tensor.
fn map(loops: &[usize], axes: &[usize]) -> String {
    let names = |axes: &[usize]| list(axes.iter().map(|axis| format!("d{axis}")));
    format!("affine_map<({}) -> ({})>", names(loops), names(axes))
}
