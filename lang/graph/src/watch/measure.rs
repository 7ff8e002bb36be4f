//! Statistics in programs: those of all watched values are one more result, folded over the iterations of loops.
//!
//! The statistics of a value are three numbers: the negated minimum, the maximum, and 1 if there is a NaN, else 0. So
//! those of two values together are the greater of each.

use std::sync::Arc;

use super::{Site, Stage, Statistics, unwatched};
use crate::graph::{Builder, Equation, Graph, Op, RULE, Var, Vars, prune};
use crate::primitives::{
    And, Binary, Compare, Cond, Direction, Max, Neg, ReduceMax, Scan, Select, Unary, Watch, WhileLoop,
};
use crate::tensor::{DType, HostTensor, Shape, TensorType};

/// Numbers per watch.
const WIDTH: usize = 3;

/// A program whose statistics are a result.
pub struct Measured {
    /// The program; its last result has `WIDTH` numbers of `f32` for each site.
    pub graph: Graph,
    /// The sites, in the order of their values.
    pub sites: Vec<(Arc<Site>, Stage, TensorType)>,
}

/// `graph` with the statistics of its watched values as one more result; without watches it stays as it is.
pub fn measured(graph: &Graph) -> Measured {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let mut found = Found::default();
    let mut outputs = inline(&mut b, graph, &inputs, &mut found);
    b.span = None;
    if !found.sites.is_empty() {
        outputs.push(b.concatenate(&found.numbers, 0));
    }
    Measured { graph: prune(b.finish(outputs)), sites: found.sites }
}

/// The statistics of each site, from the result of a program.
pub fn statistics_of(result: &HostTensor) -> Vec<Statistics> {
    let number = |i: usize| result.element_f64(i);
    let all = (0..result.count() / WIDTH).map(|i| WIDTH * i);
    all.map(|i| Statistics { min: -number(i), max: number(i + 1), nan: number(i + 2) != 0.0 }).collect()
}

/// The watches of a graph so far, with their statistics: vectors of three numbers for each of one or more sites.
#[derive(Default)]
struct Found {
    sites: Vec<(Arc<Site>, Stage, TensorType)>,
    numbers: Vec<Var>,
}

impl Found {
    /// The statistics of all sites as one vector.
    fn joined(&self, b: &mut Builder) -> Var {
        b.concatenate(&self.numbers, 0)
    }

    fn extend(&mut self, sites: Vec<(Arc<Site>, Stage, TensorType)>, numbers: Var) {
        self.sites.extend(sites);
        self.numbers.push(numbers);
    }
}

/// Records the equations of `graph` with `inputs` for its parameters; its results.
fn inline(b: &mut Builder, graph: &Graph, inputs: &[Var], found: &mut Found) -> Vec<Var> {
    graph.rebuild(inputs, |eqn, operands| {
        b.span = eqn.span;
        if let Some(watch) = eqn.op.downcast_ref::<Watch>() {
            let ty = b.ty(operands[0]).clone();
            if measures(watch, &ty) {
                let numbers = statistics(b, operands);
                found.extend(vec![(Arc::clone(&watch.site), watch.stage, ty)], numbers);
            }
            return Vars::from_slice(&operands[..1]);
        }
        if eqn.op.watches() {
            within(b, &eqn.op, operands, found)
        } else {
            b.bind(eqn.op.clone(), operands).expect(RULE)
        }
    })
}

/// Records an operation with watches inside; its results.
fn within(b: &mut Builder, op: &Op, operands: &[Var], found: &mut Found) -> Vars {
    if let Some(cond) = op.downcast_ref::<Cond>() {
        let (on_true, sites) = body(&cond.on_true, None);
        let (on_false, other) = body(&cond.on_false, None);
        let (before, after) = (sites.len(), other.len());
        let on_true = Arc::new(padded(&on_true, 0, after));
        let on_false = Arc::new(padded(&on_false, before, 0));
        let mut results = b.bind(Arc::new(Cond { on_true, on_false }), operands).expect(RULE);
        let numbers = results.pop().expect("the statistics");
        found.extend([sites, other].concat(), numbers);
        return results;
    }
    if let Some(scan) = op.downcast_ref::<Scan>() {
        let (at, states) = (scan.constants + scan.states, scan.states);
        let (body, sites) = body(&scan.body, Some((at, states)));
        let first = none(b, sites.len());
        let op = Scan { body: Arc::new(body), states: states + 1, ..scan.clone() };
        let operands = [&operands[..at], &[first], &operands[at..]].concat();
        let mut results = b.bind(Arc::new(op), &operands).expect(RULE);
        let numbers = results.remove(states);
        found.extend(sites, numbers);
        return results;
    }
    if let Some(WhileLoop { condition, body: step, constants }) = op.downcast_ref() {
        let (inputs, states) = (step.inputs.len(), step.outputs.len());
        let (body, sites) = body(step, Some((inputs, states)));
        let first = none(b, sites.len());
        let mut asking = Builder::new();
        let parameters = asking.inputs_of(condition);
        asking.input(TensorType::new(DType::F32, [WIDTH * sites.len()].as_slice()));
        let holds = asking.inline(&unwatched(condition), &parameters);
        let condition = Arc::new(asking.finish(holds));
        let op = WhileLoop { condition, body: Arc::new(body), constants: *constants };
        let mut results = b.bind(Arc::new(op), &[operands, &[first]].concat()).expect(RULE);
        let numbers = results.pop().expect("the statistics");
        found.extend(sites, numbers);
        return results;
    }
    // A call: emission would put its equations in its place as well.
    inline(b, op.functions()[0], operands, found).into()
}

