//! Interpreted scalar arithmetic in loops of a million iterations, against the same loops in Python. The runs
//! alternate, so that other load on the machine affects both.
//!
//! `SHEAF_BENCH_PYTHON` names the interpreter to compare with; the default is `python3`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use sheaf_lang::eval::{Interp, Options, STACK_BYTES};
use sheaf_loader::SystemHost;
use std::sync::Arc;

const RUNS: usize = 21;

/// A name, the definitions and the call in Sheaf, the same in Python.
const LOOPS: [(&str, &str, &str, &str); 4] = [
    (
        "for loop",
        "(defn for-loop [n] (repeat [i n] [acc 0] (+ acc (* i 2))))",
        "(for-loop 1000000)",
        "
def run():
    acc = 0
    for i in range(1000000):
        acc = acc + i * 2
",
    ),
    (
        "while loop",
        "(defn while-loop [n] (while (< i n) [[i acc] [0 0]] [(+ i 1) (+ acc (* i 2))]))",
        "(while-loop 1000000)",
        "
def run():
    i, acc = 0, 0
    while i < 1000000:
        i, acc = i + 1, acc + i * 2
",
    ),
    (
        "calls of a function",
        "(defn twice [x] (* x 2)) (defn call-loop [n] (repeat [i n] [acc 0] (+ acc (twice i))))",
        "(call-loop 1000000)",
        "
def twice(x):
    return x * 2

def run():
    acc = 0
    for i in range(1000000):
        acc = acc + twice(i)
",
    ),
    (
        "reduce with a function",
        "(def xs (repeat [i 20] [xs '[1]] (concat xs xs)))",
        "(reduce (fn [acc x] (+ acc (* x 2))) 0 xs)",
        "
from functools import reduce
xs = [1] * 2 ** 20

def run():
    return reduce(lambda acc, x: acc + x * 2, xs, 0)
",
    ),
];

/// Answers each line, the number of a loop, with its seconds.
const SERVER: &str = "
import sys, time
namespaces = []
for program in sys.argv[1:]:
    namespaces.append({})
    exec(program, namespaces[-1])
print(sys.version.split()[0], flush=True)
for line in sys.stdin:
    run = namespaces[int(line)]['run']
    start = time.perf_counter()
    run()
    print(time.perf_counter() - start, flush=True)
";

/// The Python interpreter, which runs loops on request.
struct Python {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
    version: String,
}

impl Python {
    fn start() -> Option<Python> {
        let program = std::env::var("SHEAF_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut process = Command::new(program)
            .args(["-c", SERVER])
            .args(LOOPS.map(|(_, _, _, python)| python))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut answers = BufReader::new(process.stdout.take()?);
        let mut version = String::new();
        answers.read_line(&mut version).ok()?;
        Some(Python { process, answers, version: version.trim().into() })
    }

    /// Seconds of the loop.
    fn time(&mut self, number: usize) -> f64 {
        let input = self.process.stdin.as_mut().expect("a pipe");
        writeln!(input, "{number}").expect("Python listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("Python answers");
        answer.trim().parse().expect("a number of seconds")
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn main() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread");
    thread.join().expect("the benchmark");
}

fn measure() {
    let mut python = Python::start();
    match &python {
        Some(python) => {
            println!("a million iterations, against CPython {}, medians of {RUNS} runs", python.version);
        }
        None => println!("a million iterations, medians of {RUNS} runs; there is no python3 to compare with"),
    }
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), None, Options::default());
    let module = Interp::program("bench.shf");
    let mut run =
        |text: &str| interp.run_text(&module, "bench", text).map(drop).expect("a program that runs");
    for (number, (name, definitions, call, _)) in LOOPS.into_iter().enumerate() {
        run(definitions);
        run(call);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let start = Instant::now();
            run(call);
            ours.push(start.elapsed().as_secs_f64());
            theirs.extend(python.as_mut().map(|python| python.time(number)));
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_unstable_by(f64::total_cmp);
            times[times.len() / 2] * 1e3
        };
        let ours = median(&mut ours);
        if theirs.is_empty() {
            println!("  {name:24} {ours:7.1} ms");
        } else {
            let theirs = median(&mut theirs);
            println!("  {name:24} {ours:7.1} ms  CPython {theirs:7.1} ms  ratio {:.2}", ours / theirs);
        }
    }
}
