//! Memory of tracing: proportional to the equations of a program, not to the elements of its tensors.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the kernel tells a process its memory by files")]

use std::fs;
use std::rc::Rc;

use crate::support::{World, compiling, run_with};
use sheaf_graph::stablehlo::{Model, emit};
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};

/// A device that emits a program, with all its constants, and runs none.
struct Emitting;

const ENOUGH: &str = "that is enough";

impl Backend for Emitting {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let module = emit(&unit.graph, Model::Hal);
        assert!(module.constants.is_empty(), "{} constants are arguments", module.constants.len());
        Err(HostError { message: ENOUGH.into(), help: None })
    }

    fn upload(&mut self, _: &HostTensor) -> Result<Buffer, HostError> {
        unreachable!("no program runs")
    }
}

/// Peak memory of this process since the last call with `true`, in megabytes.
fn peak(reset: bool) -> u64 {
    if reset {
        fs::write("/proc/self/clear_refs", "5").expect("a process may look at itself");
    }
    let status = fs::read_to_string("/proc/self/status").expect("a process may look at itself");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the most memory");
    let kilobytes: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kilobytes >> 10
}

/// Each of these programs has a tensor of at least 150 MB.
const MOST_MEGABYTES: u64 = 20;

#[test]
fn tracing_takes_no_memory_for_elements() {
    let programs = [
        ("a draw", "(defn f [k] (random-normal k '[50257 768])) (f (random-key 1))"),
        (
            "draws of all kinds",
            "(defn f [k]
            (list (random-uniform k '[40000000] :low -1 :high 3) (random-randint k '[40000000] 0 9)
                  (random-bernoulli k 0.5 '[40000000]) (random-split k 20000000)))
          (f (random-key 1))",
        ),
        (
            "ten constants",
            "(defn f [x]
            (+ 1 (* 2 (- (/ (+ 3 (* 4 (- (/ (+ 5 (* 6 x)) 7) 8))) 9) 10))))
          (f (zeros [40000000]))",
        ),
        (
            "zeros and ones",
            "(defn f [x n] (* n (+ (ones-like x) (zeros [40000000]) (full [40000000] 2.5))))
          (f (zeros [40000000]) 3)",
        ),
        (
            "its gradient",
            "(defn f [x] (sum (* 0.5 (where (> x 0) (* x x) 0)))) ((value-and-grad f) (zeros [40000000]))",
        ),
        (
            "positions",
            "(defn f [x] (+ x (arange 40000000) (arange 40000000 0 -1) (arange -5.0 9999995 0.25) (arange 0 4e6 0.1)
                           (linspace 0 1 40000000)))
          (f (zeros [40000000]))",
        ),
        ("a diagonal", "(defn f [x] (+ x (eye 7000) (one-hot (int (get x 0)) 7000))) (f (zeros [7000 7000]))"),
        (
            "draws with a known key",
            "(defn f [x]
            (let [[a b c d e] (random-split (random-key 1) 5)]
              (+ x (random-normal a '[40000000]) (random-uniform b '[40000000] :low -1)
                 (random-randint c '[40000000] 0 9) (random-permutation d 40000000)
                 (where (random-bernoulli e 0.5 '[40000000]) 1.0 0.0) (choice e 7 '[40000000]))))
          (f (zeros [40000000]))",
        ),
        (
            "a draw within a loop and a checkpoint",
            "(defn f [x]
            ((checkpoint (fn [x]
              (repeat [i 100] [x x] (* x (random-uniform (random-key 1) '[40000000]))))) x))
          (f (zeros [40000000]))",
        ),
    ];
    for (what, program) in programs {
        let options = Options { jit: Jit::Always, ..Options::default() };
        let mut interp = Interp::new(Box::new(World::default()), Some(Box::new(Emitting)), options);
        let module = Interp::program("test.shf");
        let before = peak(true);
        let result = interp.run_text(&module, "test.shf", program);
        let errors = result.map(|_| ()).expect_err("it ends once the program is emitted");
        assert!(errors.iter().any(|e| e.message.contains(ENOUGH)), "{what}: {errors:?}");
        let taken = peak(false) - before;
        assert!(taken < MOST_MEGABYTES, "{what}: tracing and emission took {taken} MB");
    }
}

#[test]
fn known_results_leave_the_device_with_who_holds_them() {
    let (mut interp, world, log) = compiling(Jit::Always);
    let printed = run_with(
        &mut interp,
        &world,
        "(defn start [x] (list (* 2 x) (zeros '[20000])))
         (defn step [[x y]] (list (+ x 1) (+ y 1)))
         (print (map sum (step (start (ones '[20000])))))",
    );
    assert!(printed.contains("60000"), "{printed}");
    assert_eq!(log.borrow().units.len(), 2, "both functions are compiled");
    let left = log.borrow().elements;
    assert!(left < 100, "{left} elements are still on the device");
}