/// `graph` with the statistics of its watches among its results; with `state`, the positions of a parameter and of the
/// result, they are those of the parameter and of the watches together. Otherwise they are the last result.
fn body(graph: &Graph, state: Option<(usize, usize)>) -> (Graph, Vec<(Arc<Site>, Stage, TensorType)>) {
    let numbers = WIDTH * count(graph);
    let mut b = Builder::new();
    let mut inputs = Vec::new();
    let mut before = None;
    for i in 0..=graph.inputs.len() {
        if state.is_some_and(|(parameter, _)| parameter == i) {
            before = Some(b.input(TensorType::new(DType::F32, [numbers].as_slice())));
        }
        if let Some(var) = graph.inputs.get(i) {
            inputs.push(b.input(graph.ty(*var).clone()));
        }
    }
    let mut found = Found::default();
    let mut outputs = inline(&mut b, graph, &inputs, &mut found);
    b.span = None;
    let mut numbers = if found.numbers.is_empty() { none(&mut b, 0) } else { found.joined(&mut b) };
    if let Some(before) = before {
        numbers = b.apply(Binary(Max), &[before, numbers]);
    }
    outputs.insert(state.map_or(outputs.len(), |(_, result)| result), numbers);
    (prune(b.finish(outputs)), found.sites)
}

/// The number of sites in a graph.
fn count(graph: &Graph) -> usize {
    let of = |eqn: &Equation| {
        if let Some(watch) = eqn.op.downcast_ref::<Watch>() {
            return usize::from(measures(watch, graph.ty(eqn.inputs[0])));
        }
        match eqn.op.downcast_ref::<WhileLoop>() {
            Some(op) => count(&op.body),
            None => eqn.op.functions().into_iter().map(count).sum(),
        }
    };
    graph.equations.iter().filter(|eqn| eqn.op.watches()).map(of).sum()
}

/// True if the values of a watch have statistics.
fn measures(watch: &Watch, ty: &TensorType) -> bool {
    watch.stage != Stage::Latent && ty.dtype != DType::Bool
}

/// A function whose last result are statistics, with those of other sites before and after them.
fn padded(graph: &Graph, before: usize, after: usize) -> Graph {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let mut outputs = b.inline(graph, &inputs);
    let numbers = outputs.pop().expect("the statistics");
    let mut parts = Vec::new();
    for (sites, numbers) in [(before, None), (1, Some(numbers)), (after, None)] {
        match numbers {
            Some(numbers) if b.ty(numbers).count() > 0 => parts.push(numbers),
            None if sites > 0 => parts.push(none(&mut b, sites)),
            _ => {}
        }
    }
    outputs.push(b.concatenate(&parts, 0));
    b.finish(outputs)
}

/// The statistics of no elements, for a number of sites.
fn none(b: &mut Builder, sites: usize) -> Var {
    let numbers = [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0].repeat(sites);
    let count = numbers.len();
    b.constant(HostTensor::new([count].as_slice(), numbers), false)
}

/// The statistics of a watched value: a vector of three numbers.
fn statistics(b: &mut Builder, operands: &[Var]) -> Var {
    let x = b.convert(operands[0], DType::F32);
    let shape = b.shape(x);
    let mut is_number = b.apply(Compare { direction: Direction::Eq }, &[x, x]);
    let mut is_nan = b.apply(Compare { direction: Direction::Ne }, &[x, x]);
    if let Some(counts) = operands.get(1) {
        let dims: Vec<usize> = (0..b.ty(*counts).rank()).collect();
        let counts = b.broadcast_in_dim(*counts, &shape, &dims);
        is_number = b.apply(Binary(And), &[is_number, counts]);
        is_nan = b.apply(Binary(And), &[is_nan, counts]);
    }
    let least = b.full_like(x, f64::NEG_INFINITY);
    let negated = b.apply(Unary(Neg), &[x]);
    let parts = [negated, x].map(|x| b.apply(Select, &[is_number, x, least]));
    let nan = b.convert(is_nan, DType::F32);
    let axes: Shape = (0..shape.len()).collect();
    let numbers = [parts[0], parts[1], nan].map(|x| {
        let greatest = if axes.is_empty() { x } else { b.apply(ReduceMax { axes: axes.clone() }, &[x]) };
        b.reshape(greatest, &[1])
    });
    b.concatenate(&numbers, 0)
}
