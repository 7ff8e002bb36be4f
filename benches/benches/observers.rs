//! The cost of observers: the training step of `examples/nanogpt`, compiled, plain and under `--guard no-nan`, `--blame`
//! and `--trace`; and of their absence: calls of functions without any. The runs alternate, so that other load on the
//! machine affects all.
//!
//! Calls alone are measured, and have a peer, if `SHEAF_BENCH_PEER` names the executable of this benchmark from a build
//! whose evaluator never asks for an observer (`docs/benchmarks.md` has the change).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::program::Module;
use sheaf_loader::SystemHost;
use sheaf_observe::{Observers, Tracer, clock};

/// Turns of each measurement.
const ROUNDS: usize = 15;

/// The bound of a guarded step, in plain ones.
const BOUND: f64 = 1.3;

/// Steps of a turn.
const STEPS: &str = "(repeat [i 2] [s state] (let [[s value] (train-step s ids ids 0.001)] (str value) s))";

const SETUP: &str = "
(use ./model.shf)
(def state (init-state (init-params (random-key 0) 73 config)))
(def ids (random-randint (random-key 1) [12 64] 0 73))
";

/// Calls of a function with numbers, of a builtin, and of one with a list.
const CALLS: [(&str, &str, &str); 3] = [
    (
        "a function of numbers",
        "(defn twice [x] (* x 2)) (defn numbers [n] (repeat [i n] [a 0] (+ a (twice i))))",
        "(numbers 100000)",
    ),
    (
        "a function of a list",
        "(defn head [x] (first x)) (defn lists [n] (repeat [i n] [a '[1]] (list (head a) i)))",
        "(lists 100000)",
    ),
    (
        "operations of tensors",
        "(defn square-sum [x] (sum (* x x))) (defn tensors [n] (repeat [i n] [a [1 2]] (* 0.5 (+ a (square-sum a)))))",
        "(tensors 20000)",
    ),
];

fn main() {
    // As a peer: answers each line with the time of a turn of calls.
    if std::env::args().any(|argument| argument == "--peer") {
        return sheaf_benches::run(answer);
    }
    sheaf_benches::run(measure);
}

fn measure() {
    let peer = std::env::var_os("SHEAF_BENCH_PEER");
    if peer.is_none() {
        steps();
    }
    calls(peer.as_deref().map(Path::new));
}

/// An evaluator, and the module of its program.
struct Session(Interp, Rc<Module>);

impl Session {
    fn run(&mut self, text: &str) {
        if let Err(errors) = self.0.run_text(&self.1, "bench", text) {
            let shown: Vec<String> =
                errors.iter().map(|d| sheaf_syntax::render::render(&self.0.sources, d, false)).collect();
            panic!("{}", shown.join("\n"));
        }
    }

    fn time(&mut self, text: &str) -> f64 {
        let start = Instant::now();
        self.run(text);
        start.elapsed().as_secs_f64()
    }
}

fn host() -> Box<SystemHost> {
    Box::new(SystemHost::new(Vec::new(), Arc::new(())))
}

