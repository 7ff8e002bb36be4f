//! Sessions: Sheaf as a library, with the pinned compiler.

use std::process::Command;
use std::sync::{Arc, Mutex};

use sheaf_engine::{EngineReporter, Error, Reporter, Session, SessionBuilder, Value};
use sheaf_lang::eval::Jit;
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_tests::Sandbox;

const PROGRAM: &str = "\
(defn init [seed]
  (let [[k1 k2] (random-split (random-key seed) 2)]
    {:l1 {:W (* 1.5 (random-normal k1 '[2 8])) :b (zeros '[8])}
     :l2 {:W (* 1.5 (random-normal k2 '[8 1])) :b (zeros '[1])}}))
(defn forward [p x]
  (let [h (tanh (+ (@ x (get-in p [:l1 :W])) (get-in p [:l1 :b])))]
    (sigmoid (+ (@ h (get-in p [:l2 :W])) (get-in p [:l2 :b])))))
(defn loss [p x y] (mean (** (- (forward p x) y) 2)))
(defn step [p x y]
  (let [[l g] ((value-and-grad loss) p x y)]
    (list (tree-map (fn [w d] (- w (* 2.0 d))) p g) l)))
";

/// Everything that a session reports.
#[derive(Default)]
struct Reports(Mutex<Vec<String>>);

impl Reporter for Reports {
    fn warning(&self, _: &Sources, warning: &Diagnostic) {
        self.0.lock().expect("a lock").push(format!("warning: {}", warning.message));
    }

    fn begin(&self, work: &str) -> Box<dyn std::any::Any> {
        self.0.lock().expect("a lock").push(work.to_owned());
        Box::new(())
    }
}

impl EngineReporter for Reports {}

fn builder(sandbox: &Sandbox) -> SessionBuilder {
    let home = sandbox.home().display().to_string();
    let sheaf = sheaf_tests::sheaf();
    Session::builder()
        .environment(move |name| (name == "SHEAF_HOME").then(|| home.clone()))
        .project(sandbox.path(""))
        .worker(Arc::new(move || {
            let mut command = Command::new(&sheaf);
            command.arg(sheaf_engine::COMPILE_WORKER);
            command
        }))
}

/// The losses of a training from a seed.
fn train(session: &Session, seed: i64, steps: usize) -> Result<Vec<f64>, Error> {
    let program = session.load_text("xor.shf", PROGRAM)?;
    let (init, step) = (program.function("init")?, program.function("step")?);
    let x = Value::tensor(&[4, 2], &[0.0_f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    let y = Value::tensor(&[4, 1], &[0.0_f32, 1.0, 1.0, 0.0]);
    let mut params = init.call(&[Value::from(seed)])?;
    let mut losses = Vec::new();
    for _ in 0..steps {
        let result = step.call(&[params, x.clone(), y.clone()])?.items().expect("a list");
        losses.push(result[1].to_f64()?);
        params = result[0].clone();
    }
    Ok(losses)
}

#[test]
fn two_sessions_in_two_threads_train_at_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let interpreted = train(&builder(&sandbox).jit(Jit::Never).build().unwrap(), 0, 300).unwrap();
    let losses: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let start = || {
            scope.spawn(|| {
                let reports = Arc::new(Reports::default());
                let session =
                    builder(&sandbox).jit(Jit::Always).strict(true).reporter(Arc::clone(&reports) as _);
                let losses = train(&session.build().unwrap(), 0, 300).unwrap();
                let reports = reports.0.lock().unwrap();
                assert!(!reports.iter().any(|line| line.starts_with("warning")), "{reports:?}");
                losses
            })
        };
        let threads = [start(), start()];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(losses[0], losses[1]);
    for (step, (a, b)) in losses[0].iter().zip(&interpreted).enumerate() {
        assert!((a - b).abs() < 1e-3, "step {step}: {a} compiled, {b} interpreted");
    }
    assert!(losses[0][299] < 0.1, "{}", losses[0][299]);
}

#[test]
fn errors_are_data_and_leave_the_session_usable() {
    let sandbox = Sandbox::new();
    let session = builder(&sandbox).jit(Jit::Never).build().unwrap();
    let error = session.load_text("broken.shf", "(defn f [x] (+ x y))").unwrap_err();
    assert_eq!(error.diagnostics()[0].message, "unknown name y");
    let location = error.locations()[0].as_ref().expect("a place");
    assert_eq!((location.file.as_str(), location.line, location.column), ("broken.shf", 1, 18));

    let program = session.load_text("m.shf", "(defn f [x] (@ x x))\n(def rate 0.5)").unwrap();
    assert_eq!(program.value("rate").unwrap().to_f64().unwrap(), 0.5);
    let unknown = program.function("g").unwrap_err();
    assert_eq!(unknown.diagnostics()[0].message, "m.shf does not define g");

    let f = program.function("f").unwrap();
    let error = f.call(&[Value::tensor(&[2, 3], &[0.0_f32; 6])]).unwrap_err();
    insta::assert_snapshot!(error.to_string());
    let arity = f.call(&[]).unwrap_err();
    insta::assert_snapshot!(arity.to_string());

    let square = f.call(&[Value::tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])]).unwrap();
    assert_eq!(square.elements::<f32>().unwrap(), [7.0, 10.0, 15.0, 22.0]);
    assert!(square.elements::<i32>().unwrap_err().to_string().contains("expected a tensor of i32"));
}

#[test]
fn values_go_in_and_come_out_nested() {
    let sandbox = Sandbox::new();
    let session = builder(&sandbox).jit(Jit::Never).build().unwrap();
    let text = "(defn swap [d] {:b (:a d) :a (:b d) :n (len (:b d))})";
    let swap = session.load_text("m.shf", text).unwrap().function("swap").unwrap();
    let given = Value::dict([
        ("a", Value::tensor(&[3], &[1_i32, 2, 3])),
        ("b", Value::list([Value::from(2), Value::from(0.5), Value::from(true), Value::from("text")])),
    ]);
    let result = swap.call(&[given]).unwrap();
    let entries = result.entries().unwrap();
    assert_eq!(entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["b", "a", "n"]);
    assert_eq!(result.get("b").unwrap().elements::<i32>().unwrap(), [1, 2, 3]);
    let items = result.get("a").unwrap().items().unwrap();
    assert_eq!((items[0].to_f64().unwrap(), items[1].to_f64().unwrap()), (2.0, 0.5));
    assert_eq!(items[3].as_str(), Some("text"));
    assert_eq!(result.get("n").unwrap().to_f64().unwrap(), 4.0);
}
