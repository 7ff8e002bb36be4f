//! `--explain`: the outcome of each function of a run.

use serde_json::{Value, json};
use sheaf_lang::eval::{Argument, Interpreted, LeafKind, Location, Report, Specialisation, Status, explain};
use sheaf_syntax::visible::visible;

use crate::evaluator::Failed;
use crate::output::print;

/// Shows reports: for people on standard error, for tools as one line on standard output.
pub fn show(reports: &[Report], as_json: bool) -> Result<(), Failed> {
    if as_json {
        let all: Vec<Value> = reports.iter().map(report).collect();
        return print(&format!("{}\n", json!({ "functions": all })));
    }
    eprint!("{}", visible(&explain(reports)));
    Ok(())
}

fn report(report: &Report) -> Value {
    json!({
        "function": report.function,
        "transform": report.transform,
        "place": report.place.as_ref().map(place),
        "library": report.library,
        "interpreted": report.interpreted.as_ref().map(interpreted),
        "other-calls": report.other_calls,
        "failed-calls": report.failed_calls,
        "specialisations": report.specialisations.iter().map(specialisation).collect::<Vec<_>>(),
    })
}

fn specialisation(one: &Specialisation) -> Value {
    let (outcome, why, placement) = match &one.status {
        Status::Compiled(placement) => ("compiled", None, Some(placement)),
        Status::TooLittleWork => ("too-little-work", None, None),
        Status::Interpreted(why) => ("interpreted", Some(interpreted(why)), None),
    };
    json!({
        "outcome": outcome,
        "why": why,
        "model": placement.map(|p| &p.model),
        "why-there": placement.map(|p| &p.why),
        "donated": placement.map(|p| p.donated),
        "donating-calls": placement.map(|p| p.donating_calls),
        "note": placement.and_then(|p| p.note.as_ref()),
        "flags": placement.and_then(|p| p.flags.as_ref()),
        "compiled-calls": one.compiled_calls,
        "interpreted-calls": one.interpreted_calls,
        "arguments": one.arguments.iter().map(argument).collect::<Vec<_>>(),
        "new": one.new.as_ref().map(|(against, differences)| json!({
            "against": against,
            "differences": differences.iter().map(|d| json!({
                "path": d.path,
                "now": d.now.as_ref().map(leaf_kind),
                "before": d.before.as_ref().map(leaf_kind),
            })).collect::<Vec<_>>(),
        })),
    })
}

fn argument(argument: &Argument) -> Value {
    let asked = argument.asked.as_ref();
    json!({
        "path": argument.path,
        "is": leaf_kind(&argument.kind),
        "asked-for-as": asked.map(|(wanted, _)| wanted),
        "asked-at": asked.and_then(|(_, at)| at.as_ref().map(place)),
    })
}

fn leaf_kind(kind: &LeafKind) -> Value {
    match kind {
        LeafKind::Any(ty) => {
            json!({ "dtype": ty.dtype.to_string(), "shape": ty.shape.to_vec(), "weak": ty.weak })
        }
        LeafKind::Number(value) => json!({ "number": value }),
        LeafKind::Constant(value) => json!({ "constant": value }),
    }
}

fn interpreted(why: &Interpreted) -> Value {
    json!({
        "reason": why.reason,
        "fallback": why.is_fallback(),
        "expression": why.expression,
        "place": why.place.as_ref().map(place),
    })
}

fn place(place: &Location) -> Value {
    json!({ "file": place.file, "line": place.line, "column": place.column })
}
