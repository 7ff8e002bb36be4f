//! Shared parts of the targets: an evaluator without a world around it, and a bound on what it does with an input.

use std::cell::RefCell;

use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_lang::eval::{Interp, Options};
use sheaf_lang::host::{Host, HostError};
use sheaf_syntax::render::render;
use sheaf_syntax::Sources;

/// Calls and iterations that one input may take, so that endless programs end.
const STEPS: u64 = 20_000;

/// Inputs after which the evaluator is replaced, since it keeps every text that it has read.
const INPUTS: u32 = 1_000;

/// There are no files, and nobody reads what is printed.
struct Nowhere;

impl Host for Nowhere {
    fn print(&mut self, _: &str) -> Result<(), HostError> {
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        render(sources, warning, false);
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        Err(HostError { message: format!("{path} does not exist"), help: None })
    }
}

thread_local! {
    /// Loading the language takes longer than most inputs, so an evaluator serves many.
    static EVALUATOR: RefCell<Option<(Interp, u32)>> = const { RefCell::new(None) };
}

/// Lets `f` have an evaluator for one input; errors that it gives are rendered, as a user would see them.
pub fn with_evaluator<T>(f: impl FnOnce(&mut Interp) -> Result<T, Vec<Diagnostic>>) {
    EVALUATOR.with_borrow_mut(|kept| {
        let fresh = || (Interp::new(Box::new(Nowhere), None, Options::default()), INPUTS);
        let (interp, left) = kept.get_or_insert_with(fresh);
        interp.limit_steps(STEPS);
        if let Err(errors) = f(interp) {
            assert!(!errors.is_empty(), "a failure without a message");
            errors.iter().for_each(|d| drop(render(&interp.sources, d, false)));
        }
        *left -= 1;
        if *left == 0 {
            *kept = None;
        }
    });
}
