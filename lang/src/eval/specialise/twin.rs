//! Instrumented twins: a specialisation traced once more with watches, whose program has the same results, and then
//! statistics of watched values, and checks of guards in its flag.
//!
//! A twin has a key and an entry in `__sheaf__` of its own, and is used only while an observer looks inside. The plain
//! specialisation decides whether a call is compiled at all; where there is no twin, its program runs instead, and
//! values are looked at where functions begin and end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use ustr::Ustr;

use super::arguments::{Asked, LeafValue};
use super::report::LeafKind;
use super::result::OutTree;
use super::{Due, Entry, Outcome, Traced};
use crate::eval::call::Args;
use crate::eval::checks::handed_on;
use crate::eval::interp::Interp;
use crate::eval::signal::{Eval, Signal};
use crate::host::{Buffer, FLAG, Leaf, Placement, Program, Unit};
use crate::observe::{Guard, conditions, inside};
use crate::program::{Code, Flag, Flags, Function, Tensor, Value};
use sheaf_graph::graph::{Checks, Graph, failed, thread};
use sheaf_graph::primitives::{Question, Site as CheckSite};
use sheaf_graph::simplify::simplify;
use sheaf_graph::tensor::{HostTensor, TensorType};
use sheaf_graph::watch::{
    Call, Condition, Described, Guarded, Measured, Reported, Role, Site, Stage, guarded, measured,
    statistics_of, trail,
};

/// Path of the result with statistics.
const STATISTICS: &str = "statistics";

/// Number of the call that stands for the traced function itself.
pub(crate) const ROOT: u32 = u32::MAX;

/// The twin of a specialisation.
#[derive(Default)]
pub(super) enum Twin {
    /// Not looked for.
    #[default]
    Unknown,
    /// There is none for these wishes.
    Without(Wishes),
    /// There is one.
    Ready(Rc<Instrumented>),
}

impl Twin {
    pub fn is_ready(&self) -> bool {
        matches!(self, Twin::Ready(_))
    }

    /// Placement of its program, if there is one.
    pub fn placement(&self) -> Option<Placement> {
        if let Twin::Ready(twin) = self { Some(twin.program.placement()) } else { None }
    }
}

/// Purpose of an instrumented twin.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Wishes {
    guards: Rc<[Guard]>,
    statistics: bool,
}

/// A program with results for an observer.
pub(super) struct Instrumented {
    wishes: Wishes,
    program: Rc<dyn Program>,
    result: OutTree,
    inputs: Vec<TensorType>,
    /// The graph with its watches, to be computed on the host once a guard is broken.
    graph: Graph,
    /// The sites of the statistics, which are the result before the flag.
    measured: Vec<(Arc<Site>, Stage, TensorType)>,
    statistics: Option<TensorType>,
    checks: Rc<[Arc<CheckSite>]>,
    /// The type of the flag; it is there if there are checks.
    flag: Option<TensorType>,
    numbers: RefCell<Vec<Option<(u64, Buffer)>>>,
}

impl Interp {
    /// The twin of a specialisation whose calls are due to run as a program; `None` if the observer does not look inside,
    /// or there can be none.
    pub(super) fn twin(
        &mut self,
        function: &Rc<Function>,
        entry: &Entry,
        due: &Due,
        args: &Args,
    ) -> Eval<Option<Rc<Instrumented>>> {
        let Some((guards, statistics)) = self.wanted_inside() else { return Ok(None) };
        if matches!(due, Due::Not) || guards.is_empty() && !statistics {
            return Ok(None);
        }
        let wishes = Wishes { guards, statistics };
        match &*entry.twin.borrow() {
            Twin::Ready(twin) if twin.wishes == wishes => return Ok(Some(Rc::clone(twin))),
            Twin::Without(known) if *known == wishes => return Ok(None),
            _ => {}
        }
        let made = self.made_twin(function, entry, &wishes, args)?.map(Rc::new);
        *entry.twin.borrow_mut() = match &made {
            Some(twin) => Twin::Ready(Rc::clone(twin)),
            None => Twin::Without(wishes),
        };
        if made.is_some()
            && let Outcome::Waiting { compilation, .. } = &*entry.outcome.borrow()
            && let Some(debt) = entry.debt.get()
        {
            debt.compiled(*compilation);
        }
        Ok(made)
    }

