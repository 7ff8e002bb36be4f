//! `sheaf step link`: compiled programs, with a manifest.

use std::fs;

use sheaf_artifacts::{ArtifactFolder, LOCK_FILE};
use sheaf_cache::SignedClaim;
use sheaf_foundation::Digest;

use super::LinkOptions;
use super::files::{Calls, Lowered, bytes};
use crate::evaluator::{Failed, failed};
use crate::messages;

/// Writes the artifact folder.
pub fn link(options: &LinkOptions) -> Result<(), Failed> {
    let LinkOptions { lowered, programs, claims, output } = options;
    let calls = Calls::read(lowered)?.calls;
    if programs.len() != calls.len() || claims.len() != calls.len() {
        let message = format!(
            "{} has {} calls, and there are {} programs and {} claims",
            lowered.display(),
            calls.len(),
            programs.len(),
            claims.len()
        );
        messages::error(message, Some("name one program and one claim for each call"));
        return Err(Failed);
    }
    let folder = ArtifactFolder::open(output);
    for (position, specialisations) in calls.into_iter().enumerate() {
        let (program, claim) = (&programs[position], &claims[position]);
        let vmfb = bytes(program)?;
        let said = SignedClaim::read(&bytes(claim)?)
            .map_err(|error| failed(format!("{} is no claim: {error}", claim.display())))?
            .claim;
        if said.vmfb.digest != Digest::of(&vmfb) {
            let message = format!("{} is not what {} claims", program.display(), claim.display());
            messages::error(message, Some("compile the call again"));
            return Err(Failed);
        }
        let candidates = Lowered::read(&Lowered::path(lowered, position))?.candidates;
        let compiled = candidates.iter().zip(specialisations).find(|(c, _)| c.action.key() == said.key);
        let Some((candidate, specialisation)) = compiled else {
            let message = format!("{} is the program of another call than {position}", program.display());
            messages::error(message, Some("name programs and claims in the order of the calls"));
            return Err(Failed);
        };
        folder.record(&candidate.action, specialisation, &vmfb).map_err(|error| {
            messages::error(&error, error.remedy());
            Failed
        })?;
    }
    // It belongs to writers, not to the result.
    let _ = fs::remove_file(output.join(LOCK_FILE));
    Ok(())
}
