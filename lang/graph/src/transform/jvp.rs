//! Forward-mode differentiation: tangents computed with the values, equation by equation.

use super::vjp::{dependents, flags, strong};
use super::{finish, or_zeros};
use crate::graph::{Builder, Graph, RULE, Var, Vars};
use sheaf_syntax::Span;

/// The Jacobian-vector product: parameters are those of `graph`, then tangents of those at positions `wrt`; results are
/// those of `graph`, then their tangents, zero if none flows, and for integers and booleans.
pub fn jvp(graph: &Graph, wrt: &[usize]) -> Graph {
    let mut b = Builder::new();
    // Each value with its tangent.
    let mut inputs: Vec<(Var, Option<Var>)> = b.inputs_of(graph).into_iter().map(|x| (x, None)).collect();
    let varies = dependents(graph, wrt);
    for position in wrt {
        let var = graph.inputs[*position];
        let tangent = b.input(strong(graph, var));
        inputs[*position].1 = Some(tangent).filter(|_| graph.ty(var).dtype.is_float());
    }
    let results = graph.rebuild(&inputs, |eqn, operands| -> Vec<(Var, Option<Var>)> {
        b.span = eqn.span;
        let (args, incoming): (Vars, Vec<Option<Var>>) = operands.iter().copied().unzip();
        let outs = b.bind(eqn.op.clone(), &args).expect(RULE);
        if incoming.iter().all(Option::is_none) {
            return outs.into_iter().map(|out| (out, None)).collect();
        }
        let outgoing = eqn.op.jvp(&mut b, &args, &outs, &incoming);
        let tangents =
            eqn.outputs.iter().zip(outgoing).map(|(v, tangent)| tangent.filter(|_| varies[v.index()]));
        outs.into_iter().zip(tangents).collect()
    });
    let mut outputs: Vec<Var> = results.iter().map(|(out, _)| *out).collect();
    outputs.extend(results.into_iter().map(|(out, tangent)| or_zeros(&mut b, tangent, out)));
    finish(b, outputs)
}

/// The first equation that depends on the parameters `wrt` and has no JVP: its span and the reason.
pub fn no_jvp(graph: &Graph, wrt: &[usize]) -> Option<(Option<Span>, &'static str)> {
    let varies = dependents(graph, wrt);
    let mut varying = graph.equations.iter().filter(|eqn| eqn.outputs.iter().any(|v| varies[v.index()]));
    varying.find_map(|eqn| {
        let reason = eqn.op.no_jvp(&flags(&varies, &eqn.inputs))?;
        Some((eqn.span, reason))
    })
}
