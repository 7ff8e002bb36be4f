//! Each rule alone, and all of them on random graphs.

use std::sync::Arc;

use super::simplify;
use crate::graph::{Builder, Graph, Var, evaluate};
use crate::primitives as p;
use crate::primitives::registry::Random;
use crate::primitives::{Binary, Unary};
use crate::tensor::DType::{self, BF16, Bool, F16, F32, F64, I32, I64};
use crate::tensor::{HostTensor, Shape, TensorType};

/// The simplified equations of a function of tensors of these types, one per line: `add v0 v1`.
fn simplified(types: &[(DType, &[usize])], f: impl FnOnce(&mut Builder, &[Var]) -> Vec<Var>) -> String {
    let text = renumbered(&simplify(&graph(types, f))).to_string();
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    let renamed: Vec<String> =
        lines.iter().map(|l| l.split_once(" = ").map_or(*l, |(_, r)| r).to_owned()).collect();
    renamed.join("; ")
}

/// The graph with its variables renumbered without gaps.
fn renumbered(graph: &Graph) -> Graph {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = b.inline(graph, &inputs);
    b.finish(outputs)
}

fn graph(types: &[(DType, &[usize])], f: impl FnOnce(&mut Builder, &[Var]) -> Vec<Var>) -> Graph {
    let mut b = Builder::new();
    let inputs: Vec<Var> =
        types.iter().map(|(dtype, shape)| b.input(TensorType::new(*dtype, *shape))).collect();
    let outputs = f(&mut b, &inputs);
    b.finish(outputs)
}

fn shape(extents: &[usize]) -> Shape {
    Shape::from_slice(extents)
}

const V: (DType, &[usize]) = (F32, &[3]);
const M: (DType, &[usize]) = (F32, &[2, 3]);

macro_rules! rule {
    ($name:ident, $types:expr, |$b:ident, $x:ident| $body:expr => $expected:expr) => {
        #[test]
        fn $name() {
            let found = simplified(&$types, |$b, $x| vec![$body]);
            assert_eq!(found, $expected);
        }
    };
}

rule!(constants_fold, [], |b, _x| {
    let (two, three) = (b.scalar(F32, 2.0), b.scalar(F32, 3.0));
    b.mul(two, three)
} => "constant[6]; [v0]");

rule!(a_product_over_no_axis_is_zero, [(F32, &[9, 0]), (F32, &[0, 8])], |b, x| {
    b.apply(p::DotGeneral { contract: [shape(&[1]), shape(&[0])], ..p::DotGeneral::default() }, &[x[0], x[1]])
} => "full[0 shape=[9, 8]]; [v2]");

rule!(results_without_elements_are_constants, [(F32, &[0, 9]), (F32, &[9, 8])], |b, x| {
    let product = p::DotGeneral { contract: [shape(&[1]), shape(&[0])], ..p::DotGeneral::default() };
    b.apply(product, &[x[0], x[1]])
} => "full[0 shape=[0, 8]]; [v2]");

rule!(the_largest_of_nothing_is_minus_infinity, [(F32, &[0, 3])], |b, x| {
    b.apply(p::ReduceMax { axes: shape(&[0]) }, &[x[0]])
} => "full[-inf shape=[3]]; [v1]");

rule!(a_box_is_added_to_the_other_term, [(F32, &[9, 3]), (I32, &[]), (F32, &[2, 3])], |b, x| {
    let zeros = b.full_like(x[0], 0.0);
    let rows = b.dynamic_update_slice(zeros, x[2], &[x[1], x[1]]);
    b.add(rows, x[0])
} => "dynamic_slice[sizes=[2, 3]] v0 v1 v1; add v3 v2; dynamic_update_slice v0 v4 v1 v1; [v5]");

rule!(rows_are_added_to_the_other_term, [(F32, &[9, 3]), (I32, &[2]), (F32, &[2, 3])], |b, x| {
    let zeros = b.zeros(&TensorType::new(F32, &[9, 3][..]));
    let rows = b.scatter_add(zeros, x[1], x[2]);
    b.add(rows, x[0])
} => "scatter_add v0 v1 v2; [v3]");

