//! Loops as one operation against unrolled loops: the time of compilation, and of a call. Source of `MAX_UNROLLED` in
//! `lang/src/eval/loops.rs`.
//!
//! The same body runs in `repeat` with a traced count, which is never unrolled, and in `reduce` over a list, which
//! always is.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf_engine::Engine;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use std::sync::Arc;

const COUNTS: [usize; 5] = [4, 8, 16, 32, 64];

/// Calls per run of a program, and runs, of which the median counts.
const CALLS: u32 = 100;
const RUNS: usize = 9;

/// A name, the initial state, a constant, and a step from the state `x`, which must keep its type.
const BODIES: [(&str, &str, &str, &str); 4] = [
    ("scalar step", "(sum [0.5])", "(sum [0.1])", "(+ (* x 0.9) w)"),
    ("dense 32x64", "(ones [32 64])", "(* 0.01 (ones [64 64]))", "(tanh (@ x w))"),
    (
        "attention and MLP 64x64",
        "(ones [64 64])",
        "(* 0.01 (ones [64 64]))",
        "(let [q (@ x w) h (+ x (@ (softmax (* 0.125 (@ q (transpose q)))) q))] (+ h (@ (relu (@ h w)) w)))",
    ),
    (
        "training step 64x64",
        "(* 0.01 (ones [64 64]))",
        "(ones [32 64])",
        "(- x (* 0.1 ((grad (fn [p] (mean (square (tanh (@ w p)))))) x)))",
    ),
];

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let compiling = Rc::new(Cell::new(Duration::ZERO));
    let backend = Timed { engine: engine(), compiling: Rc::clone(&compiling) };
    let options = Options { jit: Jit::Always, ..Options::default() };
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), Some(Box::new(backend)), options);
    let module = Interp::program("unrolling");
    let mut run = |text: &str| {
        interp.begin();
        if let Err(errors) = interp.run_text(&module, "unrolling", text) {
            for error in &errors {
                eprintln!("{}", sheaf_syntax::render::render(&interp.sources, error, false));
            }
            std::process::exit(1);
        }
    };
    // Starts the compiler.
    run("(defn first-of-all [x] (* 2 x)) (first-of-all [1])");
    println!("compilation in ms, a call in us; one operation, then unrolled");
    for (name, state, constant, body) in BODIES {
        println!("{name}");
        run(&format!("(def x {state}) (def w {constant})"));
        for n in COUNTS {
            let rolled = format!("(defn f [x w n] (repeat [i n] [x x] {body}))");
            let items = "0 ".repeat(n);
            let unrolled = format!("(defn f [x w n] (reduce (fn [x i] {body}) x '[{items}]))");
            let [a, b] = [rolled, unrolled].map(|definition| {
                compiling.set(Duration::ZERO);
                run(&format!("{definition} (f x w {n})"));
                let mut times: Vec<Duration> = (0..RUNS)
                    .map(|_| {
                        let start = Instant::now();
                        run(&format!("(repeat [i {CALLS}] [_ 0] (do (f x w {n}) 0))"));
                        start.elapsed() / CALLS
                    })
                    .collect();
                times.sort_unstable();
                (compiling.get().as_secs_f64() * 1e3, times[RUNS / 2].as_secs_f64() * 1e6)
            });
            println!("  {n:3}  {:7.0} {:7.0}   {:8.1} {:8.1}", a.0, b.0, a.1, b.1);
        }
    }
}

/// A cold compiler without cached programs.
fn engine() -> Engine {
    sheaf_benches::engine(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("unrolling"), true)
}

/// The engine, and its total compilation time.
struct Timed {
    engine: Engine,
    compiling: Rc<Cell<Duration>>,
}

impl Backend for Timed {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let start = Instant::now();
        let program = self.engine.prepare(unit);
        self.compiling.set(self.compiling.get() + start.elapsed());
        program
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.engine.upload(tensor)
    }
}
