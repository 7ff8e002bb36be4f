//! `--blame`: the wall time by function, and the call tree.

use std::collections::{BTreeMap, HashMap};

use sheaf_lang::observe::{Activity, Left, bytes, duration};

/// Minimum share of a row that is shown by itself: of the wall time without the backend's work besides calls.
const LEAST_SHARE: f64 = 0.002;

/// The same for a node of the tree that is shown by itself.
const LEAST_IN_TREE: f64 = 0.02;

/// Maximum rows of the table.
const MAX_ROWS: usize = 20;

/// Width of the table.
const WIDTH: usize = 72;

/// Times of calls, as a tree by the names of functions.
pub struct Profiler {
    nodes: Vec<Node>,
    open: Vec<Frame>,
    began: u64,
    activities: BTreeMap<Activity, Work>,
}

#[derive(Default)]
struct Node {
    name: String,
    children: Vec<usize>,
    calls: u64,
    compiled: u64,
    /// Nanoseconds, without the work of the backend besides calls.
    total: u64,
    own: u64,
}

struct Frame {
    node: usize,
    /// Time of the calls within it, and of the backend's work in all of them.
    within: u64,
    apart: u64,
}

#[derive(Default)]
struct Work {
    count: u64,
    time: u64,
    bytes: u64,
}

/// Calls and times of one function.
#[derive(Clone, Default)]
struct Row {
    calls: u64,
    compiled: u64,
    total: u64,
    own: u64,
}

impl Profiler {
    /// A profiler that begins now.
    pub fn new(now: u64) -> Profiler {
        Profiler { nodes: vec![Node::default()], open: Vec::new(), began: now, activities: BTreeMap::new() }
    }

    pub(crate) fn enter(&mut self, name: &str) {
        let parent = self.open.last().map_or(0, |frame| frame.node);
        let known =
            self.nodes[parent].children.iter().find(|child| self.nodes[**child].name == name).copied();
        let node = known.unwrap_or_else(|| {
            self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
            let node = self.nodes.len() - 1;
            self.nodes[parent].children.push(node);
            node
        });
        self.open.push(Frame { node, within: 0, apart: 0 });
    }

    pub(crate) fn leave(&mut self, call: &Left<'_>) {
        let Some(frame) = self.open.pop() else { return };
        let time = (call.ended - call.began).saturating_sub(frame.apart);
        let node = &mut self.nodes[frame.node];
        node.calls += 1;
        node.compiled += u64::from(call.compiled);
        node.total += time;
        node.own += time.saturating_sub(frame.within);
        if let Some(outer) = self.open.last_mut() {
            outer.within += time;
            outer.apart += frame.apart;
        }
    }

    pub(crate) fn done(&mut self, activity: Activity, time: u64, bytes: Option<u64>) {
        let work = self.activities.entry(activity).or_default();
        work.count += 1;
        work.time += time;
        work.bytes += bytes.unwrap_or(0);
        if let Some(frame) = self.open.last_mut() {
            frame.apart += time;
        }
    }

    /// The report at the end of a run.
    pub fn report(&self, now: u64) -> String {
        let wall = now.saturating_sub(self.began).max(1);
        let mut text = format!("Profiler: {} wall\n", duration(wall));
        text += &self.besides();
        let apart: u64 = self.activities.values().map(|work| work.time).sum();
        let in_calls = wall.saturating_sub(apart).max(1);
        text += &self.table(in_calls);
        if !self.nodes[0].children.is_empty() {
            text += "Call tree:\n";
            self.tree(&mut text, 0, "", in_calls);
        }
        text
    }

    /// The work of the backend besides calls.
    fn besides(&self) -> String {
        let mut parts = Vec::new();
        for (activity, work) in &self.activities {
            let (time, moved) = (duration(work.time), bytes(work.bytes));
            let count =
                |noun: &str| format!("{} {noun}{}", work.count, if work.count == 1 { "" } else { "s" });
            parts.push(match activity {
                Activity::Compile => format!("compiling {time} ({})", count("function")),
                Activity::Cache => format!("caches {time}"),
                Activity::Load => format!("loading {time} ({})", count("program")),
                Activity::Upload => format!("to the device {time} ({moved})"),
                Activity::Download => format!("from the device {time} ({moved})"),
            });
        }
        if parts.is_empty() { String::new() } else { format!("Besides calls: {}\n", parts.join(", ")) }
    }

    fn table(&self, in_calls: u64) -> String {
        let mut rows: HashMap<&str, Row> = HashMap::new();
        self.collect(0, &mut Vec::new(), &mut rows);
        let mut rows: Vec<(&str, Row)> = rows.into_iter().collect();
        rows.sort_by(|(a, x), (b, y)| y.own.cmp(&x.own).then(a.cmp(b)));
        let share = |row: &Row| row.own as f64 / in_calls as f64;
        let mut shown = rows.iter().take_while(|(_, row)| share(row) >= LEAST_SHARE).count().min(MAX_ROWS);
        // One row takes no more room than the line that leaves it out.
        shown = if shown + 1 >= rows.len() { rows.len() } else { shown };
        let mut text =
            format!("{:<28}{:>8}{:>12}{:>12}{:>12}\n", "Function", "Calls", "Total", "Self", "Avg/call");
        text += &format!("{}\n", "-".repeat(WIDTH));
        for (name, row) in &rows[..shown] {
            let ran = match row.compiled {
                0 => String::new(),
                n if n == row.calls => "  compiled".into(),
                n => format!("  {n} compiled"),
            };
            let times = [row.total, row.own, row.total / row.calls.max(1)].map(duration);
            text += &format!(
                "{:<28}{:>8}{:>12}{:>12}{:>12}{ran}\n",
                cut(name),
                row.calls,
                times[0],
                times[1],
                times[2]
            );
        }
        let others = &rows[shown..];
        if !others.is_empty() {
            let sum = |of: fn(&Row) -> u64| others.iter().map(|(_, row)| of(row)).sum::<u64>();
            let name = format!("... {} others", others.len());
            text += &format!(
                "{name:<28}{:>8}{:>12}{:>12}\n",
                sum(|row| row.calls),
                "",
                duration(sum(|row| row.own))
            );
        }
        text
    }

