//! The emitted StableHLO of two training steps. `tests/nanogpt/operations.py` counts JAX's operations for the same
//! models.

#![allow(clippy::disallowed_methods, reason = "a test may read the examples")]

use std::cell::RefCell;
use std::rc::Rc;

use sheaf_graph::stablehlo::{Model, emit};
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};

use crate::support::World;

/// Stores the first unit of that name, and ends the run.
struct Taker {
    function: &'static str,
    unit: Rc<RefCell<Option<Unit>>>,
}

const TAKEN: &str = "taken";

impl Backend for Taker {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        if unit.function != self.function {
            return Ok(None);
        }
        *self.unit.borrow_mut() = Some(unit.clone());
        Err(HostError { message: TAKEN.into(), help: None })
    }

    fn upload(&mut self, _: &HostTensor) -> Result<Buffer, HostError> {
        unreachable!("nothing runs")
    }
}

/// The program of a function's first call.
fn program_of(function: &'static str, world: World, text: &str) -> String {
    let unit = Rc::new(RefCell::new(None));
    let backend = Taker { function, unit: Rc::clone(&unit) };
    let options = Options { jit: Jit::Always, ..Options::default() };
    let mut interp = Interp::new(Box::new(world), Some(Box::new(backend)), options);
    let result = interp.run_program("test.shf", text);
    let errors = result.err().unwrap_or_default();
    assert!(errors.iter().any(|d| d.message.contains(TAKEN)), "{function} was not compiled: {errors:?}");
    emit(&unit.take().expect("a unit").graph, Model::Hal).text
}

fn example(path: &str) -> String {
    std::fs::read_to_string(format!("{}/../examples/{path}", env!("CARGO_MANIFEST_DIR"))).expect("an example")
}

#[test]
fn xor() {
    insta::assert_snapshot!(
        "xor_step",
        program_of("train-step", World::default(), &example("xor/train.shf"))
    );
}

#[test]
fn gpt() {
    let world = World::with(&[("model.shf", &example("nanogpt/model.shf"))]);
    let text = "
(use ./model.shf)
(def state (init-state (init-params (random-key 0) 73 config)))
(def ids (int (zeros [12 64])))
(train-step state ids ids 0.001)";
    insta::assert_snapshot!("gpt_step", program_of("train-step", world, text));
}
