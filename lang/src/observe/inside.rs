//! The calls inside of a compiled function or of a derivative, from reports on its watched values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Kind;
use super::describe::shown_type;
use crate::eval::ROOT;
use sheaf_graph::tensor::TensorType;
use sheaf_graph::watch::{Call, Described, Reported, Role, Stage, Statistics};

/// Calls with their values, in order.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// A row for the begin and one for the end of each call.
    pub rows: Vec<Row>,
}

/// The begin or the end of a call.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of calls around it, inside of the function.
    pub depth: usize,
    /// The name of the called function; that of a gradient begins with `∂`.
    pub name: String,
    /// Kind of the function.
    pub kind: Kind,
    /// True for the begin, with the arguments; the end has the result.
    pub begins: bool,
    /// The values.
    pub values: Vec<Shown>,
    /// Number of times that it ran: in a loop, of iterations.
    pub times: u64,
    /// True if a value breaks a guard.
    pub broken: bool,
}

/// A value of a row.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A tensor, with its statistics if they are known.
    Tensor(TensorType, Option<Statistics>),
    /// Another value.
    Text(String),
}

impl Shown {
    fn text(&self, size: bool) -> String {
        match self {
            Shown::Tensor(ty, statistics) => shown_type(ty, statistics.as_ref(), size),
            Shown::Text(text) => text.clone(),
        }
    }
}

impl Row {
    /// The row in the layout of a trace, with sizes of tensors if wanted.
    pub fn text(&self, size: bool) -> String {
        let values: Vec<String> = self.values.iter().map(|value| value.text(size)).collect();
        let times = if self.times > 1 { format!(" ×{}", self.times) } else { String::new() };
        if self.begins {
            format!("├─ [{}]{times} {}", self.name, values.join(", ")).trim_end().to_owned()
        } else {
            format!("└─ ← {}", values.join(", "))
        }
    }
}

/// Values and cotangents of one call.
#[derive(Default)]
struct Values<'a> {
    arguments: BTreeMap<usize, &'a Reported>,
    results: Vec<&'a Reported>,
}

impl<'a> Values<'a> {
    fn add(&mut self, report: &'a Reported) {
        match &report.site.role {
            Role::Argument(i) => _ = self.arguments.entry(*i).or_insert(report),
            Role::Result(_) => self.results.push(report),
            Role::Binding(_) => {}
        }
    }

    fn times(&self) -> u64 {
        let all = self.arguments.values().chain(&self.results).map(|report| report.times);
        all.max().unwrap_or(1)
    }
}

/// The rows of the reported calls: those of the program as they are nested, then those of the gradient.
pub fn inside(reports: &[Reported], broken: Option<&Reported>) -> Inside {
    let mut calls: BTreeMap<u32, Arc<Call>> = BTreeMap::new();
    let mut forward: HashMap<u32, Values> = HashMap::new();
    for report in reports {
        let number = report.site.call.number;
        if number == ROOT {
            continue;
        }
        let mut call = Some(&report.site.call).filter(|_| report.stage == Stage::Forward);
        while let Some(known) = call
            && !calls.contains_key(&known.number)
        {
            calls.insert(known.number, Arc::clone(known));
            call = known.parent.as_ref();
        }
        if report.stage == Stage::Forward {
            forward.entry(number).or_default().add(report);
        }
    }
    let is_broken = |report: &Reported| {
        broken.is_some_and(|b| Arc::ptr_eq(&b.site, &report.site) && b.stage == report.stage)
    };
    let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    for call in calls.values() {
        children.entry(call.parent.as_ref().map(|parent| parent.number)).or_default().push(call.number);
    }
    let mut builder = Descent {
        calls: &calls,
        children: &children,
        forward: &forward,
        is_broken: &is_broken,
        rows: Vec::new(),
    };
    builder.calls_in(None, 0);
    let mut rows = builder.rows;
    rows.extend(gradient(reports, &is_broken));
    Inside { rows }
}

struct Descent<'a> {
    calls: &'a BTreeMap<u32, Arc<Call>>,
    children: &'a BTreeMap<Option<u32>, Vec<u32>>,
    forward: &'a HashMap<u32, Values<'a>>,
    is_broken: &'a dyn Fn(&Reported) -> bool,
    rows: Vec<Row>,
}

