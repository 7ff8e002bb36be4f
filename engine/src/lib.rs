//! Sheaf as a library: sessions that load programs and call their functions, compiled.
//!
//! ```rust,standalone_crate
//! use sheaf_engine::{Session, Value, answer_compile_worker};
//!
//! const PROGRAM: &str = "
//! (defn init [seed]
//!   (let [[k1 k2] (random-split (random-key seed) 2)]
//!     {:l1 {:W (* 1.5 (random-normal k1 '[2 8])) :b (zeros '[8])}
//!      :l2 {:W (* 1.5 (random-normal k2 '[8 1])) :b (zeros '[1])}}))
//!
//! (defn forward [p x]
//!   (-> x (@ (get-in p [:l1 :W])) (+ (get-in p [:l1 :b])) tanh
//!       (@ (get-in p [:l2 :W])) (+ (get-in p [:l2 :b])) sigmoid))
//!
//! (defn loss [p x y] (mean (** (- (forward p x) y) 2)))
//!
//! (defn step [p x y]
//!   (let [[l g] ((value-and-grad loss) p x y)]
//!     (list (tree-map (fn [w d] (- w (* 2.0 d))) p g) l)))
//! ";
//!
//! fn main() -> Result<(), sheaf_engine::Error> {
//!     answer_compile_worker(); // the compiler runs in a process of its own: this program, started again
//!     let session = Session::builder().build()?;
//!     let xor = session.load_text("xor.shf", PROGRAM)?;
//!     let (init, step) = (xor.function("init")?, xor.function("step")?);
//!
//!     let x = Value::tensor(&[4, 2], &[0.0_f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
//!     let y = Value::tensor(&[4, 1], &[0.0_f32, 1.0, 1.0, 0.0]);
//!     let mut params = init.call(&[Value::from(0)])?;
//!     let mut loss = f64::INFINITY;
//!     for _ in 0..1_000 {
//!         let result = step.call(&[params, x.clone(), y.clone()])?.items().expect("a list");
//!         loss = result[1].to_f64()?;
//!         params = result[0].clone();
//!     }
//!     assert!(loss < 0.02, "{loss}");
//!
//!     let weights = params.get("l1").and_then(|layer| layer.get("W")).expect("the first layer");
//!     assert_eq!(weights.shape(), Some(&[2, 8][..]));
//!     assert_eq!(weights.elements::<f32>()?.len(), 16);
//!     Ok(())
//! }
//! ```
//!
//! Below the sessions is the [`Engine`]: a specialised function becomes a program by way of emission, action key, cache,
//! compiler and runtime. It shows nothing and reads no environment: its [`EngineConfig`] has folders, settings and secrets,
//! its [`Reporter`] receives progress and warnings. The command line is built on the same sessions.

mod action;
mod ahead;
mod audit;
mod background;
mod caches;
mod compile;
mod engine;
mod executor;
mod packages;
pub mod release;
mod report;
mod session;
mod settings;
mod trial;
mod tune;
mod worker;

pub use action::described;
pub use ahead::{BuildTarget, Faulty, Keep, Made, Plan, ProgramSource};
pub use audit::{Verdict, compare};
pub use caches::{STORE_SIZE, Secrets, remotes, signing_key, trusted_keys};
pub use compile::{CompileRun, CompileService, Compiled, fetching};
pub use engine::{Engine, EngineConfig};
pub use executor::Cluster;
pub use packages::{Dependencies, Packages};
pub use report::EngineReporter;
pub use session::{Error, Function, Module, Session, SessionBuilder, Value};
pub use settings::{project_of, settings_of};
// Types of the public interface.
pub use sheaf_artifacts::TuningFlag;
pub use sheaf_graph::tensor::DType;
pub use sheaf_lang::eval::{Jit, Location};
pub use sheaf_loader::{DevicePolicy, Donate, Job, Kernels, OpenGpu, PlacementPolicy, Reporter};
pub use sheaf_project::{Home, Options, Project};
pub use sheaf_syntax::Sources;
pub use sheaf_syntax::diagnostic::Diagnostic;
pub use tune::{Trial, TrialOutcome, Tuned};
pub use worker::{COMPILE_WORKER, WorkerCommand, answer_compile_worker, this_program};
