//! Reductions whose kernels have tiles, and the elements that are written into them.

use super::expression::{Element, Source};
use super::view::View;
use super::*;
use crate::graph::{Builder, Graph};
use crate::primitives::{DotGeneral, Exp, Unary};
use crate::tensor::Shape;

fn float(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn view([batch, rows, columns]: [usize; 3]) -> View {
    View { batch, blocks: 1, rows, columns }
}

/// The sum along `axes` of what is made of a tensor of `shape`.
fn sum(shape: &[usize], axes: &[usize], make: impl FnOnce(&mut Builder, Var) -> Var) -> (Graph, Var) {
    let mut b = Builder::new();
    let x = b.input(float(shape));
    let made = make(&mut b, x);
    let sum = b.sum(made, axes);
    (b.finish(vec![sum]), sum)
}

fn tiled((graph, result): &(Graph, Var), axes: &[usize]) -> Option<TiledReduction> {
    TiledReduction::of(&DefUse::of(graph), *result, "stablehlo.add", axes)
}

fn operations(reduction: &TiledReduction) -> usize {
    reduction.operand.elements.iter().filter(|e| matches!(e, Element::Applied { .. })).count()
}

#[test]
fn reduced_axes_lie_together_before_others() {
    assert_eq!(View::of(&[4, 5], &[0]), Some(view([1, 4, 5])));
    assert_eq!(View::of(&[2, 3, 4, 5], &[1, 2]), Some(view([2, 12, 5])));
    assert_eq!(View::of(&[1, 3, 1, 4, 1], &[1]), Some(view([1, 3, 4])));
    assert_eq!(View::of(&[4, 5], &[1]), None);
    assert_eq!(View::of(&[3, 4, 5], &[0, 2]), None);
    assert_eq!(View::of(&[3, 4, 5, 6], &[0, 2]), None);
}

#[test]
fn a_broadcast_has_whole_axes_of_the_view_or_none() {
    let view = view([2, 12, 5]);
    let along =
        |shape: &[usize], from: &[usize], dims: &[usize]| view.along(&float(shape), &float(from), dims);
    assert_eq!(along(&[2, 3, 4, 5], &[5], &[3]), Some([false, false, true]));
    assert_eq!(along(&[2, 3, 4, 5], &[2, 1, 1, 5], &[0, 1, 2, 3]), Some([true, false, true]));
    assert_eq!(along(&[2, 3, 4, 5], &[3, 4], &[1, 2]), Some([false, true, false]));
    assert_eq!(along(&[24, 5], &[5], &[1]), Some([false, false, true]));
    assert_eq!(along(&[2, 3, 4, 5], &[], &[]), Some([false; 3]));
    // The rows of the view are two axes, of which it has one.
    assert_eq!(along(&[2, 3, 4, 5], &[4, 5], &[2, 3]), None);
    assert_eq!(along(&[24, 5], &[24], &[0]), Some([true, true, false]));
}

#[test]
fn operations_that_lead_to_the_operand_are_written_into_it() {
    let made = sum(&[256, 256], &[0], |b, x| {
        let e = b.apply(Unary(Exp), &[x]);
        b.mul(e, x)
    });
    let reduction = tiled(&made, &[0]).expect("tiles");
    assert_eq!(operations(&reduction), 2);
    assert_eq!(reduction.operand.sources, [Source { var: made.0.inputs[0], has: [true; 3] }]);
}

#[test]
fn what_a_product_reads_too_is_in_memory() {
    let mut b = Builder::new();
    let x = b.input(float(&[256, 256]));
    let e = b.apply(Unary(Exp), &[x]);
    let sum = b.sum(e, &[0]);
    let contract = [1, 0].map(|axis| Shape::from_slice(&[axis]));
    let product = b.apply(DotGeneral { contract, ..DotGeneral::default() }, &[e, x]);
    let made = (b.finish(vec![sum, product]), sum);
    assert_eq!(operations(&tiled(&made, &[0]).expect("tiles")), 0);
}

#[test]
fn rows_of_few_columns_are_taken_in_parts() {
    let made = sum(&[16_000, 32], &[0], |_, x| x);
    let view = tiled(&made, &[0]).expect("tiles").view;
    assert_eq!((view.blocks, view.rows), (16, 1000));
}

#[test]
fn small_tensors_and_last_axes_have_no_tiles() {
    assert!(tiled(&sum(&[64, 64], &[0], |_, x| x), &[0]).is_none());
    assert!(tiled(&sum(&[4096, 8], &[0], |_, x| x), &[0]).is_none());
    assert!(tiled(&sum(&[256, 256], &[1], |_, x| x), &[1]).is_none());
}
