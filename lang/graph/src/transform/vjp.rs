//! Reverse-mode differentiation: a walk through the equations from last to first.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::{finish, or_zeros};
use crate::graph::{Builder, Graph, RULE, Var, Vars};
use crate::primitives::{Direction, OptimizationBarrier, Zeros};
use sheaf_syntax::Span;

/// A table over the variables of the graph that is read, by their numbers.
type PerVar<T> = Vec<Option<T>>;

/// The entries of `vars`, all of which were visited.
fn known<T: Copy, C: FromIterator<T>>(table: &PerVar<T>, vars: &[Var]) -> C {
    vars.iter().map(|v| table[v.index()].expect(RULE)).collect()
}

/// Adds the parameters of `graph`.
fn add_inputs(b: &mut Builder, graph: &Graph) -> PerVar<Var> {
    let mut map = vec![None; graph.types.len()];
    for (var, input) in graph.inputs.iter().zip(b.inputs_of(graph)) {
        map[var.index()] = Some(input);
    }
    map
}

/// The value and the gradients of one result.
///
/// `output` is the position of a scalar float among the results, `wrt` are positions of parameters. The new graph has
/// the parameters of `graph`; its results are those of `graph`, then the cotangents of `wrt`: zeros if `output` does
/// not depend on a parameter, and for integers and booleans.
///
/// One `optimization_barrier` over the value and the gradients separates them from their uses: IREE then forms better
/// kernels (an Adam step of an MLP 784-512-10 took 0.98 ms instead of 1.49 on two CPU cores).
pub fn value_and_grad(graph: &Graph, output: usize, wrt: &[usize]) -> Graph {
    let mut b = Builder::new();
    let mut map = add_inputs(&mut b, graph);
    let varies = dependents(graph, wrt);
    let residuals = replay(&mut b, graph, &mut map, &varies);
    let mut cotangents = vec![None; graph.outputs.len()];
    cotangents[output] = Some({
        let ty = b.ty(map[graph.outputs[output].index()].expect(RULE)).clone();
        b.full(&ty, 1.0)
    });
    let replayed = Replayed { map: &map, residuals, varies };
    let gradients = pull_back(&mut b, graph, replayed, &cotangents, wrt);

    let mut outputs: Vec<Var> = known(&map, &graph.outputs);
    let held: Vars = std::iter::once(outputs[output]).chain(gradients.iter().flatten().copied()).collect();
    let mut freed = b.apply_all(OptimizationBarrier, &held).into_iter();
    outputs[output] = freed.next().expect(RULE);
    for (position, gradient) in wrt.iter().zip(gradients) {
        let input = map[graph.inputs[*position].index()].expect(RULE);
        let gradient = gradient.and_then(|_| freed.next());
        outputs.push(or_zeros(&mut b, gradient, input));
    }
    finish(b, outputs)
}

/// The vector-Jacobian product: parameters are those of `graph`, then a cotangent for each float result; results are
/// those of `graph`, then the cotangents of the parameters at positions `wrt`.
pub fn vjp(graph: &Graph, wrt: &[usize]) -> Graph {
    vjp_given(graph, wrt, &[])
}

/// [`vjp`] with the values of the variables `given` as further parameters at the end, so that they are not recomputed.
/// Either all results of an equation are given, or none.
pub fn vjp_given(graph: &Graph, wrt: &[usize], given: &[Var]) -> Graph {
    let mut b = Builder::new();
    let mut map = add_inputs(&mut b, graph);
    let float = |var: &Var| graph.ty(*var).dtype.is_float();
    let cotangents: Vec<Option<Var>> =
        graph.outputs.iter().map(|v| float(v).then(|| b.input(strong(graph, *v)))).collect();
    for var in given {
        map[var.index()] = Some(b.input(graph.ty(*var).clone()));
    }
    let varies = dependents(graph, wrt);
    let residuals = replay(&mut b, graph, &mut map, &varies);
    let replayed = Replayed { map: &map, residuals, varies };
    let gradients = pull_back(&mut b, graph, replayed, &cotangents, wrt);
    let mut outputs: Vec<Var> = known(&map, &graph.outputs);
    for (position, gradient) in wrt.iter().zip(gradients) {
        let input = map[graph.inputs[*position].index()].expect(RULE);
        outputs.push(or_zeros(&mut b, gradient, input));
    }
    finish(b, outputs)
}

