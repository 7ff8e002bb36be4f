//! Specialisation: a call from interpreted code to a pure function with tensor arguments is traced once per structure
//! and types of its arguments, and run as one compiled program from then on.

mod ahead;
mod arguments;
mod changing;
mod explain;
mod fallback;
mod frozen;
mod kept;
mod profit;
mod record;
mod report;
mod result;
mod run;
mod twin;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;
use ustr::Ustr;

use arguments::{
    Abstraction, Asked, FnKey, LeafValue, Pattern, fn_key, has_doubles, parameter_path, transform_of,
};
use changing::Variants;
use fallback::Why;
use kept::KeptPrograms;
use profit::{Account, Debt, call_work, compilation_work, trace_work};
use result::{OutTree, out_tree};
use twin::Twin;

/// Name of functions without one.
pub(super) const LAMBDA: &str = "lambda";

pub use ahead::{AbstractValue, Declared, FunctionName, Refused};
pub use explain::explain;
pub use fallback::Cause;
pub use record::{Call, LeftOut, Recording};
pub use report::{Argument, Difference, Interpreted, LeafKind, Location, Report, Specialisation, Status};
pub(crate) use twin::ROOT;

use crate::builtins::SHAPE;
use crate::eval::call::Args;
use crate::eval::interp::{Interp, Jit};
use crate::eval::signal::{Eval, Reason, Stop, TraceStop};
use crate::eval::tensor::MAX_AXES;
use crate::host::{Buffer, Checked, Donating, FLAG, Leaf, Placement, Program, Unit};
use crate::program::{Code, Function, Value, has_tensors};
use sheaf_graph::graph::{Checks, Graph, prune, thread};
use sheaf_graph::primitives::Site;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_graph::watch::unwatched;
use sheaf_syntax::Span;

/// Maximum equations of a compiled program, including nested loops and branches: the compiler takes milliseconds for
/// each.
const MAX_COMPILED_EQUATIONS: usize = 50_000;

/// The specialisation cache of the program.
#[derive(Default)]
pub(super) struct Specialiser {
    /// In the order of the first calls.
    families: Vec<Family>,
    /// Positions of the families of transformed functions; those of plain functions are stored in their code.
    transformed: HashMap<FnKey, usize>,
    leaves: Vec<LeafValue>,
    buffers: Vec<Buffer>,
    results: Vec<Buffer>,
    /// Reasons to interpret that were reported, with their spans.
    said: HashSet<(Span, String)>,
    /// True if the call about to be interpreted could be compiled.
    waits: bool,
    /// Nesting of such calls being interpreted.
    waiting: usize,
}

impl Specialiser {
    /// The family of a function, if it has been specialised before.
    fn position(&self, function: &Function) -> Option<usize> {
        match function {
            Function::Closure(c) => c.code.family.get(),
            function => fn_key(function).and_then(|(key, _)| self.transformed.get(&key).copied()),
        }
    }

    /// Records that the call just found not compiled is interpreted now; true if it could be compiled.
    #[inline]
    pub fn begin_waiting(&mut self) -> bool {
        let waits = std::mem::take(&mut self.waits);
        self.waiting += usize::from(waits);
        waits
    }

    /// Ends such a call.
    #[inline]
    pub fn end_waiting(&mut self) {
        self.waiting -= 1;
    }

    /// Discards all traces: a definition that they used was replaced.
    pub fn forget(&mut self) {
        for family in &mut self.families {
            family.statics.clear();
            family.entries.clear();
            family.interpreted = None;
            family.changing = None;
            family.variants = Variants::default();
            family.account = Rc::default();
            family.failed_calls = 0;
        }
    }

    /// Counts a call of a function that is interpreted whatever its arguments.
    fn count_other(&mut self, function: &Function) {
        if let Some(position) = self.position(function) {
            self.families[position].other_calls += 1;
        }
    }

    /// The position of the family of a function, which is created if needed.
    fn enrol(&mut self, function: &Rc<Function>, code: &Rc<Code>) -> usize {
        if let Some(position) = self.position(function) {
            return position;
        }
        let position = self.families.len();
        self.families.push(Family {
            code: Rc::clone(code),
            transform: transform_of(function),
            statics: HashMap::new(),
            entries: Vec::new(),
            interpreted: None,
            changing: None,
            variants: Variants::default(),
            account: Rc::default(),
            kept: OnceCell::new(),
            other_calls: 0,
            failed_calls: 0,
        });
        match (&**function, fn_key(function)) {
            (Function::Transformed(..), Some((key, _))) => {
                self.transformed.insert(key, position);
            }
            _ => code.family.set(Some(position)),
        }
        position
    }
}