rule!(multiplied_rows_are_taken_from_the_other_term, [(F32, &[9, 3]), (I32, &[2]), (F32, &[2, 3])], |b, x| {
    let zeros = b.zeros(&TensorType::new(F32, &[9, 3][..]));
    let rows = b.scatter_add(zeros, x[1], x[2]);
    let rows = b.apply(p::OptimizationBarrier, &[rows]);
    let rate = b.full_like(rows, 0.5);
    let rows = b.mul(rate, rows);
    b.sub(x[0], rows)
} => "full[0.5 shape=[2, 3]]; mul v3 v2; neg v4; scatter_add v0 v1 v5; [v6]");

rule!(rows_that_are_read_twice_are_multiplied_afterwards, [(I32, &[2]), (F32, &[2, 3])], |b, x| {
    let zeros = b.zeros(&TensorType::new(F32, &[9, 3][..]));
    let rows = b.scatter_add(zeros, x[0], x[1]);
    let squares = b.mul(rows, rows);
    let rate = b.full_like(rows, 0.5);
    let rows = b.mul(rate, rows);
    b.mul(squares, rows)
} => "full[0 shape=[9, 3]]; scatter_add v2 v0 v1; mul v3 v3; full[0.5 shape=[9, 3]]; mul v5 v3; mul v4 v6; [v7]");

rule!(rows_are_not_multiplied_by_infinity, [(I32, &[2]), (F32, &[2, 3])], |b, x| {
    let zeros = b.zeros(&TensorType::new(F32, &[9, 3][..]));
    let rows = b.scatter_add(zeros, x[0], x[1]);
    let rate = b.full_like(rows, f64::INFINITY);
    b.mul(rate, rows)
} => "full[0 shape=[9, 3]]; scatter_add v2 v0 v1; full[inf shape=[9, 3]]; mul v4 v3; [v5]");

rule!(a_sum_of_all_takes_the_sums_of_columns, [(F32, &[4, 3])], |b, x| {
    let columns = b.sum(x[0], &[0]);
    let all = b.sum(x[0], &[0, 1]);
    let all = b.broadcast_in_dim(all, &[3], &[]);
    b.add(columns, all)
} => "reduce_sum[axes=[0]] v0; reduce_sum[axes=[0]] v1; broadcast_in_dim[shape=[3] dims=[]] v2; add v1 v3; [v4]");

rule!(many_rows_are_summed_first, [(F32, &[3, 3]), (I32, &[2]), (F32, &[2, 3])], |b, x| {
    let zeros = b.zeros(&TensorType::new(F32, &[3, 3][..]));
    let rows = b.scatter_add(zeros, x[1], x[2]);
    b.add(x[0], rows)
} => "full[0 shape=[3, 3]]; scatter_add v3 v1 v2; add v0 v4; [v5]");

/// `iota = class` for 3 rows of 5 classes.
fn hot(b: &mut Builder, classes: Var) -> Var {
    let counter = b.iota(I32, &[3, 5], 1);
    let classes = b.broadcast_in_dim(classes, &[3, 5], &[0]);
    b.compare(p::Direction::Eq, classes, counter)
}

rule!(a_row_has_its_class_if_that_is_in_range, [(I32, &[3])], |b, x| {
    let hot = hot(b, x[0]);
    b.apply(p::ReduceOr { axes: shape(&[1]) }, &[hot])
} => "full[0 shape=[3]]; full[5 shape=[3]]; compare[ge] v0 v1; compare[lt] v0 v2; and v3 v4; [v5]");

rule!(other_axes_of_classes_are_reduced, [(I32, &[3])], |b, x| {
    let hot = hot(b, x[0]);
    b.apply(p::ReduceOr { axes: shape(&[0]) }, &[hot])
} => "iota[i32 shape=[3, 5] dimension=1]; broadcast_in_dim[shape=[3, 5] dims=[0]] v0; compare[eq] v2 v1; reduce_or[axes=[0]] v3; [v4]");

