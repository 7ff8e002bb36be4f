//! `defgrad`: custom gradients. In any trace, a call of such a function is recorded as one equation, which holds the
//! graphs of the function and of its gradient.

use std::rc::Rc;
use std::sync::Arc;

use ustr::Ustr;

use super::Args;
use super::define::heading;
use super::interp::Interp;
use super::load::{Loaded, Loading};
use super::signal::{Eval, Reason, Signal, Stop, fail};
use super::tensor::bind_all;
use super::tree::{KeyPath, flatten, map_trees};
use crate::program::{Closure, Code, Function, Origin, Tensor, Trace, Value};
use sheaf_graph::graph::{Graph, Op, prune, without_checks};
use sheaf_graph::primitives::CustomVjp;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Bracket, Form, FormKind, Span};

const USAGE: &str = "defgrad is written (defgrad f [args] [out] [cotangent] body...)";

impl Interp {
    /// `(defgrad f [args] [out] [cotangent] body...)`
    pub(super) fn gradient_form(&mut self, loading: &mut Loading, args: &[Form], span: Span) -> Loaded<()> {
        let lists =
            || args.iter().skip(1).take(3).map(|f| f.items(Bracket::Square)).collect::<Option<Vec<_>>>();
        let parts = args.first().and_then(Form::symbol).zip(lists()).filter(|_| args.len() > 4);
        let Some((name, [params, [out], [cotangent]])) = parts.as_ref().map(|(n, l)| (*n, l.as_slice()))
        else {
            return Err(vec![Diagnostic::error(USAGE).at(span, "")]);
        };
        let place = heading(span, args);
        let global = loading.module.definitions.borrow().get(&name).cloned();
        let code = global.and_then(|global| match &*global.value.borrow() {
            Some(Value::Function(f)) => match &**f {
                Function::Closure(closure) if !global.is_macro.get() => Some(Rc::clone(&closure.code)),
                _ => None,
            },
            _ => None,
        });
        let Some(code) = code else {
            let d = Diagnostic::error(format!("there is no function {name} for this gradient"));
            return Err(vec![d.at(place, "here").help("a defgrad stands below the defn, in the same file")]);
        };
        let own = Ustr::from(&format!("(defgrad {name})"));
        if let Some(first) = loading.defined.insert(own, place) {
            let d = Diagnostic::error(format!("{name} has two gradients"));
            return Err(vec![d.at(place, "given again here").at(first, "first given here")]);
        }
        // The result and its cotangent come first, since the arguments may end in `& rest`.
        let order = [std::slice::from_ref(out), std::slice::from_ref(cotangent), params].concat();
        let order = Form { kind: FormKind::List(Bracket::Square, order), span: args[1].span };
        let mut resolver = self.resolver(loading);
        let gradient = resolver.function(Some(own), None, &order, &args[4..], span);
        let gradient = resolver.finish(gradient)?;
        if gradient.params.len() != code.params.len() + 2 || gradient.rest.is_some() != code.rest.is_some() {
            let d = Diagnostic::error(format!("{name} and its gradient take different arguments"));
            return Err(vec![
                d.at(args[1].span, "the arguments here").at(code.head, "those of the function"),
            ]);
        }
        *code.gradient.borrow_mut() = Some(gradient);
        Ok(())
    }

    /// Calls a function with a custom gradient, if an argument is traced.
    pub(super) fn call_custom(
        &mut self,
        closure: &Closure,
        gradient: Rc<Code>,
        args: &Args,
        span: Span,
    ) -> Eval<Value> {
        let mut operands: Vec<Tensor> = Vec::new();
        for arg in args {
            operands.extend(flatten(arg).iter().filter_map(traced));
        }
        let name = closure.code.display_name();
        let types: Vec<TensorType> = operands.iter().map(|t| t.ty().clone()).collect();

        // The function as a graph.
        self.tracing.level += 1;
        let level = self.tracing.level;
        let trace = self.tracing.trace(level);
        let inputs: Vec<Tensor> = operands
            .iter()
            .map(|t| trace.input(t.ty().clone(), t.concrete().cloned(), Some(Origin::Made(span))))
            .collect();
        let inner = replaced(args, traced, &inputs);
        let result = inner.and_then(|inner| self.call_within(&trace, closure, inner, span));
        self.tracing.level -= 1;
        let result = result.map_err(|signal| outer_signal(signal, &trace, level, &inputs, &operands))?;
        let doubles = types.iter().any(|ty| ty.dtype == DType::F64);
        let result = with_variables(&trace, result, doubles)?;
        let here = |value: &Value| traced(value).filter(|t| t.is_traced_at(level));
        let results: Vec<Tensor> = flatten(&result).iter().filter_map(here).collect();
        if results.is_empty() {
            return Ok(result);
        }
        let vars = results.iter().map(|t| trace.lift(t)).collect::<Eval<Vec<_>>>()?;
        let forward = closed(trace.finish(vars), &name)?;

        // Its gradient, from arguments, results and cotangents to cotangents.
        self.tracing.level += 1;
        let backward = self.trace_gradient(&name, gradient, args, &types, &result, level, span);
        self.tracing.level -= 1;
        let backward = backward?;

        let op: Op = Arc::new(CustomVjp {
            name,
            forward: Arc::new(forward),
            backward: Arc::new(without_checks(&backward)),
        });
        let operands: Vec<&Tensor> = operands.iter().collect();
        let mut outs = bind_all(&op, &operands, Some(span))?.into_iter();
        map_trees(&[result], &mut |_, leaf| match here(&leaf[0]) {
            Some(_) => Ok(Value::from(outs.next().expect("a result for each"))),
            None => Ok(leaf[0].clone()),
        })
    }

