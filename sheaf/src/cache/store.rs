//! Commands about the content of the store.

use std::collections::BTreeMap;

use serde_json::json;
use sheaf_cache::{CacheStats, Collected, Listed};

use super::{CacheContext, ago, bytes, local_store, programs, show_json};
use crate::cli::NetworkOptions;
use crate::evaluator::Failed;
use crate::messages;
use sheaf_engine::STORE_SIZE;

/// `sheaf cache size`.
pub fn size(json: bool) -> Result<(), Failed> {
    let store = local_store()?;
    let size = store.size();
    if json {
        let path = store.path().display().to_string();
        return show_json(&json!({ "path": path, "entries": size.entries, "bytes": size.bytes }));
    }
    println!("{}, {}, in {}", programs(size.entries), bytes(size.bytes), store.path().display());
    Ok(())
}

/// `sheaf cache stats`.
pub fn stats(json: bool) -> Result<(), Failed> {
    let store = local_store()?;
    let list = store.list();
    let size = store.size();
    let by = |part: &dyn Fn(&Listed) -> String| {
        let mut groups: BTreeMap<String, (usize, f64)> = BTreeMap::new();
        for entry in &list {
            let group = groups.entry(part(entry)).or_default();
            group.0 += 1;
            group.1 += entry.signed.claim.seconds;
        }
        groups
    };
    let signer = |entry: &Listed| match &entry.signed.signer {
        Some(signer) => signer.to_string(),
        None => "nobody (compiled here)".into(),
    };
    let tables = [
        ("function", by(&|e| e.signed.claim.function.clone())),
        ("device", by(&|e| e.signed.claim.device.clone())),
        ("compiler", by(&|e| e.signed.claim.compiler.clone())),
        ("signer", by(&signer)),
    ];
    let seconds: f64 = list.iter().map(|entry| entry.signed.claim.seconds).sum();
    let stats = store.stats();
    if json {
        let mut object = json!({
            "entries": size.entries, "bytes": size.bytes, "seconds": seconds,
            "lookups": stats, "hit_rate": stats.hit_rate(),
        });
        for (name, groups) in tables {
            object[name] = groups
                .into_iter()
                .map(|(group, (entries, seconds))| (group, json!({ "entries": entries, "seconds": seconds })))
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        return show_json(&object);
    }
    println!("{}, {}, which took {seconds:.1} s to compile", programs(size.entries), bytes(size.bytes));
    if let Some(rate) = stats.hit_rate() {
        let CacheStats { stored, fetched, compiled, saved, spent, since } = stats;
        println!(
            "found {:.0} % of {} looked for: {stored} here, {fetched} in a remote cache, which saved {saved:.1} s",
            100.0 * rate,
            stats.total()
        );
        println!("compiled {compiled} in {spent:.1} s; first counted {}", ago(since));
    }
    for (name, groups) in tables {
        println!("by {name}:");
        for (group, (entries, seconds)) in groups {
            println!("  {entries:>6} {seconds:>9.1} s  {group}");
        }
    }
    Ok(())
}

/// `sheaf cache gc`.
pub fn collect(max_size: Option<u64>, json: bool) -> Result<(), Failed> {
    let context = CacheContext::here(&NetworkOptions::default())?;
    let cap = max_size.or(context.settings.max_size.value).unwrap_or(STORE_SIZE);
    let collected = context.store.collect(cap);
    let (removed, kept) = (collected.removed, collected.kept);
    if json {
        show_json(&json!({
            "removed": { "entries": removed.entries, "bytes": removed.bytes },
            "kept": { "entries": kept.entries, "bytes": kept.bytes },
        }))?;
    } else {
        println!("removed {}, {}", programs(removed.entries), bytes(removed.bytes));
        println!("kept {}, {}", programs(kept.entries), bytes(kept.bytes));
    }
    whole(&collected)
}

/// `sheaf cache clear`.
pub fn clear() -> Result<(), Failed> {
    let collected = local_store()?.clear();
    println!("removed {}, {}", programs(collected.removed.entries), bytes(collected.removed.bytes));
    whole(&collected)
}

/// It is an error if something stays that was to go.
fn whole(collected: &Collected) -> Result<(), Failed> {
    let Some((path, cause)) = &collected.stuck else { return Ok(()) };
    let message = format!("could not be removed: {}: {cause}", path.display());
    messages::error(
        message,
        Some("make the cache folder and all in it writable for you, and run this again"),
    );
    Err(Failed)
}

/// `sheaf cache verify`.
pub fn verify(json: bool) -> Result<(), Failed> {
    let store = local_store()?;
    let entries = store.size().entries;
    let faults = store.verify();
    if json {
        let all: Vec<_> = faults
            .iter()
            .map(|fault| json!({ "key": fault.key.to_string(), "cause": fault.miss.to_string() }))
            .collect();
        show_json(&json!({ "entries": entries, "damaged": all }))?;
    } else {
        for fault in &faults {
            messages::warning(&fault.miss, Some("it is compiled or fetched again when it is needed"));
        }
        println!("{}, {} of them damaged", programs(entries), faults.len());
    }
    if faults.is_empty() { Ok(()) } else { Err(Failed) }
}
