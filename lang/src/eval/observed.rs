//! Reports of calls to an observer, and guards on their values (`crate::observe`).
//!
//! Calls are reported that code of the program makes: what the library calls is its own affair. While a graph is recorded,
//! watches on arguments and results take the place of reports (`sheaf_graph::watch`).

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use ustr::Ustr;

use super::Args;
use super::interp::{Interp, Mode};
use super::signal::{Eval, Signal};
use super::specialise::ROOT;
use super::tensor::{apply_graph, bind_all};
use super::tree::map_trees;
use crate::builtins::{self, Builtin};
use crate::observe::{
    Breach, Broken, Entered, Event, Guard, Inside, Kind, Left, Noted, Observer, Trail, What, conditions,
    first_broken, inside, plain,
};
use crate::program::{Expr, Function, Pattern, Tensor, Value, is_private};
use sheaf_graph::graph::{Graph, Op};
use sheaf_graph::primitives::Watch;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_graph::watch::{
    Call, Condition, Described, Listener, Reported, Role, Site, Stage, Statistics, listen,
};
use sheaf_syntax::{Span, SpecialForm};

/// The observer of a run, its guards, and the calls that are open.
pub(super) struct Observing {
    observer: Box<dyn Observer>,
    pub(super) guards: Rc<[Guard]>,
    /// The running functions, innermost last.
    frames: Vec<Running>,
    open: Vec<Open>,
    trail: Trail,
    /// True while a function is traced once more, with watches.
    pub(super) instruments: bool,
    /// The innermost call of the trace being recorded.
    pub(super) call: Option<Arc<Call>>,
    /// Number of calls recorded in that trace so far.
    pub(super) calls: u32,
    breach: Option<Breach>,
}

/// A running function of the program or of the library.
struct Running {
    /// True if its calls are not reported.
    is_library: bool,
    /// True if its own call is reported.
    is_open: bool,
}

/// A reported call that has not ended.
struct Open {
    event: Event,
    began: u64,
    compiled: bool,
    /// The function and the arguments, if there are guards.
    function: Option<Rc<Function>>,
    args: Vec<Value>,
}

/// A call that is observed.
struct Observed<'a> {
    name: &'a str,
    kind: Kind,
    function: Option<&'a Rc<Function>>,
    span: Span,
    /// True if it is reported to the observer.
    reported: bool,
    /// The recorded call, with the one around it.
    recorded: Option<(Arc<Call>, Option<Arc<Call>>)>,
}

/// A value that broke a guard.
pub(super) struct BrokenValue<'a> {
    pub condition: Condition,
    pub function: &'a str,
    /// The value in words.
    pub value: String,
    /// The function around it, if it is inside of a program.
    pub within: Option<String>,
    pub ty: TensorType,
    pub statistics: Option<Statistics>,
    pub span: Option<Span>,
    pub iteration: Option<u64>,
    pub inside: &'a Inside,
    pub note: Option<String>,
}

impl Observing {
    fn in_library(&self) -> bool {
        self.frames.last().is_some_and(|running| running.is_library)
    }

    /// The innermost open call of a function of the program or the library, or else the innermost open call, with its
    /// arguments.
    pub(super) fn innermost(&self) -> Option<(Rc<Function>, &[Value])> {
        let functions = self.open.iter().rev();
        let mut functions =
            functions.filter_map(|open| Some((Rc::clone(open.function.as_ref()?), open.args.as_slice())));
        functions.next().or_else(|| {
            let open = self.open.last()?;
            let builtin = builtins::find(&open.event.name)?;
            Some((Rc::new(Function::Builtin(builtin)), open.args.as_slice()))
        })
    }

    fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }

    /// The conditions on values in a role of the function or binding `name`; without a role, of all.
    fn conditions(&self, name: &str, arguments: bool) -> Vec<Condition> {
        let concerns = |guard: &&Guard| {
            guard.target.is_none_or(|target| target == name) && (!arguments || guard.is_about_nan())
        };
        self.guards.iter().filter(concerns).map(|guard| guard.condition).collect()
    }

    /// The conditions on a binding by that name; those on all values were looked at before.
    fn conditions_of_binding(&self, name: Ustr) -> Vec<Condition> {
        self.guards.iter().filter(|guard| guard.target == Some(name)).map(|guard| guard.condition).collect()
    }

    /// True if a value that fulfils these conditions fulfils all guards without a target.
    fn are_all(&self, conditions: &[Condition]) -> bool {
        self.guards
            .iter()
            .filter(|guard| guard.target.is_none())
            .all(|guard| conditions.contains(&guard.condition))
    }
}

impl Interp {
    /// Reports the calls of the program to an observer, in the place of an earlier one, and stops it where a guard is
    /// broken. Code that was read before does plain arithmetic of numbers unobserved.
    pub fn observe(&mut self, observer: Box<dyn Observer>, guards: Vec<Guard>) {
        if let Some(backend) = &mut self.backend {
            backend.observed_by(observer.timeline());
        }
        self.modules.observed = true;
        self.observing = Some(Box::new(Observing {
            observer,
            guards: guards.into(),
            frames: Vec::new(),
            open: Vec::new(),
            trail: Trail::default(),
            instruments: false,
            call: None,
            calls: 0,
            breach: None,
        }));
    }

    /// Ends the observation; its observer.
    pub fn unobserve(&mut self) -> Option<Box<dyn Observer>> {
        self.modules.observed = false;
        if let Some(backend) = &mut self.backend {
            backend.observed_by(None);
        }
        self.observing.take().map(|observing| observing.observer)
    }

    /// The guard that was broken, if that has stopped an evaluation.
    pub fn breach(&mut self) -> Option<Breach> {
        self.observing.as_mut()?.breach.take()
    }

    /// True if values inside of programs and derivatives are looked at.
    pub(super) fn looks_inside(&self) -> bool {
        self.observing.as_ref().is_some_and(|o| o.has_guards() || o.observer.looks_inside())
    }

    /// True if there are guards.
    pub(super) fn is_guarded(&self) -> bool {
        self.observing.as_ref().is_some_and(|o| o.has_guards())
    }

    /// The guards of the run, and true if the observer wants statistics of values inside of programs.
    pub(super) fn wanted_inside(&self) -> Option<(Rc<[Guard]>, bool)> {
        let observing = self.observing.as_ref()?;
        Some((Rc::clone(&observing.guards), observing.observer.looks_inside()))
    }

    /// Notes that a compiled program computes the innermost running function.
    pub(super) fn note_compiled(&mut self) {
        if let Some(observing) = &mut self.observing
            && observing.frames.last().is_some_and(|running| running.is_open)
            && let Some(open) = observing.open.last_mut()
        {
            open.compiled = true;
        }
    }

    /// [`Interp::call_builtin`] with an observer.
    #[cold]
    #[inline(never)]
    pub(super) fn observed_builtin(&mut self, builtin: &Builtin, args: &[Value], span: Span) -> Eval<Value> {
        let hidden = self.observing.as_ref().is_none_or(|o| o.in_library())
            || is_private(builtin.name)
            || SpecialForm::named(builtin.name).is_some();
        if hidden || !self.is_observed() {
            return self.run_builtin(builtin, args, span);
        }
        let mut args = Args::from(args);
        let call = self.entering(builtin.name, Kind::Language, None, &mut args, span)?;
        let result = self.run_builtin(builtin, &args, span);
        self.leaving(call, result)
    }

