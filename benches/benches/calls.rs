//! Overhead of a compiled call from the interpreted loop, over the same program called through the runtime: the training step of
//! XOR, and steps over dictionaries of 20 and 150 leaves.

use sheaf_artifacts::ArtifactFolder;
use sheaf_benches::median_of;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::program::Module;
use sheaf_loader::SystemHost;
use sheaf_runtime::{Buffer, CallFrame, ElementType, Runtime, Target, Vmfb};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Calls of a run.
const CALLS: usize = 200;
/// Rounds, of which the median counts.
const RUNS: usize = 101;

/// Leaf counts of the dictionaries.
const LEAVES: [usize; 2] = [20, 150];

/// Loop of calls, the same for each program. An effect keeps it interpreted.
const LOOP: &str = "
(defn calls [p n]
  (repeat [i n] [p p]
    (let [[p value] (step p)]
      (when (= (mod i 50) 49) (str value))
      p)))
";

/// Training step of the example `xor`.
const XOR: &str = "
(use optim)
(def X [[0 0] [0 1] [1 0] [1 1]])
(def Y [[0] [1] [1] [0]])
(defn forward [x p]
  (as-> x h
    (with-params [p :l1] (relu (+ (@ h W) b)))
    (with-params [p :l2] (sigmoid (+ (@ h W) b)))))
(defn loss [p x y] (mean (** (- (forward x p) y) 2)))
(defn step [p]
  (let [[value grads] ((value-and-grad loss) p X Y)]
    (list (sgd-step p grads 0.7) value)))
(def start
  (let [[k1 k2] (random-split (random-key 42) 2)]
    {:l1 {:W (random-normal k1 '[2 8]) :b (zeros '[8])}
     :l2 {:W (random-normal k2 '[8 1]) :b (zeros '[1])}}))
";

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    println!("{CALLS} calls, medians of {RUNS} rounds, microseconds a call");
    println!("{:12} {:>10} {:>10} {:>10} {:>12}", "", "language", "runtime", "invoke", "overhead");
    report("XOR", XOR);
    for leaves in LEAVES {
        report(&format!("{leaves} leaves"), &over_leaves(leaves));
    }
}

/// Program whose step scales each of a dictionary's leaves, of eight elements.
fn over_leaves(count: usize) -> String {
    let leaves: Vec<String> = (0..count).map(|i| format!(":leaf-{i} (ones '[8])")).collect();
    format!(
        "(defn step [p] (list (tree-map (fn [x] (* 0.999 x)) p) (sum (:leaf-0 p))))
         (def start {{{}}})",
        leaves.join(" ")
    )
}

/// Prints the times of the calls of `program`'s function `step`: by [`LOOP`], by a loop through the runtime which feeds
/// results back, and of the invocation alone. The three take turns, and the overhead is the median of the differences within
/// a round: load on the machine affects all of a round.
fn report(name: &str, program: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls").join(name.replace(' ', "-"));
    let mut language = LanguageCalls::new(&folder, program);
    language.run();
    let mut frame = BareFrame::new(&folder);
    let rounds: Vec<[f64; 3]> = (0..RUNS)
        .map(|_| [timed(|| language.run()), timed(|| frame.feed_back()), timed(|| frame.invoke())])
        .collect();
    let of = |value: fn(&[f64; 3]) -> f64| median_of(rounds.iter().map(value).collect());
    let (language, runtime, invoke) = (of(|r| r[0]), of(|r| r[1]), of(|r| r[2]));
    println!("{name:12} {language:10.2} {runtime:10.2} {invoke:10.2} {:12.2}", of(|r| r[0] - r[2]));
}

/// Microseconds of each of [`CALLS`] calls.
fn timed(calls: impl FnOnce()) -> f64 {
    let start = Instant::now();
    calls();
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

/// A program whose calls of `step` are compiled into a folder.
struct LanguageCalls {
    interp: Interp,
    module: Rc<Module>,
}

impl LanguageCalls {
    fn new(folder: &Path, program: &str) -> Self {
        let engine = sheaf_benches::engine(folder, false);
        let interp = Interp::new(
            Box::new(SystemHost::new(Vec::new(), Arc::new(()))),
            Some(Box::new(engine)),
            Options { jit: Jit::Always, ..Options::default() },
        );
        let mut calls = LanguageCalls { interp, module: Interp::program("bench.shf") };
        calls.evaluate(&[program, LOOP].concat());
        calls
    }

    /// [`CALLS`] calls from the interpreted loop.
    fn run(&mut self) {
        self.evaluate(&format!("(calls start {CALLS})"));
    }

    fn evaluate(&mut self, text: &str) {
        if let Err(errors) = self.interp.run_text(&self.module, "bench", text) {
            let shown: Vec<String> =
                errors.iter().map(|d| sheaf_syntax::render::render(&self.interp.sources, d, false)).collect();
            eprintln!("{}", shown.join("\n"));
            std::process::exit(1);
        }
    }
}

/// The same program in a call frame of the runtime.
struct BareFrame {
    frame: CallFrame,
    arguments: Vec<Buffer>,
}

impl BareFrame {
    fn new(folder: &Path) -> Self {
        let entries = ArtifactFolder::open(folder.to_path_buf()).entries().expect("a manifest");
        let entry = entries.iter().find(|e| e.function == "step").expect("step was compiled");
        let bytes = std::fs::read(folder.join(&entry.file)).expect("the program");
        let vmfb = Vmfb::verify(bytes, &entry.digest.0).expect("the recorded digest");
        let runtime = Runtime::new().expect("a runtime");
        let device = runtime.device(Target::LocalSync).expect("a device");
        let program = device.load(&vmfb).expect("a program");
        let mut frame = program.call_frame().expect("a frame");
        let arguments: Vec<Buffer> = entry
            .inputs
            .iter()
            .map(|leaf| {
                let shape: Vec<usize> = leaf.shape.iter().map(|n| *n as usize).collect();
                let elements = vec![0.5_f32; shape.iter().product()];
                let bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_ne_bytes()).collect();
                device.upload(ElementType::F32, &shape, &bytes).expect("an argument")
            })
            .collect();
        // Lifted constants follow the arguments; their values do not affect the time.
        for i in 0..entry.constants.len() {
            let constant = device.upload(ElementType::F32, &[], &1.0_f32.to_ne_bytes()).expect("a constant");
            frame.set(arguments.len() + i, &constant).expect("a constant");
        }
        BareFrame { frame, arguments }
    }

    fn set_arguments(&mut self) {
        for (i, argument) in self.arguments.iter().enumerate() {
            self.frame.set(i, argument).expect("an argument");
        }
    }

    /// Calls with the results as the next call's arguments.
    fn feed_back(&mut self) {
        self.set_arguments();
        for _ in 0..CALLS {
            self.frame.invoke().expect("a call");
            for i in 0..self.arguments.len() {
                let result = self.frame.result(i).expect("a result");
                self.frame.set(i, &result).expect("an argument");
            }
        }
    }

    /// Calls with the same arguments; results are dropped.
    fn invoke(&mut self) {
        self.set_arguments();
        for _ in 0..CALLS {
            self.frame.invoke().expect("a call");
        }
    }
}
