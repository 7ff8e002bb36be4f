//! Tests of every rule of every registered primitive against another rule.

use std::fmt::Write;
use std::sync::Arc;

use sheaf_graph::graph::{Builder, Graph, Op, Var, evaluate, verify};
use sheaf_graph::primitives::registry::{Random, Sample, registry};
use sheaf_graph::primitives::{
    Abs, ArgReduce, Binary, Convert, Div, Extreme, Max, Min, NAMES, Pow, Primitive as _, ReduceMax,
    ReduceMin, Rem, Round, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Sort, Unary,
};
use sheaf_graph::stablehlo::{Model, emit};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType, element_count};
use sheaf_graph::transform::{jvp, vjp, vmap};

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
    for sample in registry().iter().filter(|s| s.differentiable && !is_half(s)) {
        let graph = sample.graph();
        check_derivatives(&graph, &sample.draw(2), &sample.to_string());
    }
}

#[test]
fn derivatives_of_derivatives_are_slopes() {
    for sample in registry().iter().filter(|s| s.differentiable && !is_half(s)) {
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

/// At kinks, derivatives follow JAX's convention: ties share a cotangent, those of `abs` and powers at zero are zero.
#[test]
fn derivatives_at_kinks_are_conventional() {
    let gradient = |op: Op, inputs: &[HostTensor], of: usize| -> Vec<f64> {
        let mut b = Builder::new();
        let vars: Vec<Var> = inputs.iter().map(|x| b.input(x.ty())).collect();
        let out = b.bind(op, &vars).expect("a valid use")[0];
        let ones = HostTensor::filled(DType::F32, b.shape(out), 1.0);
        let graph = b.finish(vec![out]);
        let derivative = vjp(&graph, &[of]);
        elements(&evaluate(&derivative, &[inputs, std::slice::from_ref(&ones)].concat())[1])
    };
    let vector = |elements: &[f32]| HostTensor::new([elements.len()].as_slice(), elements.to_vec());
    let (x, y) = (vector(&[1.0, 3.0, 3.0]), vector(&[3.0, 3.0, 2.0]));
    let axes = Shape::from_slice(&[0]);
    for side in 0..2 {
        let first = if side == 0 { [0.0, 0.5, 1.0] } else { [1.0, 0.5, 0.0] };
        let second = first.map(|share| 1.0 - share);
        assert_eq!(gradient(Arc::new(Binary(Max)), &[x.clone(), y.clone()], side), first);
        assert_eq!(gradient(Arc::new(Binary(Min)), &[x.clone(), y.clone()], side), second);
    }
    assert_eq!(gradient(Arc::new(ReduceMax { axes: axes.clone() }), &[x], 0), [0.0, 0.5, 0.5]);
    assert_eq!(gradient(Arc::new(ReduceMin { axes }), &[y], 0), [0.0, 0.0, 1.0]);
    assert_eq!(gradient(Arc::new(Unary(Abs)), &[vector(&[0.0, -2.0])], 0), [0.0, -1.0]);
    let (base, exponent) = (vector(&[0.0, 0.0, -2.0]), vector(&[2.0, 0.0, 2.0]));
    assert_eq!(gradient(Arc::new(Binary(Pow)), &[base.clone(), exponent.clone()], 0), [0.0, 0.0, -4.0]);
    assert_eq!(gradient(Arc::new(Binary(Pow)), &[base, exponent], 1)[..2], [0.0, 0.0]);
}

/// Cases that differ between languages and libraries, as in JAX on the CPU.
#[test]
fn edge_cases_are_those_of_jax() {
    const NAN: f32 = f32::NAN;
    let run = |op: Op, inputs: &[HostTensor]| {
        let args: Vec<&HostTensor> = inputs.iter().collect();
        let results: Vec<String> = op.evaluate(&args).iter().map(|x| format!("{:?}", x.data())).collect();
        results.join(" ")
    };
    let floats = |v: &[f32]| HostTensor::new([v.len()].as_slice(), v.to_vec());
    let integers = |v: &[i32]| HostTensor::new([v.len()].as_slice(), v.to_vec());
    let (x, y) = (floats(&[5.5, -5.5, NAN, 1.0]), floats(&[2.0, 2.0, 1.0, NAN]));
    let (i, j) = (integers(&[7, -7, i32::MIN, 5]), integers(&[-2, 2, -1, 0]));
    let shifts = integers(&[1, 31, 32, -1]);
    let mut text = String::new();
    let mut show = |name: &str, result: String| writeln!(text, "{name}: {result}").expect("a string");
    show("rem", run(Arc::new(Binary(Rem)), &[x.clone(), y.clone()]));
    show("rem", run(Arc::new(Binary(Rem)), &[i.clone(), j.clone()]));
    show("div", run(Arc::new(Binary(Div)), &[i.clone(), j]));
    show("max", run(Arc::new(Binary(Max)), &[x.clone(), y]));
    show("shift_left", run(Arc::new(Binary(ShiftLeft)), &[i.clone(), shifts.clone()]));
    show("shift_right_arithmetic", run(Arc::new(Binary(ShiftRightArithmetic)), &[i.clone(), shifts.clone()]));
    show("shift_right_logical", run(Arc::new(Binary(ShiftRightLogical)), &[i, shifts]));
    show("round", run(Arc::new(Unary(Round)), &[floats(&[0.5, 1.5, 2.5, -0.5])]));
    show(
        "argmax",
        run(Arc::new(ArgReduce { axis: 0, extreme: Extreme::Max }), &[floats(&[1.0, NAN, 9.0, NAN])]),
    );
    show("argmin", run(Arc::new(ArgReduce { axis: 0, extreme: Extreme::Min }), &[floats(&[2.0, 1.0, 1.0])]));
    show("sort", run(Arc::new(Sort { axis: 0 }), &[x, integers(&[0, 1, 2, 3])]));
    let wide = floats(&[3e9, -3e9, NAN, -1.5]);
    show("to i32", run(Arc::new(Convert { dtype: DType::I32, weak: false }), std::slice::from_ref(&wide)));
    show("to u32", run(Arc::new(Convert { dtype: DType::U32, weak: false }), &[wide]));
    insta::assert_snapshot!(text, @"
    rem: F32([1.5, -1.5, NaN, NaN])
    rem: I32([1, -1, 0, 5])
    div: I32([-3, -3, -2147483648, -1])
    max: F32([5.5, 2.0, NaN, NaN])
    shift_left: I32([14, -2147483648, 0, 0])
    shift_right_arithmetic: I32([3, -1, -1, 0])
    shift_right_logical: I32([3, 1, 0, 0])
    round: F32([0.0, 2.0, 2.0, -0.0])
    argmax: I32([1])
    argmin: I32([1])
    sort: F32([-5.5, 1.0, 5.5, NaN]) I32([1, 3, 0, 2])
    to i32: I32([2147483647, -2147483648, 0, -1])
    to u32: U32([3000000000, 0, 0, 0])
    ");
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
    // Richardson extrapolation of central differences: the error is of fourth order in a step that is large enough for
    // single precision rounding not to matter.
    let central = |step: f64| (along(step) - along(-step)) / (2.0 * step);
    let slope = (4.0 * central(0.01) - central(0.02)) / 3.0;
    let double = inputs.iter().any(|x| x.dtype() == DType::F64);

    let forward = evaluate(&jvp(graph, &wrt), &[inputs, &tangents].concat());
    let pushed = &forward[graph.outputs.len()..];
    let by_jvp: f64 = results.iter().zip(&cotangents).map(|(i, ct)| inner(&pushed[*i], ct)).sum();
    let size: f64 =
        results.iter().zip(&cotangents).map(|(i, ct)| inner(&magnitude(&pushed[*i]), &magnitude(ct))).sum();
    let near = if double { 1e-5 } else { 2e-3 };
    assert_near(by_jvp, slope, near * (1.0 + size), what, "JVP and finite differences");

    let backward = evaluate(&vjp(graph, &wrt), &[inputs, &cotangents].concat());
    let pulled = &backward[graph.outputs.len()..];
    let by_vjp: f64 = pulled.iter().zip(&tangents).map(|(ct, t)| inner(ct, t)).sum();
    let near = if double { 1e-13 } else { 1e-5 };
    assert_near(by_vjp, by_jvp, near * (1.0 + size), what, "VJP and JVP");
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
    let elements: Vec<f64> = (0..ty.count()).map(|_| random.uniform(-1.0, 1.0)).collect();
    cast(ty.dtype, &ty.shape, elements)
}

fn elements(x: &HostTensor) -> Vec<f64> {
    assert!(x.dtype().is_float(), "{}", x.dtype());
    (0..x.count()).map(|i| x.element_f64(i)).collect()
}

/// A tensor of floats.
fn cast(dtype: DType, shape: &[usize], elements: Vec<f64>) -> HostTensor {
    let doubles = HostTensor::new(shape, elements);
    Convert { dtype, weak: false }.evaluate(&[&doubles]).remove(0)
}

fn combine(x: &HostTensor, t: &HostTensor, step: f64) -> HostTensor {
    let moved = elements(x).iter().zip(elements(t)).map(|(x, t)| x + step * t).collect();
    cast(x.dtype(), x.shape(), moved)
}

fn inner(x: &HostTensor, y: &HostTensor) -> f64 {
    elements(x).iter().zip(elements(y)).map(|(a, b)| a * b).sum()
}

fn magnitude(x: &HostTensor) -> HostTensor {
    cast(x.dtype(), x.shape(), elements(x).iter().map(|a| a.abs()).collect())
}

/// The derivatives of 16-bit floats equal those of `f32` at the same elements, to a few roundings of 8 or 11 bits.
#[test]
fn derivatives_of_halves_are_those_of_singles() {
    let singles: Vec<Sample> = registry().into_iter().filter(|s| s.differentiable && !is_half(s)).collect();
    let mut compared = 0;
    for sample in registry().iter().filter(|s| s.differentiable && is_half(s)) {
        let single = singles.iter().find(|s| {
            let same = |((a, _), (b, _)): (&(TensorType, _), &(TensorType, _))| {
                a.shape == b.shape && if a.dtype.is_half() { b.dtype == DType::F32 } else { a == b }
            };
            s.op.name() == sample.op.name()
                && s.inputs.len() == sample.inputs.len()
                && s.inputs.iter().zip(&sample.inputs).all(|(b, a)| same((a, b)))
        });
        let single = single.unwrap_or_else(|| panic!("{sample} in f32")).graph();
        let graph = sample.graph();
        let mut random = Random(5);
        let mut inputs = sample.draw(2);
        inputs.extend(
            floats(&graph.outputs, &graph).iter().map(|i| direction(&graph, graph.outputs[*i], &mut random)),
        );
        let wide: Vec<HostTensor> = inputs
            .iter()
            .map(|x| if x.dtype().is_half() { cast(DType::F32, x.shape(), elements(x)) } else { x.clone() })
            .collect();
        let wrt = floats(&graph.inputs, &graph);
        let (halves, singles) = (evaluate(&vjp(&graph, &wrt), &inputs), evaluate(&vjp(&single, &wrt), &wide));
        for (half, single) in halves.iter().zip(&singles).filter(|(half, _)| half.dtype().is_half()) {
            for (a, b) in elements(half).into_iter().zip(elements(single)) {
                assert!((a - b).abs() <= 0.05 * (1.0 + b.abs()), "{sample}: {a} in 16 bits, {b} in 32");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

fn is_half(sample: &Sample) -> bool {
    sample.inputs.iter().any(|(ty, _)| ty.dtype.is_half())
}

#[test]
fn batching_is_a_loop() {
    const SIZE: usize = 3;
    for sample in registry() {
        let graph = sample.graph();
        let instances: Vec<Vec<HostTensor>> = (0..SIZE as u64).map(|i| sample.draw(10 + i)).collect();
        for axes in every_choice_of_axes(&sample) {
            // Per operand: stacked along its axis, or the first instance if shared.
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

/// Every operand unbatched, or batched at any axis; at least one batched, if there is an operand.
fn every_choice_of_axes(sample: &Sample) -> Vec<Vec<Option<usize>>> {
    let mut choices: Vec<Vec<Option<usize>>> = vec![Vec::new()];
    for (ty, _) in &sample.inputs {
        let places = std::iter::once(None).chain((0..=ty.rank()).map(Some));
        choices =
            places.flat_map(|place| choices.iter().map(move |c| [c.as_slice(), &[place]].concat())).collect();
    }
    choices
}

/// Stacks tensors of one type along a new axis.
fn stack(parts: &[HostTensor], axis: usize) -> HostTensor {
    let mut shape = Shape::from_slice(parts[0].shape());
    let inner = element_count(&shape[axis..]) * parts[0].dtype().byte_width();
    shape.insert(axis, parts.len());
    let ty = sheaf_graph::tensor::TensorType::new(parts[0].dtype(), shape);
    let outer = element_count(&ty.shape[..axis]);
    let rows =
        (0..outer).flat_map(|row| parts.iter().map(move |x| &x.bytes()[row * inner..(row + 1) * inner]));
    HostTensor::from_bytes(&ty, &rows.collect::<Vec<_>>().concat()).expect("as many bytes as before")
}

/// True if equal, floats up to the rounding of sums in another order; NaN equals NaN.
fn same(x: &HostTensor, y: &HostTensor) -> bool {
    if !x.dtype().is_float() || x.ty() != y.ty() {
        return x == y;
    }
    let rounding = match x.dtype() {
        DType::BF16 => 1e-2,
        DType::F16 => 1e-3,
        DType::F64 => 1e-14,
        _ => 1e-6,
    };
    elements(x)
        .iter()
        .zip(elements(y))
        .all(|(a, b)| *a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= rounding * (1.0 + b.abs()))
}

#[test]
fn stablehlo_text() {
    let mut text = String::new();
    for sample in registry() {
        let types: Vec<String> = sample.inputs.iter().map(|(ty, _)| ty.to_string()).collect();
        let _ = writeln!(text, "// {}[{}] {}", sample.op.name(), sample.op.parameters(), types.join(" "));
        // Without the frame, which is always the same.
        let body = emit(&sample.graph(), Model::Hal).text;
        for line in body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("    return")) {
            let _ = writeln!(text, "{line}");
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn equal_graphs_have_equal_text() {
    for (first, second) in registry().iter().zip(registry()) {
        assert_eq!(emit(&first.graph(), Model::Hal).text, emit(&second.graph(), Model::Hal).text);
    }
}

fn find(name: &str) -> Sample {
    registry().into_iter().find(|s| s.op.name() == name).expect("a sample")
}

/// A splat gives the same as the materialized tensor, for every primitive and each of its operands.
#[test]
fn splats_give_what_written_out_tensors_give() {
    for sample in registry() {
        let drawn = sample.draw(5);
        let splat = |x: &HostTensor| match x.count() {
            0 => x.clone(),
            _ => HostTensor::repeated(x, x.shape()),
        };
        let written = |x: &HostTensor| HostTensor::from_bytes(&x.ty(), x.bytes()).expect("its own bytes");
        for which in 0..=drawn.len() {
            let chosen = |i: usize| which == i || which == drawn.len();
            let splats: Vec<HostTensor> =
                drawn.iter().enumerate().map(|(i, x)| if chosen(i) { splat(x) } else { x.clone() }).collect();
            let whole: Vec<HostTensor> = splats.iter().map(written).collect();
            let expected = evaluate(&sample.graph(), &whole);
            for (result, expected) in evaluate(&sample.graph(), &splats).iter().zip(&expected) {
                assert_eq!(result.ty(), expected.ty(), "{sample}");
                assert_eq!(result.bytes(), expected.bytes(), "{sample}, operand {which}");
            }
        }
    }
}
