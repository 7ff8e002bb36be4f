//! The checks of a program as one more result, the flag: the position of the first of its sites that failed, counted from
//! 1, and the values of its failure.
//!
//! Transformations keep checks as equations without results. When a program is complete, [`thread`] passes the flag
//! through its equations in order, as a state through its loops and as a result out of the branch that is taken.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Builder, Equation, Graph, Op, RULE, Var, Vars, evaluate, prune, with_functions};
use crate::primitives::{
    And, Binary, BitcastConvert, Check, Checkpoint, Cond, CustomVjp, Direction, Not, Part, Question,
    ReduceMax, ReduceMin, ReduceOr, Scan, ShiftRightArithmetic, Site, Unary, Watch, WhileLoop,
};
use crate::tensor::{DType, Data, FromNumber, HostTensor, Number, Shape, TensorType};
use crate::watch::Stage;
use crate::with_element_type;

/// A program whose checks are a result.
pub struct Checks {
    /// The program; if there are sites, its last result is the flag, an `i32` vector.
    pub graph: Graph,
    /// Its checks, in order.
    pub sites: Vec<Arc<Site>>,
}

/// `graph` with its checks in one further result; unchanged if it has none.
pub fn thread(graph: Graph) -> Checks {
    if !graph.checked {
        return Checks { graph, sites: Vec::new() };
    }
    let mut sites: Vec<Arc<Site>> = Vec::new();
    graph.visit(&mut |_, eqn| {
        if let Some(check) = eqn.op.downcast_ref::<Check>()
            && !sites.iter().any(|site| Arc::ptr_eq(site, &check.site))
        {
            sites.push(Arc::clone(&check.site));
        }
    });
    let words = sites.iter().map(|site| width(site)).max().unwrap_or(0).max(1);
    let threader = Threader { sites, words };
    let mut b = Builder::new();
    let inputs = b.inputs_of(&graph);
    let mut progress = Progress::default();
    let mut outputs = threader.inline(&mut b, &graph, &inputs, &mut progress);
    b.span = None;
    let flag = threader.present(&mut b, &mut progress);
    let code = b.reshape(flag.code, &[1]);
    outputs.push(b.concatenate(&[code, flag.words], 0));
    let mut graph = prune(b.finish(outputs));
    graph.checked = false;
    debug_assert_eq!(super::verify(&graph), Ok(()), "{graph}");
    Checks { graph, sites: threader.sites }
}

/// The site that fails if `op` is computed with these values, and the values of its failure.
pub fn violation(op: &Op, values: &[&HostTensor]) -> Option<(Arc<Site>, Vec<i32>)> {
    if !op.checks() {
        return None;
    }
    let mut b = Builder::new();
    let inputs: Vec<Var> = values.iter().map(|value| b.input(value.ty())).collect();
    b.bind(Arc::clone(op), &inputs).expect(RULE);
    let Checks { graph, sites } = thread(b.finish(Vec::new()));
    let values: Vec<HostTensor> = values.iter().map(|value| (*value).clone()).collect();
    let flag = evaluate(&graph, &values).pop()?;
    failed(&sites, &flag)
}

/// The site that a flag names, and the values of its failure.
pub fn failed(sites: &[Arc<Site>], flag: &HostTensor) -> Option<(Arc<Site>, Vec<i32>)> {
    let words: Vec<i32> = (0..flag.count()).map(|i| flag.element_i64(i) as i32).collect();
    let (code, words) = words.split_first()?;
    let site = sites.get(usize::try_from(*code).ok()?.checked_sub(1)?)?;
    Some((Arc::clone(site), words.to_vec()))
}

/// `graph` without checks: recomputation and derivatives have been checked before. Its watches look at nothing but
/// cotangents any more.
pub fn unchecked(graph: &Graph) -> Graph {
    let mut graph = without_checks(graph);
    if graph.watched {
        for eqn in graph.equations.iter_mut().filter(|eqn| eqn.op.watches()) {
            eqn.op = match eqn.op.downcast_ref::<Watch>() {
                Some(watch) => Arc::new(Watch { stage: Stage::Latent, ..watch.clone() }),
                None => with_functions(&eqn.op, &mut unchecked),
            };
        }
    }
    graph
}

