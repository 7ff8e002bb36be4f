//! `sheaf step compile`: one lowered call, compiled.

use sheaf_artifacts::Action;
use sheaf_cache::{Claim, Compilation, SignedClaim};
use sheaf_foundation::atomic;
use sheaf_target::{Platform, Release};
use sheaf_toolchain::{CompileError, Compiler, Toolchain, locate_release};

use super::CompileOptions;
use super::files::Lowered;
use crate::evaluator::{Failed, failed, home, worker};
use crate::messages;

/// Compiles the first candidate that the compiler accepts.
pub fn compile(options: &CompileOptions) -> Result<(), Failed> {
    let lowered = Lowered::read(&options.lowered)?;
    let Some(first) = lowered.candidates.first() else {
        return Err(failed(format!("{} has nothing to compile", options.lowered.display())));
    };
    let toolchain = toolchain(options, &first.action)?;
    let worker = worker()?;
    let mut compiler = Compiler::new(move || worker(), toolchain);
    let mut error: Option<CompileError> = None;
    for candidate in &lowered.candidates {
        let action = &candidate.action;
        match compiler.compile_first(&action.program, &action.attempts(), candidate.limit()) {
            Ok((program, alternative)) => {
                // The same inputs give the same bytes: times are left out.
                let compilation = Compilation { alternative, ..Compilation::default() };
                let claim = Claim::new(action, action.program.as_bytes(), &program, compilation);
                atomic::write(&options.program, &program).map_err(failed)?;
                return atomic::write(&options.claim, SignedClaim::new(claim, None).text()).map_err(failed);
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
