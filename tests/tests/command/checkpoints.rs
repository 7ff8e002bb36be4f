//! Checkpoints: a run that is saved and goes on in another process ends as one that was never interrupted.

use std::fs;

use sheaf_tests::Sandbox;

/// Trains from the checkpoint `from`, or from the start, and saves the state as `to`.
const TRAIN: &str = r#"
(defn forward [p x] (linear (tanh (linear x (:W1 p) (:b1 p))) (:W2 p) (:b2 p)))

(defn loss [p x y] (mse-loss (forward p x) y))

(defn step [s lr]
  (let [[batch-key next-key] (random-split (:key s))
        x (random-normal batch-key '[16 2])
        y (sin (sum x :axis 1 :keepdims true))
        [l g] ((value-and-grad loss) (:params s) x y)
        [p m v t] (adam-step (:params s) g (:m s) (:v s) (:t s) lr)]
    {:params p :m m :v v :t t :key next-key :loss l}))

(defn start []
  (let [[k1 k2 k3] (random-split (random-key 3) 3)
        p {:W1 (random-normal k1 '[2 8]) :b1 (zeros 8) :W2 (random-normal k2 '[8 1]) :b2 (zeros 1)}]
    {:params p :m (tree-map-zeros p) :v (tree-map-zeros p) :t 0 :key k3 :loss 0.0}))

(let [[n from to] (io "args")
      before (if (= from "none") {:state (start) :lr 0.01 :name "run" :seen (list)} (io "load" from))
      state (repeat [i (int n)] [s (:state before)] (step s (:lr before)))
      after (assoc before :state state :seen (append (:seen before) (:t state)))]
  (io "save" to after)
  (print (:t state) (number? (:t state)) (:name after)))
"#;

/// Trains 20 steps, and 10 and 10 more in another process; the final checkpoints.
fn trained(sandbox: &Sandbox, options: &[&str]) -> [Vec<u8>; 2] {
    let train = |steps: &str, from: &str, to: &str| {
        let output = sandbox.run(&[&["train.shf"], options, &["--", steps, from, to]].concat());
        // The first run compiles the step, and the others find it.
        let first = to == "whole.safetensors" && options.contains(&"always");
        if first { output.compiled() } else { output.compiled_nothing() }
    };
    let folder = |name: &str| fs::read(sandbox.path(name)).expect("a checkpoint");
    assert_eq!(train("20", "none", "whole.safetensors"), "20 true run\n");
    assert_eq!(train("10", "none", "half.safetensors"), "10 true run\n");
    assert_eq!(train("10", "half.safetensors", "resumed.safetensors"), "20 true run\n");
    // The report of the run differs: it has seen one end or two.
    for name in ["whole", "resumed"] {
        sandbox.write(
            "strip.shf",
            format!(
                "(io \"save\" \"{name}.state\" (:state (io \"load\" \"{name}.safetensors\")) :safetensors)"
            ),
        );
        sandbox.run(&["strip.shf"]).silent();
    }
    [folder("whole.state"), folder("resumed.state")]
}

#[test]
fn an_interpreted_run_goes_on_where_it_was_saved() {
    let sandbox = Sandbox::new();
    sandbox.write("train.shf", TRAIN);
    let [whole, resumed] = trained(&sandbox, &["--no-jit"]);
    assert!(whole == resumed, "the checkpoints differ");
}

#[test]
fn a_compiled_run_goes_on_where_it_was_saved() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("train.shf", TRAIN);
    let [whole, resumed] = trained(&sandbox, &["--jit", "always"]);
    assert!(whole == resumed, "the checkpoints differ");
}