/// `graph` without checks; watches stay as they are.
pub fn without_checks(graph: &Graph) -> Graph {
    if !graph.checked {
        return graph.clone();
    }
    let mut graph = graph.clone();
    graph.equations.retain(|eqn| !eqn.op.is::<Check>());
    for eqn in graph.equations.iter_mut().filter(|eqn| eqn.op.checks()) {
        eqn.op = with_functions(&eqn.op, &mut without_checks);
    }
    graph.checked = false;
    prune(graph)
}

/// `graph` with a truth value as another, last parameter: its checks count only if that holds.
pub fn masked(graph: &Graph) -> Graph {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let counts = b.input(TensorType::scalar(DType::Bool));
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        let operands = Vars::from_slice(operands);
        let (op, operands) = if eqn.op.checks() || eqn.op.watches() {
            with_mask(&mut b, eqn, operands, counts)
        } else {
            (Arc::clone(&eqn.op), operands)
        };
        b.bind(op, &operands).expect(RULE)
    });
    b.span = None;
    b.finish(outputs)
}

/// The operation of an equation, whose checks count only if `counts` holds, with its operands.
fn with_mask(b: &mut Builder, eqn: &Equation, mut operands: Vars, counts: Var) -> (Op, Vars) {
    let op = &eqn.op;
    let last = operands.len();
    if let Some(check) = op.downcast_ref::<Check>() {
        let batch: Shape = b.ty(operands[0]).shape[..check.batch].into();
        let counts = b.broadcast_scalar(counts, &batch);
        if check.masked {
            operands[1] = b.apply(Binary(And), &[operands[1], counts]);
        } else {
            operands.insert(1, counts);
        }
        return (Arc::new(Check { masked: true, ..check.clone() }), operands);
    }
    if let Some(watch) = op.downcast_ref::<Watch>() {
        let batch: Shape = b.ty(operands[0]).shape[..watch.batch].into();
        let counts = b.broadcast_scalar(counts, &batch);
        if watch.masked {
            operands[1] = b.apply(Binary(And), &[operands[1], counts]);
        } else {
            operands.push(counts);
        }
        return (Arc::new(Watch { masked: true, ..watch.clone() }), operands);
    }
    let (op, at): (Op, usize) = if let Some(cond) = op.downcast_ref::<Cond>() {
        let [on_true, on_false] = [&cond.on_true, &cond.on_false].map(|branch| Arc::new(masked(branch)));
        (Arc::new(Cond { on_true, on_false }), last)
    } else if let Some(scan) = op.downcast_ref::<Scan>() {
        let body = Arc::new(masked_at(&scan.body, scan.constants));
        (Arc::new(Scan { body, constants: scan.constants + 1, ..scan.clone() }), scan.constants)
    } else if let Some(WhileLoop { condition, body, constants }) = op.downcast_ref() {
        let [condition, body] = [condition, body].map(|graph| Arc::new(masked_at(graph, *constants)));
        (Arc::new(WhileLoop { condition, body, constants: constants + 1 }), *constants)
    } else if let Some(op) = op.downcast_ref::<Checkpoint>() {
        (Arc::new(Checkpoint { body: Arc::new(masked(&op.body)) }), last)
    } else if let Some(op) = op.downcast_ref::<CustomVjp>() {
        let backward = with_unused(&op.backward, op.forward.inputs.len());
        let (forward, backward) = (Arc::new(masked(&op.forward)), Arc::new(backward));
        (Arc::new(CustomVjp { name: op.name.clone(), forward, backward }), last)
    } else {
        unreachable!("{} has no functions inside", op.name())
    };
    operands.insert(at, counts);
    (op, operands)
}

/// [`masked`] with the truth value as the parameter at a position.
fn masked_at(graph: &Graph, position: usize) -> Graph {
    let mut graph = masked(graph);
    graph.inputs[position..].rotate_right(1);
    graph
}

/// `graph` with a truth value that it does not use as another parameter.
fn with_unused(graph: &Graph, position: usize) -> Graph {
    let mut graph = graph.clone();
    let var = Var(graph.types.len() as u32);
    graph.types.push(TensorType::scalar(DType::Bool));
    graph.inputs.insert(position, var);
    graph
}

/// The flag within a graph: the position of the site, 0 while none has failed, and the values of its failure.
#[derive(Clone, Copy)]
struct Flag {
    code: Var,
    words: Var,
}

/// The flag on the way through the equations of one function.
#[derive(Default)]
struct Progress {
    flag: Option<Flag>,
    /// Guards since then, which are looked at together: a chain of hundreds takes a compiler long, and pairs make kernels
    /// with too many numbers (Q31).
    guards: Vec<GuardCheck>,
}

