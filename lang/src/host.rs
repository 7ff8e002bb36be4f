//! What a program needs of the world, as traits: the language itself touches no file, network or device.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::eval::Interrupt;
use crate::graph::{Donation, Graph};
use crate::primitives::Site;
use crate::syntax::Sources;
use crate::tensor::{HostTensor, TensorType};

/// Files, output and messages.
pub trait Host {
    /// Writes `text`, with its line end if it is to have one, to the program's output.
    fn print(&mut self, text: &str) -> Result<(), HostError>;

    /// Shows a warning; the run goes on.
    fn warn(&mut self, sources: &Sources, warning: &Diagnostic);

    /// The bytes of a file; a relative path starts at the current directory.
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError>;

    /// Makes a file of these bytes, or replaces one as a whole: whatever happens, the old file or the new one is there.
    fn write_file(&mut self, path: &str, _bytes: &[u8]) -> Result<(), HostError> {
        Err(HostError::unavailable(format!("{path} cannot be written: files")))
    }

    /// Whether there is a file or folder.
    fn exists(&mut self, path: &str) -> Result<bool, HostError> {
        Err(HostError::unavailable(format!("{path} cannot be looked for: files")))
    }

    /// The paths of what is in a folder, or of what matches a pattern with `*`, `?` or `[...]`; sorted.
    fn list(&mut self, path: &str) -> Result<Vec<String>, HostError> {
        Err(HostError::unavailable(format!("{path} cannot be listed: files")))
    }

    /// A number that nobody can foretell.
    fn entropy(&mut self) -> Result<u32, HostError> {
        Err(HostError::unavailable("sources of entropy"))
    }

    /// The arguments of the run that are the program's own.
    fn arguments(&self) -> Vec<String> {
        Vec::new()
    }

    /// An environment variable.
    fn variable(&self, _name: &str) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    /// Milliseconds since the start of 1970 in UTC.
    fn milliseconds(&self) -> Result<i64, HostError> {
        Err(HostError::unavailable("clocks"))
    }
}

/// Why the world refused: a cause and a remedy in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// What was tried and what happened.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl HostError {
    /// The error of a host without `what`.
    fn unavailable(what: impl fmt::Display) -> HostError {
        HostError { message: format!("{what} are not available where this program runs"), help: None }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One tensor that a compiled function takes or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The key path within the arguments or the result, such as `params.l1.W`.
    pub path: String,
    /// Its type.
    pub ty: TensorType,
}

/// Something that a program checks.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The question and the message.
    pub site: Arc<Site>,
    /// The name of the file without its folder, the line and the column.
    pub place: String,
}

/// The path of the result that says which check failed: 0, or the position of the first that did, and what it failed with.
pub const FLAG: &str = "flag";

/// A specialised function, ready to be compiled: one program, one entry of the cache.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The function's name as the user wrote it, or `lambda`.
    pub function: String,
    /// The transformation that was compiled: empty, or `vag` for `value-and-grad`.
    pub transform: &'static str,
    /// The program. Its parameters are `inputs`, in order.
    pub graph: Graph,
    /// The parameters, in flattening order.
    pub inputs: Vec<Leaf>,
    /// The results, in flattening order; where the program checks something, [`FLAG`] is the last.
    pub outputs: Vec<Leaf>,
    /// What the program checks: the flag names one by its position, counted from 1.
    pub checks: Vec<Checked>,
    /// The values that the body asked for while it was traced: path and value.
    pub statics: Vec<(String, String)>,
}

/// The specialisation of a program that an earlier run or a build has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// As [`Unit::inputs`].
    pub inputs: Vec<Leaf>,
    /// As [`Unit::statics`].
    pub statics: Vec<(String, String)>,
}

impl Kept {
    /// True if a unit of that function may be the one.
    pub fn serves(&self, unit: &Unit) -> bool {
        self.inputs == unit.inputs && self.statics == unit.statics
    }
}

/// Compiled execution. `lang` hands over graphs and opaque buffers; what a buffer is, only the backend knows.
pub trait Backend {
    /// Compiles or finds a unit. `Ok(None)`: units cannot be compiled here; interpret (the backend has said why).
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError>;

    /// Programs of a function that an earlier run or a build has left.
    fn kept(&mut self, _function: &str, _transform: &str) -> Vec<Kept> {
        Vec::new()
    }

    /// The program of a unit, if it is one of those; nothing is compiled.
    fn find_kept(&mut self, _unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(None)
    }

    /// Which arguments of a unit that was prepared a call may consume, if it pays, and after how many calls to think of it.
    fn donation(&self, _unit: &Unit) -> Option<Donating> {
        None
    }

    /// Compiles or finds the unit so that results take the place of arguments. `None` where that does not give what the
    /// plain program gives.
    fn prepare_donating(
        &mut self,
        _unit: &Unit,
        _donations: &[Donation],
        _plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(None)
    }

    /// Why the last unit was not compiled, a clause.
    fn refusal(&self) -> String {
        "there is no compiler".into()
    }

    /// Hands over what stops the evaluation from outside, and with it a compilation.
    fn stopped_by(&mut self, _interrupt: Interrupt) {}

    /// Copies a tensor to the device.
    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError>;
}

/// What a call of a unit may consume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donating {
    /// The arguments, and the results in their place.
    pub donations: Vec<Donation>,
    /// The number of calls after which a program is made for it.
    pub after: u64,
}

/// A compiled unit.
pub trait Program: Any {
    /// Runs the program on buffers in the order of [`Unit::inputs`], which it takes; appends the results in the order of
    /// [`Unit::outputs`]. Results stay on the device. A buffer that nobody else holds may become a result.
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError>;

    /// How it runs.
    fn placement(&self) -> Placement {
        Placement::default()
    }
}

/// How a program runs, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The backend's name for the way.
    pub model: String,
    /// What the choice of it rests on: a clause.
    pub why: String,
    /// What is not as it should be about it: a sentence.
    pub note: Option<String>,
    /// How many arguments a call consumes, where nobody else holds them.
    pub donated: usize,
    /// How many calls did.
    pub donating_calls: u64,
}

/// A tensor on the device.
pub type Buffer = Rc<dyn DeviceTensor>;

/// A tensor on the device, opaque to the language.
pub trait DeviceTensor: Any {
    /// Copies the elements to the host.
    fn read(&self, ty: &TensorType) -> Result<HostTensor, HostError>;

    /// True if it is computed already, so that reading it does not wait.
    fn is_ready(&self) -> bool {
        false
    }
}