rule!(a_row_of_the_gradient_of_a_class_is_one_number, [(I32, &[3]), V], |b, x| {
    let hot = hot(b, x[0]);
    let rows = b.broadcast_in_dim(x[1], &[3, 5], &[0]);
    let zeros = b.full_like(rows, 0.0);
    let chosen = b.select(hot, rows, zeros);
    b.sum(chosen, &[1])
} => "full[0 shape=[3]]; full[5 shape=[3]]; compare[ge] v0 v2; compare[lt] v0 v3; and v4 v5; full[0 shape=[3]]; \
   select v6 v1 v7; add v7 v8; [v9]");

rule!(a_choice_of_integers_by_their_equality_is_the_other, [(I32, &[3]), (I32, &[3])], |b, x| {
    let equal = b.compare(p::Direction::Eq, x[0], x[1]);
    b.select(equal, x[1], x[0])
} => "[v0]");

rule!(a_choice_of_floats_by_their_equality_stays, [V, V], |b, x| {
    let equal = b.compare(p::Direction::Eq, x[0], x[1]);
    b.select(equal, x[1], x[0])
} => "compare[eq] v0 v1; select v2 v1 v0; [v3]");

rule!(the_negative_of_a_choice_of_numbers_is_one, [(Bool, &[3])], |b, x| {
    let one = b.full(&TensorType::new(F32, &[3][..]), 1.0);
    let zeros = b.full_like(one, 0.0);
    let chosen = b.select(x[0], one, zeros);
    b.neg(chosen)
} => "full[-1 shape=[3]]; full[-0 shape=[3]]; select v0 v1 v2; [v3]");

/// Classes out of range, and a zero with a sign.
#[test]
fn sums_of_one_hot_rows_keep_their_values() {
    let graph = graph(&[(I32, &[3]), V], |b, x| {
        let hot = hot(b, x[0]);
        let rows = b.broadcast_in_dim(x[1], &[3, 5], &[0]);
        let [zeros, negative] = [0.0, -0.0].map(|zero| b.full_like(rows, zero));
        let chosen = b.select(hot, rows, zeros);
        let others = b.select(hot, rows, negative);
        vec![b.sum(chosen, &[1]), b.sum(others, &[1]), b.apply(p::ReduceOr { axes: shape(&[1]) }, &[hot])]
    });
    for classes in [[0, 4, 2], [-1, 5, i32::MAX], [i32::MIN, 3, 1]] {
        let operands = [
            HostTensor::new(shape(&[3]), classes.to_vec()),
            HostTensor::new(shape(&[3]), vec![1.5_f32, -0.0, 7.0]),
        ];
        let texts = [&graph, &simplify(&graph)].map(|g| format!("{:?}", evaluate(g, &operands)));
        assert_eq!(texts[0], texts[1], "{classes:?}");
    }
}

rule!(a_repeated_constant_is_full, [], |b, _x| {
    b.constant(HostTensor::filled(F32, [2, 2].as_slice(), 4.0), false)
} => "full[4 shape=[2, 2]]; [v0]");

rule!(uniform_tensors_fold, [], |b, _x| {
    let ones = b.full(&TensorType::new(F32, [100_usize, 100].as_slice()), 1.0);
    let sum = b.add(ones, ones);
    b.transpose(sum, &[1, 0])
} => "full[2 shape=[100, 100]]; [v0]");

rule!(nothing_moves_a_constant, [], |b, _x| {
    let one = b.scalar(F32, 1.0);
    b.apply(p::OptimizationBarrier, &[one])
} => "constant[1]; [v0]");

rule!(equal_equations_are_one, [V, V], |b, x| {
    let (s, t) = (b.add(x[0], x[1]), b.add(x[0], x[1]));
    b.mul(s, t)
} => "add v0 v1; mul v2 v2; [v3]");

rule!(dead_equations_go, [V], |b, x| {
    let _unused = b.neg(x[0]);
    b.abs(x[0])
} => "abs v0; [v1]");

rule!(converting_to_the_own_dtype_is_nothing, [V], |b, x| {
    b.apply(p::Convert { dtype: F32, weak: false }, &[x[0]])
} => "[v0]");

rule!(converting_twice_without_loss_is_once, [(I32, &[3])], |b, x| {
    let wide = b.convert(x[0], I64);
    b.convert(wide, F32)
} => "convert[f32] v0; [v1]");

