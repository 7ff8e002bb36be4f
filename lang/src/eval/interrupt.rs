//! Stopping an evaluation from outside: by a handle that another thread holds, or after a number of steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::interp::Interp;
use super::signal::Eval;
use crate::diagnostic::Diagnostic;

/// Stops a running evaluation from another thread or a signal handler. Clones stop the same evaluator.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Stops the evaluation that is running, at its next call or iteration: it fails with the error "interrupted", and
    /// the evaluator can be used again. A single call of a compiled function or of a builtin on a large tensor ends
    /// first. Does nothing if nothing runs.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the evaluation that is running was told to stop.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What an evaluation may still do.
#[derive(Debug)]
pub(super) struct Allowance {
    interrupt: Interrupt,
    steps: u64,
}

impl Allowance {
    /// The handle that ends it.
    pub(super) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { interrupt: Interrupt::default(), steps: u64::MAX }
    }
}

impl Interp {
    /// A handle to stop this evaluator with.
    pub fn interrupt_handle(&self) -> Interrupt {
        self.allowance.interrupt()
    }

    /// Lets what is run from now on take at most that many steps (calls and iterations) in all; then it fails. A bound
    /// that, unlike a time, is the same on every machine.
    pub fn limit_steps(&mut self, steps: u64) {
        self.allowance.steps = steps;
    }

    /// Forgets an interruption of what ran before. Programs and texts begin with it; forms that are run one by one are
    /// one evaluation to whoever runs them.
    pub fn begin(&mut self) {
        self.allowance.interrupt.0.store(false, Ordering::Relaxed);
    }

    /// Whether the evaluation was told to stop, so that what is left of it need not be tried.
    pub fn stopped(&self) -> bool {
        self.allowance.interrupt.raised() || self.allowance.steps == 0
    }

    /// Counts a call or an iteration; fails where the evaluation is to stop.
    pub(crate) fn step(&mut self) -> Eval<()> {
        if self.stopped() {
            return Err(self.stop());
        }
        self.allowance.steps -= 1;
        Ok(())
    }

    #[cold]
    fn stop(&self) -> super::Signal {
        if self.allowance.interrupt.raised() {
            return Diagnostic::error("interrupted").into();
        }
        Diagnostic::error("the evaluation takes more steps than it was allowed").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostic;
    use crate::eval::Options;
    use crate::host::{Host, HostError};
    use crate::syntax::Sources;

    struct NoHost;

    impl Host for NoHost {
        fn print(&mut self, _: &str) -> Result<(), HostError> {
            Ok(())
        }

        fn warn(&mut self, _: &Sources, _: &Diagnostic) {}

        fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
            Err(HostError { message: format!("{path} does not exist"), help: None })
        }
    }

    /// Stopped after any number of steps, or by an error at its end, a program leaves nothing behind.
    #[test]
    fn an_error_anywhere_leaves_the_evaluator_as_it_was() {
        const PROGRAM: &str = "
            (defn f [x n] (if (= n 0) (sum (* x x)) (f (* x 2.0) (- n 1))))
            (defmacro twice [e] `(do ~e ~e))
            (print (twice (reduce (fn [a x] (+ a (f [1 2] 2))) 0 '[1 2 3])))
            (let [g (value-and-grad (fn [p] (repeat [i 3] [l 0.0] (+ l (f (get p :w) 2)))))]
              (print (map g (list {:w [1 2]} {:w [3 4]}))))
            (tree-map (fn [x] (while (< x 3) [x x] (+ x 1))) {:a 1 :b '[1 2]})
            (nth '[1] (f [1 2] 1))";
        for steps in 0.. {
            let mut interp = Interp::new(Box::new(NoHost), None, Options::default());
            interp.limit_steps(steps);
            let errors = interp.run_program("test.shf", PROGRAM).expect_err("the last form fails");
            let state = (interp.stack.len(), interp.depth, interp.level, interp.recording, interp.weight);
            assert_eq!(state, (0, 0, 0, 0, 1), "after {steps} steps: {errors:?}");
            assert!(interp.span.is_none() && interp.loading.is_empty(), "after {steps} steps");
            if !errors[0].message.contains("more steps") {
                assert!(steps > 50, "{errors:?}");
                return;
            }
        }
    }
}
