//! Forward-mode differentiation: tangents computed with the values, equation by equation.

use super::vjp::{dependents, flags, strong};
use super::{PerVar, add_inputs, finish, known, or_zeros};
use crate::graph::{Builder, Graph, RULE, Var, Vars};
use sheaf_syntax::Span;

/// The Jacobian-vector product: parameters are those of `graph`, then tangents of those at positions `wrt`; results are
/// those of `graph`, then their tangents, zero if none flows, and for integers and booleans.
pub fn jvp(graph: &Graph, wrt: &[usize]) -> Graph {
    let mut b = Builder::new();
    let mut map = add_inputs(&mut b, graph);
    let varies = dependents(graph, wrt);
    let mut tangents: PerVar<Var> = vec![None; graph.types.len()];
    for position in wrt {
        let var = graph.inputs[*position];
        let tangent = b.input(strong(graph, var));
        tangents[var.index()] = Some(tangent).filter(|_| graph.ty(var).dtype.is_float());
    }
    for eqn in &graph.equations {
        b.span = eqn.span;
        let args: Vars = known(&map, &eqn.inputs);
        let outs = b.bind(eqn.op.clone(), &args).expect(RULE);
        let incoming: Vec<Option<Var>> = eqn.inputs.iter().map(|v| tangents[v.index()]).collect();
        if incoming.iter().any(Option::is_some) {
            let outgoing = eqn.op.jvp(&mut b, &args, &outs, &incoming);
            for (var, tangent) in eqn.outputs.iter().zip(outgoing) {
                tangents[var.index()] = tangent.filter(|_| varies[var.index()]);
            }
        }
        for (var, out) in eqn.outputs.iter().zip(outs) {
            map[var.index()] = Some(out);
        }
    }
    let mut outputs: Vec<Var> = known(&map, &graph.outputs);
    for i in 0..graph.outputs.len() {
        let tangent = tangents[graph.outputs[i].index()];
        outputs.push(or_zeros(&mut b, tangent, outputs[i]));
    }
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