/// A guard in a program: it fails if the measure, a number, reaches the limit.
struct GuardCheck {
    measure: Var,
    limit: i32,
    code: i32,
}

/// Passes the flag through equations.
struct Threader {
    sites: Vec<Arc<Site>>,
    /// The number of words for the values of a failure.
    words: usize,
}

impl Threader {
    /// The flag so far; one without a failure, if there is none yet.
    fn present(&self, b: &mut Builder, progress: &mut Progress) -> Flag {
        self.settle(b, progress);
        *progress.flag.get_or_insert_with(|| {
            let code = b.scalar(DType::I32, 0.0);
            Flag { code, words: b.broadcast_scalar(code, &[self.words]) }
        })
    }

    /// Joins the guards to the flag: the first of them that failed, unless something has before.
    fn settle(&self, b: &mut Builder, progress: &mut Progress) {
        let guards = std::mem::take(&mut progress.guards);
        if guards.is_empty() {
            return;
        }
        let before = self.present(b, progress);
        let each: Vec<Var> = guards.iter().map(|guard| b.reshape(guard.measure, &[1])).collect();
        let measures = b.concatenate(&each, 0);
        let vector = |b: &mut Builder, numbers: Vec<i32>| {
            b.constant(HostTensor::new([numbers.len()].as_slice(), numbers), false)
        };
        let limits = vector(b, guards.iter().map(|guard| guard.limit).collect());
        let codes = vector(b, guards.iter().map(|guard| guard.code).collect());
        let fails = b.compare(Direction::Ge, measures, limits);
        let passed = b.full_like(codes, f64::from(i32::MAX));
        let failed = b.select(fails, codes, passed);
        let first = b.apply(ReduceMin { axes: [0].as_slice().into() }, &[failed]);
        let (none, passed) = (b.scalar(DType::I32, 0.0), b.scalar(DType::I32, f64::from(i32::MAX)));
        let all_passed = b.compare(Direction::Eq, first, passed);
        let code = b.select(all_passed, none, first);
        let is_first = b.compare(Direction::Eq, before.code, none);
        // Guards have no words.
        progress.flag = Some(Flag { code: b.select(is_first, code, before.code), ..before });
    }

    /// Records the equations of `graph` with `inputs` for its parameters; its results.
    fn inline(&self, b: &mut Builder, graph: &Graph, inputs: &[Var], progress: &mut Progress) -> Vec<Var> {
        if !graph.checked {
            return b.inline(graph, inputs);
        }
        graph.rebuild(inputs, |eqn, operands| {
            b.span = eqn.span;
            if eqn.op.checks() {
                self.checking(b, &eqn.op, operands, progress)
            } else {
                b.bind(Arc::clone(&eqn.op), operands).expect(RULE)
            }
        })
    }

    /// The results of an operation that checks something.
    fn checking(&self, b: &mut Builder, op: &Op, operands: &[Var], progress: &mut Progress) -> Vars {
        if let Some(check) = op.downcast_ref::<Check>() {
            self.check(b, check, operands, progress);
            return Vars::new();
        }
        let count = operands.len();
        if op.is::<Checkpoint>() || op.is::<CustomVjp>() {
            // Emission would put its equations in its place as well.
            return self.inline(b, op.functions()[0], operands, progress).into();
        }
        let before = self.present(b, progress);
        let with_flag = |b: &mut Builder, op: Op, operands: &[Var], at: usize, result: usize| {
            let operands = spliced(operands, at, &[before.code, before.words]);
            let mut results = b.bind(op, &operands).expect(RULE);
            let after = Flag { code: results.remove(result), words: results.remove(result) };
            (results, Some(after))
        };
        let results;
        if let Some(cond) = op.downcast_ref::<Cond>() {
            let at = cond.on_true.outputs.len();
            let [on_true, on_false] =
                [&cond.on_true, &cond.on_false].map(|branch| Arc::new(self.body(branch, count - 1, at)));
            (results, progress.flag) =
                with_flag(b, Arc::new(Cond { on_true, on_false }), operands, count, at);
        } else if let Some(scan) = op.downcast_ref::<Scan>() {
            let (at, states) = (scan.constants + scan.states, scan.states);
            let body = Arc::new(self.body(&scan.body, at, states));
            let op = Scan { body, states: states + 2, ..scan.clone() };
            (results, progress.flag) = with_flag(b, Arc::new(op), operands, at, states);
        } else if let Some(WhileLoop { condition, body, constants }) = op.downcast_ref() {
            if condition.checked {
                return self.checked_while(b, [condition, body], *constants, operands, progress);
            }
            let op = WhileLoop {
                condition: Arc::new(self.going_on(condition)),
                body: Arc::new(self.body(body, count, body.outputs.len())),
                constants: *constants,
            };
            (results, progress.flag) = with_flag(b, Arc::new(op), operands, count, body.outputs.len());
        } else {
            unreachable!("{} has no functions inside", op.name())
        }
        results
    }

