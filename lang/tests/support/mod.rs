//! An in-memory world for programs under test.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use sheaf_lang::diagnostic::Diagnostic;
use sheaf_lang::eval::{Interp, Options};
use sheaf_lang::host::{Host, HostError};
use sheaf_lang::render::render;
use sheaf_lang::syntax::Sources;

/// Files and what was printed.
#[derive(Clone, Default)]
pub struct World {
    pub files: Rc<RefCell<HashMap<String, String>>>,
    pub printed: Rc<RefCell<Vec<String>>>,
}

impl Host for World {
    fn print(&mut self, text: &str) -> Result<(), HostError> {
        self.printed.borrow_mut().push(text.into());
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        self.printed.borrow_mut().push(render(sources, warning, false));
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        match self.files.borrow().get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(HostError { message: format!("{path} does not exist"), help: None }),
        }
    }
}

/// Runs a program; what it printed, then the errors or the last value.
pub fn run(text: &str) -> String {
    run_in(World::default(), text)
}

/// [`run`] with files.
pub fn run_in(world: World, text: &str) -> String {
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    let result = interp.run_program("test.shf", text);
    let mut out = world.printed.borrow().clone();
    match result {
        Ok(sheaf_lang::eval::Value::Nil) => {}
        Ok(value) => out.push(format!("=> {}", sheaf_lang::builtins::repr(&value))),
        Err(errors) => out.extend(errors.iter().map(|d| render(&interp.sources, d, false))),
    }
    out.join("\n")
}
