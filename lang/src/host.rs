//! Traits of the host: the language itself touches no file, network or device.

use std::any::Any;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};

use crate::eval::Interrupt;
use crate::observe::Timeline;
use crate::plot::Plot;
use sheaf_graph::graph::{Donation, Graph};
use sheaf_graph::primitives::Site;
use sheaf_graph::tensor::{FileBytes, FileChanged, HostTensor, TensorType};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;

/// Files, output and messages.
pub trait Host {
    /// Writes `text` to the program's output, without adding a line break.
    fn print(&mut self, text: &str) -> Result<(), HostError>;

    /// Shows a warning; the run continues.
    fn warn(&mut self, sources: &Sources, warning: &Diagnostic);

    /// Reads a file; a relative path starts at the current directory.
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError>;

    /// The bytes of a file, which stay in it if it can be mapped into memory; the path is that of
    /// [`Host::read_file`].
    fn map_file(&mut self, path: &str) -> Result<Arc<dyn FileBytes>, HostError> {
        Ok(Arc::new(self.read_file(path)?))
    }

    /// The error of a mapped file that lost bytes since this was asked last: zeros were read in their place.
    fn lost_bytes(&mut self) -> Option<HostError> {
        None
    }

    /// Runs a job on another thread, after those given earlier. False if there is none; then the job is dropped.
    fn in_background(&mut self, _job: Box<dyn FnOnce() + Send>) -> bool {
        false
    }

    /// The package that a program in this folder belongs to.
    fn own_package(&mut self, _folder: &str) -> Result<Option<OwnPackage>, HostError> {
        Ok(None)
    }

    /// The folder of the package that a package calls `name`; `None` if it has no such dependency. `package` is the
    /// folder of the package that asks, empty for the program's own.
    fn dependency(&mut self, _package: &str, _name: &str) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    /// Writes a file atomically: a failure leaves the old file or the new one.
    fn write_file(&mut self, path: &str, _bytes: &[u8]) -> Result<(), HostError> {
        Err(HostError::unavailable(format!("{path} cannot be written: files")))
    }

    /// [`Host::write_file`] with the bytes that `write` writes. An error of `write` leaves the old file.
    fn write_with(&mut self, path: &str, write: &mut Writing<'_>) -> Result<(), HostError> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|e| HostError { message: e.to_string(), help: None })?;
        self.write_file(path, &bytes)
    }

    /// True if there is a file or folder.
    fn exists(&mut self, path: &str) -> Result<bool, HostError> {
        Err(HostError::unavailable(format!("{path} cannot be looked for: files")))
    }

    /// The paths of the entries of a folder, or of the matches of a pattern with `*`, `?` or `[...]`; sorted.
    fn list(&mut self, path: &str) -> Result<Vec<String>, HostError> {
        Err(HostError::unavailable(format!("{path} cannot be listed: files")))
    }

    /// An unpredictable number.
    fn entropy(&mut self) -> Result<u32, HostError> {
        Err(HostError::unavailable("sources of entropy"))
    }

    /// The program's own command line arguments.
    fn arguments(&self) -> Vec<String> {
        Vec::new()
    }

    /// An environment variable.
    fn variable(&self, _name: &str) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    /// True if [`Host::metric`] does something.
    fn wants_metrics(&self) -> bool {
        false
    }

    /// Logs a metric.
    fn metric(&mut self, _metric: &Metric) -> Result<(), HostError> {
        Ok(())
    }

    /// Shows the progress of a loop of `total` steps until the result is dropped.
    fn progress(&mut self, _label: &str, _total: u64) -> Box<dyn Bar> {
        Box::new(())
    }

    /// Draws a picture to a file, whose extension is the format: `png` or `svg`.
    fn plot(&mut self, path: &str, _plot: &Plot) -> Result<(), HostError> {
        Err(HostError::unavailable(format!("{path} cannot be drawn: plots")))
    }

    /// Milliseconds since the start of 1970 in UTC.
    fn milliseconds(&self) -> Result<i64, HostError> {
        Err(HostError::unavailable("clocks"))
    }
}

/// Writes the content of a file.
pub type Writing<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// The result of a job on another thread.
#[derive(Debug)]
pub struct Pending<T>(mpsc::Receiver<T>);

impl<T: Send + 'static> Pending<T> {
    /// Gives a host a job; `None` if it has no other thread.
    pub fn start(host: &mut dyn Host, job: impl FnOnce() -> T + Send + 'static) -> Option<Pending<T>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let started = host.in_background(Box::new(move || {
            // Without a receiver the result is no longer wanted.
            let _ = sender.send(job());
        }));
        started.then_some(Pending(receiver))
    }

    /// Waits for the result; `None` if the thread ended without one.
    pub fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// A number of `(log-metric name value)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric<'a> {
    /// Its name.
    pub name: &'a str,
    /// The step, if the program gives it.
    pub step: Option<i64>,
    /// The number.
    pub value: f64,
}

/// The progress of a loop.
pub trait Bar {
    /// Notes that a step is done.
    fn advance(&mut self);
}

/// Shows nothing.
impl Bar for () {
    fn advance(&mut self) {}
}

/// The package of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPackage {
    /// Its name; its own tests and examples use it by that.
    pub name: Option<String>,
    /// The folder of its sources, as a path of the same form as that of the program.
    pub sources: String,
}

/// An error of the host: its cause and fix, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The attempt and its failure.
    pub message: String,
    /// The fix.
    pub help: Option<String>,
}

