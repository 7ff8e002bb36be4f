//! Watches through differentiation, batching, loops and conditionals, on the host.

use std::sync::{Arc, OnceLock};

use super::{Call, Condition, Listener, Measured, Role, Site, Stage, Statistics};
use super::{guarded, listen, measured, statistics_of, unwatched};
use crate::graph::{Builder, Checks, Graph, Var, evaluate, failed, masked, thread, verify};
use crate::primitives::{
    Binary, Check, Checkpoint, Compare, Cond, Direction, Log, Mul, Question, Scan, Sqrt, Unary, Watch,
    WhileLoop,
};
use crate::tensor::{DType, HostTensor, TensorType};
use crate::transform;

/// The result of a call by that name.
fn site(number: u32, name: &str) -> Arc<Site> {
    let call = Call {
        number,
        parent: None,
        name: name.into(),
        own: true,
        span: None,
        arguments: Vec::new(),
        result: OnceLock::new(),
    };
    Arc::new(Site { call: Arc::new(call), role: Role::Result(String::new()), span: None })
}

fn watched(b: &mut Builder, x: Var, number: u32, name: &str) -> Var {
    b.apply(Watch::new(site(number, name), Stage::Forward), &[x])
}

fn vector(elements: &[f32]) -> HostTensor {
    HostTensor::new([elements.len()].as_slice(), elements.to_vec())
}

/// `sum(sqrt(log(x)))`, with every value watched.
fn sum_of_roots() -> Graph {
    let mut b = Builder::new();
    let x = b.input(TensorType::new(DType::F32, [3].as_slice()));
    let x = watched(&mut b, x, 0, "x");
    let y = b.apply(Unary(Log), &[x]);
    let y = watched(&mut b, y, 1, "log");
    let z = b.apply(Unary(Sqrt), &[y]);
    let z = watched(&mut b, z, 2, "sqrt");
    let sum = b.sum(z, &[0]);
    let sum = watched(&mut b, sum, 3, "sum");
    b.finish(vec![sum])
}

/// The first value that is not finite, as a guarded program finds it.
fn found(graph: &Graph, inputs: &[HostTensor]) -> Option<String> {
    let guarded = guarded(graph, &[], &|_, _| vec![Condition::Finite]);
    let Checks { graph: program, sites } = thread(unwatched(&guarded));
    assert_eq!(verify(&program), Ok(()));
    let results = evaluate(&program, inputs);
    let plain = evaluate(&unwatched(graph), inputs);
    for (a, b) in plain.iter().zip(&results) {
        assert_eq!(a.bytes(), b.bytes(), "results stay the same");
    }
    let (site, _) = failed(&sites, results.last()?)?;
    let Question::Guard(guard) = &site.question else { panic!("{site}") };
    Some(guard.to_string())
}

/// The same on the host, op by op.
fn heard(graph: &Graph, inputs: &[HostTensor]) -> Option<String> {
    let listener = Listener::new(|_, _, statistics: &Statistics| !Condition::Finite.holds(statistics));
    let (_, listener) = listen(listener, || evaluate(graph, inputs));
    let first = listener.first_broken()?;
    let gradient = if first.stage == Stage::Backward { "gradient of the " } else { "" };
    Some(format!("{gradient}{}", first.site))
}

/// Both, which agree.
fn broken(graph: &Graph, inputs: &[HostTensor]) -> Option<String> {
    let (found, heard) = (found(graph, inputs), heard(graph, inputs));
    assert_eq!(found, heard);
    found
}

#[test]
fn the_first_bad_value_is_found() {
    let graph = sum_of_roots();
    assert_eq!(broken(&graph, &[vector(&[1.0, 2.0, 3.0])]), None);
    assert_eq!(broken(&graph, &[vector(&[1.0, 0.5, 3.0])]).as_deref(), Some("result of sqrt"));
    assert_eq!(broken(&graph, &[vector(&[1.0, 0.0, 3.0])]).as_deref(), Some("result of log"));
    assert_eq!(broken(&graph, &[vector(&[1.0, f32::NAN, 3.0])]).as_deref(), Some("result of x"));
}

#[test]
fn a_gradient_that_breaks_is_found_behind_finite_values() {
    let graph = transform::value_and_grad(&sum_of_roots(), 0, &[0]);
    assert_eq!(broken(&graph, &[vector(&[2.0, 2.0, 3.0])]), None);
    // The root of 0 is 0, its slope infinite.
    assert_eq!(broken(&graph, &[vector(&[1.0, 2.0, 3.0])]).as_deref(), Some("gradient of the result of log"));
}

#[test]
fn watches_leave_nothing_behind() {
    let graph = sum_of_roots();
    assert!(graph.watched);
    let plain = unwatched(&graph);
    assert!(!plain.watched && plain.size() == 3, "{plain}");
}