rule!(a_half_float_is_a_single_on_the_way_to_a_double, [(BF16, &[3])], |b, x| {
    let single = b.convert(x[0], F32);
    b.convert(single, F64)
} => "convert[f64] v0; [v1]");

rule!(one_half_float_does_not_hold_the_other, [(BF16, &[3])], |b, x| {
    let other = b.convert(x[0], F16);
    b.convert(other, F32)
} => "convert[f16] v0; convert[f32] v1; [v2]");

rule!(converting_with_loss_stays, [V], |b, x| {
    let whole = b.convert(x[0], I32);
    b.convert(whole, F32)
} => "convert[i32] v0; convert[f32] v1; [v2]");

rule!(one_times_is_nothing, [V], |b, x| {
    let y = b.scale(x[0], 1.0);
    let one = b.full_like(y, 1.0);
    b.div(y, one)
} => "[v0]");

rule!(minus_zero_is_nothing, [V], |b, x| {
    let zero = b.full_like(x[0], 0.0);
    b.sub(x[0], zero)
} => "[v0]");

rule!(plus_zero_may_change_a_sign, [V], |b, x| {
    let zero = b.full_like(x[0], 0.0);
    b.add(x[0], zero)
} => "full[0 shape=[3]]; add v0 v1; [v2]");

rule!(plus_zero_is_nothing_for_integers, [(I32, &[3])], |b, x| {
    let zero = b.full_like(x[0], 0.0);
    b.add(zero, x[0])
} => "[v0]");

rule!(zero_times_may_not_be_zero, [V], |b, x| b.scale(x[0], 0.0) => "full[0 shape=[3]]; mul v0 v1; [v2]");

rule!(the_larger_of_one_tensor, [V], |b, x| b.max(x[0], x[0]) => "[v0]");

rule!(negating_twice, [V], |b, x| {
    let y = b.neg(x[0]);
    b.neg(y)
} => "[v0]");

rule!(the_size_of_a_negative, [V], |b, x| {
    let y = b.neg(x[0]);
    let y = b.abs(y);
    b.abs(y)
} => "abs v0; [v1]");

rule!(adding_a_negative_is_subtracting, [V, V], |b, x| {
    let y = b.neg(x[1]);
    b.add(x[0], y)
} => "sub v0 v1; [v2]");

rule!(signs_of_both_factors, [V, V], |b, x| {
    let (y, z) = (b.neg(x[0]), b.neg(x[1]));
    b.mul(y, z)
} => "mul v0 v1; [v2]");

rule!(times_minus_one, [V], |b, x| b.scale(x[0], -1.0) => "neg v0; [v1]");

rule!(choosing_between_equals, [(Bool, &[3]), V], |b, x| b.select(x[0], x[1], x[1]) => "[v1]");

rule!(choosing_by_the_opposite, [(Bool, &[3]), V, V], |b, x| {
    let not = b.apply(Unary(p::Not), &[x[0]]);
    b.select(not, x[1], x[2])
} => "select v0 v2 v1; [v3]");

rule!(reshaping_twice, [M], |b, x| {
    let y = b.reshape(x[0], &[6]);
    b.reshape(y, &[3, 2])
} => "reshape[shape=[3, 2]] v0; [v1]");

rule!(reshaping_back, [M], |b, x| {
    let y = b.reshape(x[0], &[6]);
    b.reshape(y, &[2, 3])
} => "[v0]");

rule!(transposing_back, [M], |b, x| {
    let y = b.transpose(x[0], &[1, 0]);
    b.transpose(y, &[1, 0])
} => "[v0]");

rule!(transposing_a_row, [(F32, &[1, 3])], |b, x| {
    b.transpose(x[0], &[1, 0])
} => "reshape[shape=[3, 1]] v0; [v1]");

rule!(repeating_twice, [V], |b, x| {
    let y = b.broadcast_in_dim(x[0], &[2, 3], &[1]);
    b.broadcast_in_dim(y, &[4, 2, 3], &[1, 2])
} => "broadcast_in_dim[shape=[4, 2, 3] dims=[2]] v0; [v1]");