/// The specialisations of one function.
struct Family {
    /// Keeps the code alive, so that its address stays unique.
    code: Rc<Code>,
    transform: &'static str,
    /// The leaves whose values the body needed, by path.
    statics: HashMap<String, Asked>,
    entries: Vec<Rc<Entry>>,
    /// The reason that the function is interpreted for all arguments.
    interpreted: Option<Why>,
    /// The reason that calls with new arguments are interpreted while earlier specialisations have not paid off.
    changing: Option<Why>,
    variants: Variants,
    account: Rc<Account>,
    /// Programs of an earlier run or a build, loaded on demand.
    kept: OnceCell<KeptPrograms>,
    /// Calls that fitted no entry and got none.
    other_calls: u64,
    /// Calls that failed before they had an entry.
    failed_calls: u64,
}

struct Entry {
    arguments: Vec<Pattern>,
    captured: Vec<Pattern>,
    /// Arguments and captured values, for reports.
    leaves: Vec<(String, LeafKind)>,
    outcome: RefCell<Outcome>,
    debt: OnceCell<Debt>,
    /// Work of tracing it, in the unit of [`profit`].
    trace_work: u64,
    /// Calls as a compiled program.
    calls: Cell<u64>,
    interpreted_calls: Cell<u64>,
    /// True if it was called from code that is always interpreted.
    entered: Cell<bool>,
    /// The program that an observer looks into.
    twin: RefCell<Twin>,
}

impl Entry {
    /// Work of interpreting a call; an estimate.
    fn call_work(&self) -> u64 {
        match &*self.outcome.borrow() {
            Outcome::Waiting { cost, .. } => *cost,
            _ => self.trace_work / 2,
        }
    }

    /// Counts a call towards the cost of the specialisation.
    fn pay(&self) {
        if let Some(debt) = self.debt.get() {
            debt.pay();
        }
    }

    /// The static numbers, with their paths.
    fn numbers(&self) -> Vec<(&str, &str)> {
        let mut numbers = Vec::new();
        for (path, kind) in &self.leaves {
            if let LeafKind::Number(value) = kind {
                numbers.push((path.as_str(), value.as_str()));
            }
        }
        numbers
    }
}

enum Outcome {
    /// Traced; not worth compiling so far. `kept`: its program may exist from an earlier run or a build.
    Waiting { cost: u64, compilation: u64, spent: u64, kept: bool, unit: Box<Unit>, result: OutTree },
    /// Compiled.
    Compiled(Rc<Compiled>),
    /// Interpreted for this reason.
    Interpreted(Why),
}

struct Compiled {
    program: Rc<dyn Program>,
    result: OutTree,
    /// Its check sites; if there are any, the flag is its last result.
    sites: Rc<[Arc<Site>]>,
    flag: TensorType,
    /// The last number passed at each position, with its buffer: most stay the same.
    numbers: RefCell<Vec<Option<(u64, Buffer)>>>,
    in_place: RefCell<InPlace>,
}

impl Compiled {
    /// Its placement, that of the donating program if there is one.
    fn placement(&self) -> Placement {
        match &*self.in_place.borrow() {
            InPlace::Now(program) => program.placement(),
            _ => self.program.placement(),
        }
    }
}

/// The donating program, which writes results over arguments without other references.
enum InPlace {
    Never,
    /// After enough calls.
    Later {
        unit: Box<Unit>,
        donating: Donating,
        /// True after the look among the programs compiled before.
        sought: bool,
        /// Raised once it is compiled; `None` before that has begun.
        ready: Option<Arc<AtomicBool>>,
    },
    Now(Rc<dyn Program>),
}

/// The way to run a call.
enum Due {
    /// Interpreted.
    Not,
    /// As a program of an earlier run or a build.
    Kept(Rc<dyn Program>),
    /// As a program, compiled now.
    Compile,
    /// As the program that was compiled before.
    Compiled,
}

/// Predicted outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It can run as a compiled program.
    Compiled,
    /// Its result depends only on the types of the arguments: there is nothing to compile.
    Known,
    /// It is interpreted, since the elements of a tensor must be known for this use.
    Elements(String),
    /// It is interpreted, since it reads a handle; what it calls with the items is compiled.
    Reads,
    /// It is interpreted, for this reason.
    Interpreted(String),
}

/// A traced call.
struct Traced {
    entry: Entry,
    /// The reason the trace stopped.
    stop: Option<TraceStop>,
    /// The graph with the watches of an observer, if there are any.
    watched: Option<Graph>,
}

