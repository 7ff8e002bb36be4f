//! `sheaf cache why`: the reason for the last compilation of a function, by comparison with the nearest earlier one.

use serde_json::json;
use sheaf_cache::{Claim, Listed, RebuildReason};

use super::{CacheContext, ago, show_json};
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, report_error, secrets};
use crate::messages;
use sheaf_engine as engine;

/// An earlier compilation, with the cache that has its claim.
struct Earlier {
    claim: Claim,
    place: String,
    reasons: Vec<RebuildReason>,
}

/// Prints the reason for the last compilation of `function`.
pub fn why(function: &str, network: &NetworkOptions, json: bool) -> Result<(), Failed> {
    let context = CacheContext::here(network)?;
    let mut listed = context.store.list();
    listed.retain(|listed| is_of(&listed.signed.claim, function));
    // Ties within a second go to the one written last.
    listed.sort_by_key(|listed| (listed.signed.claim.time, listed.used));
    let mut claims: Vec<Claim> = listed.into_iter().map(|Listed { signed, .. }| signed.claim).collect();
    let Some(last) = claims.pop() else {
        let message = format!("the store has no program of a function {function}");
        messages::error(
            message,
            Some("`sheaf cache stats` lists what it has; small functions are not compiled at all"),
        );
        return Err(Failed);
    };
    let mut earlier: Vec<(Claim, String)> =
        claims.into_iter().rev().map(|claim| (claim, "this machine".to_owned())).collect();
    if let Some(remotes) =
        engine::remotes(&context.settings, &context.trusted, &secrets()?).map_err(report_error)?
    {
        for signed in remotes.recent(&last.function) {
            let place = match &signed.signer {
                Some(signer) => format!("the remote cache, signed by {}", signer.name()),
                None => continue,
            };
            let is_known = earlier.iter().any(|(known, _)| known.key == signed.claim.key);
            if !is_known && signed.claim.key != last.key {
                earlier.push((signed.claim, place));
            }
        }
        for trouble in remotes.troubles() {
            messages::warning(&trouble, Some(&trouble.remedy()));
        }
    }
    let text =
        |claim: &Claim| context.store.program(claim).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    // Ties go to the latest.
    let nearest = earlier.into_iter().min_by_key(|(claim, _)| (last.distance(claim), u64::MAX - claim.time));
    let nearest = nearest.map(|(claim, place)| {
        let reasons = last.rebuild_reasons(&claim, text);
        Earlier { claim, place, reasons }
    });
    if json {
        let nearest = nearest.map(|earlier| {
            let reasons: Vec<_> = earlier.reasons.iter().map(ToString::to_string).collect();
            json!({ "key": earlier.claim.key.to_string(), "from": earlier.place, "time": earlier.claim.time, "differences": reasons })
        });
        return show_json(&json!({
            "function": last.function, "key": last.key.to_string(), "seconds": last.seconds, "time": last.time,
            "nearest": nearest,
        }));
    }
    println!(
        "{} was compiled {} in {:.1} s, for {}",
        last.function,
        ago(last.time),
        last.seconds,
        if last.inputs.is_empty() { "no arguments".into() } else { last.inputs.join(", ") }
    );
    println!("  key {}", last.key);
    let Some(Earlier { claim, place, reasons }) = nearest else {
        println!("nothing like it had been compiled before, as far as the caches know");
        return Ok(());
    };
    println!("the nearest that had been compiled, {} ({place}), differs in", ago(claim.time));
    for reason in reasons {
        println!("  {reason}");
    }
    println!("  key {}", claim.key);
    Ok(())
}

/// True for a claim of the function or its gradient.
fn is_of(claim: &Claim, function: &str) -> bool {
    claim.function == function
        || claim.function.strip_prefix(function).is_some_and(|rest| rest.starts_with(" ("))
}