rule!(repeating_along_a_new_axis, [V], |b, x| {
    let y = b.reshape(x[0], &[3, 1]);
    b.broadcast_in_dim(y, &[3, 4], &[0, 1])
} => "broadcast_in_dim[shape=[3, 4] dims=[0]] v0; [v1]");

rule!(repeating_once_only, [V], |b, x| {
    b.broadcast_in_dim(x[0], &[1, 3, 1], &[1])
} => "reshape[shape=[1, 3, 1]] v0; [v1]");

rule!(an_axis_put_into_what_is_repeated, [V], |b, x| {
    let y = b.broadcast_in_dim(x[0], &[2, 3], &[1]);
    b.reshape(y, &[2, 1, 3])
} => "broadcast_in_dim[shape=[2, 1, 3] dims=[2]] v0; [v1]");

rule!(the_whole_of_it, [M], |b, x| {
    let y = b.apply(p::Slice { start: shape(&[0, 0]), limit: shape(&[2, 3]) }, &[x[0]]);
    let y = b.apply(p::Concatenate { axis: 0 }, &[y]);
    let zero = b.scalar(F32, 0.0);
    let y = b.apply(p::Pad { low: shape(&[0, 0]), high: shape(&[0, 0]) }, &[y, zero]);
    b.apply(p::Reverse { axes: shape(&[]) }, &[y])
} => "[v0]");

rule!(a_part_of_a_part, [(F32, &[9])], |b, x| {
    let y = b.slice(x[0], &[2], &[8]);
    b.slice(y, &[1], &[3])
} => "slice[start=[3] limit=[5]] v0; [v1]");

rule!(a_part_of_one_of_several, [V, V], |b, x| {
    let y = b.concatenate(x, 0);
    b.slice(y, &[4], &[6])
} => "slice[start=[1] limit=[3]] v1; [v2]");

rule!(parts_that_nobody_uses, [(F32, &[4])], |b, x| {
    b.apply_all(p::Split { axis: 0, sizes: shape(&[1, 3]) }, x)[1]
} => "slice[start=[1] limit=[4]] v0; [v1]");

rule!(the_sum_of_one, [(F32, &[1, 3])], |b, x| b.sum(x[0], &[0]) => "reshape[shape=[3]] v0; [v1]");

rule!(stopping_what_does_not_flow, [V], |b, x| b.apply(p::StopGradient, &[x[0]]) => "[v0]");

/// A graph of parameters of these types.
fn inner(types: &[(DType, &[usize])], f: impl FnOnce(&mut Builder, &[Var]) -> Vec<Var>) -> Arc<Graph> {
    Arc::new(graph(types, f))
}

rule!(a_known_condition, [V], |b, x| {
    let branches = [1.0, 2.0].map(|factor| inner(&[V], |b, x| vec![b.scale(x[0], factor)]));
    let [on_true, on_false] = branches;
    let holds = b.scalar(Bool, 1.0);
    b.apply(p::Cond { on_true, on_false }, &[holds, x[0]])
} => "[v0]");

rule!(what_no_branch_needs, [(Bool, &[]), V, V], |b, x| {
    let on_true = inner(&[V, V], |b, x| vec![b.neg(x[0]), b.neg(x[1])]);
    let on_false = inner(&[V, V], |b, x| vec![b.abs(x[0]), b.abs(x[1])]);
    b.apply_all(p::Cond { on_true, on_false }, x)[1]
} => "cond[1 1] v0 v2; [v3]");

/// A scan of three steps. Constants: a vector and a number. States: the unchanged vector, a sum, an unused one. Rows:
/// the sum, an unused one.
fn wasteful() -> p::Scan {
    let body = inner(&[V, (F32, &[]), V, V, V, V], |b, x| {
        let number = b.broadcast_scalar(x[1], &[3]);
        let scaled = b.mul(x[5], number);
        let sum = b.add(x[3], scaled);
        let sum = b.add(sum, x[2]);
        let waste = b.add(x[4], x[0]);
        vec![x[2], sum, waste, sum, waste]
    });
    p::Scan { body, length: 3, constants: 2, states: 3, reverse: false }
}

