//! Graph-to-graph transformations.

mod jvp;
mod vjp;
mod vmap;

#[cfg(test)]
mod tests;

pub use jvp::{jvp, no_jvp};
pub use vjp::{no_vjp, value_and_grad, varying, vjp, vjp_given};
pub use vmap::vmap;

use crate::graph::{Builder, Graph, RULE, Var, verify};

/// A table over the variables of the graph that is read, by their numbers.
type PerVar<T> = Vec<Option<T>>;

/// The entries of `vars`, all of which were visited.
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

/// Finishes a transformation: removes dead equations; debug builds verify the rest.
fn finish(b: Builder, outputs: Vec<Var>) -> Graph {
    let graph = crate::graph::prune(b.finish(outputs));
    debug_assert_eq!(verify(&graph), Ok(()), "{graph}");
    graph
}

/// A cotangent or tangent, or real zeros of the type of `var` for `None`.
pub fn or_zeros(b: &mut Builder, value: Option<Var>, var: Var) -> Var {
    value.unwrap_or_else(|| {
        let ty = b.ty(var).clone();
        b.zeros(&ty)
    })
}
