//! Compilation of a donating program while the plain one runs on.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use sheaf_artifacts::ArtifactFolder;
use sheaf_engine::{Engine, EngineConfig, EngineReporter, Home, Options, Reporter};
use sheaf_graph::graph::Donation;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{self, Interp, Jit, Status};
use sheaf_lang::host::{Backend, Buffer, Donating, DonatingProgram, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use sheaf_project::Settings;
use sheaf_tests::Sandbox;

/// An engine whose donating programs are due after the first call.
struct Due {
    engine: Engine,
    /// The answers to looks and requests for them.
    answers: Rc<RefCell<Vec<&'static str>>>,
    /// A file that is made once there is one.
    made: PathBuf,
}

impl Backend for Due {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.engine.prepare(unit)
    }

    fn donation(&self, unit: &Unit) -> Option<Donating> {
        self.engine.donation(unit).map(|donating| Donating { after: 1, ..donating })
    }

    fn find_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        let found = self.engine.find_donating(unit, donations, plain)?;
        self.answers.borrow_mut().push(if found.is_some() { "found" } else { "not found" });
        Ok(found)
    }

    fn prepare_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<DonatingProgram, HostError> {
        let answer = self.engine.prepare_donating(unit, donations, plain)?;
        self.answers.borrow_mut().push(match &answer {
            DonatingProgram::Ready(_) => {
                std::fs::write(&self.made, "").expect("a file");
                "ready"
            }
            DonatingProgram::Pending(_) => "pending",
            DonatingProgram::None => "none",
        });
        Ok(answer)
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.engine.upload(tensor)
    }
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Reporter for Notes {
    fn note(&self, line: &str) {
        self.0.lock().expect("a lock").push(line.to_owned());
    }
}

impl EngineReporter for Notes {}

/// A hundred steps on a megabyte, and more until the file is there.
const STEPS: &str = "
(defn step [w x] (- w (* 0.001 (* w x))))
(defn steps [w]
  (let [w (repeat [i 100] [w w] (step w 0.5))]
    (if (io \"exists\" \"FILE\") w (recur w))))
(print (shape (steps (steps (ones [512 512])))))
";

/// Runs the steps until that file is there; the answers, the lines said, and the number of calls, those in place apart.
fn run(sandbox: &Sandbox, file: &str) -> (Vec<&'static str>, Vec<String>, [u64; 2]) {
    let home = sandbox.home().display().to_string();
    let environment = move |name: &str| (name == "SHEAF_HOME").then(|| home.clone());
    let settings =
        Settings::merge(None, None, |_| false, &environment, &Options::default()).expect("settings");
    let home = Home::locate(environment).expect("a home folder");
    let artifacts = ArtifactFolder::open(sandbox.path("__sheaf__"));
    let notes = Arc::new(Notes::default());
    let config = EngineConfig::new(
        home,
        artifacts,
        settings,
        sheaf_target::Release::host(),
        Arc::new(sheaf_tests::worker),
    );
    let engine =
        Engine::new(EngineConfig { reporter: Arc::<Notes>::clone(&notes), ..config }).expect("an engine");
    let answers = Rc::default();
    let backend = Due { engine, answers: Rc::clone(&answers), made: sandbox.path("made") };
    let options = eval::Options { jit: Jit::Always, ..eval::Options::default() };
    let host = SystemHost::new(Vec::new(), Arc::new(()));
    let mut interp = Interp::new(Box::new(host), Some(Box::new(backend)), options);
    let text = STEPS.replace("FILE", &sandbox.path(file).display().to_string());
    let ended = interp.run_text(&Interp::program("steps"), "steps", &text);
    assert!(ended.is_ok(), "{ended:?}");
    let reports = interp.reports();
    let step = reports.iter().find(|report| report.function == "step").expect("the step");
    let calls = &step.specialisations[0];
    let Status::Compiled(placement) = &calls.status else { panic!("{calls:?}") };
    let counts = [calls.compiled_calls, placement.donating_calls];
    let (answers, notes) = (answers.borrow().clone(), notes.0.lock().expect("a lock").clone());
    (answers, notes, counts)
}

#[test]
fn a_donating_program_is_compiled_while_the_plain_one_runs_on() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let (answers, notes, [calls, in_place]) = run(&sandbox, "made");
    assert_eq!(answers, ["not found", "pending", "ready"]);
    let begun =
        notes.iter().filter(|note| note.starts_with("compiling step, which writes its results over")).count();
    assert_eq!(begun, 1, "{notes:?}");
    assert!((100..calls - 1).contains(&in_place), "{in_place} of {calls} calls in place");
    // Kept by then.
    let (answers, _, [calls, in_place]) = run(&sandbox, "made");
    assert_eq!((answers.as_slice(), calls), (&["found"][..], 200));
    assert!(in_place + 3 >= calls, "{in_place} of {calls} calls in place");
}

/// The end of a run does not wait for the compiler.
#[test]
fn a_run_that_ends_first_ends_the_compilation() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("there", "");
    let (answers, _, [_, in_place]) = run(&sandbox, "there");
    assert_eq!((answers.as_slice(), in_place), (&["not found", "pending"][..], 0));
}
