//! `sheaf build`: compiling ahead of time.

mod cluster;
mod emit;
mod pool;
mod shapes;
mod show;
mod verify;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_artifacts::{ActionKey, ArtifactFolder};
use sheaf_engine::{
    BuildTarget, CompileService, DevicePolicy, Engine, EngineConfig, Faulty, Keep, Made, Plan, Trial, Tuned,
};
use sheaf_lang::eval::{AbstractValue, FunctionName, Interp, Jit, Options, Refused};
use sheaf_project::Project;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::visible::visible;
use sheaf_target::{Destination, Processor};
use sheaf_toolchain::{CompileError, Toolchain};

use crate::cli::{BuildOptions, Emit, FunctionOptions, PullOptions, TuneOptions};
use crate::evaluator::{
    Failed, compile_service, engine_config, home, interpreter, on_large_stack, project_of, report_error,
    settings, worker,
};
use crate::messages;
use crate::packages::options::DependencyOptions;
use crate::run::main_program;
use crate::sources::read_source;
use crate::toolchain;
use pool::{Event, Request};
use show::{Built, Progress, Report};

pub use shapes::record;
pub(crate) use shapes::{Sources, read as read_shapes};
pub use verify::verify;

/// Compiles ahead, or shows the forms of a function.
pub fn build(options: &BuildOptions) -> ExitCode {
    let wrong = |message: &str, help: &str| {
        messages::error(message, Some(help));
        ExitCode::from(2)
    };
    if options.device != Destination::HOST && options.cpu != Processor::Host {
        let message = format!("--cpu is about the processor, and --device asks for {}", options.device);
        return wrong(&message, "leave one of them out");
    }
    if options.emit.is_some() && options.selection.functions.len() != 1 {
        return wrong(
            "--emit is about one function",
            "name one, as in `sheaf build --emit graph train.shf forward`",
        );
    }
    if options.output.is_some() && options.emit != Some(Emit::Vmfb) {
        return wrong("--output is for --emit vmfb: the other forms are printed", "send them on with > FILE");
    }
    if options.tune && (options.device != Destination::HOST || options.cpu != Processor::Host) {
        return wrong(
            "--tune measures programs on the processor of this machine",
            "leave out --device and --cpu; `sheaf tune --device` measures on a GPU",
        );
    }
    let device = DevicePolicy::Cpu;
    let extent = if options.tune { Extent::Tune { again: false, device } } else { Extent::Build };
    on_large_stack(|| build_here(options, None, extent))
}

/// Measures programs with sets of flags, and builds them with the fastest.
pub fn tune(options: &TuneOptions) -> ExitCode {
    let TuneOptions { selection, device, again, json, lock, network } = options.clone();
    let options = BuildOptions { json, tune: true, ..BuildOptions::plain(selection, lock, network) };
    on_large_stack(|| build_here(&options, None, Extent::Tune { again, device }))
}

/// Fetches the programs that a build would compile; it is an error if a cache does not have something.
pub fn pull(options: &PullOptions) -> ExitCode {
    let PullOptions { file, shapes, device, cpu, json, lock, network } = options.clone();
    let plain = BuildOptions::plain(FunctionOptions::all(file, shapes), lock, network);
    let options = BuildOptions { device, cpu, json, ..plain };
    on_large_stack(|| build_here(&options, None, Extent::Fetch))
}

/// Compiles ahead into a folder of compiled programs other than the project's.
pub fn into_folder(options: &BuildOptions, artifacts: &Path) -> Result<(), Failed> {
    build_here(options, Some(artifacts), Extent::Build)
}

/// The extent of a build.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Only programs in the caches.
    Fetch,
    /// Others are compiled.
    Build,
    /// Programs are measured with sets of flags first.
    Tune {
        /// Those that have a tuning record too.
        again: bool,
        /// The device to measure on.
        device: DevicePolicy,
    },
}

