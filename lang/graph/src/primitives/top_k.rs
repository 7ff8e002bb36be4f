//! `top_k`: the positions of the greatest elements along the last axis, as `i32`, the greatest first. Of equal elements the first comes
//! first; NaN counts as greater than any number.

use smallvec::{SmallVec, smallvec};

use super::sort::nan_last;
use super::sort_lowering::{self, Layout, reshape};
use super::sort_merges::{Order, comparable};
use super::sort_radix::Digits;
use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Array, LoopNest, Lowering, Tensor, processor_lanes, zero};
use crate::tensor::{DType, Data, HostTensor, Shape, TensorType};
use crate::with_elements;

/// Maximum number of elements that a processor finds by one sweep; more are the first of the sorted row. Each element of a row that ascends takes
/// the place of all that were found before.
const MAX_KEPT: usize = 128;

/// The positions of the `k` greatest elements along the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Number of elements, at most the extent of the axis.
    pub k: usize,
}

impl TopK {
    /// The positions in a row.
    fn of<T: PartialOrd>(self, row: &[T]) -> Vec<i32> {
        let precedes =
            |i: &i32, j: &i32| nan_last(&row[*j as usize], &row[*i as usize]).then(i.cmp(j));
        let mut positions: Vec<i32> = (0..row.len() as i32).collect();
        if self.k < positions.len() {
            positions.select_nth_unstable_by(self.k, precedes);
            positions.truncate(self.k);
        }
        positions.sort_unstable_by(precedes);
        positions
    }

    /// Writes the search in a sweep: the elements found so far are in an array in their order, into which one that comes before the last
    /// of them is inserted.
    fn by_sweep(
        self,
        to: &mut Lowering<'_>,
        layout: &Layout,
        (keys, ty): (String, TensorType),
        found: &TensorType,
    ) -> String {
        let order = Order::of(ty.dtype);
        let keys = comparable(to, &keys, &ty);
        let dtype = keys.1.dtype;
        let positions = to.loop_nest(&[keys], std::slice::from_ref(found), layout.rows, |nest, read, written, row| {
            let kept = Kept { keys: nest.array(dtype, self.k), places: nest.array(DType::I32, self.k), order, k: self.k };
            let (first, k, extent) = (nest.index(0), nest.index(self.k), nest.index(layout.extent));
            let base = nest.binary("arith.muli", row, &extent, "index");
            nest.each(&first, &k, 1, |nest, i| {
                let from = nest.add(&base, i);
                let key = read[0].get(nest, &[&from]);
                let [key, place] = kept.insert(nest, [&key, i], i);
                kept.set(nest, i, [&key, &place]);
            });
            kept.sweep(nest, &read[0], [&base, &k, &extent]);
            nest.each(&first, &k, 1, |nest, i| {
                let place = kept.places.get(nest, i);
                written[0].set(nest, &[row, i], &place);
            });
        });
        positions.into_iter().next().unwrap_or_default()
    }

    /// Writes the sort of the rows, and takes the first of each.
    fn by_sort(
        self,
        to: &mut Lowering<'_>,
        layout: &Layout,
        (keys, ty): (String, TensorType),
        found: &TensorType,
    ) -> String {
        let sorted = sort_lowering::positions(to, layout, &keys, ty.dtype);
        let all = layout.matrix(DType::I32);
        let sorted = reshape(to, &sorted, &layout.flat(DType::I32), &all);
        let first = format!("[0:{}, 0:{}]", layout.rows, self.k);
        to.temporary(&format!("stablehlo.slice {sorted} {first} : ({}) -> {}", all.mlir(), found.mlir()))
    }
}

/// The first elements so far, in their order.
struct Kept {
    keys: Array,
    places: Array,
    order: Order,
    k: usize,
}

impl Kept {
    /// Writes the sweep over the elements of the row at `base` behind the first `k`, a vector at a time: few have an element to insert.
    fn sweep(&self, nest: &mut LoopNest, keys: &Tensor, [base, k, extent]: [&str; 3]) {
        let lanes = 2 * processor_lanes(keys.dtype());
        let vector = format!("vector<{lanes}x{}>", keys.dtype().mlir());
        let greater = match self.order {
            Order::Floats => "arith.cmpf ugt",
            Order::Signed => "arith.cmpi sgt",
            Order::Unsigned => "arith.cmpi ugt",
        };
        let count = nest.binary("arith.subi", extent, k, "index");
        let whole = nest.rounded_down(&count, lanes);
        let behind = nest.add(k, &whole);
        nest.each(k, &behind, lanes, |nest, i| {
            let from = nest.add(base, i);
            let several = keys.get_lanes(nest, &[&from], lanes);
            let last = self.last(nest);
            let last = nest.splat(&last, keys.dtype(), lanes);
            // True for NaN as well, whichever of the two it is.
            let before = nest.value(&format!("{greater}, {several}, {last} : {vector}"));
            let any = nest.value(&format!("vector.reduction <or>, {before} : vector<{lanes}xi1> into i1"));
            nest.when(&any, |nest| {
                let end = nest.offset(i, lanes);
                nest.each(i, &end, 1, |nest, i| self.offer(nest, keys, base, i));
            });
        });
        nest.each(&behind, extent, 1, |nest, i| self.offer(nest, keys, base, i));
    }

