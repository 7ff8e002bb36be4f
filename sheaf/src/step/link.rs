//! `sheaf step link`: compiled programs, with a manifest.

use std::fs;
use std::path::PathBuf;

use sheaf_artifacts::{ArtifactFolder, LOCK_FILE, Specialisation};
use sheaf_cache::SignedClaim;
use sheaf_foundation::Digest;

use super::LinkOptions;
use super::files::{Calls, Lowered, bytes};
use crate::evaluator::{Failed, failed};
use crate::messages;

/// Writes the artifact folder.
pub fn link(options: &LinkOptions) -> Result<(), Failed> {
    let LinkOptions { lowered, programs, claims, output } = options;
    let mut calls: Vec<(PathBuf, Vec<Specialisation>)> = Vec::new();
    for folder in lowered {
        let described = Calls::read(folder)?.calls.into_iter().enumerate();
        calls.extend(described.map(|(position, call)| (Lowered::path(folder, position), call)));
    }
    if programs.len() != calls.len() || claims.len() != calls.len() {
        let message = format!(
            "there are {} lowered calls, {} programs and {} claims",
            calls.len(),
            programs.len(),
            claims.len()
        );
        messages::error(message, Some("name one program and one claim for each call"));
        return Err(Failed);
    }
    let folder = ArtifactFolder::open(output);
    for ((lowered, specialisations), (program, claim)) in calls.into_iter().zip(programs.iter().zip(claims)) {
        let vmfb = bytes(program)?;
        let said = SignedClaim::read(&bytes(claim)?)
            .map_err(|error| failed(format!("{} is no claim: {error}", claim.display())))?
            .claim;
        if said.vmfb.digest != Digest::of(&vmfb) {
            let message = format!("{} is not what {} claims", program.display(), claim.display());
            messages::error(message, Some("compile the call again"));
            return Err(Failed);
        }
        let candidates = Lowered::read(&lowered)?.candidates;
        let compiled = candidates.iter().zip(specialisations).find(|(c, _)| c.action.key() == said.key);
        let Some((candidate, specialisation)) = compiled else {
            let message = format!("{} is not compiled from {}", program.display(), lowered.display());
            messages::error(message, Some("name programs and claims in the order of the calls"));
            return Err(Failed);
        };
        folder.record(&candidate.action, specialisation, &vmfb, said.alternative).map_err(|error| {
            messages::error(&error, error.remedy());
            Failed
        })?;
    }
    // It belongs to writers, not to the result.
    let _ = fs::remove_file(output.join(LOCK_FILE));
    Ok(())
}
