//! Interruption of an evaluation from another thread; the evaluator remains usable.

use std::sync::mpsc::{Sender, channel};

use sheaf_lang::builtins::repr;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Host, HostError};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::render::render;

/// Sends a signal at the first output.
struct Teller(Sender<()>);

impl Host for Teller {
    fn print(&mut self, _: &str) -> Result<(), HostError> {
        self.0.send(()).map_err(|e| HostError { message: e.to_string(), help: None })
    }

    fn warn(&mut self, _: &Sources, _: &Diagnostic) {}

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        Err(HostError { message: format!("{path} does not exist"), help: None })
    }
}

/// Runs an endless text that prints first; the error after its interruption.
fn interrupted(text: &str) -> String {
    let (sender, printed) = channel();
    let mut interp = Interp::new(Box::new(Teller(sender)), None, Options::default());
    let module = Interp::program("test.shf");
    interp.run_text(&module, "one", "(def kept 41)").expect("a definition");
    let handle = interp.interrupt_handle();
    let stopper = std::thread::spawn(move || {
        printed.recv().expect("the program prints");
        handle.interrupt();
    });
    let errors = interp.run_text(&module, "two", text).expect_err("it does not end by itself");
    stopper.join().expect("the other thread");
    let after =
        interp.run_text(&module, "three", "(+ kept (reduce + 0 '[1]))").expect("the evaluator goes on");
    assert_eq!(repr(&after), "42", "{text}");
    errors.iter().map(|d| render(&interp.sources, d, false)).collect()
}

#[test]
fn loops_and_builtins_that_call_back_are_interrupted() {
    for text in [
        "(print 1) (while true [x 0] x)",
        "(print 1) (repeat [i 1000000000000] [x 0] (+ x i))",
        "(defn f [x] (f2 x)) (defn f2 [x] (while true [x x] (+ x 1))) (print 1) (map f '[1 2])",
        "(print 1) (let [xs (repeat [i 20] [xs '[1]] (concat xs xs))] (while true [x 0] (reduce + 0 xs)))",
        "(print 1) (while true [x 0] (map - '[1 2 3]))",
        "(defmacro endless [] (do (print 1) (while true [x 0] x))) (endless) (endless)",
        "(print 1) ((grad (fn [x] (while true [y x] (* y 1.0)))) 2.0)",
    ] {
        let message = interrupted(text);
        assert!(message.starts_with("error: interrupted\n"), "{text}: {message}");
        assert_eq!(message.matches("error:").count(), 1, "{text}: {message}");
        assert!(message.contains("two:1:"), "the place: {message}");
    }
}

#[test]
fn a_trace_and_compiled_calls_are_stopped() {
    let endless = "(defn f [x] (+ x 1.0)) (while true [x [1 2]] (f x))";
    let (mut interp, _, log) = crate::support::compiling(Jit::Always);
    interp.limit_steps(1000);
    let errors = interp.run_program("test.shf", endless).expect_err("it does not end by itself");
    assert!(errors[0].message.contains("more steps"), "{}", errors[0].message);
    assert_eq!(log.borrow().units.len(), 1);

    interp.limit_steps(100);
    let errors = interp
        .run_program("test.shf", "(defn f [x] (g x)) (defn g [x] (f x)) (f [1 2])")
        .expect_err("it does not end by itself");
    assert!(errors[0].message.contains("more steps"), "{}", errors[0].message);
    interp.limit_steps(u64::MAX);
    let after = interp.run_program("test.shf", "(defn f [x] (sum x)) (f [1 2])").expect("a sum");
    assert!(repr(&after).contains('3'));
    assert_eq!(log.borrow().units.len(), 2, "functions are compiled as before");
}