    /// [`Interp::call_function`] with an observer.
    #[cold]
    #[inline(never)]
    pub(super) fn observed_function(
        &mut self,
        function: &Rc<Function>,
        mut args: Args,
        span: Span,
    ) -> Eval<Value> {
        let Some(code) = function.code() else { return self.call_unobserved(function, args, span) };
        let is_library = self.sources.used(code.span).source.is_library();
        let shown = !is_library || self.observing.as_ref().is_some_and(|o| !o.in_library());
        let is_open = shown && self.is_observed();
        let name = function.name();
        let call = if is_open {
            let kind = if is_library { Kind::Language } else { Kind::Own };
            Some(self.entering(&name, kind, Some(function), &mut args, span)?)
        } else {
            None
        };
        let is_open = call.as_ref().is_some_and(|call| call.reported);
        if let Some(observing) = &mut self.observing {
            observing.frames.push(Running { is_library, is_open });
        }
        let result = self.call_unobserved(function, args, span);
        if let Some(observing) = &mut self.observing {
            observing.frames.pop();
        }
        match call {
            Some(call) => self.leaving(call, result),
            None => result,
        }
    }

    /// True if calls are reported or recorded here: in a run, outside of macros, unless a program is traced plainly.
    fn is_observed(&self) -> bool {
        let traces = self.tracing.staging > 0;
        matches!(self.mode, Mode::Run)
            && self.expanding == 0
            && (!traces || self.observing.as_ref().is_some_and(|o| o.instruments))
    }

