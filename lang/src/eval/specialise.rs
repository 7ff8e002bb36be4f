//! Specialisation: a call from interpreted code to a pure function with tensor arguments is traced once for the
//! structure and types of its arguments, and run as one compiled program from then on.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use smallvec::SmallVec;
use ustr::Ustr;

use super::expr::Code;
use super::grad::MAX_EQUATIONS;
use super::interp::{Interp, Jit};
use super::signal::{Eval, Reason, Signal, TraceStop};
use super::tensor::{Concrete, Tensor, Trace};
use super::tree::sorted_order;
use super::value::{Closure, Dict, Function, GradOptions, List, Value};
use crate::diagnostic::Diagnostic;
use crate::graph::prune;
use crate::host::{Buffer, Leaf, Program, Unit};
use crate::syntax::{Bracket, Span};
use crate::tensor::{DType, HostTensor, TensorType};

/// Work, in estimated scalar operations over all expected calls, from which compiling pays: a compilation takes
/// about a second, in which the evaluator does more than this.
const WORTH_COMPILING: u64 = 10_000_000;

/// What one equation costs the evaluator beside its arithmetic, in the same unit.
const EQUATION_COST: u64 = 1000;

/// More specialisations of one function that differ only in a number that its body asked for are a sign that the
/// number changes all the time: the function is interpreted from then on.
const MAX_STATIC_VARIANTS: usize = 16;

/// Which function: its code and the transformations around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FnKey {
    code: usize,
    transforms: SmallVec<[(bool, bool, bool, Vec<usize>); 1]>,
}

fn fn_key(function: &Function) -> Option<(FnKey, &Rc<Code>)> {
    match function {
        Function::Builtin(_) => None,
        Function::Closure(c) => {
            Some((FnKey { code: Rc::as_ptr(&c.code) as usize, transforms: SmallVec::new() }, &c.code))
        }
        Function::Grad(Value::Function(f), o) => {
            let (mut key, code) = fn_key(f)?;
            key.transforms.push((o.value, o.aux, o.wrt_list, o.wrt.clone()));
            Some((key, code))
        }
        Function::Grad(..) => None,
    }
}

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

/// What an argument must look like to fit a specialisation.
enum Pattern {
    /// A tensor or number of this type: a parameter of the program.
    Tensor(TensorType),
    /// Exactly this value.
    Static(Value),
    List(Vec<Pattern>),
    /// Entries by position, in the order of the sorted keys.
    Dict(Vec<(usize, Ustr, Pattern)>),
    /// A function with this code and these captured values.
    Function(FnKey, Vec<Pattern>),
}

/// The value of a parameter of the program.
#[derive(Clone)]
enum LeafValue {
    Tensor(Rc<Concrete>),
    Int(i64),
    Float(f64),
}

/// How the result is put together from the program's results.
enum OutTree {
    Leaf(usize, TensorType),
    Const(Value),
    List(Bracket, Vec<OutTree>),
    Dict(Vec<(Ustr, OutTree)>),
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

impl Pattern {
    /// Whether `value` fits; appends the values of its parameters.
    fn collect(&self, value: &Value, leaves: &mut Vec<LeafValue>) -> bool {
        match (self, value) {
            (Pattern::Tensor(ty), Value::Tensor(Tensor::Concrete(c))) => {
                let fits = c.ty() == ty;
                if fits {
                    leaves.push(LeafValue::Tensor(Rc::clone(c)));
                }
                fits
            }
            (Pattern::Tensor(ty), Value::Int(n)) => {
                leaves.push(LeafValue::Int(*n));
                ty.weak && ty.dtype == DType::I64
            }
            (Pattern::Tensor(ty), Value::Float(x)) => {
                leaves.push(LeafValue::Float(*x));
                ty.weak && ty.dtype == DType::F32
            }
            (Pattern::List(patterns), Value::List(list)) => {
                patterns.len() == list.items.len()
                    && patterns.iter().zip(&list.items).all(|(p, v)| p.collect(v, leaves))
            }
            (Pattern::Dict(patterns), Value::Dict(dict)) => {
                patterns.len() == dict.len()
                    && patterns.iter().all(|(i, key, p)| match dict.get_index(*i) {
                        Some((k, v)) => k == key && p.collect(v, leaves),
                        None => false,
                    })
            }
            (Pattern::Function(key, patterns), Value::Function(f)) => match fn_key(f) {
                Some((k, _)) => {
                    let captured = captured_of(f);
                    k == *key && patterns.iter().zip(captured).all(|(p, v)| p.collect(v, leaves))
                }
                None => false,
            },
            (Pattern::Static(expected), value) => same_static(expected, value),
            _ => false,
        }
    }