impl Traced {
    fn of(entry: Entry, stop: Option<TraceStop>) -> Traced {
        Traced { entry, stop, watched: None }
    }
}

impl Interp {
    /// Runs a call as a compiled program, if the function is pure, the arguments hold tensors, and it pays.
    ///
    /// Then the arguments are consumed: buffers without other references may become part of the result.
    pub(super) fn call_compiled(
        &mut self,
        function: &Rc<Function>,
        args: &mut Args,
        span: Span,
    ) -> Eval<Option<Value>> {
        if self.options.jit == Jit::Never {
            return Ok(None);
        }
        let Some(code) = function.code() else { return Ok(None) };
        if let Some((effect, place)) = Self::effect_of(code) {
            self.note_effect(function, code, args, effect, place);
            return Ok(None);
        }
        let mut leaves = std::mem::take(&mut self.specialiser.leaves);
        let found = self.specialiser.position(function).map(|position| {
            let family = &self.specialiser.families[position];
            let fits = |entry: &&Rc<Entry>| {
                leaves.clear();
                entry.arguments.len() == args.len()
                    && entry.arguments.iter().zip(&*args).all(|(p, v)| p.may_fit(v))
                    && entry.arguments.iter().zip(&*args).all(|(p, v)| p.collect(v, &mut leaves))
                    && entry.captured.iter().zip(function.captured()).all(|(p, v)| p.collect(v, &mut leaves))
            };
            let entry = family.entries.iter().rev().find(fits).cloned();
            let may_trace = self.options.jit != Jit::Auto
                || entry.is_some()
                || family.account.may_trace()
                || family.kept.get().is_some_and(|kept| kept.wait_for(function, args));
            (entry, position, family.interpreted.is_some(), may_trace)
        });
        let entry = match found {
            Some((Some(entry), ..)) => Some(entry),
            Some((None, _, true, _)) => {
                self.specialiser.count_other(function);
                None
            }
            Some((None, position, _, false)) => {
                self.note_changing(position)?;
                None
            }
            _ if has_tensors(args).zip(has_tensors(function.captured())).is_none_or(|(a, b)| !a && !b) => {
                None
            }
            _ => {
                let code = Rc::clone(code);
                let entry = self.specialise(function, &code, args, span)?;
                leaves.clear();
                if let Some(entry) = &entry {
                    let captured = entry.captured.iter().zip(function.captured());
                    for (p, v) in entry.arguments.iter().zip(&*args).chain(captured) {
                        p.collect(v, &mut leaves);
                    }
                }
                entry
            }
        };
        let result = match entry {
            Some(entry) => self.run_entry(function, &entry, &mut leaves, args),
            None => Ok(None),
        };
        leaves.clear();
        self.specialiser.leaves = leaves;
        result
    }

    /// Traces a function for the structure and types of these arguments. `None` if it is interpreted from now on.
    fn specialise(
        &mut self,
        function: &Rc<Function>,
        code: &Rc<Code>,
        args: &[Value],
        span: Span,
    ) -> Eval<Option<Rc<Entry>>> {
        let position = self.specialiser.enrol(function, code);
        let made = self.specialise_in(position, function, code, args, span);
        if made.is_err() {
            self.specialiser.families[position].failed_calls += 1;
        }
        made
    }

    /// [`Interp::specialise`] for the family at `position`.
    fn specialise_in(
        &mut self,
        position: usize,
        function: &Rc<Function>,
        code: &Rc<Code>,
        args: &[Value],
        span: Span,
    ) -> Eval<Option<Rc<Entry>>> {
        let mut statics = std::mem::take(&mut self.specialiser.families[position].statics);
        let traced = self.trace_until_static(function, args, &mut statics, Some(span));
        self.specialiser.families[position].statics = statics;
        let entry = Rc::new(traced?.entry);
        if let Outcome::Interpreted(why) = &*entry.outcome.borrow() {
            self.fall_back(code, why)?;
        }
        if self.specialiser.families[position].interpreted.is_none()
            && let Some(why) = self.specialiser.families[position].too_many(&entry)
        {
            self.fall_back(code, &why)?;
            self.specialiser.families[position].interpreted = Some(why);
            self.specialiser.count_other(function);
            return Ok(None);
        }
        let family = &mut self.specialiser.families[position];
        if let Outcome::Waiting { kept, unit, .. } = &mut *entry.outcome.borrow_mut()
            && let Some(backend) = &mut self.backend
        {
            let all =
                family.kept.get_or_init(|| KeptPrograms::new(backend.kept(&unit.function, unit.transform)));
            *kept = all.serve(unit);
            if self.options.frozen_shapes && !*kept && all.are_of_one_function(unit) {
                return Err(frozen::not_recorded(unit, all.all()).into());
            }
        }
        let _ = entry.debt.set(family.account.open(entry.trace_work, entry.call_work()));
        family.entries.push(Rc::clone(&entry));
        Ok(Some(entry))
    }

