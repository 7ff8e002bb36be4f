//! Specialisation: a call from interpreted code to a pure function with tensor arguments is traced once for the
//! structure and types of its arguments, and run as one compiled program from then on.

mod arguments;
mod result;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use smallvec::SmallVec;
use ustr::Ustr;

use arguments::{Abstraction, FnKey, LeafValue, Pattern, fn_key, has_tensors, transform_of};
use result::{OutTree, out_tree};

use crate::builtins::SHAPE;
use crate::diagnostic::Diagnostic;
use crate::eval::expr::Code;
use crate::eval::interp::{Interp, Jit};
use crate::eval::signal::{Eval, Reason, Stop, TraceStop};
use crate::eval::tensor::{MOST_AXES, Trace};
use crate::eval::transforms::MAX_EQUATIONS;
use crate::eval::value::{Function, Value};
use crate::graph::prune;
use crate::host::{Buffer, Program, Unit};
use crate::syntax::Span;
use crate::tensor::HostTensor;

/// Work, in estimated scalar operations over all expected calls, from which compiling pays: a compilation takes
/// about a second, in which the evaluator does more than this.
const WORTH_COMPILING: u64 = 10_000_000;

/// What one equation costs the evaluator beside its arithmetic, in the same unit.
const EQUATION_COST: u64 = 1000;

/// More specialisations of one function that differ only in a number that its body asked for are a sign that the
/// number changes all the time: the function is interpreted from then on.
const MAX_STATIC_VARIANTS: usize = 16;

/// All specialisations of the program.
#[derive(Default)]
pub(super) struct Specialiser {
    /// In the order of the first calls.
    families: Vec<Family>,
    /// Positions of the families of transformed functions; those of plain ones are kept in their code.
    transformed: HashMap<FnKey, usize>,
    leaves: Vec<LeafValue>,
    buffers: Vec<Buffer>,
    results: Vec<Buffer>,
}

impl Specialiser {
    /// The family of a function, if it has been specialised before.
    fn position(&self, function: &Function) -> Option<usize> {
        match function {
            Function::Closure(c) => c.code.family.get(),
            function => fn_key(function).and_then(|(key, _)| self.transformed.get(&key).copied()),
        }
    }

    /// Forgets all that was traced: a definition that went into it has been replaced.
    pub fn forget(&mut self) {
        for family in &mut self.families {
            family.statics.clear();
            family.entries.clear();
            family.interpreted = None;
        }
    }
}

/// The specialisations of one function.
struct Family {
    /// Keeps the code alive, so that its address stays its own.
    code: Rc<Code>,
    transform: &'static str,
    /// Paths of leaves whose values the body asked for.
    statics: HashSet<String>,
    entries: Vec<Rc<Entry>>,
    /// Why the function is interpreted whatever its arguments.
    interpreted: Option<String>,
}

struct Entry {
    arguments: Vec<Pattern>,
    captured: Vec<Pattern>,
    outcome: RefCell<Outcome>,
    calls: Cell<u64>,
}

enum Outcome {
    /// Traced; not worth compiling so far.
    Waiting { cost: u64, spent: u64, unit: Box<Unit>, result: OutTree },
    /// Compiled.
    Compiled(Rc<Compiled>),
    /// Interpreted for this reason.
    Interpreted(String),
}

struct Compiled {
    program: Rc<dyn Program>,
    result: OutTree,
    /// The last number passed at each position, with its buffer: most stay the same from call to call.
    numbers: RefCell<Vec<Option<(u64, Buffer)>>>,
}

/// What became of one specialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The function's name.
    pub function: String,
    /// The transformation, empty for the function itself.
    pub transform: &'static str,
    /// Calls that ran as a compiled program.
    pub compiled_calls: u64,
    /// Why calls are interpreted, if they are.
    pub interpreted: Option<String>,
}

/// What would become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It can run as a compiled program.
    Compiled,
    /// Its result is known once the types of the arguments are: there is nothing to compile.
    Known,
    /// It is interpreted, since the elements of a tensor must be known for this.
    Elements(String),
    /// It is interpreted, for this reason.
    Interpreted(String),
}

/// Why a function is interpreted that could be compiled.
pub(crate) const NO_COMPILER: &str = "there is no compiler";

/// Why a function without tensors in its result is interpreted.
const INDEPENDENT: &str = "its result does not depend on a tensor";

/// A traced call, and what stopped the trace.
type Traced = (Entry, Option<TraceStop>);