rule!(what_a_scan_carries_without_need, [V, V, V, V, (F32, &[3, 3])], |b, x| {
    let one = b.scalar(F32, 1.0);
    b.apply_all(wasteful(), &[x[0], one, x[1], x[2], x[3], x[4]])[1]
} => "scan[length=3 constants=1 states=1 reverse=false] v1 v2 v4; [v5]");

rule!(what_a_while_carries_without_need, [V, V, V, (I32, &[])], |b, x| {
    let types = [V, V, V, (I32, &[] as &[usize])];
    let condition = inner(&types, |b, x| {
        let limit = b.full_like(x[3], 9.0);
        vec![b.compare(p::Direction::Lt, x[3], limit)]
    });
    let body = inner(&types, |b, x| {
        let one = b.full_like(x[3], 1.0);
        vec![x[1], b.add(x[2], x[0]), b.add(x[3], one)]
    });
    let results = b.apply_all(p::WhileLoop { condition, body, constants: 1 }, x);
    b.neg(results[2])
} => "while_loop[constants=0] v3; neg v4; [v5]");

/// A graph of `size` random equations.
fn random_graph(random: &mut Random, size: usize) -> Graph {
    let mut b = Builder::new();
    let mut pool: Vec<Var> = [&[3][..], &[2, 3], &[1, 3], &[2, 1], &[]]
        .into_iter()
        .map(|shape| b.input(TensorType::new(F32, shape)))
        .collect();
    for number in [0.0, -0.0, 1.0, -1.0, 2.0] {
        pool.push(b.scalar(F32, number));
    }
    for _ in 0..size {
        let pick = |random: &mut Random| pool[random.below(pool.len() as u64) as usize];
        let (x, y) = (pick(random), pick(random));
        let extents = b.shape(x);
        let y = if b.shape(y).is_empty() { b.broadcast_scalar(y, &extents) } else { y };
        let rank = extents.len();
        let axis = if rank == 0 { 0 } else { random.below(rank as u64) as usize };
        let unary: [crate::graph::Op; 4] = [
            Arc::new(Unary(p::Neg)),
            Arc::new(Unary(p::Abs)),
            Arc::new(Unary(p::Tanh)),
            Arc::new(p::StopGradient),
        ];
        let binary: [crate::graph::Op; 5] = [
            Arc::new(Binary(p::Add)),
            Arc::new(Binary(p::Sub)),
            Arc::new(Binary(p::Mul)),
            Arc::new(Binary(p::Div)),
            Arc::new(Binary(p::Max)),
        ];
        let made = match random.below(10) {
            0 | 1 => b.bind(unary[random.below(4) as usize].clone(), &[x]).ok(),
            2..=4 => b.bind(binary[random.below(5) as usize].clone(), &[x, y]).ok(),
            5 if rank > 0 => Some([b.sum(x, &[axis])].as_slice().into()),
            6 => {
                let mut wider = extents.to_vec();
                wider.insert(axis, 1 + random.below(2) as usize);
                let dims: Vec<usize> = (0..wider.len()).filter(|i| *i != axis).collect();
                (b.ty(x).count() < 50).then(|| [b.broadcast_in_dim(x, &wider, &dims)].as_slice().into())
            }
            7 => {
                let order: Shape = (0..rank).rev().collect();
                b.bind(Arc::new(p::Transpose { permutation: order }), &[x]).ok()
            }
            8 if rank > 0 => Some([b.slice_axis(x, axis, 0, extents[axis].div_ceil(2))].as_slice().into()),
            9 if rank > 0 => b.bind(Arc::new(p::Concatenate { axis }), &[x, y]).ok(),
            _ => {
                let mut flat = extents.to_vec();
                flat.retain(|n| *n != 1);
                Some([b.reshape(x, &flat)].as_slice().into())
            }
        };
        let made: Option<crate::graph::Vars> = made;
        pool.extend(made.unwrap_or_default());
    }
    let outputs = (0..3).map(|_| pool[pool.len() - 1 - random.below(8) as usize]).collect();
    b.finish(outputs)
}

