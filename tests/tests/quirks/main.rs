//! The faults that emission works around are still those of the pinned compiler: each program of `tests/quirks` fails as it
//! says: outside of `make nightly` every fourth, as nothing but another compiler changes that. `QUIRKS=07,11` tries those alone.

mod program;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use program::{Failure, Program};
use sheaf_graph::stablehlo::quirks::{QUIRKS, Quirk, Shown};
use sheaf_graph::tensor::HostTensor;
use sheaf_runtime::{Buffer, Device, Runtime, Target, Vmfb, Workers, sha256};
use sheaf_target::{Destination, Processor};
use sheaf_tests::{download, sample, upload, worker};
use sheaf_toolchain::{CompileError, Compiler};

/// Compilers at work at the same time.
const COMPILERS: usize = 2;

/// Floats this near to each other, relative to the larger of 1 and the right one, are the same.
const TOLERANCE: f64 = 2e-6;

#[test]
fn every_program_still_fails() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let programs: Vec<Program> = match std::env::var("QUIRKS") {
        Ok(wanted) => {
            let is_wanted = |p: &Program| wanted.split(',').any(|number| number.parse() == Ok(p.quirk));
            programs().into_iter().filter(is_wanted).collect()
        }
        Err(_) => sample(programs(), 4).collect(),
    };
    let (open, faults) = (Mutex::new(programs.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..COMPILERS {
            scope.spawn(|| {
                let mut compiler = Compiler::new(worker, toolchain.clone());
                let next = || open.lock().expect("no panic").next();
                while let Some(program) = next() {
                    if let Err(fault) = still_fails(program, &mut compiler) {
                        faults.lock().expect("no panic").push(fault);
                    }
                }
            });
        }
    });
    let mut faults = faults.into_inner().expect("no panic");
    faults.sort();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Numbers ascend, each has what shows it, and the file that applies the workaround names the quirk.
