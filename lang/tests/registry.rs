//! Walks the registry of primitives: every rule of every primitive against what it must agree with.

use std::fmt::Write;

use sheaf_lang::graph::{Graph, Var, evaluate, verify};
use sheaf_lang::primitives::NAMES;
use sheaf_lang::primitives::registry::{Random, Sample, registry};
use sheaf_lang::stablehlo::{Barriers, emit};
use sheaf_lang::tensor::{DType, HostTensor, Shape, element_count};
use sheaf_lang::transform::{jvp, vjp, vmap};

#[test]
fn every_primitive_has_a_sample() {
    let samples = registry();
    let missing: Vec<_> =
        NAMES.iter().filter(|name| !samples.iter().any(|s| s.op.name() == **name)).collect();
    assert!(missing.is_empty(), "no sample in primitives/samples.rs: {missing:?}");
    let unlisted: Vec<_> = samples.iter().map(|s| s.op.name()).filter(|name| !NAMES.contains(name)).collect();
    assert!(unlisted.is_empty(), "a primitive is not named like its file: {unlisted:?}");
}

#[test]
fn type_rules_agree_with_host_evaluation() {
    for sample in registry() {
        let graph = sample.graph();
        assert_eq!(verify(&graph), Ok(()), "{sample}");
        let results = evaluate(&graph, &sample.draw(1));
        for (var, result) in graph.outputs.iter().zip(&results) {
            assert_eq!(graph.ty(*var), &result.ty(), "{sample}");
        }
    }
}

#[test]
fn derivatives_are_slopes() {
    for sample in registry().iter().filter(|s| s.differentiable) {
        let graph = sample.graph();
        check_derivatives(&graph, &sample.draw(2), &sample.to_string());
    }
}

#[test]
fn derivatives_of_derivatives_are_slopes() {
    for sample in registry().iter().filter(|s| s.differentiable) {
        let first = vjp(&sample.graph(), &floats(&sample.graph().inputs, &sample.graph()));
        let mut inputs = sample.draw(3);
        let mut random = Random(4);
        inputs.extend(first.inputs[inputs.len()..].iter().map(|v| direction(&first, *v, &mut random)));
        check_derivatives(&first, &inputs, &format!("the VJP of {sample}"));
    }
}

#[test]
fn stop_gradient_has_no_derivative() {
    let sample = find("stop_gradient");
    let [x] = sample.draw(1).try_into().expect("one operand");
    let derivative = vjp(&sample.graph(), &[0]);
    let results = evaluate(&derivative, &[x.clone(), x.clone()]);
    assert_eq!(results, [x, HostTensor::filled(DType::F32, [3].as_slice(), 0.0)]);
}

/// Checks `jvp` against central differences and `vjp` against `jvp`, for random tangents and cotangents.
fn check_derivatives(graph: &Graph, inputs: &[HostTensor], what: &str) {
    let wrt = floats(&graph.inputs, graph);
    let results = floats(&graph.outputs, graph);
    let mut random = Random(5);
    let tangents: Vec<HostTensor> =
        wrt.iter().map(|i| direction(graph, graph.inputs[*i], &mut random)).collect();
    let cotangents: Vec<HostTensor> =
        results.iter().map(|i| direction(graph, graph.outputs[*i], &mut random)).collect();

    let along = |step: f64| {
        let mut moved = inputs.to_vec();
        for (i, tangent) in wrt.iter().zip(&tangents) {
            moved[*i] = combine(&inputs[*i], tangent, step);
        }
        let outputs = evaluate(graph, &moved);
        results.iter().zip(&cotangents).map(|(i, ct)| inner(&outputs[*i], ct)).sum::<f64>()
    };
    // Richardson's extrapolation of central differences: the error falls with the fourth power of a step that is
    // large enough for the rounding of single precision not to matter.
    let central = |step: f64| (along(step) - along(-step)) / (2.0 * step);
    let slope = (4.0 * central(0.01) - central(0.02)) / 3.0;

    let forward = evaluate(&jvp(graph, &wrt), &[inputs, &tangents].concat());
    let pushed = &forward[graph.outputs.len()..];
    let by_jvp: f64 = results.iter().zip(&cotangents).map(|(i, ct)| inner(&pushed[*i], ct)).sum();
    let size: f64 =
        results.iter().zip(&cotangents).map(|(i, ct)| inner(&magnitude(&pushed[*i]), &magnitude(ct))).sum();
    assert_near(by_jvp, slope, 2e-3 * (1.0 + size), what, "JVP and finite differences");

    let backward = evaluate(&vjp(graph, &wrt), &[inputs, &cotangents].concat());
    let pulled = &backward[graph.outputs.len()..];
    let by_vjp: f64 = pulled.iter().zip(&tangents).map(|(ct, t)| inner(ct, t)).sum();
    assert_near(by_vjp, by_jvp, 1e-5 * (1.0 + size), what, "VJP and JVP");
}

fn assert_near(a: f64, b: f64, tolerance: f64, what: &str, which: &str) {
    assert!((a - b).abs() <= tolerance, "{what}: {which} differ: {a} and {b}, tolerance {tolerance}");
}

