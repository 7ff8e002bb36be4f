//! An in-memory host for programs under test, and a device that runs graphs on the host.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use sheaf_graph::graph::{Graph, evaluate, verify};
use sheaf_graph::tensor::{FileBytes, FileChanged, HostTensor, TensorType};
use sheaf_lang::builtins::repr;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{
    Backend, Bar, Buffer, DeviceTensor, Host, HostError, Metric, OwnPackage, Program, Unit,
};
use sheaf_lang::plot::Plot;
use sheaf_lang::program::Value;
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::render::render;

/// Files and captured output.
#[derive(Clone, Default)]
pub struct World {
    pub files: Rc<RefCell<HashMap<String, Vec<u8>>>>,
    pub printed: Rc<RefCell<Vec<String>>>,
    /// True if the last printed line is not finished.
    pub open: Rc<Cell<bool>>,
    pub warned: Rc<RefCell<Vec<String>>>,
    /// The threads that accessed bytes of mapped files, in order, if there is a thread for jobs.
    pub readers: Option<Arc<Mutex<Vec<ThreadId>>>>,
    /// Number of checks of mapped files that pass; those after them find the file changed.
    pub sound: Option<usize>,
    /// True from the time that mapped files lose bytes whenever they are read.
    pub torn: Arc<AtomicBool>,
    /// True if bytes were lost since the evaluator was told.
    pub lost: Arc<AtomicBool>,
    /// Folders of dependencies, by the folder of the package that asks and the name there.
    pub dependencies: Rc<RefCell<HashMap<(String, String), String>>>,
    /// Metrics, plots, and the begin, steps and end of bars.
    pub followed: Rc<RefCell<Vec<String>>>,
}

/// A bar that writes its steps down.
struct Steps(String, Rc<RefCell<Vec<String>>>);

impl Bar for Steps {
    fn advance(&mut self) {
        self.1.borrow_mut().push(format!("{} +1", self.0));
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.1.borrow_mut().push(format!("{} ends", self.0));
    }
}

impl World {
    /// A world with these files.
    pub fn with<B: AsRef<[u8]>>(files: &[(&str, B)]) -> World {
        let files = files.iter().map(|(path, bytes)| ((*path).into(), bytes.as_ref().to_vec())).collect();
        World { files: Rc::new(RefCell::new(files)), ..World::default() }
    }

    /// The same with dependencies: the folder of the package that asks, the name there, and the folder of the dependency.
    pub fn with_dependencies(self, dependencies: &[(&str, &str, &str)]) -> World {
        let entries =
            dependencies.iter().map(|(of, name, at)| (((*of).into(), (*name).into()), (*at).into()));
        self.dependencies.borrow_mut().extend(entries);
        self
    }
}

/// A mapped file that records who reads it.
struct Watched {
    path: String,
    bytes: Vec<u8>,
    readers: Arc<Mutex<Vec<ThreadId>>>,
    checks: AtomicUsize,
    sound: usize,
    torn: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
}

impl FileBytes for Watched {
    fn bytes(&self) -> &[u8] {
        self.lost.fetch_or(self.torn.load(Ordering::SeqCst), Ordering::SeqCst);
        let mut readers = self.readers.lock().expect("a lock");
        let this = std::thread::current().id();
        if readers.last() != Some(&this) {
            readers.push(this);
        }
        &self.bytes
    }

    fn check(&self) -> Result<(), FileChanged> {
        if self.checks.fetch_add(1, Ordering::SeqCst) < self.sound {
            return Ok(());
        }
        Err(FileChanged { message: format!("{} was changed", self.path), help: "load it again".into() })
    }
}

impl Host for World {
    fn map_file(&mut self, path: &str) -> Result<Arc<dyn FileBytes>, HostError> {
        let bytes = self.read_file(path)?;
        let Some(readers) = &self.readers else { return Ok(Arc::new(bytes)) };
        Ok(Arc::new(Watched {
            path: path.into(),
            bytes,
            readers: Arc::clone(readers),
            checks: AtomicUsize::new(0),
            sound: self.sound.unwrap_or(usize::MAX),
            torn: Arc::clone(&self.torn),
            lost: Arc::clone(&self.lost),
        }))
    }

    fn lost_bytes(&mut self) -> Option<HostError> {
        let lost = self.lost.swap(false, Ordering::SeqCst);
        lost.then(|| HostError { message: "a file lost bytes".into(), help: None })
    }

    fn in_background(&mut self, job: Box<dyn FnOnce() + Send>) -> bool {
        if self.readers.is_some() {
            std::thread::spawn(job);
        }
        self.readers.is_some()
    }