/// `x` times itself, `steps` times, starting at `x`.
fn powers(steps: usize) -> Graph {
    let mut inner = Builder::new();
    let ty = TensorType::new(DType::F32, [2].as_slice());
    let x = inner.input(ty.clone());
    let y = inner.apply(Binary(Mul), &[x, x]);
    let y = watched(&mut inner, y, 0, "*");
    let body = Arc::new(inner.finish(vec![y]));
    let mut b = Builder::new();
    let x = b.input(ty);
    let last = b.apply_all(Scan { body, length: steps, constants: 0, states: 1, reverse: false }, &[x]);
    let sum = b.sum(last[0], &[0]);
    b.finish(vec![sum])
}

#[test]
fn loops_report_their_iteration_on_the_host_and_one_flag_in_programs() {
    let graph = powers(8);
    assert_eq!(broken(&graph, &[vector(&[1.0, 0.5])]), None);
    let inputs = [vector(&[1.0, 1e10])];
    assert_eq!(broken(&graph, &inputs).as_deref(), Some("result of *"));
    let judge = |_: &Site, _: Stage, statistics: &Statistics| !statistics.is_finite();
    let (_, listener) = listen(Listener::new(judge), || evaluate(&graph, &inputs));
    let report = listener.first_broken().expect("a report");
    assert_eq!((report.times, report.broken.expect("broken").iteration), (8, 1));
    // The gradient of a loop is a loop the other way.
    let gradient = transform::value_and_grad(&graph, 0, &[0]);
    assert_eq!(broken(&gradient, &[vector(&[1.0, 0.5])]), None);
    let (_, listener) = listen(Listener::new(judge), || evaluate(&gradient, &[vector(&[1.0, 0.5])]));
    let stages: Vec<(Stage, u64)> = listener.reports().iter().map(|r| (r.stage, r.times)).collect();
    assert_eq!(stages, [(Stage::Forward, 8), (Stage::Backward, 8)], "nothing is looked at twice");
}

#[test]
fn conditionals_count_the_branch_that_is_taken() {
    let scalar = TensorType::scalar(DType::F32);
    let mut taken = Builder::new();
    let x = taken.input(scalar.clone());
    let y = taken.apply(Unary(Log), &[x]);
    let y = watched(&mut taken, y, 0, "log");
    let on_true = Arc::new(taken.finish(vec![y]));
    let mut other = Builder::new();
    let x = other.input(scalar.clone());
    let on_false = Arc::new(other.finish(vec![x]));
    let mut b = Builder::new();
    let x = b.input(scalar.clone());
    let zero = b.zeros(&scalar);
    let positive = b.apply(Compare { direction: Direction::Ge }, &[x, zero]);
    let result = b.apply(Cond { on_true, on_false }, &[positive, x]);
    let graph = b.finish(vec![result]);
    assert_eq!(broken(&graph, &[HostTensor::scalar(-1.0_f32)]), None);
    assert_eq!(broken(&graph, &[HostTensor::scalar(0.0_f32)]).as_deref(), Some("result of log"));
    // For a batch both branches are computed.
    let batched = transform::vmap(&graph, &[Some(0)], 3);
    assert_eq!(broken(&batched, &[vector(&[-1.0, 2.0, -3.0])]), None);
    assert_eq!(broken(&batched, &[vector(&[-1.0, 2.0, 0.0])]).as_deref(), Some("result of log"));
    let Measured { graph: program, sites } = measured(&batched);
    assert_eq!(sites.len(), 1);
    let results = evaluate(&program, &[vector(&[-1.0, 2.0, -3.0])]);
    let of = statistics_of(results.last().expect("statistics"));
    assert_eq!(of[0].min, f64::from(2.0_f32.ln()));
    assert!(!of[0].nan && of[0].min == of[0].max);
}

#[test]
fn while_loops_and_checkpoints_are_looked_into() {
    let scalar = TensorType::scalar(DType::F32);
    let mut asks = Builder::new();
    let x = asks.input(scalar.clone());
    let end = asks.full(&scalar, 1e30);
    let less = asks.compare(Direction::Lt, x, end);
    let condition = Arc::new(asks.finish(vec![less]));
    let mut steps = Builder::new();
    let x = steps.input(scalar.clone());
    let y = steps.mul(x, x);
    let y = watched(&mut steps, y, 0, "square");
    let body = Arc::new(steps.finish(vec![y]));
    let mut b = Builder::new();
    let x = b.input(scalar.clone());
    let x = b.apply(WhileLoop { condition, body, constants: 0 }, &[x]);
    let mut inner = Builder::new();
    let y = inner.input(scalar);
    let y = inner.apply(Unary(Sqrt), &[y]);
    let y = watched(&mut inner, y, 1, "sqrt");
    let x = b.apply(Checkpoint { body: Arc::new(inner.finish(vec![y])) }, &[x]);
    let graph = b.finish(vec![x]);
    assert_eq!(broken(&graph, &[HostTensor::scalar(10.0_f32)]), None);
    assert_eq!(broken(&graph, &[HostTensor::scalar(1e25_f32)]).as_deref(), Some("result of square"));
    let inputs = [HostTensor::scalar(10.0_f32)];
    let Measured { graph: program, sites } = measured(&graph);
    let names: Vec<String> = sites.iter().map(|(site, ..)| site.to_string()).collect();
    assert_eq!(names, ["result of square", "result of sqrt"]);
    let of = statistics_of(evaluate(&program, &inputs).last().expect("statistics"));
    assert_eq!((of[0].min, of[0].max), (100.0, f64::from(1e32_f32)));
}

