//! Graph-to-graph transformations: each reads one graph and writes another.

mod jvp;
mod vjp;
mod vmap;

#[cfg(test)]
mod tests;

pub use jvp::{jvp, unpushable};
pub use vjp::{irreversible, value_and_grad, varying, vjp, vjp_given};
pub use vmap::vmap;

use crate::graph::{Builder, Graph, RULE, Var, verify};

/// What a transformation knows of each variable of the graph it reads, by the variable's number.
type PerVar<T> = Vec<Option<T>>;

/// The entries of `vars`, all of which the walk has come by.
fn known<T: Copy, C: FromIterator<T>>(table: &PerVar<T>, vars: &[Var]) -> C {
    vars.iter().map(|v| table[v.index()].expect(RULE)).collect()
}

/// Adds the parameters of `graph`.
fn add_inputs(b: &mut Builder, graph: &Graph) -> PerVar<Var> {
    let mut map = vec![None; graph.types.len()];
    for var in &graph.inputs {
        map[var.index()] = Some(b.input(graph.ty(*var).clone()));
    }
    map
}

/// Ends a transformation: dead equations go, and debug builds verify the rest.
fn finish(b: Builder, outputs: Vec<Var>) -> Graph {
    let graph = crate::graph::prune(b.finish(outputs));
    debug_assert_eq!(verify(&graph), Ok(()), "{graph}");
    graph
}

/// The variable for a cotangent or tangent that is zero: real zeros of the type of `var`.
pub(crate) fn or_zeros(b: &mut Builder, value: Option<Var>, var: Var) -> Var {
    value.unwrap_or_else(|| {
        let ty = b.ty(var).clone();
        b.zeros(&ty)
    })
}