/// The positions of the floats among variables.
fn floats(vars: &[Var], graph: &Graph) -> Vec<usize> {
    (0..vars.len()).filter(|i| graph.ty(vars[*i]).dtype.is_float()).collect()
}

fn direction(graph: &Graph, var: Var, random: &mut Random) -> HostTensor {
    let ty = graph.ty(var);
    let elements: Vec<f32> = (0..ty.count()).map(|_| random.uniform(-1.0, 1.0) as f32).collect();
    HostTensor::new(ty.shape.clone(), elements)
}

fn elements(x: &HostTensor) -> &[f32] {
    x.as_f32().expect("a float tensor")
}

fn combine(x: &HostTensor, t: &HostTensor, step: f64) -> HostTensor {
    let moved =
        elements(x).iter().zip(elements(t)).map(|(x, t)| (f64::from(*x) + step * f64::from(*t)) as f32);
    HostTensor::new(x.shape(), moved.collect::<Vec<_>>())
}

fn inner(x: &HostTensor, y: &HostTensor) -> f64 {
    elements(x).iter().zip(elements(y)).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn magnitude(x: &HostTensor) -> HostTensor {
    HostTensor::new(x.shape(), elements(x).iter().map(|a| a.abs()).collect::<Vec<_>>())
}

#[test]
fn batching_is_a_loop() {
    const SIZE: usize = 3;
    for sample in registry() {
        let graph = sample.graph();
        let instances: Vec<Vec<HostTensor>> = (0..SIZE as u64).map(|i| sample.draw(10 + i)).collect();
        for axes in every_choice_of_axes(&sample) {
            // Operand by operand: stacked along its axis, or the first instance for all.
            let operand = |i: usize| match axes[i] {
                Some(axis) => stack(&instances.iter().map(|x| x[i].clone()).collect::<Vec<_>>(), axis),
                None => instances[0][i].clone(),
            };
            let operands: Vec<HostTensor> = (0..axes.len()).map(operand).collect();
            let batched = vmap(&graph, &axes, SIZE);
            let results = evaluate(&batched, &operands);
            let single = |n: usize| {
                let inputs: Vec<HostTensor> =
                    axes.iter().enumerate().map(|(i, a)| instances[a.map_or(0, |_| n)][i].clone()).collect();
                evaluate(&graph, &inputs)
            };
            let singles: Vec<Vec<HostTensor>> = (0..SIZE).map(single).collect();
            for (i, result) in results.iter().enumerate() {
                let expected = stack(&singles.iter().map(|r| r[i].clone()).collect::<Vec<_>>(), 0);
                assert!(
                    same(result, &expected),
                    "{sample} over {axes:?}:\n{result:?}\n{expected:?}\n{batched}"
                );
            }
        }
    }
}

/// For every operand not batched, or batched at any place; at least one batched, unless there is no operand.
fn every_choice_of_axes(sample: &Sample) -> Vec<Vec<Option<usize>>> {
    let mut choices: Vec<Vec<Option<usize>>> = vec![Vec::new()];
    for (ty, _) in &sample.inputs {
        let places = std::iter::once(None).chain((0..=ty.rank()).map(Some));
        choices =
            places.flat_map(|place| choices.iter().map(move |c| [c.as_slice(), &[place]].concat())).collect();
    }
    choices
}

/// Tensors of one type along a new axis.
fn stack(parts: &[HostTensor], axis: usize) -> HostTensor {
    let mut shape = Shape::from_slice(parts[0].shape());
    let inner = element_count(&shape[axis..]) * parts[0].dtype().byte_width();
    shape.insert(axis, parts.len());
    let ty = sheaf_lang::tensor::TensorType::new(parts[0].dtype(), shape);
    let outer = element_count(&ty.shape[..axis]);
    let rows =
        (0..outer).flat_map(|row| parts.iter().map(move |x| &x.bytes()[row * inner..(row + 1) * inner]));
    HostTensor::from_bytes(&ty, &rows.collect::<Vec<_>>().concat()).expect("as many bytes as before")
}

/// Equal, or equal floats to the rounding of sums in another order; NaN equals NaN.
fn same(x: &HostTensor, y: &HostTensor) -> bool {
    let near = |(a, b): (&f32, &f32)| {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * (1.0 + b.abs())
    };
    match (x.as_f32(), y.as_f32()) {
        (Some(a), Some(b)) => x.shape() == y.shape() && a.iter().zip(b).all(near),
        _ => x == y,
    }
}

#[test]
fn stablehlo_text() {
    let mut text = String::new();
    for sample in registry() {
        let types: Vec<String> = sample.inputs.iter().map(|(ty, _)| ty.to_string()).collect();
        let _ = writeln!(text, "// {}[{}] {}", sample.op.name(), sample.op.parameters(), types.join(" "));
        // Without the frame, which is the same for all.
        let body = emit(&sample.graph(), Barriers::Keep).text;
        for line in body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("    return")) {
            let _ = writeln!(text, "{line}");
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn equal_graphs_have_equal_text() {
    for (first, second) in registry().iter().zip(registry()) {
        assert_eq!(emit(&first.graph(), Barriers::Keep).text, emit(&second.graph(), Barriers::Keep).text);
    }
}

fn find(name: &str) -> Sample {
    registry().into_iter().find(|s| s.op.name() == name).expect("a sample")
}
