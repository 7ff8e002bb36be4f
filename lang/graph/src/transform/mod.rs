//! Graph-to-graph transformations.

mod jvp;
mod vjp;
mod vmap;

#[cfg(test)]
mod tests;

pub use jvp::{jvp, no_jvp};
pub use vjp::{no_vjp, value_and_grad, varying, vjp, vjp_given};
pub use vmap::vmap;

use crate::graph::{Builder, Graph, Var, verify};

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
