//! Loops and conditionals: barriers behind their results, and in loops for states that no step reads.

use crate::graph::{DefUse, Graph};
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

/// Writes a barrier for the states of a `stablehlo.while` that no step reads (Q20), though its condition may: a step makes them
/// anew, and all but their last values are forgotten. `operands` are the names of constants and states, `next` those of the
/// states that a step makes.
///
/// IREE takes the parameters of the body for them away and forms a loop that it cannot convert to streams ("region branch point
/// has 4 operands, but region successor needs 2 inputs"), or crashes, unless the loop holds on to the value before.
pub fn hold_unread(to: &mut Lowering<'_>, body: &Graph, operands: &[String], next: &mut [String]) {
    let constants = operands.len() - next.len();
    let uses = DefUse::of(body);
    for (i, state) in body.inputs[constants..].iter().enumerate() {
        if uses.count(*state) > 0 {
            continue;
        }
        let (held, unused) = (to.name_temporary(), to.name_temporary());
        let (now, before, ty) = (&next[i], &operands[constants + i], body.ty(body.outputs[i]).mlir());
        to.raw(&format!("{held}, {unused} = stablehlo.optimization_barrier {now}, {before} : {ty}, {ty}"));
        next[i] = held;
    }
}
