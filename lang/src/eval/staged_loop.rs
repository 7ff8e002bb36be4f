//! Loops recorded as one operation, in a trace for compilation: `scan` if the number of steps is known, `while_loop`
//! otherwise.

use std::sync::Arc;

use super::interp::{Frame, Interp};
use super::region::{Difference, Region, State, Step};
use super::signal::{Differing, Eval};
use super::tensor::bind_all;
use super::tree::{Tree, flatten, unflatten};
use crate::program::{Expr, Pattern, Tensor, Value};
use sheaf_graph::graph::{Builder, Graph, Op, Var};
use sheaf_graph::primitives as p;
use sheaf_graph::simplify::simplify;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_graph::watch::unwatched;
use sheaf_syntax::Span;

/// Maximum retraces to reach a type fixpoint.
const MAX_TRACES: usize = 4;

/// Maximum equations of an unrolled short loop, over all steps, including nested loops and branches. Measured
/// (`benches/benches/first_run.rs`, `docs/benchmarks.md`).
const MAX_UNROLLED_EQUATIONS: usize = 256;

/// Maximum bytes of stacked outputs copied by a short loop, else it is unrolled: in a program, each iteration copies
/// the whole stack. That takes about a millisecond in every call.
const MAX_COPIED_BYTES: usize = 1 << 24;

/// Note of the error for an output that is no tensor.
pub(super) const STACKED: &str = "the outputs of the steps are stacked: all are of one structure and shape";

/// The reason a loop is not staged.
pub(super) enum Refusal {
    /// The step asks for a varying value; with the difference that kept a region from being one operation, if that is
    /// why.
    Asks(Option<Box<Differing>>),
    /// The state changes its type.
    Changes(Difference),
    /// Unrolling costs less.
    Small,
}

impl Refusal {
    /// The difference to report; the spans are those of the initial state and the body.
    pub fn at(self, places: Option<[Span; 2]>) -> Option<Box<Differing>> {
        match self {
            Refusal::Asks(differing) => differing,
            Refusal::Changes(difference) => Some(difference.of_state(places)),
            Refusal::Small => None,
        }
    }
}

/// A traced loop step: from a state and further parameters to the next state and an output.
pub(super) struct StagedLoop {
    /// The initial state, in the dtypes that the step keeps.
    state: State,
    /// The results are the tensors of the next state, then those of the output.
    region: Region,
    output: Output,
}

impl StagedLoop {
    /// The initial state, in the dtypes that the step keeps.
    pub fn first(&self) -> Eval<Value> {
        self.state.with(&self.state.tensors())
    }

    /// True if `count` steps are better unrolled: they have few equations in all, or a loop would spend its time on
    /// copies of the outputs.
    fn should_unroll(&self, count: usize) -> bool {
        let graph = &self.region.graph;
        let row = |var: &Var| graph.ty(*var).count() * graph.ty(*var).dtype.byte_width();
        let rows: usize = graph.outputs[self.state.tensors().len()..].iter().map(row).sum();
        let copied = rows.saturating_mul(count).saturating_mul(count);
        copied > MAX_COPIED_BYTES
            || simplify(&unwatched(graph)).size().saturating_mul(count) <= MAX_UNROLLED_EQUATIONS
    }

    /// The stacked outputs of zero steps.
    pub fn no_outputs(&self) -> Eval<Value> {
        let graph = &self.region.graph;
        let mut rows = graph.outputs[self.state.tensors().len()..].iter().map(|var| {
            let ty = graph.ty(*var);
            let shape: Shape = std::iter::once(0).chain(ty.shape.iter().copied()).collect();
            Value::Tensor(Tensor::host(HostTensor::filled(ty.dtype, shape, 0.0)))
        });
        self.output.build(&mut rows)
    }
}

/// The output of a step.
struct Output {
    tree: Tree,
    /// `None` for leaves computed by the graph.
    leaves: Vec<Option<Value>>,
}

impl Output {
    fn build(&self, computed: &mut impl Iterator<Item = Value>) -> Eval<Value> {
        let mut leaves = self.leaves.iter().map(|leaf| match leaf {
            Some(fixed) => fixed.clone(),
            None => computed.next().expect("rows for each output"),
        });
        unflatten(&self.tree, &mut leaves)
    }
}

