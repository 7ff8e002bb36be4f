//! `sheaf step lower`: the calls of a shapes file, as the compiler's texts.

use std::fs;

use sheaf_engine::{BuildTarget, Plan};
use sheaf_lang::eval::{Jit, Options};
use sheaf_target::{Destination, Processor};

use super::LowerOptions;
use super::files::{Calls, Lowered};
use crate::build::{Sources, read_shapes};
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, failed, home, interpreter, project_of, settings};
use crate::messages;
use crate::sources::read_source;
use crate::toolchain;

/// Lowers each call of the shapes file.
pub fn lower(options: &LowerOptions) -> Result<(), Failed> {
    let destination = destination(options)?;
    let project = project_of(&options.file)?;
    let text = read_source(&options.file)?;
    let how = Options { jit: Jit::Never, ..Options::default() };
    let mut interp = interpreter(how, &project, &options.dependencies)?;
    interp.prepare_program(&options.file.display().to_string(), &text).map_err(|errors| {
        errors.iter().for_each(|error| messages::show(&interp.sources, error));
        Failed
    })?;
    let calls = read_shapes(&mut interp, &options.shapes, Sources::Any).map_err(|error| {
        messages::show(&interp.sources, &error);
        Failed
    })?;
    let network = NetworkOptions::default();
    let mut settings = settings(&network, &project, &home()?)?;
    let compiler = toolchain::used(&mut settings, &project)?;
    let goal = BuildTarget { destination, debug: false, compiler, tries: false };
    let mut plans = Vec::new();
    for call in &calls {
        match interp.specialise_ahead(&call.function, &call.arguments) {
            Ok(unit) => plans.push(Plan::new(unit, &goal)),
            Err(refused) => {
                messages::show(&interp.sources, &refused.diagnostic);
                return Err(Failed);
            }
        }
    }
    fs::create_dir_all(&options.output)
        .map_err(|error| failed(format!("{} cannot be written: {error}", options.output.display())))?;
    for (position, plan) in plans.iter().enumerate() {
        Lowered::of(plan).write(&Lowered::path(&options.output, position))?;
    }
    Calls::of(&plans).write(&options.output)
}

/// The target, which does not depend on this machine.
fn destination(options: &LowerOptions) -> Result<Destination, Failed> {
    let is_host = options.cpu == Processor::Host;
    match &options.device {
        Destination::Cpu(_) if is_host => {
            let message = "the step of a build is the same on every machine, so the processor has a name";
            messages::error(message, Some("name it with --cpu, as in --cpu x86-64-v3"));
            Err(Failed)
        }
        Destination::Cpu(_) => Ok(Destination::Cpu(options.cpu)),
        other if is_host => Ok(other.clone()),
        other => {
            let message = format!("--cpu is about the processor, and --device asks for {other}");
            messages::error(message, Some("leave one of them out"));
            Err(Failed)
        }
    }
}
