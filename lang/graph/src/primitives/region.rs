//! Helpers of operations with regions: `cond`, `scan`, `while_loop` and `checkpoint`.

use super::{Cotangents, TypeFault};
use crate::graph::{Builder, Graph, Var, unchecked};
use crate::tensor::TensorType;
use crate::transform::{self, or_zeros};

/// Fails unless the operands are those for which `graph` was traced, weakness aside.
pub(super) fn expect_operands(name: &str, graph: &Graph, operands: &[&TensorType]) -> Result<(), TypeFault> {
    if operands.len() != graph.inputs.len() {
        return Err(TypeFault::new(format!(
            "{name} passes {} values to a function of {}",
            operands.len(),
            graph.inputs.len()
        )));
    }
    for (found, var) in operands.iter().zip(&graph.inputs) {
        if !alike(found, graph.ty(*var)) {
            return Err(TypeFault::new(format!("{name} passes {found} for {}", graph.ty(*var))));
        }
    }
    Ok(())
}

/// True if two types differ at most in weakness.
pub(super) fn alike(a: &TensorType, b: &TensorType) -> bool {
    a.dtype == b.dtype && a.shape == b.shape
}

/// Flags of variables of a graph: true for floats.
pub(super) fn are_floats(graph: &Graph, vars: &[Var]) -> Vec<bool> {
    vars.iter().map(|v| graph.ty(*v).dtype.is_float()).collect()
}

/// The positions at which `flags` holds.
pub(super) fn positions(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|i| flags[*i]).collect()
}

/// The items at which `flags` holds.
pub(super) fn picked(items: &[Var], flags: &[bool]) -> Vec<Var> {
    items.iter().zip(flags).filter(|(_, flag)| **flag).map(|(item, _)| *item).collect()
}

/// The cotangents or tangents at which `flags` holds.
pub(super) fn picked_varying(items: &[Option<Var>], flags: &[bool]) -> Vec<Option<Var>> {
    items.iter().zip(flags).filter(|(_, flag)| **flag).map(|(item, _)| *item).collect()
}

/// Results of a derivative for the operands at which `flags` holds, nothing for the others.
pub(super) fn spread(found: impl IntoIterator<Item = Var>, flags: &[bool]) -> Cotangents {
    let mut found = found.into_iter();
    flags.iter().map(|flag| if *flag { found.next() } else { None }).collect()
}

/// Strong cotangents or tangents of the floats among `vars`, real zeros for symbolic ones.
pub(super) fn real(b: &mut Builder, varying: &[Option<Var>], vars: &[Var]) -> Vec<Var> {
    let mut out = Vec::new();
    for (varying, var) in varying.iter().zip(vars) {
        if b.ty(*var).dtype.is_float() {
            let value = or_zeros(b, *varying, *var);
            out.push(strong(b, value));
        }
    }
    out
}

/// `var` in its dtype, strong.
pub(super) fn strong(b: &mut Builder, var: Var) -> Var {
    let dtype = b.ty(var).dtype;
    b.convert(var, dtype)
}

/// Cotangents of the operands at which `varies` holds, of a call of `body`, for those of its float results.
pub(super) fn call_vjp(
    b: &mut Builder,
    body: &Graph,
    args: &[Var],
    cotangents: &[Var],
    varies: &[bool],
) -> Cotangents {
    let operands = [args, cotangents].concat();
    let pulled = b.inline(&transform::vjp(&unchecked(body), &positions(varies)), &operands);
    spread(pulled[body.outputs.len()..].iter().map(|v| strong(b, *v)), varies)
}

/// Tangents of the results of a call of `body`.
pub(super) fn call_jvp(b: &mut Builder, body: &Graph, args: &[Var], tangents: &[Option<Var>]) -> Cotangents {
    let varies = present(tangents);
    let varying = transform::varying(body, &varies);
    let mut operands = args.to_vec();
    operands.extend(real(b, &picked_varying(tangents, &varies), &picked(args, &varies)));
    let derivative = transform::jvp(&unchecked(body), &positions(&varies));
    let pushed = b.inline(&derivative, &operands).split_off(body.outputs.len());
    spread(picked(&pushed, &varying).into_iter().map(|v| strong(b, v)), &varying)
}

/// Parameters of the types of `vars` in `graph`.
pub(super) fn parameters(b: &mut Builder, graph: &Graph, vars: &[Var]) -> Vec<Var> {
    vars.iter().map(|v| b.input(graph.ty(*v).clone())).collect()
}

/// Parameters for cotangents or tangents of the floats among `vars` in `graph`.
pub(super) fn varying_parameters(b: &mut Builder, graph: &Graph, vars: &[Var]) -> Vec<Var> {
    let types = vars.iter().map(|v| graph.ty(*v)).filter(|ty| ty.dtype.is_float());
    types.map(|ty| b.input(ty.with_dtype(ty.dtype))).collect()
}

/// Flags of the parameters of a loop's body (constants, states, then rows) and of its results that vary if the operands
/// at which `varies` holds do. A state that varies after one step varies in the next; with no steps, the last state is
/// the first.
pub(super) fn carried(
    body: &Graph,
    varies: &[bool],
    constants: usize,
    states: usize,
) -> (Vec<bool>, Vec<bool>) {
    let mut parameters: Vec<bool> =
        are_floats(body, &body.inputs).iter().zip(varies).map(|(float, varies)| *float && *varies).collect();
    loop {
        let mut results = transform::varying(body, &parameters);
        let state = &mut parameters[constants..constants + states];
        let grows = state.iter().zip(&results).any(|(before, after)| *after && !before);
        for (before, after) in state.iter_mut().zip(&mut results) {
            *before |= *after;
            *after = *before;
        }
        if !grows {
            return (parameters, results);
        }
    }
}

/// Flags of the tangents: true if there is one.
pub(super) fn present(tangents: &[Option<Var>]) -> Vec<bool> {
    tangents.iter().map(Option::is_some).collect()
}

/// The names of types, separated by commas.
pub(super) fn type_list<'a>(types: impl Iterator<Item = &'a TensorType>) -> String {
    types.map(TensorType::mlir).collect::<Vec<_>>().join(", ")
}
