//! `jvp` and `jacobian`.

use std::rc::Rc;

use super::Args;
use super::interp::Interp;
use super::signal::{Eval, fail};
use super::tensor::{bind, check_room};
use super::transforms::{Outcome, not_differentiable, zero_of};
use super::tree::{KeyPath, Tree, flatten, map_trees, unflatten};
use crate::program::{Function, Tensor, Trace, Value};
use sheaf_graph::graph::{Graph, prune};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{HostTensor, Shape, TensorType};
use sheaf_graph::transform;
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// `[value tangent]` for arguments `x y ... dx dy ...`, in forward mode.
    pub(super) fn jvp(&mut self, f: &Rc<Function>, args: &Args) -> Eval<Value> {
        if args.is_empty() || !args.len().is_multiple_of(2) {
            return Err(Diagnostic::error(format!(
                "{} arguments for (jvp f): it takes those of f, then a tangent for each",
                args.len()
            ))
            .help("((jvp f) x y dx dy)")
            .into());
        }
        let trace = self.tracing.trace(self.tracing.level);
        let (mut values, mut tangents) = (Vec::new(), Vec::new());
        let (primals, moves) = args.split_at(args.len() / 2);
        let mut inner = Args::new();
        for (primal, tangent) in primals.iter().zip(moves) {
            inner.push(map_trees(&[primal.clone(), tangent.clone()], &mut |path, leaves| {
                let Ok(Some(value)) = self.differentiable_leaf(&leaves[0], path) else {
                    return Ok(leaves[0].clone());
                };
                let parameter = trace.parameter(&value);
                tangents.push(self.tangent(&leaves[1], &value, path)?);
                values.push(value);
                Ok(Value::Tensor(parameter))
            })?);
        }
        let result = self.call(&Value::Function(Rc::clone(f)), inner)?;
        let (outcome, computed) = self.numbers_of(&result)?;
        let (graph, captured) = record(trace, &computed)?;
        let wrt: Vec<usize> = (0..values.len()).collect();
        check_pushable(&graph, &wrt)?;
        let arguments: Vec<Tensor> = values.into_iter().chain(captured).chain(tangents).collect();
        let mut results =
            self.applied(&transform::jvp(&graph, &wrt), &arguments)?.into_iter().map(Value::from);
        let value = outcome.build(&mut results)?;
        // A tangent for each float leaf of the result.
        let mut tangents = results;
        let leaves = flatten(&value).into_iter().map(|leaf| {
            let computed = is_number(&leaf).then(|| tangents.next().expect("a tangent for every result"));
            computed.filter(|_| is_float(&leaf)).unwrap_or_else(|| zero_of(&leaf))
        });
        let tangent = unflatten(&Tree::of(&value), &mut leaves.collect::<Vec<_>>().into_iter())?;
        Ok(Value::list(vec![value, tangent]))
    }

    /// A tangent of `value`: of its dtype and shape.
    fn tangent(&mut self, given: &Value, value: &Tensor, path: &KeyPath) -> Eval<Tensor> {
        let tangent = self.float(given)?;
        if tangent.shape() != value.shape() {
            let place = if path.is_root() { String::new() } else { format!(" at {path}") };
            return fail(format!(
                "a tangent has the shape of its value{place}: {} moves by {}",
                value.ty(),
                tangent.ty()
            ));
        }
        self.convert(&tangent, value.ty().dtype)
    }

    /// All partial derivatives by the first argument: each leaf of the result is replaced by the tree of that argument,
    /// with leaves of the shape of the result, then of the argument. Forward mode if the argument has no more numbers
    /// than the result, or has no VJP, else reverse mode.
    pub(super) fn jacobian(&mut self, f: &Rc<Function>, args: &Args) -> Eval<Value> {
        let Some(first) = args.first() else {
            return fail("(jacobian f) takes the arguments of f, got none");
        };
        let trace = self.tracing.trace(self.tracing.level);
        let mut leaves: Vec<Result<Tensor, Value>> = Vec::new();
        let mut inner = args.clone();
        inner[0] = map_trees(std::slice::from_ref(first), &mut |path, leaf| {
            let Some(tensor) = self.differentiable_leaf(&leaf[0], path)? else {
                leaves.push(Err(leaf[0].clone()));
                return Ok(leaf[0].clone());
            };
            let parameter = trace.parameter(&tensor);
            leaves.push(Ok(tensor));
            Ok(Value::Tensor(parameter))
        })?;
        if leaves.iter().all(Result::is_err) {
            return Err(not_differentiable("the jacobian", first));
        }
        let result = self.call(&Value::Function(Rc::clone(f)), inner)?;
        let (outcome, computed) = self.numbers_of(&result)?;
        let (graph, captured) = record(trace, &computed)?;
        let values: Vec<Tensor> = leaves.iter().filter_map(|leaf| leaf.as_ref().ok().cloned()).collect();
        let blocks = partial_derivatives(self, &graph, &values, &captured)?;

        let argument = Tree::of(first);
        let mut rows = Vec::new();
        for (i, output) in computed.iter().enumerate() {
            let mut at = 0;
            let leaf = |leaf: &Result<Tensor, Value>| {
                let (ty, block) = match leaf {
                    Ok(tensor) => {
                        at += 1;
                        (tensor.ty().clone(), blocks[at - 1].get(i).cloned().flatten())
                    }
                    Err(Value::Tensor(t)) => (t.ty().clone(), None),
                    Err(other) => return zero_of(other),
                };
                let shape: Shape = output.shape().iter().chain(&ty.shape).copied().collect();
                Value::from(block.unwrap_or_else(|| {
                    Tensor::host(HostTensor::filled(output.ty().strong_dtype(), shape, 0.0))
                }))
            };
            let leaves: Vec<Value> = leaves.iter().map(leaf).collect();
            rows.push(unflatten(&argument, &mut leaves.into_iter())?);
        }
        outcome.build(&mut rows.into_iter())
    }

    /// The numbers and tensors of a result, as outputs of the graph.
    fn numbers_of(&mut self, result: &Value) -> Eval<(Outcome, Vec<Tensor>)> {
        Outcome::of(result, self.tracing.level, |leaf| {
            if is_number(leaf) { self.tensor(leaf).map(Some) } else { Ok(None) }
        })
    }
}