    /// Whether the pattern holds the value of a number that the body asked for.
    fn has_static_number(&self) -> bool {
        match self {
            Pattern::Static(Value::Int(_) | Value::Float(_)) => true,
            Pattern::List(items) | Pattern::Function(_, items) => {
                items.iter().any(Pattern::has_static_number)
            }
            Pattern::Dict(entries) => entries.iter().any(|(_, _, p)| p.has_static_number()),
            _ => false,
        }
    }
}

/// The code of a function of the program, transformed or not.
fn code_of(function: &Function) -> Option<&Rc<Code>> {
    match function {
        Function::Closure(c) => Some(&c.code),
        Function::Grad(Value::Function(f), _) => code_of(f),
        _ => None,
    }
}

fn captured_of(function: &Function) -> &[Value] {
    match function {
        Function::Closure(c) => &c.captured,
        Function::Grad(Value::Function(f), _) => captured_of(f),
        _ => &[],
    }
}

fn same_static(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Keyword(a), Value::Keyword(b)) | (Value::Symbol(a), Value::Symbol(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Range(a, b), Value::Range(c, d)) => (a, b) == (c, d),
        (Value::Function(a), Value::Function(b)) => match (&**a, &**b) {
            (Function::Builtin(a), Function::Builtin(b)) => std::ptr::eq(*a, *b),
            _ => Rc::ptr_eq(a, b),
        },
        // A tensor scalar whose value was asked for.
        (Value::Tensor(a), Value::Tensor(b)) => match (a.elements(""), b.elements("")) {
            (Ok(x), Ok(y)) => a.ty() == b.ty() && x == y,
            _ => false,
        },
        _ => false,
    }
}

/// Whether there is a tensor among the values, and none that is traced.
fn has_tensors(values: &[Value]) -> Option<bool> {
    let mut found = false;
    for value in values {
        let inside = match value {
            Value::Tensor(Tensor::Traced(_)) => return None,
            Value::Tensor(Tensor::Concrete(_)) => true,
            Value::List(list) => has_tensors(&list.items)?,
            Value::Dict(dict) => {
                let mut any = false;
                for v in dict.values() {
                    any |= has_tensors(std::slice::from_ref(v))?;
                }
                any
            }
            Value::Function(f) => has_tensors(captured_of(f))?,
            _ => false,
        };
        found |= inside;
    }
    Some(found)
}

/// Makes traced arguments and their patterns.
struct Abstraction<'a> {
    trace: &'a Rc<Trace>,
    statics: &'a HashSet<String>,
    inputs: Vec<(Leaf, Tensor)>,
    static_values: Vec<(String, String)>,
}

