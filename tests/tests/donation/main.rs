//! Programs with donated arguments: they give the results of the plain programs, and save memory.

mod beside;
mod much;
mod random;

use std::time::Duration;

use serde_json::Value;
use sheaf_runtime::{CallFrame, Device, ElementType, Runtime, Target, Vmfb};
use sheaf_tests::Sandbox;

/// A network of 2-8-1, by gradient descent.
const XOR: &str = "
(use optim)
(def x [[0 0] [0 1] [1 0] [1 1]])
(def y [[0] [1] [1] [0]])
(def start {:l1 {:W (random-normal (random-key 1) '[2 8]) :b (zeros '[8])}
            :l2 {:W (random-normal (random-key 2) '[8 1]) :b (zeros '[1])}})
(defn forward [p x]
  (let [h (tanh (+ (@ x (get-in p [:l1 :W])) (get-in p [:l1 :b])))]
    (sigmoid (+ (@ h (get-in p [:l2 :W])) (get-in p [:l2 :b])))))
(defn train-step [p x y]
  (let [[loss grads] ((value-and-grad (fn [p] (mean (square (- (forward p x) y))))) p)]
    [loss (sgd-step p grads 0.7)]))
";

/// A network of 784-512-10, with Adam.
const MLP: &str = "
(use nn)
(use optim)
(def key (random-key 1))
(def x (random-normal (fold-in key 3) '[64 784]))
(def y (random-normal (fold-in key 4) '[64 10]))
(def p0 {:W1 (xavier-uniform (fold-in key 1) '[784 512]) :b1 (zeros '[512])
         :W2 (xavier-uniform (fold-in key 2) '[512 10]) :b2 (zeros '[10])})
(def start [p0 (tree-map-zeros p0) (tree-map-zeros p0) 0])
(defn loss [p x y]
  (with-params [p] (mean (square (- (linear (relu (linear x W1 b1)) W2 b2) y)))))
(defn train-step [state x y]
  (let [[p m v t] state
        [value grads] ((value-and-grad loss) p x y)]
    [value (adam-step p grads m v t 0.001)]))
";

/// A GPT of one layer, with Adam.
const GPT: &str = "
(use ./nanogpt/model.shf)
(use optim)
(def config {:context 16 :width 32 :n-layers 1 :n-heads 2 :causal true})
(def x (random-randint (random-key 3) '[4 16] 0 50))
(def y (random-randint (random-key 4) '[4 16] 0 50))
(def p0 (init-params (random-key 1) 50 config))
(def start [p0 (tree-map-zeros p0) (tree-map-zeros p0) 0])
(defn train-step [state x y]
  (let [[p m v t] state
        [value grads] ((value-and-grad (fn [p] (loss p x y config))) p)]
    [value (adam-step p grads m v t 0.001)]))
";

/// A hundred steps; prints the norms of all parameters at the end.
const TRAIN: &str = "
(defn train [n]
  (repeat [i n] [acc [0 start]]
    (let [[value state] acc] (train-step state x y))))
(let [[value state] (train 100)]
  (print (str value))
  (map (fn [leaf] (print (str (sqrt (sum (square leaf)))))) (flatten state)))
";

/// A sandbox with that training program; `None` without a compiler.
fn sandbox(model: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::with_shared_store()?;
    sandbox.example("nanogpt/model.shf");
    sandbox.write("train.shf", format!("{model}{TRAIN}"));
    Some(sandbox)
}

/// The numbers printed by a training, and the number of its donating steps.
fn train(sandbox: &Sandbox, place: &str, donate: &str) -> (Vec<f64>, u64) {
    let arguments =
        ["train.shf", "--jit", "always", "--place", place, "--donate", donate, "--explain", "--json"];
    let output = sandbox.sheaf(&arguments).within(Duration::from_secs(300)).run();
    assert_eq!(output.code, Some(0), "{output}");
    let (numbers, report) = output.stdout.trim_end().rsplit_once('\n').expect("a report in the last line");
    let numbers = numbers.lines().map(|line| line.parse().expect("a number")).collect();
    let report: Value = serde_json::from_str(report).expect("JSON");
    let all = report.as_array().or_else(|| report["functions"].as_array()).expect("functions");
    let step = all.iter().find(|one| one["function"] == "train-step").expect("the step");
    let calls = step["specialisations"].as_array().expect("a list").iter();
    let calls = calls.filter_map(|one| one["donating-calls"].as_u64()).sum();
    (numbers, calls)
}

fn agree(model: &str) {
    let Some(sandbox) = sandbox(model) else { return };
    let (plain, none) = train(&sandbox, "local-sync", "never");
    assert_eq!(none, 0);
    for place in ["local-sync", "local-task:2"] {
        let (numbers, calls) = train(&sandbox, place, "always");
        // The first step has the initial state, which the program keeps; the second a step counter of another type.
        assert!((97..=100).contains(&calls), "{calls} calls in place, {place}");
        assert_eq!(numbers.len(), plain.len());
        for (a, b) in numbers.iter().zip(&plain) {
            assert!((a - b).abs() <= 1e-4 * (a.abs() + 1e-3), "{a} for {b} in {plain:?}, {place}");
        }
    }
}

#[test]
fn xor_agrees_after_a_hundred_steps() {
    agree(XOR);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn an_mlp_agrees_after_a_hundred_steps() {
    agree(MLP);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_gpt_agrees_after_a_hundred_steps() {
    agree(GPT);
}

/// Parameters of 1024x1024, so that everything else is small.
const LARGE: &str = "
(use optim)
(def x (random-normal (random-key 1) '[8 1024]))
(def y (random-normal (random-key 2) '[8 1024]))
(def p0 {:W (* 0.01 (random-normal (random-key 3) '[1024 1024]))})
(def start [p0 (tree-map-zeros p0) (tree-map-zeros p0) 0])
(defn train-step [state x y]
  (let [[p m v t] state
        [value grads] ((value-and-grad (fn [p] (mean (square (- (@ x (get p :W)) y))))) p)]
    [value (adam-step p grads m v t 0.001)]))
";

#[test]
fn a_step_of_adam_takes_parameters_gradients_moments_and_activations() {
    let Some(sandbox) = sandbox(LARGE) else { return };
    let (_, calls) = train(&sandbox, "local-sync", "always");
    assert!(calls >= 97, "{calls}");
    let (plain, donating) = (peak(&sandbox, false), peak(&sandbox, true));
    println!("peak of a step with Adam: {plain} bytes, {donating} with arguments consumed");
    let (parameters, activations) = (1024 * 1024 * 4, 3 * 8 * 1024 * 4);
    let (gradients, moments) = (parameters, 2 * parameters);
    // Memory of the inputs and a few numbers.
    let inputs = 2 * 8 * 1024 * 4 + 4096;
    assert!(donating <= parameters + gradients + moments + activations + inputs, "{donating}");
    assert!(plain > 6 * parameters, "{plain}: else there was nothing to save");
}

/// Peak bytes of the buffers of a step in one call.
fn peak(sandbox: &Sandbox, consumes: bool) -> usize {
    let folder = sandbox.path("__sheaf__");
    let manifest = std::fs::read(folder.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let donation = |entry: &Value| entry["donation"].as_array().expect("a list").clone();
    // The last entry: its step counter is a strong number, as in all steps but the first.
    let entry = manifest["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .rfind(|entry| entry["function"] == "train-step" && donation(entry).is_empty() != consumes);
    let entry = entry.expect("an entry of the step");
    let bytes = std::fs::read(folder.join(entry["file"].as_str().expect("a file"))).expect("the program");
    let digest = sheaf_runtime::sha256(&bytes);
    let device = Runtime::new().and_then(|runtime| runtime.device(Target::LocalSync)).expect("a device");
    let program = device.load(&Vmfb::verify(bytes, &digest).expect("its own digest")).expect("a program");
    let mut frame = program.call_frame().expect("a frame");
    for (i, input) in entry["inputs"].as_array().expect("inputs").iter().enumerate() {
        let consumed = donation(entry).iter().any(|d| d["argument"] == i);
        set(&device, &mut frame, i, input, consumed);
    }
    frame.invoke().expect("a call");
    device.memory().peak
}

fn set(device: &Device, frame: &mut CallFrame, i: usize, input: &Value, consumed: bool) {
    let shape: Vec<usize> = serde_json::from_value(input["shape"].clone()).expect("a shape");
    let (element, width) = match input["dtype"].as_str().expect("a dtype") {
        "f32" => (ElementType::F32, 4),
        "i64" => (ElementType::I64, 8),
        other => panic!("{other}"),
    };
    let zeros = vec![0; shape.iter().product::<usize>() * width];
    let argument = device.upload(element, &shape, &zeros).expect("an argument");
    if consumed {
        frame.donate(i, argument).expect("an argument of nobody else");
    } else {
        frame.set(i, &argument).expect("an argument");
    }
}