/// Fails if `graph` has no forward-mode derivative.
fn check_pushable(graph: &Graph, wrt: &[usize]) -> Eval<()> {
    let Some((span, reason)) = transform::no_jvp(graph, wrt) else { return Ok(()) };
    let error = Diagnostic::error(format!("there is no derivative in forward mode here: {reason}"))
        .help("give that loop a count, with repeat or scan; (grad f) goes the way that defgrad says");
    Err(match span {
        Some(span) => error.at(span, "").into(),
        None => error.into(),
    })
}

fn is_number(leaf: &Value) -> bool {
    matches!(leaf, Value::Int(_) | Value::Float(_) | Value::Tensor(_))
}

fn is_float(leaf: &Value) -> bool {
    match leaf {
        Value::Float(_) => true,
        Value::Tensor(t) => t.ty().dtype.is_float(),
        _ => false,
    }
}

/// The graph of the computed tensors, and the tensors that it captured.
fn record(trace: Rc<Trace>, computed: &[Tensor]) -> Eval<(Graph, Vec<Tensor>)> {
    let outputs = computed.iter().map(|t| trace.lift(t)).collect::<Eval<_>>()?;
    let (graph, captured) = trace.finish(outputs);
    Ok((prune(graph), captured))
}

/// For each value, which are the first parameters of `graph`, and each result: the derivatives, with the result's shape
/// then the value's; `None` for results that are not floats.
fn partial_derivatives(
    interp: &mut Interp,
    graph: &Graph,
    values: &[Tensor],
    captured: &[Tensor],
) -> Eval<Vec<Vec<Option<Tensor>>>> {
    let wrt: Vec<usize> = (0..values.len()).collect();
    let floats: Vec<TensorType> =
        graph.outputs.iter().map(|v| graph.ty(*v).clone()).filter(|ty| ty.dtype.is_float()).collect();
    let inputs: Vec<TensorType> = values.iter().map(|t| t.ty().clone()).collect();
    let size = |types: &[TensorType]| types.iter().map(TensorType::count).sum::<usize>();
    let forward = if transform::no_vjp(graph, &wrt).is_some() {
        check_pushable(graph, &wrt)?;
        true
    } else {
        size(&inputs) <= size(&floats) && transform::no_jvp(graph, &wrt).is_none()
    };
    let basis = unit_vectors(interp, if forward { &inputs } else { &floats })?;
    let derived = if forward { transform::jvp(graph, &wrt) } else { transform::vjp(graph, &wrt) };
    let given = values.len() + captured.len();
    let axes: Vec<Option<usize>> = (0..given + basis.len()).map(|i| (i >= given).then_some(0)).collect();
    let n = if forward { size(&inputs) } else { size(&floats) };
    let batched = prune(transform::vmap(&derived, &axes, n));
    let arguments: Vec<Tensor> = values.iter().chain(captured).chain(&basis).cloned().collect();
    let results = interp.applied(&batched, &arguments)?.split_off(graph.outputs.len());

    // Rows of a result belong to the elements of the varied value, block by block.
    let mut blocks = vec![vec![None; graph.outputs.len()]; values.len()];
    let is_float = |i: usize| graph.ty(graph.outputs[i]).dtype.is_float();
    let outputs = (0..graph.outputs.len()).filter(|i| is_float(*i));
    if forward {
        for i in outputs {
            let mut row = 0;
            for (j, ty) in inputs.iter().enumerate() {
                let block = interp.slice_axis(&results[i], 0, row, row + ty.count() as i64)?;
                row += ty.count() as i64;
                let rank = block.ty().rank();
                let permutation: Shape = (1..rank).chain([0]).collect();
                let turned = bind(p::Transpose { permutation }, &[&block], interp.span)?;
                let shape: Shape = turned.shape()[..rank - 1].iter().chain(&ty.shape).copied().collect();
                blocks[j][i] = Some(interp.reshape(&turned, &shape)?);
            }
        }
    } else {
        let mut row = 0;
        for i in outputs {
            let ty = graph.ty(graph.outputs[i]);
            for (j, result) in results.iter().enumerate() {
                let block = interp.slice_axis(result, 0, row, row + ty.count() as i64)?;
                let shape: Shape = ty.shape.iter().chain(&block.shape()[1..]).copied().collect();
                blocks[j][i] = Some(interp.reshape(&block, &shape)?);
            }
            row += ty.count() as i64;
        }
    }
    Ok(blocks)
}

/// The unit vectors of the space of all elements of tensors of these types, as batches of tensors.
fn unit_vectors(interp: &mut Interp, types: &[TensorType]) -> Eval<Vec<Tensor>> {
    let n: usize = types.iter().map(TensorType::count).sum();
    let mut first = 0;
    let mut basis = Vec::with_capacity(types.len());
    for ty in types {
        let count = ty.count();
        check_room(&[n, count])?;
        let mut elements = vec![0.0_f32; n * count];
        for i in 0..count {
            elements[(first + i) * count + i] = 1.0;
        }
        first += count;
        let shape: Shape = std::iter::once(n).chain(ty.shape.iter().copied()).collect();
        let vectors = Tensor::host(HostTensor::new(shape, elements));
        basis.push(interp.convert(&vectors, ty.strong_dtype())?);
    }
    Ok(basis)
}