    /// Predicts the outcome of a call as a compiled program; compiles and keeps nothing.
    pub fn probe(&mut self, function: &Rc<Function>, args: &[Value]) -> Eval<Probe> {
        if let Some(code) = function.code()
            && let Some((effect, _)) = Self::effect_of(code)
        {
            return Ok(Probe::Interpreted(format!("{effect} has an effect")));
        }
        let Traced { entry, stop, .. } =
            self.trace_until_static(function, args, &mut HashMap::new(), None)?;
        if let Some(TraceStop {
            reason: Reason::Elements { wanted, .. } | Reason::Value { wanted, .. },
            ..
        }) = stop
        {
            return Ok(Probe::Elements(wanted));
        }
        if let Some(TraceStop { reason: Reason::Reads, .. }) = stop {
            return Ok(Probe::Reads);
        }
        Ok(match entry.outcome.into_inner() {
            Outcome::Interpreted(why) if why.cause == Cause::Known => Probe::Known,
            Outcome::Interpreted(why) => Probe::Interpreted(why.reason),
            Outcome::Waiting { .. } | Outcome::Compiled(_) => Probe::Compiled,
        })
    }

    /// Traces a call, again with each number that the body needs made static; adds their paths to `statics`.
    fn trace_until_static(
        &mut self,
        function: &Rc<Function>,
        args: &[Value],
        statics: &mut HashMap<String, Asked>,
        span: Option<Span>,
    ) -> Eval<Traced> {
        loop {
            match self.trace_call(function, args, statics, span)? {
                Ok(traced) => return Ok(traced),
                Err((path, asked)) => statics.insert(path, asked),
            };
        }
    }