    fn entering<'a>(
        &mut self,
        name: &'a str,
        kind: Kind,
        function: Option<&'a Rc<Function>>,
        args: &mut Args,
        span: Span,
    ) -> Eval<Observed<'a>> {
        let reported = self.tracing.staging == 0;
        let records = self.tracing.level > 0 && self.looks_inside();
        let mut call = Observed { name, kind, function, span, reported, recorded: None };
        if reported {
            self.begin_report(&call, args)?;
        }
        if records {
            let outer = self.observing.as_ref().and_then(|o| o.call.clone());
            match self.begin_record(&call, args) {
                Ok(recorded) => call.recorded = Some((recorded, outer)),
                Err(signal) => {
                    if let Some(observing) = &mut self.observing {
                        observing.call = outer;
                    }
                    if reported {
                        self.end_report(&call, None);
                    }
                    return Err(signal);
                }
            }
        }
        if reported && let Some(observing) = &mut self.observing {
            let now = observing.observer.now();
            if let Some(open) = observing.open.last_mut() {
                open.began = now;
            }
        }
        Ok(call)
    }

    fn begin_report(&mut self, call: &Observed<'_>, args: &Args) -> Eval<()> {
        let Some(observing) = &mut self.observing else { return Ok(()) };
        let depth = observing.open.len();
        let guarded = observing.has_guards();
        if guarded {
            observing.trail.begin(depth, call.name, call.kind, args);
        }
        let noted = if guarded { args.iter().map(Noted::of).collect() } else { Vec::new() };
        observing.open.push(Open {
            event: Event { depth, name: call.name.into(), kind: call.kind, what: What::Begin(noted) },
            began: 0,
            compiled: false,
            function: call.function.filter(|_| guarded).cloned(),
            args: if guarded { args.to_vec() } else { Vec::new() },
        });
        observing.observer.enter(&Entered {
            name: call.name,
            kind: call.kind,
            span: call.span,
            depth,
            args,
            sources: &self.sources,
        });
        let conditions = observing.conditions(call.name, true);
        let mark = observing.are_all(&conditions);
        if conditions.is_empty() {
            return Ok(());
        }
        for (i, arg) in args.iter().enumerate() {
            if let Some(broken) = first_broken(arg, &conditions, mark) {
                let value = format!("argument {i}{} of {}", broken.at(), call.name);
                let signal = self.value_breaks(call, value, broken);
                self.end_report(call, None);
                return Err(signal);
            }
        }
        Ok(())
    }

    /// Records the call in the trace: its arguments are watched.
    fn begin_record(&mut self, call: &Observed<'_>, args: &mut Args) -> Eval<Arc<Call>> {
        let Some(observing) = &mut self.observing else { unreachable!("calls are recorded for an observer") };
        let recorded = Arc::new(Call {
            number: observing.calls,
            parent: observing.call.clone(),
            name: call.name.into(),
            own: call.kind == Kind::Own,
            span: Some(call.span),
            arguments: args.iter().map(described).collect(),
            result: OnceLock::new(),
        });
        observing.calls += 1;
        observing.call = Some(Arc::clone(&recorded));
        for (i, arg) in args.iter_mut().enumerate() {
            if let Value::Tensor(tensor) = arg {
                *arg = self.watched(tensor, &recorded, Role::Argument(i), Some(call.span))?;
            }
        }
        Ok(recorded)
    }

    fn leaving(&mut self, mut call: Observed<'_>, result: Eval<Value>) -> Eval<Value> {
        let result = if call.reported { self.reported_result(&call, result) } else { result };
        let Some((recorded, outer)) = call.recorded.take() else { return result };
        if let Some(observing) = &mut self.observing {
            observing.call = outer;
        }
        let value = result?;
        let _ = recorded.result.set(described(&value));
        self.watched_parts(&value, &recorded, call.span)
    }

    /// The result of a reported call, which ends; an error if it breaks a guard.
    fn reported_result(&mut self, call: &Observed<'_>, result: Eval<Value>) -> Eval<Value> {
        let Some(observing) = &mut self.observing else { return result };
        let (ended, depth) = (observing.observer.now(), observing.open.len().saturating_sub(1));
        let began = observing.open.last().map_or(ended, |open| open.began);
        let conditions = if result.is_ok() { observing.conditions(call.name, false) } else { Vec::new() };
        if observing.has_guards() {
            let result = result.as_ref().ok();
            observing.trail.end(depth, call.name, call.kind, result, ended.saturating_sub(began));
        }
        let mark = observing.are_all(&conditions);
        let mut result = result;
        if let Ok(value) = &result
            && !conditions.is_empty()
            && let Some(broken) = first_broken(value, &conditions, mark)
        {
            let value = format!("result{} of {}", broken.at(), call.name);
            result = Err(self.value_breaks(call, value, broken));
        }
        self.end_report(call, Some((&result, ended)));
        result
    }

    fn end_report(&mut self, call: &Observed<'_>, result: Option<(&Eval<Value>, u64)>) {
        let Some(observing) = &mut self.observing else { return };
        let Some(open) = observing.open.pop() else { return };
        let ended = result.map_or_else(|| observing.observer.now(), |(_, ended)| ended);
        observing.observer.leave(&Left {
            name: call.name,
            kind: call.kind,
            depth: observing.open.len(),
            result: result.and_then(|(result, _)| result.as_ref().ok()),
            compiled: open.compiled,
            began: open.began.min(ended),
            ended,
        });
    }

    /// Binds the value of `expr` to `pattern` under an observer.
    #[cold]
    pub(super) fn bind_observed(
        &mut self,
        pattern: &Pattern,
        value: Value,
        expr: &Expr,
        base: usize,
    ) -> Eval<()> {
        let value = match pattern {
            Pattern::Name(_, name) => self.observed_binding(*name, value, expr.span)?,
            _ => value,
        };
        self.bind_value(pattern, value, expr, base)
    }

    /// The value of a binding by that name, at `span`, under an observer.
    fn observed_binding(&mut self, name: Ustr, value: Value, span: Span) -> Eval<Value> {
        let hidden = name.is_empty() || self.observing.as_ref().is_none_or(|o| o.in_library());
        if hidden || span.source.is_library() || !self.is_observed() {
            return Ok(value);
        }
        let Some(observing) = &self.observing else { return Ok(value) };
        let conditions = observing.conditions_of_binding(name);
        if conditions.is_empty() {
            return Ok(value);
        }
        if self.tracing.staging == 0
            && let Some(broken) = first_broken(&value, &conditions, false)
        {
            let found = BrokenValue {
                condition: broken.condition,
                function: &name,
                value: format!("binding {name}{}", broken.at()),
                within: None,
                ty: broken.ty.clone(),
                statistics: Some(broken.statistics),
                span: Some(span),
                iteration: None,
                inside: &Inside::default(),
                note: None,
            };
            return Err(self.breaks(found));
        }
        if self.tracing.level == 0 || !self.looks_inside() {
            return Ok(value);
        }
        let around = self.observing.as_ref().and_then(|o| o.call.clone());
        let call = around.unwrap_or_else(|| {
            let (arguments, result) = (Vec::new(), OnceLock::new());
            Arc::new(Call {
                number: ROOT,
                parent: None,
                name: "the program".into(),
                own: true,
                span: None,
                arguments,
                result,
            })
        });
        let mut place = |role: Role, tensor: &Tensor| self.watched(tensor, &call, role, Some(span));
        each_tensor(&value, &mut |_, tensor| place(Role::Binding(name.to_string()), tensor))
    }

    /// The result of a call with each tensor watched that a run computes.
    fn watched_parts(&mut self, value: &Value, call: &Arc<Call>, span: Span) -> Eval<Value> {
        each_tensor(value, &mut |path, tensor| self.watched(tensor, call, Role::Result(path), Some(span)))
    }

    /// A tensor, watched if only a run computes it.
    pub(super) fn watched(
        &mut self,
        tensor: &Tensor,
        call: &Arc<Call>,
        role: Role,
        span: Option<Span>,
    ) -> Eval<Value> {
        if !tensor.is_traced() || tensor.ty().dtype == DType::Bool {
            return Ok(Value::Tensor(tensor.clone()));
        }
        // A value that is computed along has been looked at.
        let stage = if tensor.concrete().is_some() { Stage::Latent } else { Stage::Forward };
        let op: Op = Arc::new(Watch::new(Arc::new(Site { call: Arc::clone(call), role, span }), stage));
        Ok(Value::Tensor(bind_all(&op, &[tensor], self.span)?.swap_remove(0)))
    }

    /// The results of a recorded graph for `args`. Watches in it are heard if they are computed now.
    pub(super) fn applied(&mut self, graph: &Graph, args: &[Tensor]) -> Eval<Vec<Tensor>> {
        let known = args.iter().all(|arg| arg.concrete().is_some());
        if !graph.watched || !known || self.tracing.staging > 0 || self.observing.is_none() {
            return apply_graph(graph, args);
        }
        let (results, listener) = listen(self.listener(), || apply_graph(graph, args));
        let results = results?;
        self.heard(&listener, None)?;
        Ok(results)
    }

    /// A listener for which the guards of this run decide.
    pub(super) fn listener(&self) -> Listener {
        let guards = self.observing.as_ref().map_or_else(|| Rc::from([]), |o| Rc::clone(&o.guards));
        Listener::new(move |site: &Site, stage, statistics: &Statistics| {
            conditions(&guards, site, stage).iter().any(|condition| !condition.holds(statistics))
        })
    }

    /// Tells the observer of the calls that a listener heard; fails if a guard is broken.
    pub(super) fn heard(&mut self, listener: &Listener, note: Option<String>) -> Eval<()> {
        let broken = listener.first_broken();
        let inside = inside(listener.reports(), broken);
        self.report_inside(&inside);
        match broken {
            Some(report) => Err(self.report_breaks(report, &inside, note)),
            None => Ok(()),
        }
    }

    /// Tells the observer of calls inside of the innermost open one.
    pub(super) fn report_inside(&mut self, inside: &Inside) {
        if let Some(observing) = &mut self.observing
            && observing.observer.looks_inside()
        {
            observing.observer.inside(inside, observing.open.len());
        }
    }

    /// The signal of a reported value inside of a program or derivative that breaks a guard.
    fn report_breaks(&mut self, report: &Reported, inside: &Inside, note: Option<String>) -> Signal {
        let statistics = report.broken.map_or(report.statistics, |broken| broken.statistics);
        let guards = self.observing.as_ref().map_or_else(|| Rc::from([]), |o| Rc::clone(&o.guards));
        let failing = conditions(&guards, &report.site, report.stage);
        let condition = failing.iter().find(|c| !c.holds(&statistics)).copied().unwrap_or(Condition::Finite);
        let iteration = report.broken.filter(|_| report.times > 1).map(|broken| broken.iteration);
        self.site_breaks(
            &report.site,
            report.stage,
            condition,
            (&report.ty, Some(statistics)),
            iteration,
            (inside, note),
        )
    }

    /// The signal of a watched value that breaks a guard.
    pub(super) fn site_breaks(
        &mut self,
        site: &Site,
        stage: Stage,
        condition: Condition,
        (ty, statistics): (&TensorType, Option<Statistics>),
        iteration: Option<u64>,
        (inside, note): (&Inside, Option<String>),
    ) -> Signal {
        let gradient = if stage == Stage::Backward { "gradient of " } else { "" };
        let function = match &site.role {
            Role::Binding(name) => name.clone(),
            _ => site.call.name.clone(),
        };
        let within = match &site.role {
            Role::Binding(_) => Some(&site.call),
            _ => site.call.parent.as_ref(),
        };
        self.breaks(BrokenValue {
            condition,
            function: &format!("{function}{}", if gradient.is_empty() { "" } else { " (gradient)" }),
            value: format!("{gradient}{site}"),
            within: within.filter(|call| call.number != ROOT).map(|call| call.name.clone()),
            ty: ty.clone(),
            statistics,
            span: site.span,
            iteration,
            inside,
            note,
        })
    }

    fn value_breaks(&mut self, call: &Observed<'_>, value: String, broken: Broken) -> Signal {
        self.breaks(BrokenValue {
            condition: broken.condition,
            function: call.name,
            value,
            within: None,
            ty: broken.ty,
            statistics: Some(broken.statistics),
            span: Some(call.span),
            iteration: None,
            inside: &Inside::default(),
            note: None,
        })
    }

    /// Keeps the breach; the signal that stops the run.
    fn breaks(&mut self, found: BrokenValue<'_>) -> Signal {
        let capsule = self.observing.as_ref().and_then(|observing| self.capsule(observing, &found.value));
        let Some(observing) = &mut self.observing else { unreachable!("guards are of an observer") };
        let open: Vec<Event> = observing.open.iter().map(|open| open.event.clone()).collect();
        let mark = Breach::mark(found.condition, found.statistics.as_ref());
        let (trail, calls) = observing.trail.lines(&open, &found.inside.rows, mark);
        let own = observing.open.iter().rev().map(|open| &open.event);
        let around =
            own.filter(|e| e.kind == Kind::Own && e.name != found.function).map(|e| e.name.clone()).next();
        let breach = Breach {
            condition: found.condition,
            function: found.function.into(),
            value: found.value,
            within: found.within.or(around),
            ty: found.ty,
            statistics: found.statistics,
            iteration: found.iteration,
            span: found.span.map(|span| self.sources.used(span)),
            trail,
            calls,
            note: found.note,
            capsule,
        };
        let error = breach.error();
        observing.breach.get_or_insert(breach);
        error.into()
    }
}

/// An argument or a result, as a trace shows it.
fn described(value: &Value) -> Described {
    match value {
        Value::Tensor(t) if t.is_traced() => Described::Tensor(t.ty().clone()),
        other => Described::Text(plain(other)),
    }
}

/// A value with its traced tensors replaced, by their key paths; itself if there are none.
fn each_tensor(value: &Value, f: &mut dyn FnMut(String, &Tensor) -> Eval<Value>) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) => f(String::new(), tensor),
        Value::List(_) | Value::Dict(_) if holds_traced(value) => {
            map_trees(std::slice::from_ref(value), &mut |path, leaf| match &leaf[0] {
                Value::Tensor(tensor) => f(path.to_string(), tensor),
                other => Ok(other.clone()),
            })
        }
        other => Ok(other.clone()),
    }
}

fn holds_traced(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.is_traced(),
        Value::List(list) => list.items.iter().any(holds_traced),
        Value::Dict(dict) => dict.iter().any(|(_, item)| holds_traced(item)),
        _ => false,
    }
}
