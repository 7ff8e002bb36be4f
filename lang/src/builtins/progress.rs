//! `log-metric` and `progress`: a run followed from outside.

use super::operands::as_index;
use super::{Builtin, VARIADIC, parse};
use crate::eval::{Eval, Interp, fail};
use crate::host::Metric;
use crate::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "log-metric",
        "(log-metric name value :step n)",
        "logs a number under a name, and gives nil: `sheaf run --log metrics.jsonl` writes a line of JSON for each, --log DIR files \
         for TensorBoard, and a bar of (progress ...) shows the latest\n\
         without :step, the metrics of a name are numbered from 0",
        (2, VARIADIC),
        log_metric,
    )
    .effect()
    .examples(
        "(log-metric \"loss\" 0.5) ;=> nil\n(log-metric :accuracy [0.5 0.75]) ;=> error: a metric is one number",
    ),
    Builtin::new(
        "progress",
        "(progress label seq)",
        "gives the sequence through; on a terminal, map, mapv, reduce, filter and scan over it, and repeat with (progress label n) \
         as its count, show a bar with the rate, the time left and the latest metrics, elsewhere a line each minute",
        (2, 2),
        progress,
    )
    .effect()
    .examples(
        "(map (fn [x] (* x x)) (progress \"squares\" '[1 2 3])) ;=> '[1 4 9]\n\
         (repeat [i (progress \"steps\" 3)] [x 1] (* 2 x)) ;=> 8\n(progress \"steps\" 3) ;=> error: the count of a repeat",
    ),
];

fn log_metric(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let name = text(&args[0], "the name of a metric")?;
    let parsed = parse(&args[1..], &["step"], &[])?;
    let [value] = parsed.exactly()?;
    let t = interp.tensor(value)?;
    if t.ty().rank() != 0 {
        return Err(Diagnostic::error(format!("a metric is one number, not a tensor {}", t.ty()))
            .help("(mean x) or (sum x) is one")
            .into());
    }
    let step = parsed.option("step").map(|step| as_index(step, "the step of a metric")).transpose()?;
    if interp.host.wants_metrics() {
        let value = t.elements("a metric")?.element_f64(0);
        interp.host.metric(&Metric { name: &name, step, value })?;
    }
    Ok(Value::Nil)
}

fn progress(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let label = label(&args[0])?;
    match &args[1] {
        Value::List(_) | Value::Dict(_) => {}
        Value::Tensor(t) if t.ty().rank() > 0 => {}
        other => {
            return Err(Diagnostic::error(format!(
                "progress goes along a list or a tensor, or is the count of a repeat, not {}",
                other.describe()
            ))
            .help("(repeat [i (progress label n)] ...) or (progress label (range n))")
            .into());
        }
    }
    Ok(interp.marked(&label, &args[1]))
}

/// The label of a bar.
pub(crate) fn label(value: &Value) -> Eval<String> {
    text(value, "the label of a progress")
}

fn text(value: &Value, wanted: &str) -> Eval<String> {
    match value {
        Value::Str(text) => Ok(text.to_string()),
        Value::Keyword(name) | Value::Symbol(name) => Ok(name.to_string()),
        other => fail(format!("{wanted} is a string, not {}", other.describe())),
    }
}
