//! `sheaf verify`: compiled programs beside their manifest, and beside what the compiler makes of the sources.

use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;

use sheaf_artifacts::{ActionKey, ArtifactFolder, Entry, Lookup, TuningFlag};
use sheaf_engine::{BuildTarget, Job, Plan};
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_project::Project;
use sheaf_target::Destination;
use sheaf_toolchain::Compiler;

use super::{Builder, Extent, Order, installed};
use crate::cli::{BuildOptions, FunctionOptions, VerifyOptions};
use crate::evaluator::{
    Failed, compile_service, home, interpreter, on_large_stack, project_of, settings, worker,
};
use crate::messages;
use crate::output::print;
use crate::packages::options::DependencyOptions;
use crate::progress::Spinner;
use crate::run::main_program;
use crate::sources::read_source;
use crate::toolchain;

/// Runs `sheaf verify`.
pub fn verify(options: &VerifyOptions) -> ExitCode {
    on_large_stack(|| verify_here(options))
}

fn verify_here(options: &VerifyOptions) -> Result<(), Failed> {
    let (file, project) = match &options.file {
        Some(file) => (file.clone(), project_of(file)?),
        None => main_program()?,
    };
    let path = options.programs.clone().unwrap_or_else(|| project.artifact_folder());
    let folder = ArtifactFolder::owned(&path, project.owners.clone());
    let entries = folder.entries().map_err(|miss| {
        messages::error(&miss, miss.remedy());
        Failed
    })?;
    let mut programs = Vec::new();
    let mut failed = false;
    for entry in entries {
        match folder.find(&entry.key) {
            Lookup::Hit { bytes, .. } => programs.push((entry, bytes)),
            Lookup::Miss(miss) => {
                messages::error(&miss, miss.remedy());
                failed = true;
            }
        }
    }
    if programs.is_empty() && !failed {
        let help = "build it with `sheaf build`, or name a folder with --programs";
        messages::error(format!("{} has no compiled programs", path.display()), Some(help));
        return Err(Failed);
    }
    if options.rebuild {
        let jobs = {
            let text = read_source(&file)?;
            let evaluation = Options { jit: Jit::Never, ..Options::default() };
            let how = DependencyOptions::of(&options.lock, &options.network);
            let mut interp = interpreter(evaluation, &project, &how)?;
            interp.prepare_program(&file.display().to_string(), &text).map_err(|errors| {
                errors.iter().for_each(|error| messages::show(&interp.sources, error));
                Failed
            })?;
            possible(&mut interp, options, &project, &programs)?
        };
        failed |= !rebuild(options, &project, &programs, &jobs)?;
    } else {
        for (entry, _) in &programs {
            print(&format!("{}: as the manifest says\n", entry.file))?;
        }
    }
    if failed { Err(Failed) } else { Ok(()) }
}

/// Compilations of all programs that the sources may become on the devices of these entries. Flags come from here and never from a
/// manifest: the compiler can be told to write files.
fn possible(
    interp: &mut Interp,
    options: &VerifyOptions,
    project: &Project,
    programs: &[(Entry, Vec<u8>)],
) -> Result<HashMap<ActionKey, Job>, Failed> {
    let VerifyOptions { file, shapes, lock, network, .. } = options.clone();
    let build = BuildOptions::plain(FunctionOptions::all(file, shapes), lock, network);
    let mut builder = Builder {
        options: &build,
        artifacts: None,
        extent: Extent::Build,
        failures: Vec::new(),
        interpreted: Vec::new(),
    };
    let orders = builder.orders(interp)?;
    let mut settings = settings(&options.lock.network(&options.network), project, &home()?)?;
    let compiler = toolchain::used(&mut settings, project)?;
    let is_needed = |destination: &Destination| {
        let features = |entry: &Entry| entry.cpu.clone().map(|cpu| (cpu.arch, cpu.features));
        let cpu = destination.cpu();
        let cpu = cpu.map(|cpu| (cpu.arch().to_owned(), cpu.features().map(str::to_string).collect()));
        programs.iter().any(|(entry, _)| entry.device == destination.device() && features(entry) == cpu)
    };
    // The flags of tuning records too are taken from a table and not from a manifest.
    let tuned: BTreeSet<BTreeSet<TuningFlag>> =
        programs.iter().filter_map(|(entry, _)| TuningFlag::of(entry.alternatives.first()?)).collect();
    let mut jobs = HashMap::new();
    for destination in Destination::all().filter(is_needed) {
        for debug in [false, true] {
            if !programs.iter().any(|(entry, _)| entry.debug == debug) {
                continue;
            }
            let goal = BuildTarget { destination: destination.clone(), debug, compiler, tries: true };
            for Order { name, variants, .. } in &orders {
                for arguments in variants {
                    // A function that is interpreted has no program.
                    let Ok(unit) = interp.specialise_ahead(name, arguments) else { continue };
                    for job in Plan::new(unit, &goal).possible() {
                        let with = |flags: &BTreeSet<TuningFlag>| {
                            let mut job = job.clone();
                            job.action.tuned = Some(flags.clone());
                            (job.action.key(), job)
                        };
                        if job.tunable {
                            jobs.extend(tuned.iter().map(with));
                        }
                        jobs.insert(job.action.key(), job);
                    }
                }
            }
        }
    }
    Ok(jobs)
}

/// Compiles each program again; true if all are what was compiled now.
fn rebuild(
    options: &VerifyOptions,
    project: &Project,
    programs: &[(Entry, Vec<u8>)],
    jobs: &HashMap<ActionKey, Job>,
) -> Result<bool, Failed> {
    let home = home()?;
    let mut settings = settings(&options.lock.network(&options.network), project, &home)?;
    let release = toolchain::used(&mut settings, project)?;
    let toolchain = installed(&compile_service(home, settings, release)?)?;
    let worker = worker()?;
    let mut compiler = Compiler::new(move || worker(), toolchain).verifying();
    let mut all = true;
    for (entry, bytes) in programs {
        let Some(job) = jobs.get(&entry.key) else {
            let message =
                format!("{} is not of these sources: none of their functions has its key", entry.file);
            let help = "give the shapes file of its build with --shapes; or the sources have changed since, or another version of \
                        Sheaf built it";
            messages::error(message, Some(help));
            all = false;
            continue;
        };
        let spinner = Spinner::start(&format!("compiling {} again", job.name));
        let fresh = compiler.compile_first(&job.action.program, &job.action.attempts(), job.limit);
        drop(spinner);
        // Other bytes are not run to compare results: they may be anybody's.
        let fault = match fresh {
            Ok((fresh, _)) if fresh == *bytes => None,
            Ok(_) => Some("is not what the compiler makes of the sources".to_owned()),
            Err(error) => Some(format!("cannot be rebuilt: {error}")),
        };
        match fault {
            None => print(&format!("{}: rebuilt, with the same bytes\n", entry.file))?,
            Some(fault) => {
                let help = "compile it again with `sheaf build --recompile`";
                messages::error(format!("{} {fault}", entry.file), Some(help));
                all = false;
            }
        }
    }
    Ok(all)
}