fn build_here(options: &BuildOptions, artifacts: Option<&Path>, extent: Extent) -> Result<(), Failed> {
    let (file, project) = match &options.selection.file {
        Some(file) => (file.clone(), project_of(file)?),
        None => main_program()?,
    };
    let text = read_source(&file)?;
    let how = Options { jit: Jit::Never, no_bounds_check: options.no_bounds_check, ..Options::default() };
    let mut interp = interpreter(how, &project, &DependencyOptions::of(&options.lock, &options.network))?;
    if options.emit == Some(Emit::Forms) {
        return emit::forms(interp, &file, &text, &options.selection.functions[0]);
    }
    let mut builder = Builder { options, artifacts, extent, failures: Vec::new(), interpreted: Vec::new() };
    let prepared = interp.prepare_program(&file.display().to_string(), &text);
    let result = match prepared {
        Ok(()) => builder.run(&mut interp, &project),
        Err(errors) => {
            errors.iter().for_each(|e| messages::show(&interp.sources, e));
            Err(Failed)
        }
    };
    if builder.failures.is_empty() { result } else { Err(Failed) }
}

/// A function to be compiled.
struct Order {
    name: FunctionName,
    /// The arguments that it is specialised for. One of several may fail.
    variants: Vec<Vec<AbstractValue>>,
    /// True if the user named it.
    named: bool,
}

/// A function that was specialised.
struct Specialised {
    plan: Plan,
    name: FunctionName,
    /// Other functions that become the same program.
    same: Vec<String>,
    /// The outcome of its tuning, if that was wanted.
    tuned: Option<Tuned>,
}

/// Need for a program, and the consequence of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The build has failed.
    Wanted,
    /// Nothing: a run does without it.
    Welcome,
}

/// One build.
struct Builder<'a> {
    options: &'a BuildOptions,
    /// Folder of the programs; `None` for the project's.
    artifacts: Option<&'a Path>,
    extent: Extent,
    failures: Vec<(String, Diagnostic)>,
    interpreted: Vec<(String, Diagnostic)>,
}