/// The type of cotangents and tangents of `var`: never weak.
pub(super) fn strong(graph: &Graph, var: Var) -> crate::tensor::TensorType {
    let ty = graph.ty(var);
    ty.with_dtype(ty.dtype)
}

/// Records again the equations of `graph` whose results are not known, those to differentiate with their residuals.
/// Returns the residuals by equation position.
fn replay(
    b: &mut Builder,
    graph: &Graph,
    map: &mut PerVar<Var>,
    varies: &[bool],
) -> HashMap<usize, Vec<Var>> {
    let mut residuals = HashMap::new();
    for (n, eqn) in graph.equations.iter().enumerate() {
        if !eqn.outputs.is_empty() && eqn.outputs.iter().all(|v| map[v.index()].is_some()) {
            continue;
        }
        b.span = eqn.span;
        let operands: Vars = known(map, &eqn.inputs);
        let saving = eqn.op.with_residuals().filter(|_| eqn.outputs.iter().any(|v| varies[v.index()]));
        let saves = saving.is_some();
        let results = b.bind(saving.unwrap_or_else(|| eqn.op.clone()), &operands).expect(RULE);
        if saves {
            residuals.insert(n, results[eqn.outputs.len()..].to_vec());
        }
        for (var, result) in eqn.outputs.iter().zip(results) {
            map[var.index()] = Some(result);
        }
    }
    residuals
}

/// A graph recorded again.
struct Replayed<'a> {
    /// The variables of the graph in the new one.
    map: &'a PerVar<Var>,
    /// Residuals of VJPs, by equation position.
    residuals: HashMap<usize, Vec<Var>>,
    /// True for each variable of the graph that depends on a differentiated parameter.
    varies: Vec<bool>,
}

/// The first equation between the parameters `wrt` and the results that has no VJP: its span and the reason.
pub fn no_vjp(graph: &Graph, wrt: &[usize]) -> Option<(Option<Span>, &'static str)> {
    let varies = dependents(graph, wrt);
    let mut needed = vec![false; graph.types.len()];
    graph.outputs.iter().for_each(|v| needed[v.index()] = true);
    let mut found = None;
    for eqn in graph.equations.iter().rev() {
        if eqn.outputs.iter().any(|v| needed[v.index()] && varies[v.index()]) {
            eqn.inputs.iter().for_each(|v| needed[v.index()] = true);
            let operands = flags(&varies, &eqn.inputs);
            found = eqn.op.no_vjp(&operands).map(|reason| (eqn.span, reason)).or(found);
        }
    }
    found
}

