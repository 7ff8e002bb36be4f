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

/// Nobody reads what is printed, and every file is the same, if there is one.
struct Nowhere;

impl Host for Nowhere {
    fn print(&mut self, _: &str) -> Result<(), HostError> {
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        render(sources, warning, false);
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        let missing = || HostError { message: format!("{path} does not exist"), help: None };
        FILE.with_borrow(|file| file.clone().ok_or_else(missing))
    }

    fn exists(&mut self, path: &str) -> Result<bool, HostError> {
        Ok(FILE.with_borrow(Option::is_some) && !path.contains("config"))
    }
}

thread_local! {
    /// The content of every file.
    static FILE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    /// Loading the language takes longer than most inputs, so an evaluator serves many.
    static EVALUATOR: RefCell<Option<(Interp, u32)>> = const { RefCell::new(None) };
}

/// [`with_evaluator`] in a world in which every file has this content.
pub fn with_file<T>(file: &[u8], f: impl FnOnce(&mut Interp) -> Result<T, Vec<Diagnostic>>) {
    FILE.set(Some(file.to_vec()));
    with_evaluator(f);
    FILE.set(None);
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