    fn print(&mut self, text: &str) -> Result<(), HostError> {
        let (mut lines, line) = (self.printed.borrow_mut(), text.strip_suffix('\n').unwrap_or(text));
        match lines.last_mut().filter(|_| self.open.get()) {
            Some(last) => last.push_str(line),
            None => lines.push(line.into()),
        }
        self.open.set(!text.ends_with('\n'));
        Ok(())
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        self.warned.borrow_mut().push(render(sources, warning, false));
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        match self.files.borrow().get(path) {
            Some(bytes) => Ok(bytes.clone()),
            None => Err(HostError { message: format!("{path} does not exist"), help: None }),
        }
    }

    fn own_package(&mut self, folder: &str) -> Result<Option<OwnPackage>, HostError> {
        let own = OwnPackage { name: Some("mine".into()), sources: "tests/../src".into() };
        Ok((folder == "tests").then_some(own))
    }

    fn dependency(&mut self, package: &str, name: &str) -> Result<Option<String>, HostError> {
        if name == "broken" {
            return Err(HostError {
                message: "it is not installed".into(),
                help: Some("run `sheaf install`".into()),
            });
        }
        Ok(self.dependencies.borrow().get(&(package.to_owned(), name.to_owned())).cloned())
    }

    fn wants_metrics(&self) -> bool {
        true
    }

    fn metric(&mut self, metric: &Metric) -> Result<(), HostError> {
        let step = metric.step.map_or_else(String::new, |step| format!(" at {step}"));
        self.followed.borrow_mut().push(format!("{} is {}{step}", metric.name, metric.value));
        Ok(())
    }

    fn progress(&mut self, label: &str, total: u64) -> Box<dyn Bar> {
        self.followed.borrow_mut().push(format!("{label} of {total}"));
        Box::new(Steps(label.to_owned(), Rc::clone(&self.followed)))
    }

    fn plot(&mut self, path: &str, plot: &Plot) -> Result<(), HostError> {
        self.followed.borrow_mut().push(format!("{path}: {plot:?}"));
        Ok(())
    }

    fn write_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), HostError> {
        self.files.borrow_mut().insert(path.into(), bytes.to_vec());
        Ok(())
    }

    fn exists(&mut self, path: &str) -> Result<bool, HostError> {
        Ok(self.files.borrow().contains_key(path))
    }

    fn list(&mut self, path: &str) -> Result<Vec<String>, HostError> {
        let files = self.files.borrow();
        let mut found: Vec<String> = match path.split_once('*') {
            Some((start, end)) => {
                files.keys().filter(|name| name.starts_with(start) && name.ends_with(end)).cloned().collect()
            }
            None => files.keys().filter(|name| name.starts_with(&format!("{path}/"))).cloned().collect(),
        };
        found.sort_unstable();
        Ok(found)
    }

    fn entropy(&mut self) -> Result<u32, HostError> {
        Ok(4_000_000_000)
    }

    fn arguments(&self) -> Vec<String> {
        vec!["--fast".into(), "3".into()]
    }

    fn variable(&self, name: &str) -> Result<Option<String>, HostError> {
        Ok((name == "HOME").then(|| "/home/of/tests".into()))
    }

    fn milliseconds(&self) -> Result<i64, HostError> {
        Ok(1_800_000_000_123)
    }
}

/// Runs a program; its warnings, its output, then the errors or the last value.
pub fn run(text: &str) -> String {
    run_in(&World::default(), text)
}

/// [`run`] with files.
pub fn run_in(world: &World, text: &str) -> String {
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    run_with(&mut interp, world, text)
}

/// Runs a program in an evaluator of that world.
pub fn run_with(interp: &mut Interp, world: &World, text: &str) -> String {
    let result = interp.run_program("test.shf", text);
    let mut out = std::mem::take(&mut *world.warned.borrow_mut());
    out.append(&mut world.printed.borrow_mut());
    match result {
        Ok(Value::Nil) => {}
        Ok(value) => out.push(format!("=> {}", repr(&value))),
        Err(errors) => out.extend(errors.iter().map(|d| render(&interp.sources, d, false))),
    }
    out.join("\n")
}

