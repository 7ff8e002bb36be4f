//! Starts of dynamic slices on GPUs (Q58).

use super::to_be_indexed;
use crate::stablehlo::{LoopNest, Lowering, Tensor};
use crate::tensor::{DType, TensorType};

/// Writes a `dynamic_slice` whose kernel reads the starts; false, and nothing written, where the usual operation serves: on a processor, and for
/// starts that are constants.
pub fn slice_from(to: &mut Lowering<'_>) -> bool {
    let result = to.result_type(0).clone();
    let Some(starts) = starts(to, 1, &result) else { return false };
    let ty = to.operand_type(0).clone();
    let source = to_be_indexed(to, &to.operand(0), &ty);
    let (source, signless) = to.signless(&source, &ty);
    let source = Tensor::read_only(&source, signless.clone());
    let sizes = result.shape.to_vec();
    let taken = to.generic(&sizes, &[signless.dtype], |nest, at| {
        let from = first_corner(nest, &starts, &ty, &sizes);
        let from: Vec<String> = from.iter().zip(at).map(|(start, i)| nest.add(start, i)).collect();
        vec![read(nest, &source, &from)]
    });
    let taken = to.bitcast(&taken[0], &result.with_dtype(signless.dtype), &result);
    to.name_results(&[taken]);
    true
}

/// Writes a `dynamic_update_slice` in the same way.
pub fn update_from(to: &mut Lowering<'_>) -> bool {
    let result = to.result_type(0).clone();
    let Some(starts) = starts(to, 2, &result) else { return false };
    let [target, update] = [0, 1].map(|i| {
        let ty = to.operand_type(i).clone();
        let x = to_be_indexed(to, &to.operand(i), &ty);
        let (x, ty) = to.signless(&x, &ty);
        Tensor::read_only(&x, ty)
    });
    let sizes = to.operand_type(1).shape.to_vec();
    let dtype = target.dtype();
    let updated = to.generic(&result.shape, &[dtype], |nest, at| {
        let corner = first_corner(nest, &starts, &result, &sizes);
        // Before the box a difference is a very large unsigned number.
        let mut within = nest.value("arith.constant true");
        let mut place = Vec::new();
        for ((i, start), size) in at.iter().zip(&corner).zip(&sizes) {
            let offset = nest.binary("arith.subi", i, start, "index");
            let size = nest.index(*size);
            let fits = nest.value(&format!("arith.cmpi ult, {offset}, {size} : index"));
            within = nest.binary("arith.andi", &within, &fits, "i1");
            place.push(offset);
        }
        let ty = dtype.mlir();
        vec![nest.choose(&within, ty, |nest| read(nest, &update, &place), |nest| read(nest, &target, at))]
    });
    let updated = to.bitcast(&updated[0], &result.with_dtype(dtype), &result);
    to.name_results(&[updated]);
    true
}

/// The starts, operands from `first` on, of a box with elements on a GPU; `None` if they are constants.
fn starts(to: &mut Lowering<'_>, first: usize, result: &TensorType) -> Option<Vec<Tensor>> {
    let is_box = result.count() > 0 && to.operand_type(first - 1).count() > 0;
    let operands = first..to.operand_count();
    if to.is_for_processor() || !is_box || operands.clone().all(|i| to.repeated_number(i).is_some()) {
        return None;
    }
    let ty = TensorType::scalar(DType::I32);
    let start = |i| {
        let start = to.operand(i);
        Tensor::read_only(&to_be_indexed(to, &start, &ty), ty.clone())
    };
    Some(operands.map(start).collect())
}

/// Writes the first corner of a box of these sizes: the starts, limited so that the box is within a tensor.
fn first_corner(nest: &mut LoopNest, starts: &[Tensor], ty: &TensorType, sizes: &[usize]) -> Vec<String> {
    let axes = starts.iter().zip(ty.shape.iter().zip(sizes));
    axes.map(|(start, (extent, size))| {
        let start = start.get(nest, &[]);
        let start = nest.value(&format!("arith.index_cast {start} : i32 to index"));
        let (zero, last) = (nest.index(0), nest.index(extent - size));
        let start = nest.binary("arith.maxsi", &start, &zero, "index");
        nest.binary("arith.minsi", &start, &last, "index")
    })
    .collect()
}

fn read(nest: &mut LoopNest, x: &Tensor, at: &[String]) -> String {
    let at: Vec<&str> = at.iter().map(String::as_str).collect();
    x.get(nest, &at)
}