/// The cotangents of the parameters `wrt` given those of the results; `None` if none flows.
///
/// Walks only equations between `wrt` and a result with a cotangent.
fn pull_back(
    b: &mut Builder,
    graph: &Graph,
    replayed: Replayed,
    cotangents: &[Option<Var>],
    wrt: &[usize],
) -> Vec<Option<Var>> {
    let Replayed { map, mut residuals, varies } = replayed;
    let constant = constants(graph);
    // True for variables whose cotangents have zeros for elements that a later `select` did not choose.
    let mut masked = vec![false; graph.types.len()];
    let mut flowing: PerVar<Var> = vec![None; graph.types.len()];
    for (var, cotangent) in graph.outputs.iter().zip(cotangents) {
        accumulate(b, &mut flowing, *var, *cotangent);
    }
    for (n, eqn) in graph.equations.iter().enumerate().rev() {
        let incoming: Vec<Option<Var>> =
            eqn.outputs.iter().map(|v| flowing[v.index()].filter(|_| varies[v.index()])).collect();
        if incoming.iter().all(Option::is_none) {
            continue;
        }
        b.span = eqn.span;
        let (args, mut outs): (Vars, Vars) = (known(map, &eqn.inputs), known(map, &eqn.outputs));
        outs.extend(residuals.remove(&n).unwrap_or_default());
        let mut outgoing = eqn.op.vjp_by(b, &args, &outs, &incoming, &flags(&varies, &eqn.inputs));
        let known: Vec<bool> = eqn.inputs.iter().map(|v| constant[v.index()]).collect();
        let zeros = eqn.op.zeros(&known);
        let unchosen = eqn.outputs.iter().any(|v| masked[v.index()]);
        if unchosen && zeros == Zeros::Endangered {
            let cotangent =
                incoming[0].expect("an element-wise operation has one result, and one cotangent came");
            outgoing = outgoing.into_iter().map(|ct| ct.map(|ct| keep_zeros(b, cotangent, ct))).collect();
        }
        let masks = zeros == Zeros::Made || unchosen && zeros != Zeros::Lost;
        for (var, cotangent) in eqn.inputs.iter().zip(outgoing) {
            if varies[var.index()] {
                masked[var.index()] |= masks;
                accumulate(b, &mut flowing, *var, cotangent);
            }
        }
    }
    wrt.iter().map(|position| flowing[graph.inputs[*position].index()]).collect()
}

/// `outgoing` with zeros at those of `incoming`: elements not selected do not contribute to the gradient, even if
/// their derivative is infinite, as that of `sqrt` at 0 in `(where (> x 0) (sqrt x) 0)`.
fn keep_zeros(b: &mut Builder, incoming: Var, outgoing: Var) -> Var {
    let zero = b.full_like(incoming, 0.0);
    let unchosen = b.compare(Direction::Eq, incoming, zero);
    b.select(unchosen, zero, outgoing)
}

/// True for each variable that depends on no parameter.
fn constants(graph: &Graph) -> Vec<bool> {
    let mut constant = vec![true; graph.types.len()];
    graph.inputs.iter().for_each(|v| constant[v.index()] = false);
    for eqn in &graph.equations {
        let known = eqn.inputs.iter().all(|v| constant[v.index()]);
        eqn.outputs.iter().for_each(|v| constant[v.index()] = known);
    }
    constant
}

/// Adds a cotangent to the accumulated one of `var`.
fn accumulate(b: &mut Builder, flowing: &mut PerVar<Var>, var: Var, cotangent: Option<Var>) {
    let slot = &mut flowing[var.index()];
    *slot = match (*slot, cotangent) {
        (Some(sum), Some(term)) => Some(b.add(sum, term)),
        (sum, term) => sum.or(term),
    };
}

/// True for each variable that depends on the parameters `wrt` through floats.
pub(super) fn dependents(graph: &Graph, wrt: &[usize]) -> Vec<bool> {
    let float = |var: Var| graph.ty(var).dtype.is_float();
    let mut varies = vec![false; graph.types.len()];
    for position in wrt {
        let var = graph.inputs[*position];
        varies[var.index()] = float(var);
    }
    for eqn in &graph.equations {
        if eqn.op.is_constant() || !eqn.inputs.iter().any(|v| varies[v.index()]) {
            continue;
        }
        let dependent = eqn.op.dependence(&flags(&varies, &eqn.inputs));
        for (i, var) in eqn.outputs.iter().enumerate() {
            varies[var.index()] = float(*var) && dependent.as_ref().is_none_or(|results| results[i]);
        }
    }
    varies
}

/// True for each result that depends, through floats, on a parameter with a true flag in `inputs`.
pub fn varying(graph: &Graph, inputs: &[bool]) -> Vec<bool> {
    let wrt: Vec<usize> = (0..inputs.len()).filter(|i| inputs[*i]).collect();
    flags(&dependents(graph, &wrt), &graph.outputs).into_vec()
}

/// The flags of `vars`.
pub(super) fn flags(all: &[bool], vars: &[Var]) -> SmallVec<[bool; 4]> {
    vars.iter().map(|v| all[v.index()]).collect()
}