    /// One attempt at tracing a call at `span`, or the function itself. The inner error is the path of a number whose value the body needed, and its use.
    fn trace_call(
        &mut self,
        function: &Rc<Function>,
        args: &[Value],
        statics: &HashMap<String, Asked>,
        span: Option<Span>,
    ) -> Eval<Result<Traced, (String, Asked)>> {
        let (_, code) = fn_key(function).expect("checked by the caller");
        let code = Rc::clone(code);
        self.tracing.level += 1;
        let level = self.tracing.level;
        let trace = self.tracing.trace(level);
        let doubles = has_doubles(&mut args.iter().chain(function.captured()));
        let mut abstraction = Abstraction {
            trace: &trace,
            statics,
            float: if doubles { DType::F64 } else { DType::F32 },
            inputs: Vec::new(),
            static_values: Vec::new(),
            leaves: Vec::new(),
        };
        let mut arguments = Vec::new();
        let mut traced_args = SmallVec::new();
        for (i, arg) in args.iter().enumerate() {
            let (value, pattern) = abstraction.value(arg, &parameter_path(&code, i));
            traced_args.push(value);
            arguments.push(pattern);
        }
        let (traced_function, _, captured) = abstraction.function(function, "");
        let Abstraction { inputs, static_values, leaves, .. } = abstraction;
        self.tracing.staging += 1;
        let outer = self.tracing.regions.borrow_mut().root.replace(Rc::clone(&trace));
        self.tracing.at_root = true;
        let result = self.call_interpreted(&traced_function, traced_args, span.unwrap_or(code.span));
        self.tracing.at_root = false;
        self.tracing.regions.borrow_mut().root = outer;
        self.tracing.staging -= 1;
        self.tracing.level -= 1;
        drop(traced_function);

        let traced = trace.size();
        let entry = |outcome| Entry {
            arguments,
            captured,
            trace_work: trace_work(traced, leaves.len()),
            leaves,
            outcome: RefCell::new(outcome),
            debt: OnceCell::new(),
            calls: Cell::new(0),
            interpreted_calls: Cell::new(0),
            entered: Cell::new(false),
            twin: RefCell::default(),
        };
        let value = match result {
            Ok(value) => value,
            Err(signal) => {
                let stop = match *signal {
                    Stop::Trace(stop) => stop,
                    // Interpreting finds the first error.
                    Stop::Error(d) if d.kind.is_raised() || d.kind.is_guard() || trace.checks() => {
                        let place = d.labels.first().map(|label| label.span);
                        let why = Why::design("it stops with an error", place);
                        return Ok(Ok(Traced::of(entry(Outcome::Interpreted(why)), None)));
                    }
                    error @ Stop::Error(_) => return Err(Box::new(error)),
                };
                if let Reason::Value { level: l, var, wanted } = &stop.reason
                    && *l == level
                    && let longest = if wanted == SHAPE { MAX_AXES } else { 0 }
                    && let Some(number) = trace.number_behind(*var, longest)
                    && let Some((leaf, _)) =
                        inputs.iter().find(|(_, t)| trace.lift(t).is_ok_and(|v| v == number))
                {
                    let asked = Asked { wanted: wanted.clone(), place: stop.span };
                    return Ok(Err((leaf.path.clone(), asked)));
                }
                if let Some(error) = stop.not_static() {
                    return Err(error);
                }
                return Ok(Ok(Traced::of(entry(Outcome::Interpreted(Why::stopped(&stop))), Some(stop))));
            }
        };
        let mut outputs = Vec::new();
        let result = match out_tree(&value, level, &mut outputs, "") {
            Ok(result) if !outputs.is_empty() => result,
            Ok(_) => {
                return Ok(Ok(Traced::of(entry(Outcome::Interpreted(Why::independent())), None)));
            }
            Err(reason) => {
                return Ok(Ok(Traced::of(entry(Outcome::Interpreted(Why::design(reason, None))), None)));
            }
        };
        self.watch_results(&code, &mut outputs)?;
        let vars = outputs.iter().map(|(_, t)| trace.lift(t)).collect::<Eval<Vec<_>>>()?;
        let (graph, _) = trace.finish(vars);
        let graph = prune(graph);
        let watched = graph.watched.then(|| graph.clone());
        let Checks { graph, sites } = thread(unwatched(&graph));
        debug_assert_eq!(sheaf_graph::graph::verify(&graph), Ok(()));
        if graph.size() > MAX_COMPILED_EQUATIONS {
            return Ok(Ok(Traced::of(entry(Outcome::Interpreted(Why::too_large(&graph))), None)));
        }
        let flag = graph.outputs.last().filter(|_| !sites.is_empty());
        let flag = flag.map(|var| Leaf { path: FLAG.into(), ty: graph.ty(*var).clone() });
        let (cost, compilation) = (call_work(&graph), compilation_work(&graph));
        let unit = Unit {
            function: code.name.map_or_else(|| LAMBDA.into(), |n| n.to_string()),
            transform: transform_of(function),
            graph,
            inputs: inputs.into_iter().map(|(leaf, _)| leaf).collect(),
            outputs: outputs.into_iter().map(|(leaf, _)| leaf).chain(flag).collect(),
            checks: sites.into_iter().map(|site| self.checked(site)).collect(),
            statics: static_values,
        };
        let unit = Box::new(unit);
        let waiting = Outcome::Waiting { cost, compilation, spent: 0, kept: false, unit, result };
        Ok(Ok(Traced { entry: entry(waiting), stop: None, watched }))
    }

    /// A check with its location, for manifests.
    fn checked(&self, site: Arc<Site>) -> Checked {
        let span = site.error.labels.first().map(|label| label.span);
        let place =
            span.and_then(|span| Location::of(&self.sources, span)).map_or_else(String::new, |place| {
                let file = place.file.rsplit(['/', '\\']).next().unwrap_or("").to_owned();
                Location { file, ..place }.to_string()
            });
        Checked { site, place }
    }

    /// Records for reports that a function with an effect was called with tensors.
    fn note_effect(
        &mut self,
        function: &Rc<Function>,
        code: &Rc<Code>,
        args: &[Value],
        effect: Ustr,
        place: Span,
    ) {
        let known = self.specialiser.position(function);
        if known.is_some_and(|position| self.specialiser.families[position].interpreted.is_some())
            || has_tensors(args) != Some(true)
        {
            return;
        }
        let position = self.specialiser.enrol(function, code);
        let why = Why::design(format!("{effect} has an effect"), Some(place));
        self.specialiser.families[position].interpreted = Some(why);
    }

    /// The first possible effect of a function's body, or of a function it mentions.
    fn effect_of(code: &Rc<Code>) -> Option<(Ustr, Span)> {
        if let Some(effect) = code.effect.get() {
            return *effect;
        }
        let effect = super::purity::effect(code);
        let _ = code.effect.set(effect);
        effect
    }

    /// Reports on all functions called with tensors from interpreted code, in the order of the first calls. Functions
    /// called by a compiled one are part of it.
    pub fn reports(&self) -> Vec<Report> {
        self.specialiser.reports(&self.sources)
    }
}