/// Why a call is interpreted whose trace stopped.
fn reason_of(stop: &TraceStop) -> String {
    match &stop.reason {
        Reason::Effect(name) => format!("{name} has an effect"),
        Reason::Unrun(name) => format!("{name} has no value before the program runs"),
        Reason::Loop => "it has a loop; what the loop calls is compiled".into(),
        Reason::Irreversible(reason) => format!("its gradient is wanted, but {reason}"),
        Reason::Value { wanted, .. } => format!("{wanted} depends on the data"),
        Reason::Elements { wanted, ty, .. } => format!("{wanted} depends on the elements of a tensor {ty}"),
    }
}

impl Interp {
    /// Runs a call as a compiled program, if the function is pure, the arguments hold tensors, and it pays.
    pub(super) fn call_compiled(&mut self, function: &Rc<Function>, args: &[Value]) -> Eval<Option<Value>> {
        if self.options.jit == Jit::Never {
            return Ok(None);
        }
        let Some(code) = function.code() else { return Ok(None) };
        if Self::effect_of(code).is_some() {
            return Ok(None);
        }
        let mut leaves = std::mem::take(&mut self.specialiser.leaves);
        let found = self.specialiser.position(function).map(|position| {
            let family = &self.specialiser.families[position];
            let fits = |entry: &&Rc<Entry>| {
                leaves.clear();
                entry.arguments.len() == args.len()
                    && entry.arguments.iter().zip(args).all(|(p, v)| p.collect(v, &mut leaves))
                    && entry.captured.iter().zip(function.captured()).all(|(p, v)| p.collect(v, &mut leaves))
            };
            (family.entries.iter().rev().find(fits).cloned(), family.interpreted.is_some())
        });
        let entry = match found {
            Some((Some(entry), _)) => Some(entry),
            Some((None, true)) => None,
            _ if has_tensors(args).zip(has_tensors(function.captured())).is_none_or(|(a, b)| !a && !b) => {
                None
            }
            _ => {
                let code = Rc::clone(code);
                let entry = self.specialise(function, &code, args)?;
                leaves.clear();
                for (p, v) in
                    entry.arguments.iter().zip(args).chain(entry.captured.iter().zip(function.captured()))
                {
                    p.collect(v, &mut leaves);
                }
                Some(entry)
            }
        };
        let result = match entry {
            Some(entry) => self.run_entry(&entry, &leaves),
            None => Ok(None),
        };
        leaves.clear();
        self.specialiser.leaves = leaves;
        result
    }

    fn run_entry(&mut self, entry: &Entry, leaves: &[LeafValue]) -> Eval<Option<Value>> {
        let compiled = {
            let mut outcome = entry.outcome.borrow_mut();
            if let Outcome::Waiting { cost, spent, .. } = &mut *outcome {
                *spent = spent.saturating_add(*cost);
                let expected = cost.saturating_mul(self.weight).max(*spent);
                if self.options.jit == Jit::Auto && expected < WORTH_COMPILING {
                    return Ok(None);
                }
                let interpreted = Outcome::Interpreted(NO_COMPILER.into());
                let Outcome::Waiting { unit, result, .. } = std::mem::replace(&mut *outcome, interpreted)
                else {
                    unreachable!("seen above");
                };
                let Some(backend) = &mut self.backend else { return Ok(None) };
                if let Some(program) = backend.prepare(&unit)? {
                    let numbers = RefCell::new(vec![None; unit.inputs.len()]);
                    *outcome = Outcome::Compiled(Rc::new(Compiled { program, result, numbers }));
                }
            }
            match &*outcome {
                Outcome::Compiled(compiled) => Rc::clone(compiled),
                _ => return Ok(None),
            }
        };
        entry.calls.set(entry.calls.get() + 1);
        let mut buffers = std::mem::take(&mut self.specialiser.buffers);
        let mut results = std::mem::take(&mut self.specialiser.results);
        let done = self.run_compiled(&compiled, leaves, &mut buffers, &mut results);
        buffers.clear();
        let value = done.map(|()| Some(compiled.result.build(&results, self.span)));
        results.clear();
        self.specialiser.buffers = buffers;
        self.specialiser.results = results;
        value
    }