impl Interp {
    /// Traces a step; refuses if it asks for a varying value, or if the state changes its type.
    pub(super) fn stage_loop(
        &mut self,
        init: &Value,
        parameters: &[TensorType],
        mut step: impl FnMut(&mut Interp, &Value, &[Tensor]) -> Eval<(Value, Value)>,
    ) -> Eval<Result<StagedLoop, Refusal>> {
        let mut state = self.state(init)?;
        for _ in 0..MAX_TRACES {
            let varying = state.types();
            let types = [varying.as_slice(), parameters].concat();
            let traced = self.region(&types, |interp, tensors| {
                let (before, parameters) = tensors.split_at(varying.len());
                let before = state.with(before)?;
                let (next, output) = step(interp, &before, parameters)?;
                let mut leaves = Vec::new();
                let mut computed = Vec::new();
                for leaf in flatten(&output) {
                    if matches!(leaf, Value::Nil) {
                        leaves.push(Some(leaf));
                        continue;
                    }
                    let tensor = interp.tensor(&leaf).map_err(|signal| signal.note(STACKED))?;
                    computed.push(interp.strong(&tensor)?);
                    leaves.push(None);
                }
                let step = interp.step_of(&state, &before, &next)?;
                let results = match &step {
                    Step::Fits(tensors) => [tensors.as_slice(), &computed].concat(),
                    Step::Adapted(_) | Step::Differs(_) => Vec::new(),
                };
                Ok(((step, Output { tree: Tree::of(&output), leaves }), results))
            });
            match traced {
                Ok(((Step::Fits(_), output), region)) => return Ok(Ok(StagedLoop { state, region, output })),
                Ok(((Step::Adapted(adapted), _), _)) => state = adapted,
                Ok(((Step::Differs(difference), _), _)) => return Ok(Err(Refusal::Changes(difference))),
                Err(signal) if self.tracing.asks_inside(&signal) || signal.is_raised() => {
                    return Ok(Err(Refusal::Asks(Interp::differing_in(&signal))));
                }
                Err(signal) => return Err(signal),
            }
        }
        Ok(Err(Refusal::Asks(None)))
    }

    /// Runs a traced step `length` times over the rows of `tensors`, one per further parameter: the final state, and
    /// the stacked outputs.
    fn run_scan(&mut self, staged: StagedLoop, tensors: &[Tensor], length: usize) -> Eval<(Value, Value)> {
        let StagedLoop { state, region, output } = staged;
        let Region { mut graph, captures } = region;
        let first = state.tensors();
        let constants = captures.len();
        graph.inputs.rotate_right(constants);
        let op: Op = Arc::new(p::Scan {
            body: Arc::new(graph),
            length,
            constants,
            states: first.len(),
            reverse: false,
        });
        let operands: Vec<&Tensor> = captures.iter().chain(&first).chain(tensors).collect();
        let results = bind_all(&op, &operands, self.span)?;
        let (last, rows) = results.split_at(first.len());
        let mut rows = rows.iter().map(|t| Value::Tensor(t.clone()));
        Ok((state.with(last)?, output.build(&mut rows)?))
    }

    /// The staged loop of `count` steps, refused if it is better unrolled. Unrolling a short loop reports the errors of
    /// its steps.
    fn unless_unrolled(
        staged: Eval<Result<StagedLoop, Refusal>>,
        count: usize,
    ) -> Eval<Result<StagedLoop, Refusal>> {
        if !Interp::is_short(count as u64) {
            return staged;
        }
        match staged {
            Ok(Ok(staged)) if staged.should_unroll(count) => Ok(Err(Refusal::Small)),
            Err(_) => Ok(Err(Refusal::Asks(None))),
            staged => staged,
        }
    }