    /// The result of a call that `trace` records, with all that it makes of known numbers.
    fn call_within(&mut self, trace: &Rc<Trace>, closure: &Closure, args: Args, span: Span) -> Eval<Value> {
        self.tracing.regions.borrow_mut().closed.push(Rc::clone(trace));
        let result = self.call_plain(closure, args, span);
        self.tracing.regions.borrow_mut().closed.pop();
        result
    }

    #[allow(clippy::too_many_arguments, reason = "they are what a call consists of")]
    fn trace_gradient(
        &mut self,
        name: &str,
        gradient: Rc<Code>,
        args: &Args,
        types: &[TensorType],
        result: &Value,
        level: u32,
        span: Span,
    ) -> Eval<Graph> {
        let here = |value: &Value| traced(value).filter(|t| t.is_traced_at(level));
        let trace = self.tracing.trace(self.tracing.level);
        let inputs: Vec<Tensor> =
            types.iter().map(|ty| trace.input(ty.clone(), None, Some(Origin::Made(span)))).collect();
        let result_types: Vec<TensorType> =
            flatten(result).iter().filter_map(here).map(|t| t.ty().clone()).collect();
        let outs: Vec<Tensor> =
            result_types.iter().map(|ty| trace.input(ty.clone(), None, Some(Origin::Made(span)))).collect();
        let cotangents: Vec<Tensor> = result_types
            .iter()
            .map(|ty| {
                if ty.dtype.is_float() {
                    trace.input(ty.with_dtype(ty.dtype), None, Some(Origin::Made(span)))
                } else {
                    Tensor::host(HostTensor::filled(DType::F32, ty.shape.clone(), 0.0))
                }
            })
            .collect();
        let mut given: Args = Args::new();
        given.push(replaced(std::slice::from_ref(result), here, &outs)?.swap_remove(0));
        given.push(replaced(std::slice::from_ref(result), here, &cotangents)?.swap_remove(0));
        given.extend(replaced(args, traced, &inputs)?);
        self.tracing.gradients.push(Rc::clone(&gradient));
        let closure = Closure { code: gradient, captured: Vec::new() };
        let found = self.call_within(&trace, &closure, given, span);
        self.tracing.gradients.pop();
        let found = found.map_err(|signal| match &*signal {
            Stop::Trace(stop) if !matches!(stop.reason, Reason::Effect(_)) => {
                let d =
                    Diagnostic::error(format!("the gradient of {name} asks for a value that is not known"))
                        .at(stop.span.unwrap_or(span), "asked for here")
                        .help("it is made once for all values: choose with (where ...) instead of (if ...)");
                d.into()
            }
            _ => signal,
        })?;
        let found = match args.as_slice() {
            [_] => vec![found],
            _ => self.sequence(&found).ok().filter(|f| f.len() == args.len()).map_or_else(
                || {
                    fail(format!(
                        "the gradient of {name} gives a list of {} cotangents, one for each argument, not {}",
                        args.len(),
                        found.describe()
                    ))
                },
                Ok,
            )?,
        };
        let mut leaves = Vec::new();
        for (i, (arg, cotangent)) in args.iter().zip(&found).enumerate() {
            let path = closure
                .code
                .params
                .get(i + 2)
                .map_or_else(|| format!("argument {i}"), |p| p.name.to_string());
            pair(arg, cotangent, &path, &mut leaves)
                .or_else(|what| fail(format!("the gradient of {name} does not fit: {what}")))?;
        }
        let mut outputs = Vec::new();
        for (ty, cotangent) in types.iter().zip(leaves).filter(|(ty, _)| ty.dtype.is_float()) {
            let tensor = match cotangent {
                Some(value) => self.tensor(&value)?,
                None => Tensor::host(HostTensor::filled(ty.dtype, ty.shape.clone(), 0.0)),
            };
            let tensor = self.convert(&tensor, ty.dtype)?;
            outputs.push(trace.lift(&tensor)?);
        }
        closed(trace.finish(outputs), name)
    }
}

