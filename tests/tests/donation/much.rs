//! Programs too large for a trial with copies: they are tried in a call, which takes no more memory than a plain call.

use std::time::Duration;

use sheaf_tests::Sandbox;

use super::train;

/// Parameters of 2048x2048: with the moments of Adam 48 MiB.
const MUCH: &str = "
(use optim)
(def x (random-normal (random-key 1) '[8 2048]))
(def y (random-normal (random-key 2) '[8 2048]))
(def p0 {:W (* 0.01 (random-normal (random-key 3) '[2048 2048]))})
(def start [p0 (tree-map-zeros p0) (tree-map-zeros p0) 0])
(defn train-step [state x y]
  (let [[p m v t] state
        [value grads] ((value-and-grad (fn [p] (mean (square (- (@ x (get p :W)) y))))) p)]
    [value (adam-step p grads m v t 0.001)]))
(def last
  (repeat [i 12] [acc [0 start]]
    (let [[value state] acc] (train-step state x y))))
(let [[value state] last]
  (print (str value))
  (map (fn [leaf] (print (str (sqrt (sum (square leaf)))))) (flatten state)))
";

#[test]
fn a_program_with_much_memory_is_tried_in_a_call() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("train.shf", MUCH);
    let (plain, none) = train(&sandbox, "local-task:2", "never");
    assert_eq!(none, 0);
    for _ in 0..2 {
        // The first step has the initial state, which the program keeps; the second is the trial, unless an earlier run
        // has kept its result.
        let (numbers, calls) = train(&sandbox, "local-task:2", "always");
        assert!((10..=11).contains(&calls), "{calls} calls in place");
        assert_eq!(numbers.len(), plain.len());
        for (a, b) in numbers.iter().zip(&plain) {
            assert!((a - b).abs() <= 1e-4 * (a.abs() + 1e-3), "{a} for {b} in {plain:?}");
        }
    }
}

#[test]
fn what_a_build_compiled_is_used_from_the_second_call_on() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("train.shf", MUCH);
    let record = ["train.shf", "--jit", "always", "--record", "shapes.json"];
    assert_eq!(sandbox.sheaf(&record).within(Duration::from_secs(300)).run().code, Some(0));
    let build = ["build", "train.shf", "--shapes", "shapes.json"];
    let output = sandbox.sheaf(&build).within(Duration::from_secs(300)).run();
    assert_eq!(output.code, Some(0), "{output}");
    let (_, calls) = train(&sandbox, "local-task:2", "auto");
    assert!((10..=11).contains(&calls), "{calls} calls in place: so few would not pay for a compilation");
}

#[test]
#[ignore = "long: make nightly runs it"]
#[cfg(target_os = "linux")]
fn a_trial_takes_no_more_memory_than_a_plain_call() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("train.shf", format!("{MUCH}(print (io \"read\" \"/proc/self/status\"))"));
    let peak = |donate: &str| -> usize {
        let arguments = ["train.shf", "--jit", "always", "--donate", donate];
        let output = sandbox.sheaf(&arguments).within(Duration::from_secs(300)).run();
        assert_eq!(output.code, Some(0), "{output}");
        let line = output.stdout.lines().find(|line| line.starts_with("VmHWM:")).expect("the most memory");
        let kilobytes: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
        kilobytes >> 10
    };
    let (plain, tried) = (peak("never"), peak("always"));
    println!("peak: {plain} MiB, {tried} MiB with a trial");
    // Half a tensor.
    assert!(tried <= plain + 8, "{tried} MiB, and {plain} without a trial");
}
