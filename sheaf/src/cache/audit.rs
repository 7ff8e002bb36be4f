//! `sheaf cache audit`: some of the programs are compiled again, and those with other results put away.

use sheaf_artifacts::is_tuning_record;
use sheaf_cache::{Listed, SignedClaim};
use sheaf_toolchain::Compiler;

use super::{CacheContext, programs};
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, compile_service, failed, report_error, worker};
use crate::messages;
use crate::progress::Spinner;
use sheaf_engine::{Verdict, compare};

/// Audits a share of the store, between 0 and 1.
pub fn audit(sample: f64, seed: Option<u64>, network: &NetworkOptions) -> Result<(), Failed> {
    let mut context = CacheContext::here(network)?;
    let seed = match seed {
        Some(seed) => seed,
        None => getrandom::u64()
            .map_err(|error| failed(format!("the system gives no random numbers: {error}")))?,
    };
    let project = &context.project;
    let release = crate::toolchain::used(&mut context.settings, project)?;
    let home = crate::evaluator::home()?;
    let compile_service = compile_service(home, context.settings.clone(), release)?;
    // No compiler has made a tuning record.
    let programs_alone = |signed: &SignedClaim| !is_tuning_record(&signed.claim.flags);
    let chosen = context.store.list().into_iter().map(|Listed { signed, .. }| signed);
    let chosen = chosen.filter(|signed| programs_alone(signed) && is_chosen(signed, sample, seed));
    let (chosen, others): (Vec<SignedClaim>, Vec<_>) = chosen
        .filter(|signed| Some(signed.claim.compiler.as_str()) == release.map(|release| release.version))
        // A listing verifies no signature.
        .filter_map(|signed| context.store.claim(&signed.claim.key).ok())
        // An audit runs programs, only those that a run would trust.
        .partition(|signed| signed.signer.as_ref().is_none_or(|signer| context.trusted.knows(signer)));
    if !others.is_empty() {
        let message =
            format!("not audited, since nobody trusted has signed them: {}", programs(others.len()));
        messages::warning(message, Some("no run uses them; `sheaf cache gc` removes them in time"));
    }
    if chosen.is_empty() {
        println!("chosen: none of {}", programs(context.store.size().entries));
        return Ok(());
    }
    let toolchain = match compile_service.find_toolchain().map_err(report_error)? {
        Ok(toolchain) => toolchain,
        Err(absent) => {
            messages::error(format!("there is no compiler: {}", absent.why), Some(&absent.remedy));
            return Err(Failed);
        }
    };
    let worker = worker()?;
    let mut compiler = Compiler::new(move || worker(), toolchain).verifying();
    let (mut bytes, mut results, mut unknown, mut different) = (0, 0, 0, 0);
    for signed in chosen {
        let claim = &signed.claim;
        let (Ok(program), Ok(cached)) = (context.store.program(claim), context.store.vmfb(claim)) else {
            continue;
        };
        let Ok(program) = String::from_utf8(program) else { continue };
        let flags = claim.command_line(&program).filter(|_| claim.action(&program).key() == claim.key);
        let spinner = Spinner::start(&format!("compiling {} again", claim.function));
        let fresh = flags.map(|flags| compiler.compile(&program, &flags));
        drop(spinner);
        let verdict = match &fresh {
            None => Verdict::Unknown("its key is not made of what its claim says".into()),
            Some(Ok(fresh)) => compare(claim, &program, &cached, fresh),
            Some(Err(error)) => Verdict::Unknown(format!("the compiler fails now: {error}")),
        };
        let who = signed.signer.as_ref().map_or("nobody, on this machine".into(), ToString::to_string);
        match verdict {
            Verdict::SameBytes => bytes += 1,
            Verdict::SameResults => results += 1,
            Verdict::Unknown(why) => {
                unknown += 1;
                messages::warning(
                    format!("{} ({}) could not be audited: {why}", claim.function, claim.key),
                    None,
                );
            }
            Verdict::Different(why) => {
                different += 1;
                context.store.quarantine(&signed).map_err(|error| {
                    messages::error(&error, Some(error.remedy()));
                    Failed
                })?;
                let message =
                    format!("{} ({}) is not what its compiler makes of it: {why}", claim.function, claim.key);
                let help = format!(
                    "it is put away, and compiled again when it is needed (with --recompile where __sheaf__ has it); it was \
                     signed by {who}: ask them, or `sheaf cache key revoke`"
                );
                messages::error(message, Some(&help));
            }
        }
    }
    println!(
        "audited {}: {bytes} of the same bytes, {results} that compute the same, {unknown} that could not be compared, {different} \
         that differ",
        programs(bytes + results + unknown + different)
    );
    if different == 0 { Ok(()) } else { Err(Failed) }
}

/// True if an entry is in the sample, by its key and the seed alone.
fn is_chosen(signed: &SignedClaim, sample: f64, seed: u64) -> bool {
    let text = format!("{seed} {}", signed.claim.key);
    let digest = sheaf_foundation::Digest::of(text.as_bytes()).0;
    let number = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| digest[i]));
    (number as f64) < sample * u64::MAX as f64
}