#[test]
fn random_graphs_keep_their_values() {
    let mut random = Random(7);
    for case in 0..500 {
        let graph = random_graph(&mut random, 40);
        let inputs: Vec<HostTensor> = graph
            .inputs
            .iter()
            .map(|v| {
                let ty = graph.ty(*v);
                let numbers: Vec<f32> = (0..ty.count()).map(|_| random.uniform(-2.0, 2.0) as f32).collect();
                HostTensor::new(ty.shape.clone(), numbers)
            })
            .collect();
        let smaller = renumbered(&simplify(&graph));
        let (before, after) = (evaluate(&graph, &inputs), evaluate(&smaller, &inputs));
        for (x, y) in before.iter().zip(&after) {
            assert_eq!(x.shape(), y.shape(), "case {case}");
            let same = x.as_f32().unwrap().iter().zip(y.as_f32().unwrap()).all(|(x, y)| {
                // A sum of one term makes 0 of -0.
                x == y || x.is_nan() && y.is_nan() || x.is_infinite() && y.is_infinite()
            });
            assert!(same, "case {case}: {x:?} and {y:?}\n{graph}\n{smaller}");
        }
        assert!(smaller.equations.len() <= graph.equations.len());
        let again = renumbered(&simplify(&smaller));
        assert_eq!(again.to_string(), smaller.to_string(), "case {case}: a second time finds more");
    }
}

/// A recurrent net over five rows: products of rows are hoisted before the loop, sums of products in its gradient after
/// it.
#[test]
fn large_products_leave_loops() {
    const X: (DType, &[usize]) = (F32, &[32, 64]);
    const W: (DType, &[usize]) = (F32, &[64, 64]);
    let product = || p::DotGeneral { contract: [shape(&[1]), shape(&[0])], ..p::DotGeneral::default() };
    // Constants: two matrices, a vector. State: a hidden state. Rows: an input.
    let body = inner(&[W, W, (F32, &[64]), X, X], |b, x| {
        let (of_row, of_state) = (b.apply(product(), &[x[4], x[0]]), b.apply(product(), &[x[3], x[1]]));
        let sum = b.add(of_row, of_state);
        let bias = b.broadcast_in_dim(x[2], &[32, 64], &[1]);
        let sum = b.add(sum, bias);
        let next = b.apply(Unary(p::Tanh), &[sum]);
        vec![next, next, x[4]]
    });
    let loss = graph(&[W, W, (F32, &[64]), X, (F32, &[5, 32, 64])], |b, x| {
        let scan = p::Scan { body, length: 5, constants: 3, states: 1, reverse: false };
        let results = b.apply_all(scan, x);
        let squares = b.mul(results[1], results[2]);
        vec![b.sum(squares, &[0, 1, 2])]
    });
    let gradient = crate::transform::value_and_grad(&loss, 0, &[0, 1, 2, 3, 4]);
    let smaller = simplify(&gradient);
    let products =
        |graph: &Graph| graph.equations.iter().filter(|eqn| eqn.op.name() == "dot_general").count();
    // Before: rows by the first matrix. After: the gradients of both matrices, and of the rows.
    assert_eq!(products(&gradient), 0);
    assert!(products(&smaller) >= 3, "{smaller}");
    // The gradient of the vector is a sum after the loop.
    let states: Vec<usize> =
        smaller.equations.iter().filter_map(|eqn| Some(eqn.op.downcast_ref::<p::Scan>()?.states)).collect();
    assert_eq!(states, [1, 1], "{smaller}");

    let mut random = Random(11);
    let inputs: Vec<HostTensor> = gradient
        .inputs
        .iter()
        .map(|v| {
            let ty = gradient.ty(*v);
            let numbers: Vec<f32> = (0..ty.count()).map(|_| random.uniform(-0.2, 0.2) as f32).collect();
            HostTensor::new(ty.shape.clone(), numbers)
        })
        .collect();
    for (x, y) in evaluate(&gradient, &inputs).iter().zip(&evaluate(&smaller, &inputs)) {
        assert_eq!(x.shape(), y.shape());
        for i in 0..x.count() {
            let (a, b) = (x.element_f64(i), y.element_f64(i));
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{i}: {a} and {b}");
        }
    }
}