    /// `graph` with the flag among its parameters and its results.
    fn body(&self, graph: &Graph, parameter: usize, result: usize) -> Graph {
        let mut b = Builder::new();
        let mut inputs: Vec<Var> = Vec::new();
        let mut before = None;
        for i in 0..=graph.inputs.len() {
            if i == parameter {
                before = Some(self.parameters(&mut b));
            }
            if let Some(var) = graph.inputs.get(i) {
                inputs.push(b.input(graph.ty(*var).clone()));
            }
        }
        let mut progress = Progress { flag: before, guards: Vec::new() };
        let mut outputs = self.inline(&mut b, graph, &inputs, &mut progress);
        let Flag { code, words } = self.present(&mut b, &mut progress);
        outputs.splice(result..result, [code, words]);
        finish(b, outputs)
    }

    /// Parameters for the flag.
    fn parameters(&self, b: &mut Builder) -> Flag {
        let code = b.input(TensorType::scalar(DType::I32));
        Flag { code, words: b.input(TensorType::new(DType::I32, [self.words].as_slice())) }
    }

    /// The condition of a loop that a flag ends.
    fn going_on(&self, condition: &Graph) -> Graph {
        let mut b = Builder::new();
        let inputs = b.inputs_of(condition);
        let flag = self.parameters(&mut b);
        let holds = b.inline(condition, &inputs)[0];
        let goes_on = unless_failed(&mut b, holds, flag);
        finish(b, vec![goes_on])
    }

    /// A loop whose condition checks something itself: it is asked before the loop and at the end of each step, and
    /// its answer is a state.
    fn checked_while(
        &self,
        b: &mut Builder,
        [condition, body]: [&Graph; 2],
        constants: usize,
        operands: &[Var],
        progress: &mut Progress,
    ) -> Vars {
        let goes_on = self.inline(b, condition, operands, progress)[0];
        let before = self.present(b, progress);
        let states = body.outputs.len();

        let mut step = Builder::new();
        let inputs = step.inputs_of(body);
        step.input(TensorType::scalar(DType::Bool));
        let flag = Some(self.parameters(&mut step));
        let mut inner = Progress { flag, guards: Vec::new() };
        let mut outputs = self.inline(&mut step, body, &inputs, &mut inner);
        let asked = [&inputs[..constants], &outputs].concat();
        let again = self.inline(&mut step, condition, &asked, &mut inner);
        let Flag { code, words } = self.present(&mut step, &mut inner);
        outputs.extend([again[0], code, words]);
        let step = finish(step, outputs);

        let mut asking = Builder::new();
        for var in &body.inputs {
            asking.input(body.ty(*var).clone());
        }
        let holds = asking.input(TensorType::scalar(DType::Bool));
        let inner = self.parameters(&mut asking);
        let holds = unless_failed(&mut asking, holds, inner);
        let condition = finish(asking, vec![holds]);

        let op = WhileLoop { condition: Arc::new(condition), body: Arc::new(step), constants };
        let operands = [operands, &[goes_on, before.code, before.words]].concat();
        let mut results = b.bind(Arc::new(op), &operands).expect(RULE);
        progress.flag = Some(Flag { code: results[states + 1], words: results[states + 2] });
        results.truncate(states);
        results
    }