    fn run_compiled(
        &mut self,
        compiled: &Compiled,
        leaves: &[LeafValue],
        buffers: &mut Vec<Buffer>,
        results: &mut Vec<Buffer>,
    ) -> Eval<()> {
        let Some(backend) = &mut self.backend else { return super::fail("the device is gone") };
        for (i, leaf) in leaves.iter().enumerate() {
            let (bits, number) = match leaf {
                LeafValue::Tensor(tensor) => {
                    buffers.push(Rc::clone(tensor.device(backend.as_mut())?));
                    continue;
                }
                LeafValue::Int(n) => (*n as u64, HostTensor::scalar(*n)),
                LeafValue::Float(x) => ((*x as f32).to_bits() as u64, HostTensor::scalar(*x as f32)),
            };
            let mut numbers = compiled.numbers.borrow_mut();
            let known = numbers[i].as_ref().filter(|(b, _)| *b == bits).map(|(_, buffer)| Rc::clone(buffer));
            let buffer = if let Some(buffer) = known {
                buffer
            } else {
                let buffer = backend.upload(&number)?;
                numbers[i] = Some((bits, Rc::clone(&buffer)));
                buffer
            };
            buffers.push(buffer);
        }
        compiled.program.call(buffers, results)?;
        Ok(())
    }

    /// Traces a function for the structure and types of these arguments.
    fn specialise(&mut self, function: &Rc<Function>, code: &Rc<Code>, args: &[Value]) -> Eval<Rc<Entry>> {
        let position = self.specialiser.position(function).unwrap_or_else(|| {
            let position = self.specialiser.families.len();
            self.specialiser.families.push(Family {
                code: Rc::clone(code),
                transform: transform_of(function),
                statics: HashSet::new(),
                entries: Vec::new(),
                interpreted: None,
            });
            match (&**function, fn_key(function)) {
                (Function::Transformed(..), Some((key, _))) => {
                    self.specialiser.transformed.insert(key, position);
                }
                _ => code.family.set(Some(position)),
            }
            position
        });
        let mut statics = std::mem::take(&mut self.specialiser.families[position].statics);
        let traced = self.trace_until_static(function, args, &mut statics);
        self.specialiser.families[position].statics = statics;
        let (entry, stop) = traced?;
        if let Some(stop) = stop {
            self.say_interpreted(code, &stop);
        }
        let entry = Rc::new(entry);
        let family = &mut self.specialiser.families[position];
        family.entries.push(Rc::clone(&entry));
        let variants = family
            .entries
            .iter()
            .filter(|e| e.arguments.iter().chain(&e.captured).any(Pattern::has_static_number));
        if variants.count() > MAX_STATIC_VARIANTS && family.interpreted.is_none() {
            let mut statics: Vec<&str> = family.statics.iter().map(String::as_str).collect();
            statics.sort_unstable();
            family.interpreted = Some(format!("the value of {} changes all the time", statics.join(", ")));
            let name = family.code.display_name();
            let warning = Diagnostic::warning(format!(
                "{name} is interpreted from here on: it needs the value of {}, which keeps changing",
                statics.join(", ")
            ))
            .at(family.code.span, "this function");
            self.host.warn(&self.sources, &warning);
        }
        Ok(entry)
    }

    /// What would become of a call as a compiled program; nothing is compiled or kept.
    pub fn probe(&mut self, function: &Rc<Function>, args: &[Value]) -> Eval<Probe> {
        if let Some(code) = function.code()
            && let Some((effect, _)) = Self::effect_of(code)
        {
            return Ok(Probe::Interpreted(format!("{effect} has an effect")));
        }
        let (entry, stop) = self.trace_until_static(function, args, &mut HashSet::new())?;
        if let Some(TraceStop {
            reason: Reason::Elements { wanted, .. } | Reason::Value { wanted, .. },
            ..
        }) = stop
        {
            return Ok(Probe::Elements(wanted));
        }
        Ok(match entry.outcome.into_inner() {
            Outcome::Interpreted(reason) if reason == INDEPENDENT => Probe::Known,
            Outcome::Interpreted(reason) => Probe::Interpreted(reason),
            Outcome::Waiting { .. } | Outcome::Compiled(_) => Probe::Compiled,
        })
    }

    /// Traces a call, again with each number fixed that the body asks for; adds their paths to `statics`.
    fn trace_until_static(
        &mut self,
        function: &Rc<Function>,
        args: &[Value],
        statics: &mut HashSet<String>,
    ) -> Eval<Traced> {
        loop {
            match self.trace_call(function, args, statics)? {
                Ok(traced) => return Ok(traced),
                Err(path) => statics.insert(path),
            };
        }
    }