    fn made_twin(
        &mut self,
        function: &Rc<Function>,
        entry: &Entry,
        wishes: &Wishes,
        args: &Args,
    ) -> Eval<Option<Instrumented>> {
        let fixed = entry.leaves.iter().filter(|(_, kind)| matches!(kind, LeafKind::Number(_)));
        let mut statics: HashMap<String, Asked> =
            fixed.map(|(path, _)| (path.clone(), Asked { wanted: String::new(), place: None })).collect();
        let Some(traced) =
            self.instrumented(|interp| interp.trace_until_static(function, args, &mut statics, None))
        else {
            return Ok(None);
        };
        let Ok(Traced { entry: again, watched: Some(watched), .. }) = traced else { return Ok(None) };
        let Outcome::Waiting { unit, result, .. } = again.outcome.into_inner() else { return Ok(None) };
        if again.leaves != entry.leaves {
            return Ok(None);
        }
        let rules = Rc::clone(&wishes.guards);
        // Arguments are looked at where the call begins.
        let all = rules.iter().filter(|guard| guard.target.is_none() && guard.is_about_nan());
        let given: Vec<Condition> = all.map(|guard| guard.condition).collect();
        let checked = guarded(&watched, &given, &|site, stage| conditions(&rules, site, stage));
        let Measured { graph, sites: measured } = if wishes.statistics {
            measured(&checked)
        } else {
            Measured { graph: sheaf_graph::watch::unwatched(&checked), sites: Vec::new() }
        };
        let Checks { graph, sites } = thread(graph);
        let mut graph = graph;
        if !self.options.unsimplified {
            graph = simplify(&graph);
        }
        let kind = match (wishes.statistics, wishes.guards.is_empty()) {
            (true, true) => "traced",
            (true, false) => "traced-guarded",
            (false, _) => "guarded",
        };
        let transform = match unit.transform {
            "" => kind,
            transform => Ustr::from(&format!("{transform}-{kind}")).as_str(),
        };
        let plain = unit.outputs.len() - usize::from(!unit.checks.is_empty());
        let mut outputs = unit.outputs[..plain].to_vec();
        let mut more = graph.outputs[plain..].iter().map(|var| graph.ty(*var).clone());
        let statistics = if measured.is_empty() { None } else { more.next() };
        let flag = if sites.is_empty() { None } else { more.next() };
        for (path, ty) in [(STATISTICS, &statistics), (FLAG, &flag)] {
            outputs.extend(ty.iter().map(|ty| Leaf { path: path.into(), ty: ty.clone() }));
        }
        let checks: Rc<[Arc<CheckSite>]> = sites.iter().map(Arc::clone).collect();
        let unit = Unit {
            transform,
            graph,
            outputs,
            checks: sites.into_iter().map(|site| self.checked(site)).collect(),
            ..*unit
        };
        let Some(backend) = &mut self.backend else { return Ok(None) };
        let Some(program) = backend.prepare_twin(&unit)? else { return Ok(None) };
        Ok(Some(Instrumented {
            wishes: wishes.clone(),
            program,
            result,
            inputs: unit.inputs.iter().map(|leaf| leaf.ty.clone()).collect(),
            graph: watched,
            measured,
            statistics,
            checks,
            flag,
            numbers: RefCell::new(vec![None; unit.inputs.len()]),
        }))
    }

    /// Traces with watches.
    fn instrumented<T>(&mut self, trace: impl FnOnce(&mut Interp) -> T) -> Option<T> {
        let observing = self.observing.as_mut()?;
        let outer = (observing.instruments, observing.call.take(), observing.calls);
        (observing.instruments, observing.calls) = (true, 0);
        let result = trace(self);
        let observing = self.observing.as_mut()?;
        (observing.instruments, observing.call, observing.calls) = outer;
        Some(result)
    }

    /// Watches the results of a function that is traced with watches.
    pub(super) fn watch_results(&mut self, code: &Code, outputs: &mut [(Leaf, Tensor)]) -> Eval<()> {
        if !self.observing.as_ref().is_some_and(|o| o.instruments) {
            return Ok(());
        }
        let root = Arc::new(Call {
            number: ROOT,
            parent: None,
            name: code.display_name(),
            own: true,
            span: Some(code.span),
            arguments: Vec::new(),
            result: OnceLock::from(Described::Text(String::new())),
        });
        for (leaf, tensor) in outputs {
            let role = Role::Result(leaf.path.clone());
            if let Value::Tensor(watched) = self.watched(tensor, &root, role, Some(code.head))? {
                *tensor = watched;
            }
        }
        Ok(())
    }

