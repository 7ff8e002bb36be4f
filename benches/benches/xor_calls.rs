//! 500 epochs of XOR as 500 compiled calls from the interpreted loop, against a bare loop of calls of the same program
//! through the runtime: the overhead of the language per call.

use sheaf_artifacts::ArtifactFolder;
use sheaf_benches::median;
use sheaf_lang::eval::{Interp, Options};
use sheaf_loader::SystemHost;
use sheaf_runtime::{Buffer, ElementType, Runtime, Target, Vmfb};
use std::sync::Arc;

const EPOCHS: usize = 500;
const RUNS: usize = 41;

/// The example without output, so that only training is measured.
const PROGRAM: &str = "
(use optim)
(def X [[0 0] [0 1] [1 0] [1 1]])
(def Y [[0] [1] [1] [0]])
(defn forward [x p]
  (as-> x h
    (with-params [p :l1] (relu (+ (@ h W) b)))
    (with-params [p :l2] (sigmoid (+ (@ h W) b)))))
(defn loss [p x y] (mean (** (- (forward x p) y) 2)))
(defn train-step [p x y lr]
  (let [[value grads] ((value-and-grad loss) p x y)]
    (list (sgd-step p grads lr) value)))
(defn train [p epochs lr]
  (repeat [i epochs] [p p]
    (let [[p value] (train-step p X Y lr)]
      (when (= (mod i 50) 49) (str value))
      p)))
(def start
  (let [[k1 k2] (random-split (random-key 42) 2)]
    {:l1 {:W (random-normal k1 '[2 8]) :b (zeros '[8])}
     :l2 {:W (random-normal k2 '[8 1]) :b (zeros '[1])}}))
";

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("xor_calls");
    let engine = sheaf_benches::engine(&folder, false);
    let mut interp = Interp::new(
        Box::new(SystemHost::new(Vec::new(), Arc::new(()))),
        Some(Box::new(engine)),
        Options::default(),
    );
    let module = Interp::program("bench.shf");
    let mut run = |text: &str| {
        if let Err(errors) = interp.run_text(&module, "bench", text) {
            let shown: Vec<String> =
                errors.iter().map(|d| sheaf_syntax::render::render(&interp.sources, d, false)).collect();
            eprintln!("{}", shown.join("\n"));
            std::process::exit(1);
        }
    };
    run(PROGRAM);
    let from_language = median(RUNS, || run("(train start 500 0.7)"));
    let bare = median(RUNS, bare_loop(&folder));
    let (language, bare) = (from_language.as_secs_f64() * 1e3, bare.as_secs_f64() * 1e3);
    println!("XOR, {EPOCHS} calls of the training step, median of {RUNS} runs");
    println!(
        "  from the interpreted loop  {language:6.2} ms  {:5.2} us a call",
        language * 1e3 / EPOCHS as f64
    );
    println!("  bare loop over the runtime {bare:6.2} ms  {:5.2} us a call", bare * 1e3 / EPOCHS as f64);
    println!("  ratio                      {:6.2}", language / bare);
}

/// The same program called directly, with results fed back as arguments.
fn bare_loop(folder: &std::path::Path) -> impl FnMut() {
    let entries = ArtifactFolder::open(folder.to_path_buf()).entries().expect("a manifest");
    let entry = entries.iter().find(|e| e.function == "train-step").expect("train-step was compiled");
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
    // The number of examples that the mean divides by; its value does not affect the time.
    for i in 0..entry.constants.len() {
        let constant = device.upload(ElementType::F32, &[], &1.0_f32.to_ne_bytes()).expect("a constant");
        frame.set(arguments.len() + i, &constant).expect("a constant");
    }
    let parameters = entry.outputs.len() - 1;
    move || {
        for (i, argument) in arguments.iter().enumerate() {
            frame.set(i, argument).expect("an argument");
        }
        for _ in 0..EPOCHS {
            frame.invoke().expect("a call");
            for i in 0..parameters {
                let result = frame.result(i).expect("a result");
                frame.set(i, &result).expect("an argument");
            }
        }
    }
}
