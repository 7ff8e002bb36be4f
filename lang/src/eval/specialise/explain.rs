//! Reports as text.

use std::fmt::Write as _;

use crate::host::Placement;

use super::report::{Argument, Interpreted, LeafKind, Report, Specialisation, Status};

/// Maximum leaves of arguments that are listed; more are summarised.
const SHOWN_LEAVES: usize = 8;

/// Maximum specialisations of one function that are listed; more are counted.
const SHOWN_SPECIALISATIONS: usize = 8;

/// Maximum differences that are listed; more are counted.
const SHOWN_DIFFERENCES: usize = 4;

/// A report on the functions of a program: the compiled ones, then the interpreted ones, then those not worth
/// compiling.
pub fn explain(reports: &[Report]) -> String {
    let is_small = |r: &&Report| {
        let waits = |s: &Specialisation| s.status == Status::TooLittleWork;
        r.interpreted.is_none() && r.failed_calls == 0 && r.specialisations.iter().all(waits)
    };
    let is_compiled = |r: &&Report| r.specialisations.iter().any(|s| matches!(s.status, Status::Compiled(_)));
    let mut text = String::new();
    let compiled = reports.iter().filter(is_compiled);
    for report in compiled.chain(reports.iter().filter(|r| !is_compiled(r) && !is_small(r))) {
        function(&mut text, report);
    }
    let small: Vec<String> = reports.iter().filter(is_small).map(Report::name).collect();
    if !small.is_empty() {
        let _ = writeln!(text, "too little work to be worth compiling: {}", small.join(", "));
    }
    if text.is_empty() {
        text += "no function was called with tensors from interpreted code\n";
    }
    text
}

fn function(text: &mut String, report: &Report) {
    let _ = write!(text, "{}", report.name());
    if let Some(place) = report.place.as_ref().filter(|_| !report.library) {
        let _ = write!(text, ", {place}");
    }
    let all = &report.specialisations;
    match (all.as_slice(), &report.interpreted) {
        ([], Some(why)) => {
            let _ = writeln!(text, ": interpreted, {}", reason(why));
            return;
        }
        (_, Some(why)) => {
            let calls = count(report.other_calls, "call");
            let _ = writeln!(text, ": interpreted for new arguments ({calls} so far), {}", reason(why));
        }
        (_, None) => text.push_str(":\n"),
    }
    fixed(text, all);
    for (i, one) in all.iter().enumerate().take(SHOWN_SPECIALISATIONS) {
        specialisation(text, i, one, all.len() > 1);
    }
    if let Some(more @ 1..) = all.len().checked_sub(SHOWN_SPECIALISATIONS) {
        let _ = writeln!(text, "  {more} more; --json lists them all");
    }
    if report.failed_calls > 0 {
        let calls = count(report.failed_calls, "call");
        let other = if all.is_empty() { "" } else { " for other arguments" };
        let _ = writeln!(text, "  {calls}{other} ended in an error");
    }
}

fn specialisation(text: &mut String, i: usize, one: &Specialisation, numbered: bool) {
    let lead = if numbered { format!("  {}. ", i + 1) } else { "  ".into() };
    let rest = " ".repeat(lead.len());
    let calls = |n| count(n, "call");
    let status = match &one.status {
        Status::Compiled(_) if one.interpreted_calls > 0 => {
            format!("compiled, {}, after {} interpreted", calls(one.compiled_calls), one.interpreted_calls)
        }
        Status::Compiled(_) => format!("compiled, {}", calls(one.compiled_calls)),
        Status::TooLittleWork => {
            format!("interpreted, {}: too little work to be worth compiling", calls(one.interpreted_calls))
        }
        Status::Interpreted(why) if one.interpreted_calls == 0 => format!("not run: {}", reason(why)),
        Status::Interpreted(why) => format!("interpreted, {}: {}", calls(one.interpreted_calls), reason(why)),
    };
    let _ = writeln!(text, "{lead}{status}");
    if let Status::Compiled(Placement { model, why, note, flags, donated, donating_calls }) = &one.status {
        if !why.is_empty() {
            let _ = writeln!(text, "{rest}runs {model}: {why}");
        }
        if *donated > 0 {
            let arguments = count(*donated as u64, "argument");
            let _ =
                writeln!(text, "{rest}results take the place of {arguments} in {}", calls(*donating_calls));
        }
        for line in [flags, note].into_iter().flatten() {
            let _ = writeln!(text, "{rest}{line}");
        }
    }
    if let Some((with, differences)) = &one.new {
        let shown = differences.iter().take(SHOWN_DIFFERENCES).map(ToString::to_string);
        let mut shown: Vec<String> = shown.collect();
        match differences.len().checked_sub(SHOWN_DIFFERENCES) {
            // Their leaves are equal.
            _ if differences.is_empty() => shown.push("the entries of a dictionary in another order".into()),
            Some(more) if more > 0 => shown.push(format!("{more} more")),
            _ => {}
        }
        let with = if with + 1 == i { String::new() } else { format!(" (against {})", with + 1) };
        let _ = writeln!(text, "{rest}new{with}: {}", shown.join("; "));
    }
    let _ = writeln!(text, "{rest}for {}", arguments(&one.arguments));
}

/// The static numbers.
fn fixed(text: &mut String, all: &[Specialisation]) {
    let mut said: Vec<&str> = Vec::new();
    for argument in all.iter().flat_map(|one| &one.arguments) {
        if let Some((wanted, place)) = &argument.asked
            && !said.contains(&argument.path.as_str())
        {
            said.push(&argument.path);
            let place = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
            let _ = writeln!(
                text,
                "  each value of {} is a program of its own: it is {wanted}{place}",
                argument.path
            );
        }
    }
}

/// The arguments by leaf, unless there are too many.
fn arguments(leaves: &[Argument]) -> String {
    let whole = |leaf: &Argument| leaf.path.split('.').next().unwrap_or_default().to_owned();
    let parts = leaves.chunk_by(|a, b| whole(a) == whole(b)).map(|part| match part {
        [_, ..] if part.len() > SHOWN_LEAVES => {
            let elements = |leaf: &Argument| match &leaf.kind {
                LeafKind::Any(ty) => ty.count(),
                _ => 0,
            };
            let total: usize = part.iter().map(elements).sum();
            format!(
                "{} {} leaves with {} in all",
                whole(&part[0]),
                part.len(),
                count(total as u64, "element")
            )
        }
        _ => part.iter().map(|leaf| format!("{} {}", leaf.path, leaf.kind)).collect::<Vec<_>>().join(", "),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn reason(why: &Interpreted) -> String {
    let mut text = why.reason.clone();
    if let Some(expression) = &why.expression {
        let _ = write!(text, ", in {expression}");
    }
    if let Some(place) = &why.place {
        let _ = write!(text, " at {place}");
    }
    text
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