impl Abstraction<'_> {
    fn value(&mut self, value: &Value, path: &str) -> (Value, Pattern) {
        let number = |ty| (ty, path.to_string());
        let (ty, path) = match value {
            Value::List(list) => {
                let (items, patterns) =
                    list.items.iter().enumerate().map(|(i, v)| self.value(v, &format!("{path}.{i}"))).unzip();
                let list = List { bracket: list.bracket, items, origin: list.origin };
                return (Value::List(Rc::new(list)), Pattern::List(patterns));
            }
            Value::Dict(dict) => {
                let mut out: Dict = (**dict).clone();
                let mut patterns = Vec::with_capacity(dict.len());
                for i in sorted_order(dict.keys().copied()) {
                    let (key, v) = dict.get_index(i).expect("in range");
                    let (v, pattern) = self.value(v, &format!("{path}.{key}"));
                    out[i] = v;
                    patterns.push((i, *key, pattern));
                }
                return (Value::Dict(Rc::new(out)), Pattern::Dict(patterns));
            }
            Value::Function(f) if fn_key(f).is_some() => {
                let (f, key, patterns) = self.function(f, path);
                return (Value::Function(f), Pattern::Function(key, patterns));
            }
            Value::Tensor(t) => number(t.ty().clone()),
            Value::Int(_) => number(TensorType::weak(DType::I64)),
            Value::Float(_) => number(TensorType::weak(DType::F32)),
            other => {
                self.static_values.push((path.to_string(), crate::builtins::show(other)));
                return (other.clone(), Pattern::Static(other.clone()));
            }
        };
        if self.statics.contains(&path) {
            self.static_values.push((path, crate::builtins::show(value)));
            return (value.clone(), Pattern::Static(value.clone()));
        }
        let tensor = self.trace.input(ty.clone(), None);
        self.inputs.push((Leaf { path, ty: ty.clone() }, tensor.clone()));
        (Value::Tensor(tensor), Pattern::Tensor(ty))
    }

    /// The function with traced captured values.
    fn function(&mut self, f: &Rc<Function>, path: &str) -> (Rc<Function>, FnKey, Vec<Pattern>) {
        let (key, _) = fn_key(f).expect("checked by the caller");
        match &**f {
            Function::Closure(c) => {
                let names: Vec<Ustr> = c.code.captures.borrow().iter().map(|(_, n)| *n).collect();
                let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
                let (captured, patterns) = c
                    .captured
                    .iter()
                    .zip(names)
                    .map(|(v, name)| self.value(v, &format!("{prefix}{name}")))
                    .unzip();
                (Rc::new(Function::Closure(Closure { code: Rc::clone(&c.code), captured })), key, patterns)
            }
            Function::Grad(Value::Function(inner), options) => {
                let (inner, _, patterns) = self.function(inner, path);
                (Rc::new(Function::Grad(Value::Function(inner), options.clone())), key, patterns)
            }
            _ => (Rc::clone(f), key, Vec::new()),
        }
    }
}

fn out_tree(
    value: &Value,
    level: u32,
    outputs: &mut Vec<(Leaf, Tensor)>,
    path: &str,
) -> Result<OutTree, String> {
    let join = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    Ok(match value {
        Value::Tensor(t) if t.is_traced_at(level) => {
            outputs.push((Leaf { path: path.to_string(), ty: t.ty().clone() }, t.clone()));
            OutTree::Leaf(outputs.len() - 1, t.ty().clone())
        }
        Value::List(list) => {
            let items = list
                .items
                .iter()
                .enumerate()
                .map(|(i, v)| out_tree(v, level, outputs, &join(&i.to_string())));
            OutTree::List(list.bracket, items.collect::<Result<_, _>>()?)
        }
        Value::Dict(dict) => {
            let mut entries: Vec<(Ustr, OutTree)> =
                dict.keys().map(|k| (*k, OutTree::Const(Value::Nil))).collect();
            for i in sorted_order(dict.keys().copied()) {
                entries[i].1 = out_tree(&dict[i], level, outputs, &join(&entries[i].0))?;
            }
            OutTree::Dict(entries)
        }
        Value::Function(_) => return Err("it gives a function".into()),
        other => OutTree::Const(other.clone()),
    })
}

impl OutTree {
    fn build(&self, buffers: &[Buffer]) -> Value {
        match self {
            OutTree::Leaf(i, ty) => {
                Value::Tensor(Tensor::Concrete(Concrete::from_device(ty.clone(), Rc::clone(&buffers[*i]))))
            }
            OutTree::Const(value) => value.clone(),
            OutTree::List(bracket, items) => {
                let items = items.iter().map(|t| t.build(buffers)).collect();
                Value::List(Rc::new(List { bracket: *bracket, items, origin: None }))
            }
            OutTree::Dict(entries) => {
                Value::Dict(Rc::new(entries.iter().map(|(k, t)| (*k, t.build(buffers))).collect()))
            }
        }
    }
}

fn transform_of(function: &Function) -> &'static str {
    match function {
        Function::Grad(_, GradOptions { value: true, .. }) => "vag",
        Function::Grad(..) => "grad",
        _ => "",
    }
}