    /// Adds a check to the flag.
    fn check(&self, b: &mut Builder, check: &Check, operands: &[Var], progress: &mut Progress) {
        let position = self.sites.iter().position(|site| Arc::ptr_eq(site, &check.site)).expect("collected");
        let counts = check.masked.then(|| operands[1]);
        let (fails, words) = match &check.site.question {
            Question::Index { axis, of } => missing(b, operands[0], counts, of.shape[*axis]),
            Question::Condition { .. } => {
                fails(b, operands[0], counts, &operands[1 + usize::from(check.masked)..])
            }
            Question::Guard(guard) => {
                let code = (position + 1) as i32;
                progress.guards.push(guard_check(b, guard.limit, code, operands[0], counts));
                return;
            }
        };
        let code = b.scalar(DType::I32, (position + 1) as f64);
        let none = b.scalar(DType::I32, 0.0);
        let words = match words {
            Some(words) => {
                let missing = self.words - b.ty(words).count();
                b.pad(words, 0.0, &[0], &[missing])
            }
            None => b.broadcast_scalar(none, &[self.words]),
        };
        let code = b.select(fails, code, none);
        self.settle(b, progress);
        let Some(before) = progress.flag else {
            progress.flag = Some(Flag { code, words });
            return;
        };
        let passed = b.compare(Direction::Eq, before.code, none);
        let each = b.broadcast_scalar(passed, &[self.words]);
        let flag =
            Flag { code: b.select(passed, code, before.code), words: b.select(each, words, before.words) };
        progress.flag = Some(flag);
    }
}

/// Ends a function inside of an operation: its checks are results now.
fn finish(b: Builder, outputs: Vec<Var>) -> Graph {
    let mut graph = prune(b.finish(outputs));
    graph.checked = false;
    graph
}

/// A guard with one measure for all entries that count.
fn guard_check(b: &mut Builder, limit: i32, code: i32, measure: Var, counts: Option<Var>) -> GuardCheck {
    let Some(counts) = counts else { return GuardCheck { measure, limit, code } };
    let limits = b.full_like(measure, f64::from(limit));
    let fails = b.compare(Direction::Ge, measure, limits);
    let fails = b.apply(Binary(And), &[fails, counts]);
    let failed = any(b, fails);
    GuardCheck { measure: b.convert(failed, DType::I32), limit: 1, code }
}

/// True if `holds` does, and nothing has failed.
fn unless_failed(b: &mut Builder, holds: Var, flag: Flag) -> Var {
    let none = b.scalar(DType::I32, 0.0);
    let passed = b.compare(Direction::Eq, flag.code, none);
    b.apply(Binary(And), &[holds, passed])
}

/// True if one of the indices lies outside of an axis of that extent, where it counts, and one that does.
///
/// With the extent and the least `i32` added, which wraps, indices within the axis come before all others, so that one
/// maximum finds a wrong one.
fn missing(b: &mut Builder, indices: Var, counts: Option<Var>, extent: usize) -> (Var, Option<Var>) {
    let extent = i64::try_from(extent).unwrap_or(i64::MAX).min(i32::MAX.into());
    let least = i64::from(i32::MIN);
    let offset = b.full_like(indices, (least + extent) as f64);
    let mut moved = b.add(indices, offset);
    if let Some(counts) = counts {
        let shape = b.shape(indices);
        let dims: Vec<usize> = (0..b.ty(counts).rank()).collect();
        let counts = b.broadcast_in_dim(counts, &shape, &dims);
        let low = b.full_like(indices, least as f64);
        moved = b.select(counts, moved, low);
    }
    let axes: Shape = (0..b.ty(moved).rank()).collect();
    if !axes.is_empty() {
        moved = b.apply(ReduceMax { axes }, &[moved]);
    }
    let end = b.scalar(DType::I32, (least + 2 * extent).min(i32::MAX.into()) as f64);
    let mut fails = b.compare(Direction::Ge, moved, end);
    if let Some(counts) = counts.filter(|_| extent == 0) {
        fails = any(b, counts);
    }
    let offset = b.scalar(DType::I32, (least + extent) as f64);
    let index = b.sub(moved, offset);
    (fails, Some(b.reshape(index, &[1])))
}

/// True if a condition does not hold, where it counts, and the values of the first entry of the batch that it does not
/// hold for.
fn fails(b: &mut Builder, holds: Var, counts: Option<Var>, values: &[Var]) -> (Var, Option<Var>) {
    let mut fails = b.apply(Unary(Not), &[holds]);
    if let Some(counts) = counts {
        fails = b.apply(Binary(And), &[fails, counts]);
    }
    let entries = b.ty(holds).count();
    let rows: Vec<Var> = values.iter().flat_map(|value| encoded(b, *value, entries)).collect();
    let words = (!rows.is_empty()).then(|| b.concatenate(&rows, 1));
    let failed = any(b, fails);
    let Some(words) = words else { return (failed, None) };
    let width = b.shape(words)[1];
    if entries == 1 {
        return (failed, Some(b.reshape(words, &[width])));
    }
    let each = b.reshape(fails, &[entries]);
    let positions = b.iota(DType::I32, &[entries], 0);
    let last = b.full_like(positions, entries.saturating_sub(1) as f64);
    let failing = b.select(each, positions, last);
    let first = b.apply(ReduceMin { axes: [0].as_slice().into() }, &[failing]);
    let zero = b.scalar(DType::I32, 0.0);
    let row = b.dynamic_slice(words, &[first, zero], &[1, width]);
    (failed, Some(b.reshape(row, &[width])))
}

