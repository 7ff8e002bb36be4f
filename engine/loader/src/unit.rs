//! Jobs: a specialised function as the cache and the compiler need it.

use std::time::Duration;

use sheaf_artifacts::{Action, Check, Cpu, Donation, Leaf, Specialisation, Static};
use sheaf_foundation::Digest;
use sheaf_graph::graph;
use sheaf_graph::stablehlo::{KERNEL_FLAGS, Module};
use sheaf_lang::host::{self, Unit};
use sheaf_target::{COMPILER, Destination, Release};

use super::flags::{alternatives, hoisting};

/// One compilation.
#[derive(Clone)]
pub struct Job {
    /// The function's name with its transformation, for people.
    pub name: String,
    /// All inputs of the compilation.
    pub action: Action,
    /// The description for the manifest.
    pub specialisation: Specialisation,
    /// A time limit for the compiler, besides the one for all programs.
    pub limit: Option<Duration>,
    /// True if the compiler's flags may make a difference to the time of a call: for programs of some work, unless they are written as
    /// kernels.
    pub tunable: bool,
}

/// Minimum work of a program for which flags are measured: calls of less are over in some ten microseconds.
const TUNED_WORK: u64 = 100_000;

/// Time limit for a program that the compiler may reject: it takes some seconds for a kernel that is written out or for loops in
/// blocks, or does not end (Q43). Another form of the program is next.
const MAY_BE_REJECTED: Duration = Duration::from_secs(120);

/// The compilation of `unit`, whose text is `module`.
pub fn job(
    unit: &Unit,
    module: &Module,
    donations: &[graph::Donation],
    compiler: Option<Release<'_>>,
) -> Job {
    // A machine without compilers runs programs of other machines, compiled with the usual one.
    let release = compiler.map_or(COMPILER[0].version, |release| release.version);
    let compile_for = sheaf_target::Target::CPU;
    let mut flags = compile_for.flags_for(module.features.doubles);
    if module.features.kernels {
        flags.extend(KERNEL_FLAGS.map(str::to_owned));
    } else {
        flags.extend(hoisting(&unit.graph).map(str::to_owned));
    }
    let host = sheaf_target::Cpu::host();
    let action = Action {
        program: module.text.clone(),
        compiler: release.into(),
        compiler_digest: Digest(sheaf_target::compiler_digest(release).unwrap_or_default()),
        flags,
        alternatives: if module.features.kernels { Vec::new() } else { alternatives(&unit.graph) },
        tuned: None,
        device: compile_for.device.to_string(),
        cpu: Some(Cpu { arch: host.arch().into(), features: host.features().map(str::to_string).collect() }),
        donation: donations
            .iter()
            .map(|d| Donation { argument: d.argument as u32, output: d.output as u32 })
            .collect(),
        debug: false,
        rejected: Vec::new(),
    };
    let constant = |t: &sheaf_graph::tensor::HostTensor| Digest::of(t.bytes());
    let specialisation = Specialisation {
        function: unit.function.clone(),
        transform: unit.transform.into(),
        inputs: unit.inputs.iter().map(leaf).collect(),
        outputs: unit.outputs.iter().map(leaf).collect(),
        statics: unit
            .statics
            .iter()
            .map(|(path, value)| Static { path: path.clone(), value: value.clone() })
            .collect(),
        constants: module.constants.iter().map(constant).collect(),
        checks: unit.checks.iter().map(check).collect(),
    };
    let name = if unit.transform.is_empty() {
        unit.function.clone()
    } else {
        format!("{} ({})", unit.function, unit.transform)
    };
    let limit = module.features.may_be_rejected().then_some(MAY_BE_REJECTED);
    let tunable = !module.features.kernels && unit.graph.cost() >= TUNED_WORK;
    Job { name, action, specialisation, limit, tunable }
}

fn check(check: &host::Checked) -> Check {
    Check { message: check.site.to_string(), place: check.place.clone() }
}

fn leaf(leaf: &host::Leaf) -> Leaf {
    Leaf {
        path: leaf.path.clone(),
        dtype: leaf.ty.dtype.to_string(),
        shape: leaf.ty.shape.iter().map(|n| *n as u64).collect(),
        weak: leaf.ty.weak,
    }
}

/// Makes a compilation for this machine one for `destination`.
pub fn retarget(job: &mut Job, destination: &Destination, debug: bool) {
    if *destination == Destination::HOST && !debug {
        return;
    }
    let cpu = destination.cpu();
    job.action.flags = destination.flags(&job.action.flags, debug);
    if cpu.is_none() {
        job.action.alternatives.clear();
    }
    job.action.device = destination.device().into();
    job.action.cpu = cpu
        .map(|cpu| Cpu { arch: cpu.arch().into(), features: cpu.features().map(str::to_string).collect() });
    job.action.debug = debug;
    if destination.demotes() {
        let specialisation = &mut job.specialisation;
        for leaf in specialisation.inputs.iter_mut().chain(&mut specialisation.outputs) {
            match leaf.dtype.as_str() {
                "i64" => leaf.dtype = "i32".into(),
                "f64" => leaf.dtype = "f32".into(),
                _ => {}
            }
        }
    }
}