    /// Calls the twin of a specialisation.
    pub(super) fn run_twin(
        &mut self,
        function: &Rc<Function>,
        entry: &Entry,
        twin: &Instrumented,
        leaves: &mut Vec<LeafValue>,
    ) -> Eval<Option<Value>> {
        self.note_compiled();
        entry.calls.set(entry.calls.get() + 1);
        entry.pay();
        let mut flags = handed_on(leaves.iter().filter_map(LeafValue::tensor))?;
        let mut buffers = Vec::new();
        self.upload_leaves(&twin.numbers, leaves, &mut buffers)?;
        leaves.clear();
        let arguments = buffers.clone();
        let mut results = Vec::new();
        twin.program.call(&mut buffers, &mut results)?;
        let flag = if twin.flag.is_some() { results.pop() } else { None };
        let statistics = if twin.statistics.is_some() { results.pop() } else { None };
        if let (Some(buffer), Some(ty)) = (statistics, &twin.statistics) {
            self.report_statistics(twin, &buffer.read(ty)?);
        }
        let mut looked = true;
        if let (Some(buffer), Some(ty)) = (flag, &twin.flag) {
            looked = buffer.is_ready();
            if looked
                && let Some((site, _)) = failed(&twin.checks, &buffer.read(ty)?)
                && let Question::Guard(guard) = &site.question
            {
                return Err(self.broken_inside(twin, guard, &arguments)?);
            }
            let name = function.code().and_then(|code| code.name);
            let flag = Flag::new(buffer, ty, &twin.checks, name, self.span);
            flag.look_if_ready()?;
            flags.push(flag);
        }
        flags.retain(|flag| !flag.has_passed());
        let flags = (!flags.is_empty()).then(|| Flags::from_iter(flags));
        let value = twin.result.build(&results, flags.as_ref(), self.span);
        // The program has looked at its results.
        if looked && !twin.wishes.guards.is_empty() {
            pass(&value);
        }
        Ok(Some(value))
    }

    fn report_statistics(&mut self, twin: &Instrumented, result: &HostTensor) {
        let reports =
            twin.measured.iter().zip(statistics_of(result)).map(|((site, stage, ty), statistics)| Reported {
                site: Arc::clone(site),
                stage: *stage,
                ty: ty.clone(),
                statistics,
                times: 1,
                broken: None,
            });
        let reports: Vec<Reported> = reports.collect();
        self.report_inside(&inside(&reports, None));
    }

    /// The signal of a guard that a program found broken. The statistics, and the calls before, are those of the same
    /// graph computed on the host.
    fn broken_inside(&mut self, twin: &Instrumented, guard: &Guarded, arguments: &[Buffer]) -> Eval<Signal> {
        let inputs = arguments.iter().zip(&twin.inputs).map(|(buffer, ty)| buffer.read(ty));
        let inputs = inputs.collect::<Result<Vec<HostTensor>, _>>()?;
        let listener = trail(&twin.graph, &inputs, self.listener());
        let same = |report: &&Reported| Arc::ptr_eq(&report.site, &guard.site) && report.stage == guard.stage;
        let first = listener.first_broken();
        let report = listener.reports().iter().find(same).cloned();
        let note = match first {
            Some(first) if same(&first) => None,
            Some(first) => {
                Some(format!("computed operation by operation, the {} breaks it first", first.site))
            }
            None => Some(
                "computed operation by operation, no value breaks it: rounding in the program does".into(),
            ),
        };
        let calls = inside(listener.reports(), report.as_ref());
        let unknown = TensorType::scalar(sheaf_graph::tensor::DType::F32);
        let ty = report.as_ref().map_or(unknown, |report| report.ty.clone());
        let broken = report.as_ref().and_then(|report| report.broken);
        let iteration = report.as_ref().filter(|r| r.times > 1).and(broken).map(|broken| broken.iteration);
        let statistics = broken.map(|broken| broken.statistics);
        Ok(self.site_breaks(
            &guard.site,
            guard.stage,
            guard.condition,
            (&ty, statistics),
            iteration,
            (&calls, note),
        ))
    }
}

/// Marks the tensors of a result: guards on all values have been asked.
fn pass(value: &Value) {
    match value {
        Value::Tensor(tensor) => {
            if let Some(concrete) = tensor.concrete() {
                concrete.passed.set(true);
            }
        }
        Value::List(list) => list.items.iter().for_each(pass),
        Value::Dict(dict) => dict.iter().for_each(|(_, item)| pass(item)),
        _ => {}
    }
}