impl Descent<'_> {
    /// The calls in `parent`, which is at `depth`.
    fn calls_in(&mut self, parent: Option<u32>, depth: usize) {
        for number in self.children.get(&parent).map_or(&[][..], Vec::as_slice) {
            let empty = Values::default();
            let (call, values) = (&self.calls[number], self.forward.get(number).unwrap_or(&empty));
            if !self.forward.contains_key(number) && !self.children.contains_key(&Some(*number)) {
                continue;
            }
            let arguments = call.arguments.iter().enumerate();
            let arguments =
                arguments.map(|(i, described)| shown(described, values.arguments.get(&i).copied()));
            let times = values.times();
            self.rows.push(Row {
                depth,
                name: call.name.clone(),
                kind: kind(call),
                begins: true,
                values: arguments.collect(),
                times,
                broken: values.arguments.values().any(|report| (self.is_broken)(report)),
            });
            self.calls_in(Some(*number), depth + 1);
            let whole = values.results.iter().find(|r| r.site.role == Role::Result(String::new())).copied();
            let result = call.result.get().map(|described| shown(described, whole));
            // Without an end, tracing left the call by another way.
            let Some(result) = result else { continue };
            self.rows.push(Row {
                depth,
                name: call.name.clone(),
                kind: kind(call),
                begins: false,
                values: vec![result],
                times,
                broken: values.results.iter().any(|report| (self.is_broken)(report)),
            });
        }
    }
}

/// The rows of a gradient, each call from the cotangent of its result to those of its arguments, in the order of their
/// values. A function whose calls come between is around them.
fn gradient(reports: &[Reported], is_broken: &dyn Fn(&Reported) -> bool) -> Vec<Row> {
    struct Found<'a> {
        call: &'a Call,
        results: Vec<&'a Reported>,
        arguments: Vec<&'a Reported>,
        begin: usize,
        end: usize,
    }
    let mut found: Vec<Found> = Vec::new();
    for (i, report) in reports.iter().enumerate() {
        let call = &*report.site.call;
        if report.stage != Stage::Backward || call.number == ROOT {
            continue;
        }
        let position = found.iter().position(|known| known.call.number == call.number).unwrap_or_else(|| {
            found.push(Found { call, results: Vec::new(), arguments: Vec::new(), begin: i, end: i });
            found.len() - 1
        });
        match report.site.role {
            Role::Result(_) => found[position].results.push(report),
            Role::Argument(_) => {
                found[position].arguments.push(report);
                found[position].end = i;
            }
            Role::Binding(_) => {}
        }
    }
    // A value of constants alone has no gradient for its arguments.
    found.retain(|call| !call.arguments.is_empty());
    let mut events: Vec<(usize, bool, usize)> = Vec::new();
    for (n, call) in found.iter().enumerate() {
        events.push((call.begin, false, n));
        events.push((call.end, true, n));
    }
    events.sort_unstable();
    let mut depths = vec![0; found.len()];
    let mut open = 0;
    let mut rows = Vec::new();
    for (_, ends, n) in events {
        let call = &mut found[n];
        call.arguments.sort_by_key(|report| match report.site.role {
            Role::Argument(i) => i,
            _ => 0,
        });
        if ends {
            open -= 1;
        } else {
            depths[n] = open;
            open += 1;
        }
        let reports = if ends { &call.arguments } else { &call.results };
        rows.push(Row {
            depth: depths[n],
            name: format!("∂{}", call.call.name),
            kind: kind(call.call),
            begins: !ends,
            values: reports.iter().map(|r| Shown::Tensor(r.ty.clone(), Some(r.statistics))).collect(),
            times: call.arguments.iter().chain(&call.results).map(|r| r.times).max().unwrap_or(1),
            broken: reports.iter().any(|report| is_broken(report)),
        });
    }
    rows
}

fn kind(call: &Call) -> Kind {
    if call.own { Kind::Own } else { Kind::Language }
}

fn shown(described: &Described, report: Option<&Reported>) -> Shown {
    match (described, report) {
        (_, Some(report)) => Shown::Tensor(report.ty.clone(), Some(report.statistics)),
        (Described::Tensor(ty), None) => Shown::Tensor(ty.clone(), None),
        (Described::Text(text), None) => Shown::Text(text.clone()),
    }
}