impl Builder<'_> {
    fn run(&mut self, interp: &mut Interp, project: &Project) -> Result<(), Failed> {
        let orders = self.orders(interp)?;
        let options = self.options;
        let destination = match &options.device {
            Destination::Cpu(_) => Destination::Cpu(options.cpu),
            other => other.clone(),
        };
        let home = home()?;
        let mut settings = settings(&options.lock.network(&options.network), project, &home)?;
        let compiler = toolchain::used(&mut settings, project)?;
        let mut goal = BuildTarget { destination, debug: options.debug, compiler, tries: true };
        if let Some(form @ (Emit::Graph | Emit::Grad | Emit::Stablehlo)) = options.emit {
            return emit::text(interp, &orders, form, &goal);
        }
        let compile_service = compile_service(home.clone(), settings.clone(), compiler)?;
        let folder = self.artifacts.map_or_else(|| project.artifact_folder(), Path::to_owned);
        let artifacts = ArtifactFolder::owned(folder, project.owners.clone());
        let mut config = EngineConfig {
            recompile: options.recompile,
            strict: true,
            ..engine_config(home, artifacts, settings, compiler)?
        };
        if let Extent::Tune { device, .. } = self.extent {
            config.policies.device = device;
        }
        let mut engine = Engine::new(config).map_err(report_error)?;
        if self.extent == Extent::Fetch {
            engine.be_patient();
        }
        if matches!(self.extent, Extent::Tune { .. }) {
            installed(&compile_service)?;
            if let Some(gpu) = engine.gpu() {
                goal.destination = gpu.destination.clone();
                eprintln!("measuring on {}", gpu.gpu);
            }
        }
        let mut plans = self.plans(interp, &orders, &goal);
        for specialised in &mut plans {
            self.tune(&mut engine, specialised)?;
        }
        let mut built = self.compile(interp, &engine, &compile_service, plans, Need::Wanted)?;
        if options.emit.is_none() {
            // Programs that a run would make after some calls.
            let in_place = built.iter().filter_map(|b| {
                let plan = engine.donating(&b.plan, &b.made)?;
                Some(Specialised { plan, name: b.name.clone(), same: Vec::new(), tuned: None })
            });
            let in_place = in_place.collect();
            built.extend(self.compile(interp, &engine, &compile_service, in_place, Need::Welcome)?);
        }
        if options.emit == Some(Emit::Vmfb) {
            return emit::vmfb(&built, &goal, options);
        }
        let root = self.artifacts.and_then(Path::parent);
        let report = Report { built: &built, failures: &self.failures, interpreted: &self.interpreted, root };
        report.show(interp, options.json)
    }

    /// The functions to compile.
    fn orders(&mut self, interp: &mut Interp) -> Result<Vec<Order>, Failed> {
        let mut recorded = match &self.options.selection.shapes {
            Some(path) => shapes::read(interp, path, Sources::Recorded).map_err(|e| {
                messages::show(&interp.sources, &e);
                Failed
            })?,
            None => Vec::new(),
        };
        let mut orders: Vec<Order> = Vec::new();
        if self.options.selection.functions.is_empty() {
            for declared in interp.declared_functions() {
                orders.push(Order { name: declared.name, variants: declared.variants, named: false });
            }
        }
        let mut wanted = HashSet::new();
        for text in &self.options.selection.functions {
            let name = match interp.function_name(text) {
                Ok(name) => name,
                Err(error) => {
                    self.fail(interp, text.clone(), error);
                    continue;
                }
            };
            if !wanted.insert(name.clone()) {
                continue;
            }
            let is_it = |of: &FunctionName| (&of.module, &of.name) == (&name.module, &name.name);
            if recorded.iter().any(|call| is_it(&call.function)) {
                continue;
            }
            match interp.declared_types(&name) {
                Ok(variants) => orders.push(Order { name, variants, named: true }),
                Err(error) => self.fail(interp, text.clone(), error),
            }
        }
        if !self.options.selection.functions.is_empty() {
            recorded.retain(|call| {
                wanted.iter().any(|w| (&w.module, &w.name) == (&call.function.module, &call.function.name))
            });
        }
        orders.extend(recorded.into_iter().map(|call| Order {
            name: call.function,
            variants: vec![call.arguments],
            named: true,
        }));
        if orders.is_empty() && self.failures.is_empty() {
            let help = "give the parameters of a function types, as in (x f32 [4 2]), or record a run with `sheaf run \
                        FILE --record shapes.json` and build with `--shapes shapes.json`";
            messages::error("there is nothing to build: no function has typed parameters", Some(help));
            return Err(Failed);
        }
        Ok(orders)
    }

    fn plans(&mut self, interp: &mut Interp, orders: &[Order], goal: &BuildTarget) -> Vec<Specialised> {
        let mut plans: Vec<Specialised> = Vec::new();
        let mut known: HashMap<ActionKey, usize> = HashMap::new();
        for Order { name, variants, named } in orders {
            let mut refused: Option<Box<Refused>> = None;
            let mut any = false;
            for arguments in variants {
                match interp.specialise_ahead(name, arguments) {
                    Ok(unit) => {
                        any = true;
                        let plan = Plan::new(unit, goal);
                        match known.entry(plan.key()) {
                            Entry::Vacant(place) => {
                                place.insert(plans.len());
                                let (name, same, tuned) = (name.clone(), Vec::new(), None);
                                plans.push(Specialised { plan, name, same, tuned });
                            }
                            Entry::Occupied(place) => {
                                let first = &mut plans[*place.get()];
                                let shown = plan.name().to_owned();
                                if first.plan.name() != shown && !first.same.contains(&shown) {
                                    first.same.push(shown);
                                }
                            }
                        }
                        // One file is one program.
                        if self.options.emit.is_some() {
                            break;
                        }
                    }
                    Err(reason) => refused = refused.or(Some(reason)),
                }
            }
            if let Some(refused) = refused.filter(|_| !any) {
                let Refused { by_design, diagnostic } = *refused;
                if by_design && !named {
                    self.interpreted.push((name.to_string(), diagnostic));
                } else {
                    self.fail(interp, name.to_string(), diagnostic);
                }
            }
        }
        plans
    }

    /// Gives a plan the flags of its tuning record, which is made now if that is wanted.
    fn tune(&self, engine: &mut Engine, specialised: &mut Specialised) -> Result<(), Failed> {
        let Extent::Tune { again, .. } = self.extent else {
            engine.apply_records(&mut specialised.plan);
            return Ok(());
        };
        let name = specialised.plan.name().to_owned();
        let progress = |trial: &Trial| eprintln!("{}", visible(&show::trial(&name, trial)));
        specialised.tuned = Some(engine.tune(&mut specialised.plan, again, progress).map_err(report_error)?);
        Ok(())
    }

    /// Takes programs from the caches, and compiles the rest.
    fn compile(
        &mut self,
        interp: &mut Interp,
        engine: &Engine,
        compile_service: &CompileService,
        plans: Vec<Specialised>,
        need: Need,
    ) -> Result<Vec<Built>, Failed> {
        let keep = if self.options.emit.is_some() { Keep::Cache } else { Keep::Project };
        let mut made: Vec<Option<Made>> = Vec::new();
        for Specialised { plan, .. } in &plans {
            let kept =
                if self.options.recompile { None } else { engine.kept(plan, keep).map_err(report_error)? };
            made.push(kept);
        }
        if self.extent == Extent::Fetch {
            let absent = made.iter().zip(&plans).filter(|(made, _)| made.is_none() && need == Need::Wanted);
            let names: Vec<String> = absent.map(|(_, plan)| plan.plan.name().to_owned()).collect();
            for name in names {
                let help = "compile it where there is a compiler, and send it with `sheaf cache push`";
                let error =
                    Diagnostic::error(format!("no cache has a program of {name}")).help(help.to_owned());
                self.fail(interp, name, error);
            }
            let built =
                made.into_iter().zip(plans).filter_map(|(made, Specialised { plan, name, same, tuned })| {
                    made.map(|made| Built { plan, name, same, tuned, made })
                });
            return Ok(built.collect());
        }
        let missing = |made: &[Option<Made>]| -> Vec<usize> {
            (0..plans.len()).filter(|i| made[*i].is_none()).collect()
        };
        let named = |ids: &[usize]| ids.iter().map(|id| plans[*id].plan.name().to_owned()).collect();
        let jobs = self.options.jobs.map(usize::from);
        if let Some((cluster, home)) = compile_service.cluster() {
            let ids = missing(&made);
            let mut progress = Progress::new(named(&ids));
            let at_once = jobs.unwrap_or(cluster::MAX_CONCURRENT);
            let job = |id: usize| plans[id].plan.job(0);
            cluster::compile(cluster, home, at_once, &ids, job, |event| {
                match event {
                    cluster::Event::Begun(id) => progress.begun(plans[id].plan.name()),
                    // Faulty programs are compiled again here, as are those the cluster did not compile.
                    cluster::Event::Done(_, None) => {}
                    cluster::Event::Done(id, Some((bytes, run))) => {
                        let program = engine
                            .accept(&plans[id].plan, 0, bytes, Some(run), keep)
                            .map_err(report_error)?;
                        made[id] = program.ok();
                        progress.done(plans[id].plan.name());
                    }
                }
                Ok(())
            })?;
        }
        let missing = missing(&made);
        if !missing.is_empty() {
            let toolchain = installed(compile_service)?;
            let request = |id: usize, candidate: usize| {
                let job = plans[id].plan.job(candidate);
                Request {
                    id,
                    key: job.action.key(),
                    program: job.action.program.clone(),
                    attempts: job.action.attempts(),
                    limit: job.limit,
                }
            };
            let mut progress = Progress::new(named(&missing));
            let jobs = jobs
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
            let mut candidates = vec![0; plans.len()];
            // The error to show is that of the best candidate.
            let mut first: Vec<Option<Faulty>> = Vec::new();
            first.resize_with(plans.len(), || None);
            let requests = missing.iter().map(|id| request(*id, 0)).collect();
            let store = (!self.options.recompile).then(|| engine.store());
            pool::compile(&worker()?, &toolchain, store, jobs, requests, |event| {
                // Until the program is kept, or not.
                let (id, result, _turn) = match event {
                    Event::Begun(id) => {
                        progress.begun(plans[id].plan.name());
                        return Ok(None);
                    }
                    Event::Done(id, result, turn) => (id, result, turn),
                };
                let Specialised { plan, name, .. } = &plans[id];
                let faulty = match result {
                    Ok((bytes, run)) => {
                        match engine.accept(plan, candidates[id], bytes, run, keep).map_err(report_error)? {
                            Ok(program) => {
                                made[id] = Some(program);
                                progress.done(plan.name());
                                return Ok(None);
                            }
                            Err(faulty) => faulty,
                        }
                    }
                    Err(error) => {
                        if is_gone(&error) {
                            messages::error(&error, Some(&error.remedy()));
                            return Err(Failed);
                        }
                        Faulty { error: error.to_string(), remedy: error.remedy() }
                    }
                };
                let faulty = first[id].take().unwrap_or(faulty);
                candidates[id] += 1;
                if candidates[id] < plan.candidates() {
                    first[id] = Some(faulty);
                    return Ok(Some(request(id, candidates[id])));
                }
                progress.done(plan.name());
                if need == Need::Welcome {
                    return Ok(None);
                }
                let shown = plan.name().to_owned();
                let error = Diagnostic::error(format!("{shown} cannot be compiled: {}", faulty.error));
                let error = match interp.function_place(name) {
                    Some((span, _)) => error.at(span, "this function"),
                    None => error,
                };
                progress.interrupt(|| {
                    messages::show(&interp.sources, &error.clone().help(faulty.remedy.clone()));
                });
                self.failures.push((shown, error));
                Ok(None)
            })?;
        }
        let built =
            made.into_iter().zip(plans).filter_map(|(made, Specialised { plan, name, same, tuned })| {
                made.map(|made| Built { plan, name, same, tuned, made })
            });
        Ok(built.collect())
    }

    /// Shows why a function cannot be built; the others still are.
    fn fail(&mut self, interp: &Interp, name: String, error: Diagnostic) {
        messages::show(&interp.sources, &error);
        self.failures.push((name, error));
    }
}

/// True if the compiler would fail for every program.
fn is_gone(error: &CompileError) -> bool {
    matches!(error, CompileError::Start { .. } | CompileError::Load { .. } | CompileError::Version { .. })
}

/// The compiler; without one nothing is built.
fn installed(compile_service: &CompileService) -> Result<Toolchain, Failed> {
    match compile_service.find_toolchain() {
        Ok(Ok(toolchain)) => Ok(toolchain),
        Ok(Err(absent)) => {
            messages::error(format!("there is no compiler: {}", absent.why), Some(&absent.remedy));
            Err(Failed)
        }
        Err(error) => {
            messages::error(&error, error.help.as_deref());
            Err(Failed)
        }
    }
}

/// Default path of a program written by `--emit vmfb`.
fn default_output(function: &str, device: &str) -> PathBuf {
    // A function's name may hold any character.
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    PathBuf::from(format!("{}.{device}.vmfb", function.chars().map(plain).collect::<String>()))
}