#[test]
fn statistics_in_programs_are_those_of_the_host() {
    let graph = transform::value_and_grad(&sum_of_roots(), 0, &[0]);
    for elements in [[1.0, 2.0, 3.0], [5.0, 0.5, 7.0], [0.0, 1.0, f32::NAN]] {
        let inputs = [vector(&elements)];
        let Measured { graph: program, sites } = measured(&graph);
        let of = statistics_of(evaluate(&program, &inputs).last().expect("statistics"));
        let (_, listener) = listen(Listener::new(|_, _, _| false), || evaluate(&graph, &inputs));
        assert_eq!(sites.len(), listener.reports().len());
        for ((site, stage, _), of) in sites.iter().zip(of) {
            let same = |r: &&super::Reported| Arc::ptr_eq(&r.site, site) && r.stage == *stage;
            let report = listener.reports().iter().find(same).expect("a report");
            assert_eq!(report.statistics, of, "{site} {stage}");
        }
    }
}

#[test]
fn masked_entries_do_not_count() {
    let graph = masked(&sum_of_roots());
    let (bad, yes, no) = (vector(&[0.0, 1.0, 2.0]), HostTensor::scalar(true), HostTensor::scalar(false));
    assert_eq!(broken(&graph, &[bad.clone(), yes]).as_deref(), Some("result of log"));
    assert_eq!(broken(&graph, &[bad, no]), None);
}

#[test]
fn conditions_read_statistics_and_elements_alike() {
    let values = [
        vec![1.0, -2.0],
        vec![f32::NAN],
        vec![f32::INFINITY, 0.0],
        vec![f32::NEG_INFINITY],
        vec![f32::MAX, f32::MIN_POSITIVE / 2.0],
        vec![],
        vec![-0.0, 20.0],
        vec![20.001],
    ];
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        for elements in &values {
            for condition in [Condition::Finite, Condition::NotNan, Condition::Within(0.0, 20.0)] {
                let ty = TensorType::new(dtype, [elements.len()].as_slice());
                let mut b = Builder::new();
                let x = b.input(TensorType::new(DType::F32, [elements.len()].as_slice()));
                let x = b.convert(x, dtype);
                let x = watched(&mut b, x, 0, "x");
                let graph = b.finish(vec![x]);
                let checked = guarded(&graph, &[], &|_, _| vec![condition]);
                assert!(checked.equations.iter().any(|eqn| eqn.op.is::<Check>()));
                let Checks { graph, sites } = thread(unwatched(&checked));
                let results = evaluate(&graph, &[vector(elements)]);
                let holds = failed(&sites, &results[1]).is_none();
                let statistics = Statistics::of(&results[0]);
                assert_eq!(holds, condition.holds(&statistics), "{elements:?} {ty} {condition}");
            }
        }
    }
}

/// Operations that only move elements of checked values, or of given parameters, are not checked again.
#[test]
fn movements_are_looked_through() {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F32, [2, 3].as_slice());
    let x = b.input(ty.clone());
    let moved = b.transpose(x, &[1, 0]);
    let moved = watched(&mut b, moved, 0, "transpose");
    let root = b.apply(Unary(Sqrt), &[moved]);
    let root = watched(&mut b, root, 1, "sqrt");
    let row = b.slice_axis(root, 0, 0, 1);
    let row = watched(&mut b, row, 2, "slice");
    let both = b.concatenate(&[row, root], 0);
    let both = watched(&mut b, both, 3, "concat");
    let graph = b.finish(vec![both]);
    let checks = |given: &[Condition]| {
        let guarded = guarded(&graph, given, &|_, _| vec![Condition::Finite]);
        guarded.equations.iter().filter(|eqn| eqn.op.is::<Check>()).count()
    };
    assert_eq!(checks(&[]), 2);
    assert_eq!(checks(&[Condition::Finite]), 1);
    assert_eq!(checks(&[Condition::NotNan]), 2);
}