    /// One attempt. The inner error is the path of a number that the body asked for.
    fn trace_call(
        &mut self,
        function: &Rc<Function>,
        args: &[Value],
        statics: &HashSet<String>,
    ) -> Eval<Result<Traced, String>> {
        let (_, code) = fn_key(function).expect("checked by the caller");
        let code = Rc::clone(code);
        self.level += 1;
        let level = self.level;
        let trace = Trace::new(level, MAX_EQUATIONS);
        let mut abstraction =
            Abstraction { trace: &trace, statics, inputs: Vec::new(), static_values: Vec::new() };
        let mut arguments = Vec::new();
        let mut traced_args = SmallVec::new();
        for (i, arg) in args.iter().enumerate() {
            let name = code.params.get(i).map_or_else(|| format!("arg{i}"), |p| p.name.to_string());
            let (value, pattern) = abstraction.value(arg, &name);
            traced_args.push(value);
            arguments.push(pattern);
        }
        let (traced_function, _, captured) = abstraction.function(function, "");
        let Abstraction { inputs, static_values, .. } = abstraction;
        self.recording += 1;
        let result = self.call_interpreted(&traced_function, traced_args, code.span);
        self.recording -= 1;
        self.level -= 1;
        drop(traced_function);

        let entry =
            |outcome| Entry { arguments, captured, outcome: RefCell::new(outcome), calls: Cell::new(0) };
        let value = match result {
            Ok(value) => value,
            Err(signal) => {
                let stop = match *signal {
                    Stop::Trace(stop) => stop,
                    error @ Stop::Error(_) => return Err(Box::new(error)),
                };
                if let Reason::Value { level: l, var, wanted } = &stop.reason
                    && *l == level
                    && let longest = if wanted == SHAPE { MOST_AXES } else { 0 }
                    && let Some(number) = trace.number_behind(*var, longest)
                    && let Some((leaf, _)) =
                        inputs.iter().find(|(_, t)| trace.lift(t).is_ok_and(|v| v == number))
                {
                    return Ok(Err(leaf.path.clone()));
                }
                if let Some(error) = stop.not_static() {
                    return Err(error);
                }
                return Ok(Ok((entry(Outcome::Interpreted(reason_of(&stop))), Some(stop))));
            }
        };
        let mut outputs = Vec::new();
        let result = match out_tree(&value, level, &mut outputs, "") {
            Ok(result) if !outputs.is_empty() => result,
            Ok(_) => {
                return Ok(Ok((entry(Outcome::Interpreted(INDEPENDENT.into())), None)));
            }
            Err(reason) => return Ok(Ok((entry(Outcome::Interpreted(reason)), None))),
        };
        let vars = outputs.iter().map(|(_, t)| trace.lift(t)).collect::<Eval<Vec<_>>>()?;
        let (graph, _) = trace.finish(vars);
        let graph = prune(graph);
        debug_assert_eq!(crate::graph::verify(&graph), Ok(()));
        let cost = graph.cost().saturating_add(EQUATION_COST * graph.equations.len() as u64);
        let unit = Unit {
            function: code.name.map_or_else(|| "lambda".into(), |n| n.to_string()),
            transform: transform_of(function),
            graph,
            inputs: inputs.into_iter().map(|(leaf, _)| leaf).collect(),
            outputs: outputs.into_iter().map(|(leaf, _)| leaf).collect(),
            statics: static_values,
        };
        Ok(Ok((entry(Outcome::Waiting { cost, spent: 0, unit: Box::new(unit), result }), None)))
    }

    /// Says once why a function is interpreted, unless it is for an effect or a loop, as is usual.
    fn say_interpreted(&mut self, code: &Code, stop: &TraceStop) {
        if matches!(stop.reason, Reason::Effect(_) | Reason::Loop) {
            return;
        }
        let (name, reason) = (code.display_name(), reason_of(stop));
        let mut warning = Diagnostic::warning(format!("{name} is interpreted, not compiled: {reason}"));
        if let Some(span) = stop.span {
            warning = warning.at(span, "here");
        }
        self.host.warn(&self.sources, &warning);
    }

    /// The first effect that a function's body may have, or that of a function it mentions.
    fn effect_of(code: &Rc<Code>) -> Option<(Ustr, Span)> {
        if let Some(effect) = code.effect.get() {
            return *effect;
        }
        let effect = super::purity::effect(code);
        let _ = code.effect.set(effect);
        effect
    }

    /// What became of every function that was called with tensors, in the order of the first calls.
    pub fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for family in &self.specialiser.families {
            for entry in &family.entries {
                let interpreted = match &*entry.outcome.borrow() {
                    Outcome::Compiled(_) => None,
                    Outcome::Waiting { .. } => Some("too little work to be worth compiling".into()),
                    Outcome::Interpreted(reason) => Some(reason.clone()),
                };
                reports.push(Report {
                    function: family.code.display_name(),
                    transform: family.transform,
                    compiled_calls: entry.calls.get(),
                    interpreted,
                });
            }
        }
        reports
    }
}