impl HostError {
    /// The error of a host without `what`.
    fn unavailable(what: impl fmt::Display) -> HostError {
        HostError { message: format!("{what} are not available where this program runs"), help: None }
    }
}

impl From<FileChanged> for HostError {
    fn from(changed: FileChanged) -> HostError {
        HostError { message: changed.message, help: Some(changed.help) }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One tensor argument or result of a compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The key path within the arguments or the result, such as `params.l1.W`.
    pub path: String,
    /// Its type.
    pub ty: TensorType,
}

/// A check of a program.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The condition and the message.
    pub site: Arc<Site>,
    /// The name of the file without its folder, the line and the column.
    pub place: String,
}

/// Path of the result that holds the failed check: 0, or the position of the first that failed, and its operands.
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
    /// The results, in flattening order; if the program has checks, [`FLAG`] is the last.
    pub outputs: Vec<Leaf>,
    /// The checks: the flag gives one by its position, counted from 1.
    pub checks: Vec<Checked>,
    /// The values that tracing asked for: path and value.
    pub statics: Vec<(String, String)>,
}

/// The specialisation of a program compiled by an earlier run or a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// As [`Unit::inputs`].
    pub inputs: Vec<Leaf>,
    /// As [`Unit::statics`].
    pub statics: Vec<(String, String)>,
}

impl Kept {
    /// True if it may be the specialisation of `unit`. Weak types are those of others in a program, so a manifest has one
    /// specialisation for both.
    pub fn serves(&self, unit: &Unit) -> bool {
        let same =
            |(a, b): (&Leaf, &Leaf)| a.path == b.path && a.ty.dtype == b.ty.dtype && a.ty.shape == b.ty.shape;
        self.inputs.len() == unit.inputs.len()
            && self.inputs.iter().zip(&unit.inputs).all(same)
            && self.statics == unit.statics
    }
}

/// Compiled execution. `lang` hands over graphs and opaque buffers; what a buffer is, only the backend knows.
pub trait Backend {
    /// Compiles or finds a unit. `Ok(None)` if units cannot be compiled here: then it is interpreted (the backend has
    /// warned).
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError>;

    /// [`Backend::prepare`] for the instrumented twin of a function, which can do without: `Ok(None)` if that cannot be
    /// compiled, which never fails the run.
    fn prepare_twin(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.prepare(unit)
    }

    /// Programs of a function compiled by an earlier run or a build.
    fn kept(&mut self, _function: &str, _transform: &str) -> Vec<Kept> {
        Vec::new()
    }

    /// The program of a unit, if it is one of those; compiles nothing.
    fn find_kept(&mut self, _unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(None)
    }

    /// The arguments of a prepared unit to donate, and after how many calls; `None` if donation does not pay.
    fn donation(&self, _unit: &Unit) -> Option<Donating> {
        None
    }

    /// The unit with donated arguments, if it was compiled before; compiles nothing.
    fn find_donating(
        &mut self,
        _unit: &Unit,
        _donations: &[Donation],
        _plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(None)
    }

    /// Compiles the unit with donated arguments, which [`find_donating`](Self::find_donating) has not found.
    fn prepare_donating(
        &mut self,
        _unit: &Unit,
        _donations: &[Donation],
        _plain: &Rc<dyn Program>,
    ) -> Result<DonatingProgram, HostError> {
        Ok(DonatingProgram::None)
    }

    /// The reason the last unit was not compiled, a clause.
    fn refusal(&self) -> String {
        "there is no compiler".into()
    }

    /// Sets the handle that interrupts the evaluation, and with it a compilation.
    fn stopped_by(&mut self, _interrupt: Interrupt) {}

    /// Sets the receiver of the times of its work; `None` ends that.
    fn observed_by(&mut self, _timeline: Option<Rc<dyn Timeline>>) {}

    /// Copies a tensor to the device.
    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError>;
}

/// Donated arguments of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donating {
    /// The arguments, and the results that reuse their memory.
    pub donations: Vec<Donation>,
    /// The number of calls after which the donating program is compiled.
    pub after: u64,
}

/// The answer to a request for a donating program.
pub enum DonatingProgram {
    /// The program.
    Ready(Rc<dyn Program>),
    /// A compilation beside the run; to be asked for again once the flag is raised.
    Pending(Arc<AtomicBool>),
    /// No program: the compiler fails, or the results differ from those of the plain program.
    None,
}

/// A compiled unit.
pub trait Program: Any {
    /// Runs the program on buffers in the order of [`Unit::inputs`], which it consumes; appends the results in the
    /// order of [`Unit::outputs`]. Results stay on the device. A buffer without other references may become a result.
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError>;

    /// Its placement.
    fn placement(&self) -> Placement {
        Placement::default()
    }
}

/// Placement and donation of a program, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The backend's name of the placement.
    pub model: String,
    /// The reason for it, a clause.
    pub why: String,
    /// A warning about it, a sentence.
    pub note: Option<String>,
    /// A clause on the compiler's flags, if they are not the usual ones.
    pub flags: Option<String>,
    /// Number of arguments that a call donates if there are no other references.
    pub donated: usize,
    /// Number of donating calls.
    pub donating_calls: u64,
}

/// A tensor on the device.
pub type Buffer = Rc<dyn DeviceTensor>;

/// A tensor on the device, opaque to the language.
pub trait DeviceTensor: Any {
    /// Copies the elements to the host.
    fn read(&self, ty: &TensorType) -> Result<HostTensor, HostError>;

    /// True if it is computed already, so that reading it does not block.
    fn is_ready(&self) -> bool {
        false
    }
}
