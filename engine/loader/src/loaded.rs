//! Loaded programs, and their calls.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sheaf_graph::graph::Donation;
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::TensorType;
use sheaf_lang::host::{Buffer, HostError, Placement, Program};
use sheaf_runtime::{CallFrame, Target};

use crate::buffer::DeviceBuffer;
use crate::candidate::Failure;
use crate::donation;
use crate::timeline;

/// A program with its call prepared.
pub struct Loaded {
    /// The function's name with its transformation.
    pub name: String,
    /// The device.
    pub target: Target,
    /// The form of its text.
    pub model: Model,
    /// The prepared call.
    pub frame: RefCell<CallFrame>,
    /// The small arguments of the last call: rates and the like stay the same from call to call, and need not be set
    /// again.
    pub arguments: RefCell<Vec<Option<Buffer>>>,
    /// Types of the results.
    pub results: Vec<TensorType>,
    /// Its placement, for reports.
    pub placement: Placement,
    /// The arguments that calls consume, by argument.
    pub donations: Vec<Donation>,
    /// Number of calls that consumed them.
    pub donating_calls: Cell<u64>,
    /// The program for calls whose arguments have other references.
    pub plain: Option<Rc<Loaded>>,
}

/// Arguments of more bytes are let go of after each call.
const SMALL_ARGUMENT: usize = 4 << 10;

impl Loaded {
    /// This program with a note on the failure of the best of the candidates, if that failed.
    #[must_use]
    pub fn instead_of(mut self, failed: Option<&Failure>) -> Loaded {
        let note = |failure: &Failure| format!("not in its quickest form: {}", failure.note);
        self.placement.note = failed.map(note);
        self
    }

    /// This program as the one for calls that own their arguments.
    pub fn beside(mut self, plain: &Rc<Loaded>) -> Rc<Loaded> {
        self.placement.why.clone_from(&plain.placement.why);
        self.placement.note.clone_from(&plain.placement.note);
        self.plain = Some(Rc::clone(plain));
        Rc::new(self)
    }

    /// True if a call consumes argument `i`, given no other references to it.
    pub fn consumes(&self, i: usize) -> bool {
        self.donations.binary_search_by_key(&i, |d| d.argument).is_ok()
    }

    /// This program with that reason for its placement.
    pub fn placed(mut self, why: String) -> Rc<dyn Program> {
        self.placement.why = why;
        Rc::new(self)
    }
}

impl Loaded {
    /// Lets go of all arguments.
    pub fn release(&self) {
        let mut frame = self.frame.borrow_mut();
        for (i, argument) in self.arguments.borrow_mut().iter_mut().enumerate() {
            *argument = None;
            frame.unset(i);
        }
    }
}

impl Program for Loaded {
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError> {
        if let Some(plain) = &self.plain
            && !donation::all_owned(arguments, &self.donations)
        {
            return plain.call(arguments, results);
        }
        let mut frame = self.frame.borrow_mut();
        let mut last = self.arguments.borrow_mut();
        let mut large = Vec::new();
        for (i, argument) in arguments.drain(..).enumerate() {
            if self.consumes(i) {
                let buffer = DeviceBuffer::take(argument).expect("nobody else holds it");
                frame.donate(i, buffer).map_err(runtime_error)?;
            } else if !last[i].as_ref().is_some_and(|known| Rc::ptr_eq(known, &argument)) {
                let buffer = DeviceBuffer::of(&argument)?;
                frame.set(i, buffer).map_err(runtime_error)?;
                last[i] = if buffer.byte_len() > SMALL_ARGUMENT {
                    large.push((i, argument));
                    None
                } else {
                    Some(argument)
                };
            }
        }
        let called = timeline::call(&self.name, || frame.invoke()).map_err(runtime_error);
        large.into_iter().for_each(|(i, _)| frame.unset(i));
        called?;
        self.donating_calls.set(self.donating_calls.get() + 1);
        let origin = || format!("results of {}", self.name);
        frame.take_each(|result| results.push(DeviceBuffer::share(result, origin))).map_err(runtime_error)
    }

    fn placement(&self) -> Placement {
        let donating_calls = if self.donations.is_empty() { 0 } else { self.donating_calls.get() };
        Placement { donating_calls, ..self.placement.clone() }
    }
}

/// An error of the runtime as the language reports it.
pub fn runtime_error(error: impl std::fmt::Display) -> HostError {
    HostError { message: error.to_string(), help: None }
}
