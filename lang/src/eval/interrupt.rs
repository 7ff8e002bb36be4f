//! Interruption of an evaluation: by a handle in another thread, or after a number of steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::interp::Interp;
use super::signal::Eval;
use sheaf_syntax::diagnostic::Diagnostic;

/// A handle to interrupt an evaluation from another thread or a signal handler. Clones interrupt the same evaluator.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Interrupts the running evaluation at its next call or iteration: it fails with the error "interrupted", and the
    /// evaluator remains usable. A single call of a compiled function or of a builtin on a large tensor completes
    /// first. No effect if nothing runs.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the running evaluation was interrupted.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The remaining steps of an evaluation.
#[derive(Debug)]
pub(super) struct Budget {
    interrupt: Interrupt,
    steps: u64,
}

impl Budget {
    /// The handle that ends it.
    pub(super) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { interrupt: Interrupt::default(), steps: u64::MAX }
    }
}

impl Interp {
    /// A handle to interrupt this evaluator.
    pub fn interrupt_handle(&self) -> Interrupt {
        self.budget.interrupt()
    }

    /// Limits the total steps (calls and iterations) of all evaluations from now on; beyond that they fail. Unlike a
    /// time limit it is the same on every machine.
    pub fn limit_steps(&mut self, steps: u64) {
        self.budget.steps = steps;
    }

    /// Clears an earlier interruption. Programs and texts begin with it; a caller that runs forms one by one treats
    /// them as one evaluation.
    pub fn begin(&mut self) {
        self.budget.interrupt.0.store(false, Ordering::Relaxed);
    }

    /// True if the evaluation was interrupted, so the rest is not tried.
    pub fn stopped(&self) -> bool {
        self.budget.interrupt.raised() || self.budget.steps == 0
    }

    /// Counts a call or an iteration; fails if interrupted or over the limit.
    pub(crate) fn step(&mut self) -> Eval<()> {
        if self.stopped() {
            return Err(self.stop());
        }
        self.budget.steps -= 1;
        Ok(())
    }

    #[cold]
    fn stop(&self) -> super::Signal {
        if self.budget.interrupt.raised() {
            return Diagnostic::error("interrupted").into();
        }
        Diagnostic::error("the evaluation takes more steps than it was allowed").into()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::eval::Options;
    use crate::host::{Host, HostError};
    use sheaf_syntax::Sources;
    use sheaf_syntax::diagnostic::Diagnostic;

    pub(in crate::eval) struct NoHost;

    impl Host for NoHost {
        fn print(&mut self, _: &str) -> Result<(), HostError> {
            Ok(())
        }

        fn warn(&mut self, _: &Sources, _: &Diagnostic) {}

        fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
            Err(HostError { message: format!("{path} does not exist"), help: None })
        }
    }

    /// Interrupted after any number of steps, or by an error at its end, a program leaves no state behind.
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
            let state = (
                interp.stack.len(),
                interp.depth,
                interp.tracing.level,
                interp.tracing.staging,
                interp.weight,
            );
            assert_eq!(state, (0, 0, 0, 0, 1), "after {steps} steps: {errors:?}");
            assert!(interp.span.is_none() && interp.modules.loading.is_empty(), "after {steps} steps");
            if !errors[0].message.contains("more steps") {
                assert!(steps > 50, "{errors:?}");
                return;
            }
        }
    }
}