    /// Adds the nodes below `node` to the rows of their functions; the time of a recursive call is in that of the first.
    fn collect<'a>(&'a self, node: usize, path: &mut Vec<&'a str>, rows: &mut HashMap<&'a str, Row>) {
        for child in &self.nodes[node].children {
            let found = &self.nodes[*child];
            let row = rows.entry(&found.name).or_default();
            row.calls += found.calls;
            row.compiled += found.compiled;
            row.own += found.own;
            if !path.contains(&found.name.as_str()) {
                row.total += found.total;
            }
            path.push(&found.name);
            self.collect(*child, path, rows);
            path.pop();
        }
    }

    fn tree(&self, text: &mut String, node: usize, bars: &str, in_calls: u64) {
        let mut children: Vec<&Node> = Vec::new();
        let mut places = self.nodes[node].children.clone();
        places.sort_by_key(|child| std::cmp::Reverse(self.nodes[*child].total));
        let share = |child: &usize| self.nodes[*child].total as f64 / in_calls as f64;
        let mut shown = places.iter().take_while(|child| share(child) >= LEAST_IN_TREE).count();
        shown = if shown + 1 == places.len() { places.len() } else { shown };
        children.extend(places[shown..].iter().map(|child| &self.nodes[*child]));
        let count = |n: u64| format!("{n} call{}", if n == 1 { "" } else { "s" });
        for (i, child) in places[..shown].iter().enumerate() {
            let last = i + 1 == places.len();
            let found = &self.nodes[*child];
            let compiled = if found.compiled > 0 { ", compiled" } else { "" };
            let branch = if last { "└──" } else { "├──" };
            text.push_str(&format!(
                "{bars}{branch} {} ({}, {}{compiled})\n",
                found.name,
                duration(found.total),
                count(found.calls)
            ));
            self.tree(text, *child, &format!("{bars}{}", if last { "  " } else { "│ " }), in_calls);
        }
        if !children.is_empty() {
            let sum = |of: fn(&Node) -> u64| children.iter().map(|child| of(child)).sum::<u64>();
            text.push_str(&format!(
                "{bars}└── ... {} others ({}, {})\n",
                children.len(),
                duration(sum(|child| child.total)),
                count(sum(|child| child.calls))
            ));
        }
    }
}

/// A name that fits its column.
fn cut(name: &str) -> String {
    const ROOM: usize = 27;
    if name.chars().count() <= ROOM {
        return name.to_owned();
    }
    name.chars().take(ROOM - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_lang::observe::Kind;

    /// Calls with given begins and ends, in milliseconds.
    struct Run(Profiler);

    impl Run {
        fn call(
            &mut self,
            name: &str,
            began: u64,
            ended: u64,
            compiled: bool,
            inside: impl FnOnce(&mut Run),
        ) {
            self.0.enter(name);
            inside(self);
            self.0.leave(&Left {
                name,
                kind: Kind::Own,
                depth: 0,
                result: None,
                compiled,
                began: began * 1_000_000,
                ended: ended * 1_000_000,
            });
        }
    }

    #[test]
    fn the_report() {
        let mut run = Run(Profiler::new(0));
        run.call("generate", 0, 3580, false, |run| {
            run.call("reduce", 1, 3579, false, |run| {
                for i in 0..100 {
                    let at = 2 + i * 30;
                    run.call("<lambda>", at, at + 30, false, |run| {
                        run.call("gpt-forward", at, at + 17, i > 0, |run| {
                            if i == 0 {
                                run.0.done(Activity::Compile, 10_000_000, None);
                                run.0.done(Activity::Load, 1_000_000, Some(3000));
                            }
                        });
                        run.call("reshape", at + 17, at + 26, false, |_| {});
                        run.call("softmax", at + 26, at + 29, false, |_| {});
                    });
                }
            });
            run.call("get", 3579, 3579, false, |_| {});
            run.call("first", 3579, 3580, false, |_| {});
        });
        run.call("io", 3580, 3625, false, |_| {});
        insta::assert_snapshot!(run.0.report(3_630_000_000));
    }

    #[test]
    fn calls_are_shown_beside_long_compilations() {
        let mut run = Run(Profiler::new(0));
        run.call("train", 0, 1000, false, |run| {
            run.call("step", 0, 990, true, |run| run.0.done(Activity::Compile, 985_000_000, None));
        });
        let report = run.0.report(1_000_000_000);
        assert!(
            report.contains("├── step (5.00ms, 1 call, compiled)") || report.contains("└── step (5.00ms"),
            "{report}"
        );
    }

    #[test]
    fn recursion_counts_its_time_once() {
        let mut run = Run(Profiler::new(0));
        run.call("f", 0, 100, false, |run| {
            run.call("f", 10, 90, false, |run| run.call("f", 20, 80, false, |_| {}));
        });
        insta::assert_snapshot!(run.0.report(100_000_000));
        insta::assert_snapshot!(Profiler::new(0).report(5_000));
    }
}