/// The result with its known floats as variables of the trace: their cotangents go to the gradient as well, since a
/// step function and the like are piecewise constant. `doubles` keeps all digits of plain numbers.
fn with_variables(trace: &Rc<Trace>, result: Value, doubles: bool) -> Eval<Value> {
    let number = |x: f64| if doubles { HostTensor::scalar(x) } else { HostTensor::scalar(x as f32) };
    map_trees(&[result], &mut |_, leaf| match &leaf[0] {
        Value::Float(x) => Ok(Value::Tensor(Trace::variable(trace, &Tensor::weak(number(*x)))?)),
        Value::Tensor(t @ Tensor::Concrete(known)) if known.ty().dtype.is_float() => {
            Ok(Value::Tensor(Trace::variable(trace, t)?))
        }
        other => Ok(other.clone()),
    })
}

/// True if there is a traced tensor among the leaves.
pub(super) fn has_traced(value: &Value) -> bool {
    flatten(value).iter().any(|leaf| traced(leaf).is_some())
}

/// A leaf that is traced.
fn traced(value: &Value) -> Option<Tensor> {
    match value {
        Value::Tensor(t) if t.is_traced() => Some(t.clone()),
        _ => None,
    }
}

/// The trees with the leaves selected by `chosen` replaced, in order.
fn replaced(trees: &[Value], chosen: impl Fn(&Value) -> Option<Tensor>, tensors: &[Tensor]) -> Eval<Args> {
    let mut tensors = tensors.iter();
    let mut replace = |_: &KeyPath, leaf: &[Value]| match chosen(&leaf[0]) {
        Some(_) => Ok(Value::Tensor(tensors.next().expect("one for each").clone())),
        None => Ok(leaf[0].clone()),
    };
    trees.iter().map(|tree| map_trees(std::slice::from_ref(tree), &mut replace)).collect()
}

/// The graph of a trace without captures.
fn closed((graph, captured): (Graph, Vec<Tensor>), name: &str) -> Eval<Graph> {
    if captured.is_empty() {
        return Ok(prune(graph));
    }
    Err(Diagnostic::error(format!(
        "{name} has a gradient of its own, and uses a tensor that is not an argument"
    ))
    .help("a function among its arguments brings it; pass the tensor itself, and give its cotangent")
    .into())
}

/// Turns a request for a value of the inner trace into one for the operand behind it.
fn outer_signal(
    signal: Signal,
    trace: &Rc<Trace>,
    level: u32,
    inputs: &[Tensor],
    operands: &[Tensor],
) -> Signal {
    let Stop::Trace(stop) = &*signal else { return signal };
    let Reason::Value { level: l, var, wanted } = &stop.reason else { return signal };
    let behind = if *l == level { trace.number_behind(*var, 0) } else { None };
    let position = behind.and_then(|b| inputs.iter().position(|t| trace.lift(t).is_ok_and(|v| v == b)));
    match position.map(|i| operands[i].elements(wanted)) {
        Some(Err(outer)) => match stop.span {
            Some(span) => outer.at(span),
            None => outer,
        },
        _ => signal,
    }
}

/// The cotangent of each traced leaf of `arg`; the error gives the key path of a mismatch.
fn pair(arg: &Value, cotangent: &Value, path: &str, found: &mut Vec<Option<Value>>) -> Result<(), String> {
    match (arg, cotangent) {
        (Value::Tensor(t), c) if t.is_traced() => {
            let shape = match c {
                Value::Tensor(c) => c.shape().to_vec(),
                Value::Int(_) | Value::Float(_) => Vec::new(),
                Value::Nil => {
                    found.push(None);
                    return Ok(());
                }
                other => {
                    return Err(format!("{path} is {}, its cotangent {}", arg.describe(), other.describe()));
                }
            };
            if shape != t.shape() && t.ty().dtype.is_float() {
                return Err(format!("{path} is {}, its cotangent {}", arg.describe(), c.describe()));
            }
            found.push(Some(c.clone()));
        }
        (Value::Dict(dict), c) => {
            for (_, key, value) in dict.sorted() {
                let inner = match c {
                    Value::Dict(c) => c.get(&key).unwrap_or(&Value::Nil),
                    Value::Nil => &Value::Nil,
                    other => {
                        return Err(format!("{path} is a dictionary, its cotangent {}", other.describe()));
                    }
                };
                pair(value, inner, &format!("{path}.{key}"), found)?;
            }
        }
        (Value::List(list), c) => {
            for (i, value) in list.items.iter().enumerate() {
                let inner = match c {
                    Value::List(c) if c.items.len() == list.items.len() => &c.items[i],
                    Value::Nil => &Value::Nil,
                    other => {
                        return Err(format!(
                            "{path} is {}, its cotangent {}",
                            arg.describe(),
                            other.describe()
                        ));
                    }
                };
                pair(value, inner, &format!("{path}.{i}"), found)?;
            }
        }
        _ => {}
    }
    Ok(())
}