    /// `scan` as one operation, unless that is impossible, or unrolling costs less.
    pub(super) fn staged_scan(
        &mut self,
        init: &Value,
        rows: &Rows,
        step: impl FnMut(&mut Interp, &Value, Value) -> Eval<(Value, Value)>,
    ) -> Eval<Result<(Value, Value), Refusal>> {
        let staged = self.stage_rows(init, rows, step);
        match Interp::unless_unrolled(staged, rows.length)? {
            Ok(staged) => self.run_rows(staged, rows).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Runs a traced step over rows.
    pub(super) fn run_rows(&mut self, staged: StagedLoop, rows: &Rows) -> Eval<(Value, Value)> {
        self.run_scan(staged, &rows.tensors, rows.length)
    }

    /// The traced step of a loop over rows.
    pub(super) fn stage_rows(
        &mut self,
        init: &Value,
        rows: &Rows,
        mut step: impl FnMut(&mut Interp, &Value, Value) -> Eval<(Value, Value)>,
    ) -> Eval<Result<StagedLoop, Refusal>> {
        self.stage_loop(init, &rows.types, |interp, state, items| {
            let item = rows.item(items)?;
            step(interp, state, item)
        })
    }

    /// `reduce` over the rows of a tensor as one operation; `None` if that is impossible.
    pub(crate) fn staged_reduce(&mut self, f: &Value, init: &Value, xs: &Value) -> Eval<Option<Value>> {
        let Value::Tensor(t) = xs else { return Ok(None) };
        let length = t.shape().first().copied().unwrap_or(0);
        let Some(rows) = Rows::of(xs, length).filter(|_| self.may_stage(length as u64)) else {
            return Ok(None);
        };
        let staged = self.staged_scan(init, &rows, |interp, state, row| {
            Ok((interp.call(f, [state.clone(), row])?, Value::Nil))
        })?;
        Ok(staged.ok().map(|(state, _)| state))
    }

    /// `repeat` as one operation, unless that is impossible, or unrolling costs less. `count` is the number of
    /// iterations.
    pub(super) fn staged_repeat(
        &mut self,
        parts: &RepeatParts,
        count: &Value,
        init: &Value,
        frame: Frame,
    ) -> Eval<Result<Value, Refusal>> {
        let staged = self.stage_repeat(parts, init, frame);
        let staged = match count {
            Value::Int(n) => Interp::unless_unrolled(staged, (*n).max(0) as usize)?,
            _ => staged?,
        };
        let staged = match staged {
            Ok(staged) => staged,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let last = match count {
            Value::Int(n) => self.run_scan(staged, &[], (*n).max(0) as usize)?.0,
            count => {
                let state = staged.state.types();
                let ((), condition) = self.region(&state, |interp, tensors| {
                    let count = interp.tensor(count)?;
                    let (i, n) = interp.broadcast(&tensors[0], &count)?;
                    let less = interp.op(p::Compare { direction: p::Direction::Lt }, &[&i, &n])?;
                    Ok(((), vec![less]))
                })?;
                self.run_while(staged, condition)?
            }
        };
        let [_, state] = pair(&last);
        Ok(Ok(state.clone()))
    }

    /// The step of a `repeat`; its state is the counter and the state of the program.
    fn stage_repeat(
        &mut self,
        parts: &RepeatParts,
        init: &Value,
        frame: Frame,
    ) -> Eval<Result<StagedLoop, Refusal>> {
        let RepeatParts { index, state: pattern, body } = *parts;
        let counted = Value::vector(vec![Value::Int(0), init.clone()]);
        let staged = self.stage_loop(&counted, &[], |interp, counted, _| {
            let [i, state] = pair(counted);
            interp.stack[index] = i.clone();
            interp.bind_pattern(pattern, state.clone(), frame.base)?;
            let next = interp.eval(body, frame)?;
            let one = Tensor::weak(HostTensor::scalar(1_i64));
            let i = interp.tensor(i)?;
            let i = interp.op(p::Binary(p::Add), &[&i, &one])?;
            Ok((Value::vector(vec![Value::from(i), next]), Value::Nil))
        })?;
        Ok(staged.map_err(|refusal| match refusal {
            Refusal::Changes(difference) => Refusal::Changes(difference.in_second()),
            other => other,
        }))
    }

    /// The state of a `repeat` of zero steps: weak numbers take the dtypes that its body would give them.
    pub(super) fn empty_repeat(&mut self, parts: &RepeatParts, init: Value, frame: Frame) -> Eval<Value> {
        if !has_weak(&init) {
            return Ok(init);
        }
        match self.stage_repeat(parts, &init, frame) {
            Ok(Ok(staged)) => Ok(pair(&staged.first()?)[1].clone()),
            _ => Ok(init),
        }
    }

    /// The state of a `while` of zero steps, with the same dtypes.
    pub(super) fn empty_while(
        &mut self,
        pattern: &Pattern,
        body: &Expr,
        init: Value,
        frame: Frame,
    ) -> Eval<Value> {
        if !has_weak(&init) {
            return Ok(init);
        }
        match self.stage_while(pattern, body, &init, frame) {
            Ok(Ok(staged)) => staged.first(),
            _ => Ok(init),
        }
    }

    fn stage_while(
        &mut self,
        pattern: &Pattern,
        body: &Expr,
        init: &Value,
        frame: Frame,
    ) -> Eval<Result<StagedLoop, Refusal>> {
        self.stage_loop(init, &[], |interp, state, _| {
            interp.bind_pattern(pattern, state.clone(), frame.base)?;
            Ok((interp.eval(body, frame)?, Value::Nil))
        })
    }

    /// `while` as one operation, unless that is impossible.
    pub(super) fn staged_while(
        &mut self,
        condition: &Expr,
        pattern: &Pattern,
        body: &Expr,
        init: &Value,
        frame: Frame,
    ) -> Eval<Result<Value, Refusal>> {
        let staged = match self.stage_while(pattern, body, init, frame)? {
            Ok(staged) => staged,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let state = &staged.state;
        let traced = self.region(&state.types(), |interp, tensors| {
            interp.bind_pattern(pattern, state.with(&tensors)?, frame.base)?;
            let value = interp.eval(condition, frame)?;
            let holds = match &value {
                Value::Tensor(t) if t.ty() == &TensorType::scalar(DType::Bool) => Some(t.clone()),
                _ => None,
            };
            Ok((holds.is_some(), holds.into_iter().collect()))
        });
        match traced {
            Ok((true, condition)) => self.run_while(staged, condition).map(Ok),
            Ok((false, _)) => Ok(Err(Refusal::Asks(None))),
            Err(signal) if self.tracing.asks_inside(&signal) || signal.is_raised() => {
                Ok(Err(Refusal::Asks(Interp::differing_in(&signal))))
            }
            Err(signal) => Err(signal),
        }
    }

    fn run_while(&mut self, staged: StagedLoop, condition: Region) -> Eval<Value> {
        let StagedLoop { state, region, .. } = staged;
        let first = state.tensors();
        let (captures, [condition, body]) = shared([condition, region], first.len());
        let constants = captures.len();
        let op: Op =
            Arc::new(p::WhileLoop { condition: Arc::new(condition), body: Arc::new(body), constants });
        let operands: Vec<&Tensor> = captures.iter().chain(&first).collect();
        let last = bind_all(&op, &operands, self.span)?;
        state.with(&last)
    }
}

/// The parts of `(repeat [i n] [state init] body)` for its body.
#[derive(Clone, Copy)]
pub(super) struct RepeatParts<'e> {
    /// The stack slot of the counter.
    pub index: usize,
    pub state: &'e Pattern,
    pub body: &'e Expr,
}

/// Tensors whose rows a loop reads in parallel.
pub(super) struct Rows {
    tree: Tree,
    tensors: Vec<Tensor>,
    types: Vec<TensorType>,
    length: usize,
}

impl Rows {
    /// The rows of the tensors of `xs`; `None` if there are other values or it is a list.
    pub fn of(xs: &Value, length: usize) -> Option<Rows> {
        if let Value::List(_) = xs {
            return None;
        }
        Rows::beside(xs, length)
    }

    /// The rows of the tensors in a structure; `None` if there are other values.
    pub fn beside(xs: &Value, length: usize) -> Option<Rows> {
        let mut tensors = Vec::new();
        for leaf in flatten(xs) {
            match leaf {
                Value::Tensor(t) if t.shape().first() == Some(&length) => tensors.push(t),
                _ => return None,
            }
        }
        let row = |t: &Tensor| t.ty().with_shape(&t.shape()[1..]);
        Some(Rows { tree: Tree::of(xs), types: tensors.iter().map(row).collect(), tensors, length })
    }

    /// The types of the rows.
    pub fn types(&self) -> &[TensorType] {
        &self.types
    }

    /// An item of these rows.
    pub fn item(&self, rows: &[Tensor]) -> Eval<Value> {
        unflatten(&self.tree, &mut rows.iter().map(|t| Value::Tensor(t.clone())))
    }
}

/// True if a state has weak numbers.
pub(super) fn has_weak(state: &Value) -> bool {
    flatten(state).iter().any(|leaf| match leaf {
        Value::Int(_) | Value::Float(_) => true,
        Value::Tensor(t) => t.ty().weak,
        _ => false,
    })
}

fn pair(value: &Value) -> [&Value; 2] {
    match value {
        Value::List(list) if list.items.len() == 2 => [&list.items[0], &list.items[1]],
        _ => unreachable!("the counter and the state"),
    }
}

/// Regions of the same `parameters` with shared captures, which come first among the parameters of their graphs.
pub(super) fn shared<const N: usize>(regions: [Region; N], parameters: usize) -> (Vec<Tensor>, [Graph; N]) {
    let mut all: Vec<Tensor> = Vec::new();
    let places = regions.each_ref().map(|region| {
        let place = |tensor: &Tensor| {
            all.iter().position(|t| t.is(tensor)).unwrap_or_else(|| {
                all.push(tensor.clone());
                all.len() - 1
            })
        };
        region.captures.iter().map(place).collect::<Vec<usize>>()
    });
    let mut places = places.into_iter();
    let graphs = regions.map(|Region { graph, .. }| {
        let mut b = Builder::new();
        let captures: Vec<Var> = all.iter().map(|t| b.input(t.ty().clone())).collect();
        let own =
            graph.inputs[..parameters].iter().map(|v| b.input(graph.ty(*v).clone())).collect::<Vec<Var>>();
        let places = places.next().expect("places for each region");
        let arguments: Vec<Var> = own.into_iter().chain(places.into_iter().map(|i| captures[i])).collect();
        let results = b.inline(&graph, &arguments);
        b.finish(results)
    });
    (all, graphs)
}