fn steps() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join("nanogpt");
    let program = folder.join("bench.shf").display().to_string();
    let artifacts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("observers");
    let session = |observers: Option<Observers>, guard: &str| {
        let engine = sheaf_benches::engine(&artifacts, false);
        let options = Options { jit: Jit::Always, ..Options::default() };
        let mut interp = Interp::new(host(), Some(Box::new(engine)), options);
        if let Some(observers) = observers {
            let guards = Some(guard).filter(|guard| !guard.is_empty());
            interp.observe(
                Box::new(observers),
                guards.map(|guard| guard.parse().expect("a guard")).into_iter().collect(),
            );
        }
        let module = Interp::program(&program);
        let mut session = Session(interp, module);
        session.run(SETUP);
        session
    };
    let silent = Tracer::new(None, Box::new(|_| {}));
    let mut sessions = [
        ("plain", session(None, "")),
        ("plain, once more", session(None, "")),
        ("--guard no-nan", session(Some(Observers::new(clock())), "no-nan")),
        ("--guard train-step:no-nan", session(Some(Observers::new(clock())), "train-step:no-nan")),
        ("--blame", session(Some(Observers::new(clock()).with_profiler()), "")),
        ("--trace, unwritten", session(Some(Observers::new(clock()).with_tracer(silent)), "")),
    ];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); sessions.len()];
    for round in 0..=ROUNDS {
        for (i, (_, session)) in sessions.iter_mut().enumerate() {
            let time = session.time(STEPS);
            if round > 0 {
                times[i].push(time * 1e3 / 2.0);
            }
        }
    }
    let plain = times[0].clone();
    println!("GPT training step, medians of {ROUNDS} turns of two, and of the ratios within turns");
    for ((name, _), times) in sessions.iter().zip(&mut times) {
        let ratio = middle(times.iter().zip(&plain).map(|(a, b)| a / b).collect());
        let bound = if *name == "--guard no-nan" { format!(" (bound {BOUND})") } else { String::new() };
        println!("  {name:26} {:8.2} ms {ratio:6.2}{bound}", middle(times.clone()));
    }
}

/// Seconds of a turn of each of [`CALLS`].
fn turn(sessions: &mut [Session]) -> Vec<f64> {
    sessions.iter_mut().zip(CALLS).map(|(session, (.., call))| session.time(call)).collect()
}

fn interpreted() -> Vec<Session> {
    let session = |(_, definitions, call): (&str, &str, &str)| {
        let mut session =
            Session(Interp::new(host(), None, Options::default()), Interp::program("bench.shf"));
        session.run(definitions);
        session.run(call);
        session
    };
    CALLS.into_iter().map(session).collect()
}

fn answer() {
    let mut sessions = interpreted();
    for _ in std::io::stdin().lines() {
        let times: Vec<String> = turn(&mut sessions).iter().map(ToString::to_string).collect();
        println!("{}", times.join(" "));
    }
}

/// A process that measures a turn when it is asked.
struct Peer {
    child: std::process::Child,
    answers: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Peer {
    fn start(program: &Path) -> Peer {
        let mut child = Command::new(program)
            .arg("--peer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer");
        let output = child.stdout.take().expect("its output");
        Peer { child, answers: std::io::BufRead::lines(std::io::BufReader::new(output)) }
    }

    fn turn(&mut self) -> Vec<f64> {
        use std::io::Write;
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("a question");
        let line = self.answers.next().expect("an answer").expect("text");
        line.split(' ').map(|time| time.parse().expect("a time")).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn calls(program: Option<&Path>) {
    let own = std::env::current_exe().expect("this program");
    // Both as processes, since memory and code lie otherwise in each.
    let mut peers = vec![("", Peer::start(&own)), ("itself", Peer::start(&own))];
    if let Some(program) = program {
        peers.push(("the build that never asks", Peer::start(program)));
    }
    let rounds = 8 * ROUNDS;
    let mut times: Vec<Vec<Vec<f64>>> = vec![Vec::new(); peers.len()];
    for round in 0..=rounds {
        for (i, (_, peer)) in peers.iter_mut().enumerate() {
            let turn = peer.turn();
            if round > 0 {
                times[i].push(turn);
            }
        }
    }
    println!(
        "Calls without observers, medians of {rounds} turns, of the ratios within turns, and the ratio of the quickest"
    );
    for (k, (what, ..)) in CALLS.iter().enumerate() {
        let of = |i: usize| -> Vec<f64> { times[i].iter().map(|turn| turn[k]).collect() };
        let mut line = format!("  {what:24} {:8.2} ms", middle(of(0)) * 1e3);
        for (i, (peer, _)) in peers.iter().enumerate().skip(1) {
            let ratio = middle(of(0).iter().zip(of(i)).map(|(a, b)| a / b).collect());
            let least = |i: usize| of(i).into_iter().fold(f64::INFINITY, f64::min);
            line += &format!(", {ratio:.3} and {:.3} of {peer}", least(0) / least(i));
        }
        println!("{line}");
    }
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