/// True if any holds.
fn any(b: &mut Builder, truths: Var) -> Var {
    let axes: Shape = (0..b.ty(truths).rank()).collect();
    if axes.is_empty() { truths } else { b.apply(ReduceOr { axes }, &[truths]) }
}

/// The bits of a value of each of `entries` as rows of `i32`.
fn encoded(b: &mut Builder, value: Var, entries: usize) -> SmallVec<[Var; 2]> {
    let ty = b.ty(value).clone();
    let elements = ty.count().checked_div(entries).unwrap_or(0);
    let value = b.reshape(value, &[entries, elements]);
    match ty.dtype {
        DType::I64 | DType::F64 => {
            let bits = if ty.dtype == DType::I64 {
                b.convert(value, DType::I64)
            } else {
                let strong = b.convert(value, DType::F64);
                b.apply(BitcastConvert { dtype: DType::I64 }, &[strong])
            };
            let (shift, mask, middle) =
                (b.full_like(bits, 32.0), b.full_like(bits, f64::from(u32::MAX)), b.full_like(bits, MIDDLE));
            let high = b.apply(Binary(ShiftRightArithmetic), &[bits, shift]);
            let low = b.apply(Binary(And), &[bits, mask]);
            let low = b.sub(low, middle);
            [low, high].into_iter().map(|word| b.convert(word, DType::I32)).collect()
        }
        dtype => {
            let wide = match dtype {
                DType::F32 | DType::U32 => b.convert(value, dtype),
                dtype if dtype.is_float() => b.convert(value, DType::F32),
                _ => b.convert(value, DType::I32),
            };
            let word = match b.ty(wide).dtype {
                DType::I32 => wide,
                _ => b.apply(BitcastConvert { dtype: DType::I32 }, &[wide]),
            };
            [word].into_iter().collect()
        }
    }
}

/// The lower half of 64 bits is reduced by this, so that it fits an `i32`.
const MIDDLE: f64 = 2_147_483_648.0;

/// The number of words for the values of a failure.
fn width(site: &Site) -> usize {
    match &site.question {
        Question::Index { .. } => 1,
        Question::Condition { message } => message.iter().map(words_of).sum(),
        Question::Guard(_) => 0,
    }
}

/// The number of words of an argument of a message.
fn words_of(part: &Part) -> usize {
    let Part::Traced(ty) = part else { return 0 };
    ty.count() * if matches!(ty.dtype, DType::I64 | DType::F64) { 2 } else { 1 }
}

/// The values of the traced arguments of a message.
pub fn decoded(message: &[Part], words: &[i32]) -> Vec<Part> {
    let mut rest = words;
    let value = |part: &Part| {
        let Part::Traced(ty) = part else { return part.clone() };
        let (own, after) = rest.split_at(words_of(part).min(rest.len()));
        rest = after;
        let numbers = (0..ty.count()).map(|i| {
            let word = own.get(i).copied().unwrap_or(0);
            let wide = || {
                let high = own.get(ty.count() + i).copied().unwrap_or(0);
                i64::from(high) << 32 | (i64::from(word) + MIDDLE as i64)
            };
            match ty.dtype {
                DType::I64 => Number::Int(wide()),
                DType::F64 => Number::Float(f64::from_bits(wide() as u64)),
                DType::U32 => Number::Int((word as u32).into()),
                dtype if dtype.is_float() => Number::Float(f32::from_bits(word as u32).into()),
                _ => Number::Int(word.into()),
            }
        });
        let data =
            with_element_type!(ty.dtype, T => Data::from(numbers.map(T::from_number).collect::<Vec<T>>()));
        Part::Tensor(HostTensor::new(ty.shape.clone(), data), ty.weak)
    };
    message.iter().map(value).collect()
}

fn spliced(operands: &[Var], at: usize, more: &[Var]) -> Vec<Var> {
    [&operands[..at], more, &operands[at..]].concat()
}
