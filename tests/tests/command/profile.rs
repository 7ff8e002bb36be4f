//! `--blame`, `--mem-profile` and `--trace-out`.

use std::fs;

use serde_json::Value;
use sheaf_tests::Sandbox;

use super::trace::XOR;

/// The columns of a row of a report.
fn row<'a>(report: &'a str, name: &str) -> Vec<&'a str> {
    let line = report.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no row {name} in\n{report}")).split_whitespace().collect()
}

#[test]
fn times_by_function_and_as_a_tree() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write(
        "xor.shf",
        XOR.replace(
            "(print (forward X (train-step p X Y 0.7)))",
            "(print (forward X (repeat [i 30] [p p] (train-step p X Y 0.7))))",
        ),
    );
    let plain = sandbox.run(&["xor.shf", "--jit", "always"]);
    let output = sandbox.run(&["xor.shf", "--jit", "always", "--blame", "--offline"]);
    assert_eq!((output.code, &output.stdout), (Some(0), &plain.stdout), "{output}");
    let report = &output.stderr;
    assert!(report.starts_with("Profiler: "), "{report}");
    assert!(report.contains("Besides calls: caches ") && report.contains("to the device "), "{report}");
    let step = row(report, "train-step");
    assert_eq!((step[1], step[5]), ("30", "compiled"), "{report}");
    assert!(report.contains("\nCall tree:\n") && report.contains("├── train-step ("), "{report}");
    assert!(report.contains(", 30 calls, compiled)\n"), "{report}");
    let interpreted = sandbox.run(&["xor.shf", "--no-jit", "--blame"]);
    assert_eq!(row(&interpreted.stderr, "train-step").len(), 5, "{interpreted}");
    assert!(interpreted.stderr.contains("│ ├── (value-and-grad loss) ("), "{interpreted}");
}

#[test]
fn memory_by_function() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    // A result of 4 MB, which is held by the next call.
    sandbox.write(
        "large.shf",
        "(defn grow [x] (* (broadcast-to x [1000 1000]) 2.0))\n(defn total [x] (sum (sort (* x x))))\n\
         (let [g (grow [[3.0]])] (print (total g)))\n",
    );
    let output = sandbox.run(&["large.shf", "--jit", "always", "--mem-profile"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "3.6e+07\n"), "{output}");
    let report = output.stderr.split_once("Memory: ").expect("a report").1;
    let megabytes = |text: &str| {
        text.strip_suffix("MB").and_then(|n| n.parse::<f64>().ok()).unwrap_or_else(|| panic!("{report}"))
    };
    let (grow, total) = (row(report, "grow"), row(report, "total"));
    assert_eq!((grow[1], grow[2], total[2]), ("cpu", "1", "1"), "{report}");
    assert!((3.8..4.2).contains(&megabytes(grow[3])) && megabytes(total[3]) >= 7.6, "{report}");
    assert!(report.contains("3.8MB  results of grow (1 tensor)"), "{report}");
    assert!(report.contains("results and intermediate values of total"), "{report}");
}

#[test]
fn events_for_perfetto() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("xor.shf", XOR);
    let output = sandbox.run(&["xor.shf", "--jit", "always", "--trace-out", "t.json"]);
    assert_eq!(output.code, Some(0), "{output}");
    let events: Vec<Value> =
        serde_json::from_slice(&fs::read(sandbox.path("t.json")).expect("a file")).expect("JSON");
    let is = |name: &str, category: &str| {
        events.iter().any(|e| {
            e["name"] == name
                && e["cat"] == category
                && e["ph"] == "X"
                && e["dur"].as_f64().is_some_and(|d| d >= 0.0)
        })
    };
    for (name, category) in [
        ("train-step", "call,compiled"),
        ("compile train-step", "compile"),
        ("cache train-step", "cache"),
        ("load train-step", "cache"),
        ("to the device", "transfer"),
        ("from the device", "transfer"),
    ] {
        assert!(is(name, category), "{name} {category}: {events:#?}");
    }
    // The compilation lies within the call.
    let time = |name: &str| {
        let event = events.iter().find(|e| e["name"] == name).expect("an event");
        let (at, length) = (event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a time"));
        (at, at + length)
    };
    let (call, compile) = (time("train-step"), time("compile train-step"));
    assert!(call.0 <= compile.0 && compile.1 <= call.1, "{call:?} {compile:?}");
    let refused = sandbox.run(&["xor.shf", "--no-jit", "--trace-out", "nowhere/t.json"]);
    insta::assert_snapshot!("nowhere", refused);
}

#[test]
fn metrics_as_lines_and_for_tensorboard() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "log.shf",
        "(repeat [i 3] [x 0] (do (log-metric \"loss\" (/ 1.0 (+ 1 i))) (log-metric \"rate\" (/ 0 0.0) :step (* 10 i)) x))\n",
    );
    let arguments = ["log.shf", "--no-jit", "--log", "metrics.jsonl", "--log", "board"];
    for runs in 1..=2 {
        assert_eq!(sandbox.run(&arguments).silent(), "");
        let text = fs::read_to_string(sandbox.path("metrics.jsonl")).expect("a file");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 6 * runs, "{text}");
        assert_eq!(
            (&lines[2]["name"], &lines[2]["step"], &lines[2]["value"]),
            (&"loss".into(), &1.into(), &0.5.into())
        );
        assert_eq!((&lines[5]["name"], &lines[5]["step"]), (&"rate".into(), &20.into()), "{text}");
        let events = Sandbox::files(&sandbox.path("board"));
        assert_eq!(events.len(), runs, "{events:?}");
        let bytes = fs::read(sandbox.path("board").join(&events[0])).expect("events");
        let count = |tag: &[u8]| bytes.windows(tag.len()).filter(|part| *part == tag).count();
        assert_eq!((count(b"brain.Event:2"), count(b"loss"), count(b"rate")), (1, 3, 3));
    }
    // Without the option nothing is written.
    assert_eq!(sandbox.run(&["log.shf", "--no-jit"]).silent(), "");
    insta::assert_snapshot!(
        "log_nowhere",
        sandbox.run(&["log.shf", "--no-jit", "--log", "log.shf/metrics.jsonl"])
    );
}