/// Checks the output and results of programs; an expectation that starts with `error:` is only the first line of a
/// message. Reports every failing program.
pub fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(program, wanted)| (program, wanted, run(program)))
        .filter(|(_, wanted, found)| {
            if wanted.starts_with("error:") {
                !found.starts_with(**wanted)
            } else {
                found.as_str() != **wanted
            }
        })
        .map(|(program, wanted, found)| format!("{program}\n  wanted {wanted}\n  found  {found}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Requests to a device.
#[derive(Default)]
pub struct Log {
    /// Units, in the order of their compilation.
    pub units: Vec<Unit>,
    /// Tensors sent to the device.
    pub uploads: usize,
    /// Tensors fetched from the device.
    pub reads: usize,
    /// Elements on the device.
    pub elements: usize,
}

/// A device that evaluates graphs by the primitives' host rules.
pub struct HostDevice {
    pub log: Rc<RefCell<Log>>,
    /// True if its programs are synchronous.
    pub at_once: bool,
}

struct HostProgram(Graph);

struct HostBuffer {
    value: HostTensor,
    log: Rc<RefCell<Log>>,
    ready: bool,
}

impl HostBuffer {
    fn share(value: HostTensor, log: &Rc<RefCell<Log>>, ready: bool) -> Buffer {
        log.borrow_mut().elements += value.count();
        Rc::new(HostBuffer { value, log: Rc::clone(log), ready })
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        self.log.borrow_mut().elements -= self.value.count();
    }
}

impl Backend for HostDevice {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        assert_eq!(verify(&unit.graph), Ok(()), "{}", unit.function);
        for (leaf, var) in unit.inputs.iter().zip(&unit.graph.inputs) {
            let strong = leaf.ty.with_dtype(leaf.ty.dtype);
            assert_eq!(&strong, unit.graph.ty(*var), "the type of parameter {}", leaf.path);
        }
        assert_eq!(unit.inputs.len(), unit.graph.inputs.len(), "a leaf for every parameter");
        assert_eq!(unit.outputs.len(), unit.graph.outputs.len(), "a leaf for every result");
        self.log.borrow_mut().units.push(unit.clone());
        let program = HostProgram(unit.graph.clone());
        Ok(Some(Rc::new(Logged { program, log: Rc::clone(&self.log), at_once: self.at_once })))
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.log.borrow_mut().uploads += 1;
        Ok(HostBuffer::share(tensor.clone(), &self.log, self.at_once))
    }
}

struct Logged {
    program: HostProgram,
    log: Rc<RefCell<Log>>,
    at_once: bool,
}

impl Program for Logged {
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError> {
        let graph = &self.program.0;
        let inputs: Vec<HostTensor> = arguments
            .iter()
            .map(|b| {
                (&**b as &dyn std::any::Any).downcast_ref::<HostBuffer>().expect("a buffer of this device")
            })
            .map(|b| b.value.clone())
            .collect();
        for (input, var) in inputs.iter().zip(&graph.inputs) {
            let ty = graph.ty(*var);
            assert_eq!((input.dtype(), input.shape()), (ty.dtype, ty.shape.as_slice()), "an argument's type");
        }
        let values = evaluate(graph, &inputs);
        results.extend(values.into_iter().map(|value| HostBuffer::share(value, &self.log, self.at_once)));
        Ok(())
    }
}

impl DeviceTensor for HostBuffer {
    fn read(&self, ty: &TensorType) -> Result<HostTensor, HostError> {
        self.log.borrow_mut().reads += 1;
        assert_eq!((self.value.dtype(), self.value.shape()), (ty.dtype, ty.shape.as_slice()));
        Ok(self.value.clone())
    }

    fn is_ready(&self) -> bool {
        self.ready
    }
}

/// An evaluator with a device, its world, and the device's log.
pub fn compiling(jit: Jit) -> (Interp, World, Rc<RefCell<Log>>) {
    compiling_in(jit, &[])
}

/// [`compiling`] on a synchronous device.
pub fn compiling_at_once(jit: Jit) -> (Interp, World, Rc<RefCell<Log>>) {
    compiling_on(jit, &[], true)
}

/// [`compiling`] with files.
pub fn compiling_in(jit: Jit, files: &[(String, String)]) -> (Interp, World, Rc<RefCell<Log>>) {
    compiling_on(jit, files, false)
}

fn compiling_on(jit: Jit, files: &[(String, String)], at_once: bool) -> (Interp, World, Rc<RefCell<Log>>) {
    let files = files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
    let world = World { files: Rc::new(RefCell::new(files.collect())), ..World::default() };
    let log = Rc::new(RefCell::new(Log::default()));
    let device = HostDevice { log: Rc::clone(&log), at_once };
    let interp =
        Interp::new(Box::new(world.clone()), Some(Box::new(device)), Options { jit, ..Options::default() });
    (interp, world, log)
}