#[test]
fn the_table_is_whole() {
    let programs = programs();
    let mut faults = String::new();
    for (before, quirk) in QUIRKS.iter().zip(&QUIRKS[1..]) {
        if before.number >= quirk.number {
            let _ = writeln!(faults, "Q{:02} stands behind Q{:02}", quirk.number, before.number);
        }
    }
    for Quirk { number, name, place, shown, .. } in QUIRKS {
        let has_program = programs.iter().any(|p| p.quirk == *number);
        if has_program != (*shown == Shown::ByPrograms) {
            let _ = writeln!(faults, "Q{number:02} ({name}): programs {has_program}, but {shown:?}");
        }
        let text = std::fs::read_to_string(root().join(place)).unwrap_or_default();
        if !text.contains(&format!("Q{number:02}")) {
            let _ = writeln!(faults, "{place} does not name Q{number:02} ({name})");
        }
    }
    for program in programs.iter().filter(|p| quirk_of(p).is_none()) {
        let _ = writeln!(faults, "{} is of no quirk", program.path.display());
    }
    assert!(faults.is_empty(), "{faults}");
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// All programs, in the order of their numbers.
fn programs() -> Vec<Program> {
    let folder = root().join("tests/quirks");
    let files = std::fs::read_dir(&folder).expect("tests/quirks").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let read =
        |path: &PathBuf| Program::read(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    files.iter().map(read).collect()
}

fn quirk_of(program: &Program) -> Option<&'static Quirk> {
    QUIRKS.iter().find(|quirk| quirk.number == program.quirk)
}

/// An error that says what to do where a program does not fail any more, or in another way.
fn still_fails(program: &Program, compiler: &mut Compiler) -> Result<(), String> {
    let Some(quirk) = quirk_of(program) else { return Ok(()) };
    let path = program.path.file_name().unwrap_or_default().display();
    match (&program.fails, run(program, compiler)) {
        (Failure::Compiler(text), Outcome::Refused(said)) | (Failure::Call(text), Outcome::Stopped(said))
            if said.contains(text) =>
        {
            Ok(())
        }
        (_, Outcome::Refused(said) | Outcome::Stopped(said)) => {
            Err(format!("Q{:02} ({}): {path} fails in another way:\n{said}", quirk.number, quirk.name))
        }
        (Failure::Numbers, Outcome::Ran { are_right: false, .. })
        | (Failure::Arguments, Outcome::Ran { keeps_arguments: false, .. }) => Ok(()),
        (Failure::Memory(least), Outcome::Ran { peak, .. }) if peak > *least => Ok(()),
        (_, outcome) => Err(format!(
            "Q{:02} ({}): {path} does not fail any more ({outcome:?}). Where all programs of the quirk are right, delete its \
             workaround in {}, the programs, and its line in lang/graph/src/stablehlo/quirks/mod.rs",
            quirk.number, quirk.name, quirk.place
        )),
    }
}

/// Outcome of a program.
#[derive(Debug)]
enum Outcome {
    /// The compiler refused it, or crashed.
    Refused(String),
    /// It was not loaded, or its call failed.
    Stopped(String),
    Ran {
        are_right: bool,
        keeps_arguments: bool,
        /// The most bytes of buffers at one time.
        peak: usize,
    },
    /// It was compiled for a device that need not be here.
    Compiled,
}

/// Processor of the programs: one name for all machines that can run it, since the symptom of a fault may depend on the
/// width of vectors.
fn processor() -> Destination {
    let supported = Processor::portable();
    let common =
        |processor: &Processor| matches!(processor, Processor::Named(named) if named.name == "x86-64-v3");
    Destination::Cpu(supported.into_iter().find(common).unwrap_or(Processor::Host))
}

fn run(program: &Program, compiler: &mut Compiler) -> Outcome {
    let mut flags = sheaf_target::Target::CPU.flags_for(program.text.contains("f64"));
    let destination = if program.for_cuda { "cuda".parse().expect("a device") } else { processor() };
    flags = destination.flags(&flags, false);
    flags.extend(program.flags.iter().cloned());
    let vmfb = match compiler.compile(&program.text, &flags) {
        Ok(vmfb) => vmfb,
        Err(error) => return Outcome::Refused(said(&error)),
    };
    if program.for_cuda {
        return Outcome::Compiled;
    }
    let runtime = Runtime::new().expect("a runtime");
    let target = if program.on_all_threads { Target::LocalTask(Workers::Cores) } else { Target::LocalSync };
    let device = runtime.device(target).expect("a device");
    call(program, vmfb, &device).unwrap_or_else(|error| Outcome::Stopped(error.to_string()))
}

fn call(program: &Program, vmfb: Vec<u8>, device: &Device) -> Result<Outcome, Box<dyn std::error::Error>> {
    let digest = sha256(&vmfb);
    let loaded = device.load(&Vmfb::verify(vmfb, &digest)?)?;
    let mut frame = loaded.call_frame()?;
    let arguments: Vec<Buffer> = program.arguments.iter().map(|tensor| upload(device, tensor)).collect();
    for (i, buffer) in arguments.iter().enumerate() {
        frame.set(i, buffer)?;
    }
    frame.invoke()?;
    let peak = device.memory().peak;
    let mut are_right = true;
    for (i, right) in program.right.iter().enumerate() {
        are_right &= agree(right, &download(&frame.result(i)?, &right.ty())?);
    }
    let mut keeps_arguments = true;
    for (tensor, buffer) in program.arguments.iter().zip(&arguments) {
        keeps_arguments &= buffer.read()? == tensor.bytes();
    }
    Ok(Outcome::Ran { are_right, keeps_arguments, peak })
}

/// All that the compiler said.
fn said(error: &CompileError) -> String {
    match error {
        CompileError::Rejected { diagnostics, said } => {
            diagnostics.iter().map(|d| format!("{d}\n")).chain([said.clone()]).collect()
        }
        error => error.to_string(),
    }
}

fn agree(right: &HostTensor, found: &HostTensor) -> bool {
    let near = |i: usize| {
        let (x, y) = (right.element_f64(i), found.element_f64(i));
        x == y || (x - y).abs() <= TOLERANCE * x.abs().max(1.0) || x.is_nan() && y.is_nan()
    };
    if right.dtype().is_float() { (0..right.count()).all(near) } else { right == found }
}
