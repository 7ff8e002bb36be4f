//! Compiled examples.

use super::case::Kind;
use super::lift::{Literals, lift, literals};
use super::{Case, Compile, Tester, failure};
use crate::eval::{Cause, Interp, Interpreted, Loaded, Probe, Signal, as_diagnostic};
use crate::program::{Function, Tensor, Value};
use sheaf_syntax::Form;
use sheaf_syntax::diagnostic::Diagnostic;

/// The reason that an example which reads a handle is interpreted.
const ITEMS: &str = "the items of a handle";

/// The function that is compiled: it runs a batch of examples.
const BATCHED: &str = "(fn [cases arguments anchor] (map apply cases arguments))";

/// An example to compile: a function of its literals, and these.
pub(super) struct Waiting {
    case: Case,
    function: Value,
    arguments: Value,
}

/// Compilation of an example.
enum Plan {
    Compile {
        function: Value,
        arguments: Value,
    },
    /// Its value is known while tracing.
    Known,
    /// Its value is a tensor of literals whose elements must be known, for this reason.
    Fixed(String),
    /// It is interpreted, for this reason.
    Interpreted(String),
}

impl Tester<'_> {
    /// Decides how an example is compiled, and runs it unless it is batched.
    pub(super) fn prepare(&mut self, case: Case) {
        let before = self.interp.options.jit;
        let checked = match case.expected.kind {
            Kind::Error => self.error_case(&case),
            Kind::Value => match self.plan(&case) {
                Ok(Plan::Compile { function, arguments }) => {
                    self.waiting.push(Waiting { case, function, arguments });
                    if self.waiting.len() >= self.options.batch {
                        self.run_waiting();
                    }
                    self.interp.options.jit = before;
                    return;
                }
                Ok(Plan::Known) => {
                    self.reports[case.file].known += 1;
                    Ok(())
                }
                Ok(Plan::Fixed(wanted)) => {
                    self.reports[case.file].known += 1;
                    self.reports[case.file].fixed.push(wanted);
                    Ok(())
                }
                Ok(Plan::Interpreted(_)) if case.pending => {
                    self.reports[case.file].pending += 1;
                    Ok(())
                }
                Ok(Plan::Interpreted(reason)) => Err(Box::new(
                    failure(format!("this cannot be compiled: {reason}"), case.form.span)
                        .at(case.expected.span, "a tensor is expected here"),
                )),
                Err(errors) => self.judge(&case, Err(errors), " while tracing"),
            },
        };
        match checked {
            Ok(()) => self.reports[case.file].passed += 1,
            Err(failure) => self.reports[case.file].failures.push(*failure),
        }
    }

    /// An error must be the same with traced literals, or not occur there.
    fn error_case(&mut self, case: &Case) -> Result<(), Box<Diagnostic>> {
        self.reports[case.file].known += 1;
        let Ok(form) = self.interp.expand_form(&case.module, case.form.clone()) else {
            return if self.options.interpreted { Ok(()) } else { self.plain(case) };
        };
        let all: Vec<usize> = (0..literals(&form, Literals::Tensors).len()).collect();
        if let Ok((_, _, Err(signal))) = self.probe(case, &form, Literals::Tensors, &all) {
            return self.judge(case, Err(vec![as_diagnostic(*signal)]), " while tracing");
        }
        if self.options.interpreted { Ok(()) } else { self.plain(case) }
    }

    fn plain(&mut self, case: &Case) -> Result<(), Box<Diagnostic>> {
        let found = self.interp.run_forms(&case.module, vec![case.form.clone()]);
        self.judge(case, found, "")
    }

    /// The literals of an example that become arguments: all, or else each that alone leaves the example compilable. A
    /// literal whose elements must be known, such as a shape, stays.
    fn plan(&mut self, case: &Case) -> Loaded<Plan> {
        let form = self.interp.expand_form(&case.module, case.form.clone())?;
        let count = literals(&form, Literals::Tensors).len();
        let mut chosen: Vec<usize> = (0..count).collect();
        // Most examples need only this trace.
        if count > 1
            && let (function, arguments, Ok(Probe::Compiled)) =
                self.probe(case, &form, Literals::Tensors, &chosen)?
        {
            return Ok(Plan::Compile { function, arguments });
        }
        chosen.clear();
        let mut stopped = None;
        for i in 0..count {
            match self.probe(case, &form, Literals::Tensors, &[i])?.2 {
                Ok(Probe::Compiled) => chosen.push(i),
                Ok(Probe::Known) => {}
                Ok(Probe::Interpreted(reason)) => stopped = Some(Plan::Interpreted(reason)),
                Ok(Probe::Elements(wanted)) => stopped = Some(Plan::Fixed(wanted)),
                Ok(Probe::Reads) => stopped = Some(Plan::Fixed(ITEMS.into())),
                Err(signal) => return Err(vec![as_diagnostic(*signal)]),
            }
        }
        let which = if count == 0 {
            chosen = (0..literals(&form, Literals::Numbers).len()).collect();
            Literals::Numbers
        } else {
            Literals::Tensors
        };
        if !chosen.is_empty() {
            let (function, arguments, probe) = self.probe(case, &form, which, &chosen)?;
            stopped = match probe {
                Ok(Probe::Compiled) => return Ok(Plan::Compile { function, arguments }),
                Ok(Probe::Known) => None,
                Ok(Probe::Reads) => Some(Plan::Fixed(ITEMS.into())),
                Ok(Probe::Interpreted(reason) | Probe::Elements(reason)) => Some(Plan::Interpreted(reason)),
                Err(_) if which == Literals::Numbers => None,
                Err(signal) => return Err(vec![as_diagnostic(*signal)]),
            };
        }
        let Some(plan) = stopped else { return Ok(Plan::Known) };
        let value = self.interp.run_forms(&case.module, vec![case.form.clone()])?;
        Ok(if holds_tensor(&value) { plan } else { Plan::Known })
    }

    /// The example as a function of some literals, those literals, and the outcome of the call.
    fn probe(
        &mut self,
        case: &Case,
        form: &Form,
        which: Literals,
        chosen: &[usize],
    ) -> Loaded<(Value, Value, Result<Probe, Signal>)> {
        let function = self.interp.run_forms(&case.module, vec![lift(form, which, chosen)])?;
        let all = literals(form, which);
        let mut arguments = Vec::with_capacity(chosen.len());
        for i in chosen {
            arguments.push(self.interp.run_forms(&case.module, vec![all[*i].clone()])?);
        }
        let Value::Function(f) = &function else { unreachable!("a function form gives a function") };
        let probe = self.interp.probe(f, &arguments);
        Ok((function, Value::list(arguments), probe))
    }

    /// Compiles and runs the batched examples.
    pub(super) fn run_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.interp.options.jit, crate::eval::Jit::Always);
        self.run_batch(&waiting);
        self.interp.options.jit = before;
    }

    /// One program for all, or, if that fails, one for each half.
    fn run_batch(&mut self, batch: &[Waiting]) {
        match self.call_batch(batch) {
            Ok(values) => {
                for (waiting, value) in batch.iter().zip(values) {
                    let checked = if on_device(&value) {
                        self.judge(&waiting.case, Ok(value), " compiled")
                    } else {
                        let message = "this ran, but no compiled program gave its value";
                        Err(Box::new(failure(message, waiting.case.form.span)))
                    };
                    let report = &mut self.reports[waiting.case.file];
                    match checked {
                        Ok(()) => {
                            report.compiled += 1;
                            report.passed += 1;
                        }
                        Err(failure) => report.failures.push(*failure),
                    }
                }
            }
            Err(errors)
                if self.options.compiled == Compile::IfPossible
                    && errors.iter().all(|d| d.labels.is_empty())
                    && self.latest_reason().is_some_and(|why| why.cause == Cause::Compiler) =>
            {
                for waiting in batch {
                    self.reports[waiting.case.file].passed += 1;
                }
            }
            Err(mut errors) => match batch {
                [one] => {
                    let d = errors.swap_remove(0);
                    let message = format!("this cannot be compiled: {}", d.message);
                    let failure = Diagnostic { message, ..d }.at(one.case.form.span, "");
                    self.reports[one.case.file].failures.push(failure);
                }
                _ => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    self.run_batch(first);
                    self.run_batch(second);
                }
            },
        }
    }

    /// The values of a batch, from its program.
    fn call_batch(&mut self, batch: &[Waiting]) -> Loaded<Vec<Value>> {
        let module = Interp::program("examples");
        let function = self.interp.run_text(&module, "<examples>", BATCHED)?;
        let list = |f: fn(&Waiting) -> &Value| Value::list(batch.iter().map(|w| f(w).clone()).collect());
        // A call without tensors among its arguments would not be compiled.
        let anchor = self.interp.run_text(&module, "<examples>", "[0]")?;
        let args = [list(|w| &w.function), list(|w| &w.arguments), anchor];
        let value = self.interp.call(&function, args).map_err(|s| vec![as_diagnostic(*s)])?;
        let Value::List(values) = value else { unreachable!("map gives a list") };
        if values.items.iter().any(on_device) {
            return Ok(values.items.to_vec());
        }
        let reason = self.latest_reason().map_or_else(|| "no program was called".into(), |why| why.reason);
        Err(vec![Diagnostic::error(reason)])
    }

    /// The reason that the last specialised function is interpreted, if it is.
    fn latest_reason(&self) -> Option<Interpreted> {
        self.interp.reports().last().and_then(|report| report.latest_reason().cloned())
    }
}

/// True if a part of the value is on the device only: it comes from a compiled program.
fn on_device(value: &Value) -> bool {
    any_tensor(value, &|t| matches!(t, Tensor::Concrete(c) if c.host_if_there().is_none()))
}

/// True if a value has a tensor besides plain numbers.
fn holds_tensor(value: &Value) -> bool {
    any_tensor(value, &|t| t.ty().rank() > 0)
}

fn any_tensor(value: &Value, holds: &dyn Fn(&Tensor) -> bool) -> bool {
    match value {
        Value::Tensor(t) => holds(t),
        Value::List(list) => list.items.iter().any(|v| any_tensor(v, holds)),
        Value::Dict(dict) => dict.values().any(|v| any_tensor(v, holds)),
        Value::Function(f) => match &**f {
            Function::Closure(c) => c.captured.iter().any(|v| any_tensor(v, holds)),
            _ => false,
        },
        _ => false,
    }
}
