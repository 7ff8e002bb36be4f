//! Loops and conditionals: barriers behind their results, and in loops memory of its own for each state.

use crate::graph::{DefUse, Graph, Var};
use crate::primitives::Reshape;
use crate::stablehlo::Lowering;

impl Lowering<'_> {
    /// Names for the results of a loop or a conditional, which [`Lowering::hold`] is to be called with.
    pub fn results_to_hold(&mut self) -> Vec<String> {
        if self.in_kernel() {
            return self.results();
        }
        self.eqn.outputs.clone().iter().map(|_| self.name_temporary()).collect()
    }

    /// Writes the results of a loop or a conditional behind a barrier, outside of kernels.
    ///
    /// IREE else puts what is computed before a loop into one submission with what is computed from its results, and then
    /// finds that they depend on each other ("circular dependency: input operation uses partition output", Q19).
    pub fn hold(&mut self, held: &[String]) {
        if !self.in_kernel() {
            let types = self.result_types();
            self.line(&format!("stablehlo.optimization_barrier {} : {types}", held.join(", ")));
        }
    }
}

/// Writes what keeps the states of a `stablehlo.while` apart. `states` are those of `body`, `before` the names of their values
/// before a step, `next` those that a step makes.
///
/// - A state that no step reads, though a condition may: a step makes it anew, and all but its last value are forgotten. IREE
///   takes the parameter of the body for it away and forms a loop that it cannot convert to streams ("region branch point has 4
///   operands, but region successor needs 2 inputs"), or crashes, unless the loop holds on to the value before (Q20).
/// - A state whose next value is not of the step: another state, or a value from outside. It shares memory with that, IREE frees
///   it as if it did not, and the call fails on `local-task` ("transient buffer has not been committed"). It gets a copy (Q65).
pub fn hold_states(
    to: &mut Lowering<'_>,
    body: &Graph,
    states: &[Var],
    before: &[String],
    next: &mut [String],
) {
    let uses = DefUse::of(body);
    let fixed = states.first().and_then(|first| body.inputs.iter().position(|v| v == first));
    let changing = body.dependents(&body.inputs[fixed.unwrap_or(0)..]);
    for (i, state) in states.iter().enumerate() {
        let (now, before, ty) = (&next[i], &before[i], body.ty(body.outputs[i]));
        let origin = unreshaped(&uses, body.outputs[i]);
        let is_of_step = uses.definition(origin).is_some() && changing[origin.index()];
        if !is_of_step && origin != *state {
            next[i] = to.copy_beside(now, before, ty);
        } else if uses.count(*state) == 0 {
            let (held, unused, ty) = (to.name_temporary(), to.name_temporary(), ty.mlir());
            to.raw(&format!(
                "{held}, {unused} = stablehlo.optimization_barrier {now}, {before} : {ty}, {ty}"
            ));
            next[i] = held;
        }
    }
}

/// The variable that `var` is in another shape.
fn unreshaped(uses: &DefUse<'_>, mut var: Var) -> Var {
    while let Some(eqn) = uses.definition(var).filter(|eqn| eqn.op.is::<Reshape>()) {
        var = eqn.inputs[0];
    }
    var
}