impl Interp {
    /// Runs a call as a compiled program, if the function is pure, the arguments hold tensors, and it pays.
    pub(super) fn call_compiled(&mut self, function: &Rc<Function>, args: &[Value]) -> Eval<Option<Value>> {
        if self.options.jit == Jit::Never {
            return Ok(None);
        }
        let Some(code) = code_of(function) else { return Ok(None) };
        if self.effect_of(code).is_some() {
            return Ok(None);
        }
        let mut leaves = std::mem::take(&mut self.specialiser.leaves);
        let found = self.specialiser.position(function).map(|position| {
            let family = &self.specialiser.families[position];
            let fits = |entry: &&Rc<Entry>| {
                leaves.clear();
                entry.arguments.len() == args.len()
                    && entry.arguments.iter().zip(args).all(|(p, v)| p.collect(v, &mut leaves))
                    && entry
                        .captured
                        .iter()
                        .zip(captured_of(function))
                        .all(|(p, v)| p.collect(v, &mut leaves))
            };
            (family.entries.iter().rev().find(fits).cloned(), family.interpreted.is_some())
        });
        let entry = match found {
            Some((Some(entry), _)) => Some(entry),
            Some((None, true)) => None,
            _ if has_tensors(args).zip(has_tensors(captured_of(function))).is_none_or(|(a, b)| !a && !b) => {
                None
            }
            _ => {
                let code = Rc::clone(code);
                let entry = self.specialise(function, &code, args)?;
                leaves.clear();
                for (p, v) in
                    entry.arguments.iter().zip(args).chain(entry.captured.iter().zip(captured_of(function)))
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
                let interpreted = Outcome::Interpreted("there is no compiler".into());
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
        let value = done.map(|()| Some(compiled.result.build(&results)));
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
            let buffer = match known {
                Some(buffer) => buffer,
                None => {
                    let buffer = backend.upload(&number)?;
                    numbers[i] = Some((bits, Rc::clone(&buffer)));
                    buffer
                }
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
                (Function::Grad(..), Some((key, _))) => {
                    self.specialiser.transformed.insert(key, position);
                }
                _ => code.family.set(Some(position)),
            }
            position
        });
        let entry = loop {
            let statics = self.specialiser.families[position].statics.clone();
            match self.trace_call(function, args, &statics)? {
                Ok(entry) => break entry,
                Err(path) => {
                    self.specialiser.families[position].statics.insert(path);
                }
            }
        };
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

    /// One attempt. The inner error is the path of a number that the body asked for.
    fn trace_call(
        &mut self,
        function: &Rc<Function>,
        args: &[Value],
        statics: &HashSet<String>,
    ) -> Eval<Result<Entry, String>> {
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
            Err(Signal::Error(d)) => return Err(Signal::Error(d)),
            Err(Signal::Trace(stop)) => {
                if let Reason::Value { level: l, var, .. } = &stop.reason
                    && *l == level
                    && let Some((leaf, _)) =
                        inputs.iter().find(|(_, t)| trace.lift(t).is_ok_and(|v| v == *var))
                {
                    return Ok(Err(leaf.path.clone()));
                }
                return Ok(Ok(entry(Outcome::Interpreted(self.say_interpreted(&code, &stop)))));
            }
        };
        let mut outputs = Vec::new();
        let result = match out_tree(&value, level, &mut outputs, "") {
            Ok(result) if !outputs.is_empty() => result,
            Ok(_) => {
                return Ok(Ok(entry(Outcome::Interpreted("its result does not depend on a tensor".into()))));
            }
            Err(reason) => return Ok(Ok(entry(Outcome::Interpreted(reason)))),
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
        Ok(Ok(entry(Outcome::Waiting { cost, spent: 0, unit: Box::new(unit), result })))
    }

    /// Why a function is interpreted; said once, unless it is for an effect, as is usual.
    fn say_interpreted(&mut self, code: &Code, stop: &TraceStop) -> String {
        let reason = match &stop.reason {
            Reason::Effect(name) => return format!("{name} has an effect"),
            Reason::Loop => return "it has a loop; what the loop calls is compiled".into(),
            Reason::Value { wanted, .. } => format!("{wanted} depends on the data"),
            Reason::Unsupported(what) => what.clone(),
        };
        let mut warning =
            Diagnostic::warning(format!("{} is interpreted, not compiled: {reason}", code.display_name()));
        if let Some(span) = stop.span {
            warning = warning.at(span, "here");
        }
        self.host.warn(&self.sources, &warning);
        reason
    }

    /// The first effect that a function's body may have, or that of a function it mentions.
    fn effect_of(&self, code: &Rc<Code>) -> Option<(Ustr, Span)> {
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
