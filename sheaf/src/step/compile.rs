//! `sheaf step compile`: one lowered call, compiled.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sheaf_artifacts::{Action, Lookup};
use sheaf_cache::{Claim, Compilation, SignedClaim, Store};
use sheaf_foundation::atomic;
use sheaf_target::{Platform, Release};
use sheaf_toolchain::{CompileError, Compiler, Toolchain, locate_release};

use super::CompileOptions;
use super::files::{Candidate, Lowered};
use crate::evaluator::{Failed, failed, home, worker};
use crate::messages;

/// Compiles the first candidate that the compiler accepts.
pub fn compile(options: &CompileOptions) -> Result<(), Failed> {
    let lowered = Lowered::read(&options.lowered)?;
    let Some(first) = lowered.candidates.first() else {
        return Err(failed(format!("{} has nothing to compile", options.lowered.display())));
    };
    let store = options.store.as_ref().map(Store::new);
    if let Some(store) = &store {
        for Candidate { action, .. } in &lowered.candidates {
            if let Lookup::Hit { bytes, entry } = store.get(&action.key()) {
                return write(options, &claim(action, &bytes, entry.claim.alternative), &bytes);
            }
        }
    }
    let toolchain = toolchain(options, &first.action)?;
    let worker = worker()?;
    let mut compiler = Compiler::new(move || worker(), toolchain);
    let mut error: Option<CompileError> = None;
    for candidate in &lowered.candidates {
        let action = &candidate.action;
        let start = Instant::now();
        match compiler.compile_first(&action.program, &action.attempts(), candidate.limit()) {
            Ok((program, alternative)) => {
                if let Some(store) = &store {
                    let seconds = start.elapsed().as_secs_f64();
                    keep(store, options, action, &program, alternative, seconds);
                }
                return write(options, &claim(action, &program, alternative), &program);
            }
            // The error to show is that of the best candidate.
            Err(failure) => error = error.or(Some(failure)),
        }
    }
    if let Some(error) = error {
        messages::error(
            format!("{} cannot be compiled: {error}", options.lowered.display()),
            Some(&error.remedy()),
        );
    }
    Err(Failed)
}

/// The claim, without times: the same inputs give the same bytes.
fn claim(action: &Action, program: &[u8], alternative: usize) -> SignedClaim {
    let compilation = Compilation { alternative, ..Compilation::default() };
    SignedClaim::new(Claim::new(action, action.program.as_bytes(), program, compilation), None)
}

/// Keeps a program in the store. Trouble is no reason to stop: the next build compiles it again.
fn keep(
    store: &Store,
    options: &CompileOptions,
    action: &Action,
    program: &[u8],
    alternative: usize,
    seconds: f64,
) {
    let compilation = Compilation {
        // The file is all that is known of the function.
        function: options.lowered.display().to_string(),
        inputs: Vec::new(),
        alternative,
        seconds,
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
    };
    let text = action.program.as_bytes();
    let signed = SignedClaim::new(Claim::new(action, text, program, compilation), None);
    if let Err(fault) = store.put(&signed, text, program) {
        messages::warning(format!("the program is not kept in the store: {fault}"), Some(fault.remedy()));
    }
}

fn write(options: &CompileOptions, claim: &SignedClaim, program: &[u8]) -> Result<(), Failed> {
    atomic::write(&options.program, program).map_err(failed)?;
    atomic::write(&options.claim, claim.text()).map_err(failed)
}

/// The compiler that the action names.
fn toolchain(options: &CompileOptions, action: &Action) -> Result<Toolchain, Failed> {
    let data = match &options.compiler {
        Some(folder) => folder.clone(),
        None => home()?.data().to_owned(),
    };
    let release = Platform::host().and_then(|platform| Release::find(&action.compiler, platform));
    release.and_then(|release| locate_release(&release, &data)).ok_or_else(|| {
        let message = format!("the compiler {} is not installed in {}", action.compiler, data.display());
        messages::error(
            message,
            Some("install it with `sheaf toolchain install`, or name its place with --compiler"),
        );
        Failed
    })
}
