//! `.pkl`: Python's pickles of plain data and NumPy arrays, protocols 0 to 5.
//!
//! A pickle is a program for a machine with a stack. Most of its instructions build data; a few name functions and classes
//! of Python and call them, which is how a pickle runs any code. This machine knows seven names, those by which NumPy's arrays
//! are put together, and calls nothing: what they stand for is done here. Any other name ends the reading.

mod machine;
mod numpy;
mod objects;
mod reader;

use std::sync::Arc;

use super::{Source, broken};
use crate::eval::Eval;
use crate::program::Value;
use machine::Machine;
use sheaf_graph::tensor::FilePart;

const HELP: &str =
    "the file is damaged, or no pickle of plain data: save the data as .npz, .safetensors or .json";
const REFUSED: &str = "only plain data and NumPy arrays are read, since anything else runs code: save the data as .npz, \
                       .safetensors or .json where it was made";

/// The reason that a pickle is not read.
enum Fault {
    /// It is damaged, or beyond a limit.
    Broken(String),
    /// It names code, or wants to run it.
    Refused(String),
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault::Broken(what)
    }
}

/// The value in a file. Elements of arrays stay there until they are used.
pub(super) fn read(source: &Source<'_>) -> Eval<Value> {
    let file = Arc::clone(&source.bytes);
    file.check()?;
    let value = Machine::new(&source.part()).run().and_then(|(objects, root)| objects.value(root));
    file.check()?;
    value.map_err(|fault| match fault {
        Fault::Broken(what) => broken(source.path, what, HELP),
        Fault::Refused(what) => broken(source.path, what, REFUSED),
    })
}

/// The bytes of an object, in the file or in memory.
fn part_of_file(whole: &FilePart, start: usize, length: usize) -> FilePart {
    let start = whole.range.start + start;
    FilePart { file: Arc::clone(&whole.file), range: start..start + length }
}