    /// Writes the reading of the last key.
    fn last(&self, nest: &mut LoopNest) -> String {
        let last = nest.index(self.k - 1);
        self.keys.get(nest, &last)
    }

    /// Writes the insertion of element `i` of the row at `base`, if it comes before the last of the full array.
    fn offer(&self, nest: &mut LoopNest, keys: &Tensor, base: &str, i: &str) {
        let from = nest.add(base, i);
        let key = keys.get(nest, &[&from]);
        let last = self.last(nest);
        let before = self.order.precedes(nest, [&last, &key], keys.dtype());
        nest.when(&before, |nest| {
            let k = nest.index(self.k);
            self.insert(nest, [&key, i], &k);
        });
    }

    /// Writes the insertion of a key and its place behind those of the first `count` that do not come after it; the key and the place of
    /// the element that is last then, and has no place among the first `count`.
    fn insert(&self, nest: &mut LoopNest, [key, place]: [&str; 2], count: &str) -> [String; 2] {
        let ty = self.keys.dtype().mlir();
        let zero = nest.index(0);
        let start = nest.partition_point([&zero, count], |nest, i| {
            let other = self.keys.get(nest, i);
            let is_less = self.order.precedes(nest, [&other, key], self.keys.dtype());
            nest.negated(&is_less)
        });
        let place = nest.value(&format!("arith.index_castui {place} : index to i32"));
        let moved = nest.carry(&start, count, 1, &[(key, ty), (&place, "i32")], |nest, i, moved| {
            let next = vec![self.keys.get(nest, i), self.places.get(nest, i)];
            self.set(nest, i, [&moved[0], &moved[1]]);
            next
        });
        [moved[0].clone(), moved[1].clone()]
    }

    fn set(&self, nest: &mut LoopNest, i: &str, [key, place]: [&str; 2]) {
        self.keys.set(nest, i, key);
        self.places.set(nest, i, place);
    }
}

impl Primitive for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn parameters(&self) -> String {
        format!("k={}", self.k)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("top_k", args, 1)?;
        let mut shape = args[0].shape.clone();
        match shape.last_mut() {
            Some(extent) if self.k <= *extent => *extent = self.k,
            _ => return Err(TypeFault::new(format!("top_k: {} has no {} elements in a row", args[0], self.k))),
        }
        Ok(smallvec![TensorType::new(DType::I32, shape)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let mut shape = Shape::from_slice(args[0].shape());
        let extent = shape.last_mut().map_or(1, |extent| std::mem::replace(extent, self.k));
        let positions: Vec<i32> = with_elements!(args[0].data(), v => v.chunks(extent.max(1)).flat_map(|row| self.of(row)).collect());
        smallvec![HostTensor::new(shape, Data::from(positions))]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let x = batch_all_to_front(b, args, axes)[0];
        smallvec![(b.apply(*self, &[x]), 0)]
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let (ty, result) = (to.operand_type(0).clone(), to.result_type(0).clone());
        if result.count() == 0 {
            let none = to.splat(&result, &zero(DType::I32));
            to.name_results(&[none]);
            return;
        }
        let layout = Layout::new(&ty, ty.rank() - 1);
        let flat = layout.flatten(to, 0);
        let rows = layout.flat(ty.dtype);
        let found = TensorType::new(DType::I32, [layout.rows, self.k].as_slice());
        // There are no vectors of booleans in memory.
        let is_swept = to.is_for_processor() && self.k <= MAX_KEPT && ty.dtype != DType::Bool;
        let positions = if is_swept {
            self.by_sweep(to, &layout, (flat, rows), &found)
        } else {
            let keys = Digits::of(to, &flat, &rows).descending(to, &rows);
            self.by_sort(to, &layout, keys, &found)
        };
        to.line(&format!("stablehlo.reshape {positions} : ({}) -> {}", found.mlir(), result.mlir()));
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        args[0].count() as u64
    }
}
