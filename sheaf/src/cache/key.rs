//! Keys: the one that signs here, and those that are trusted.

use std::fs;
use std::path::Path;

use serde_json::json;
use sheaf_cache::TrustedKeys;
use sheaf_foundation::{PublicKey, SecretKey, atomic, normal_address};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::options::KeyCommand;
use super::{CacheContext, show_json};
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, failed, home};
use crate::messages;

/// The names of both lists in the user's settings.
const LISTS: [&str; 2] = ["trusted-keys", "revoked-keys"];

/// `sheaf cache key`.
pub fn key(command: &KeyCommand) -> Result<(), Failed> {
    match command {
        KeyCommand::New { name, print_secret } => new(name, *print_secret),
        KeyCommand::List { json } => list(*json),
        KeyCommand::Trust { key, from } => trust(key, from.as_deref()),
        KeyCommand::Revoke { key } => revoke(key),
    }
}

fn new(name: &str, print_secret: bool) -> Result<(), Failed> {
    let key = SecretKey::generate(name).map_err(failed)?;
    if print_secret {
        // Standard output gets the secret key alone, for scripts; the rest is for people.
        println!("{}", key.reveal());
        eprintln!("public key: {}", key.public());
        return Ok(());
    }
    let path = home()?.cache_key();
    if !atomic::create_private(&path, format!("{}\n", key.reveal()).as_bytes()).map_err(failed)? {
        return Err(there_is_one(&path));
    }
    println!("{}", key.public());
    eprintln!(
        "what is compiled here is signed with it; others trust it with\n  sheaf cache key trust {}",
        key.public()
    );
    Ok(())
}

fn there_is_one(path: &Path) -> Failed {
    let message = format!("there is a key already: {}", path.display());
    messages::error(message, Some("move that file away to make another; what it signed stays signed"));
    Failed
}

fn list(json: bool) -> Result<(), Failed> {
    let context = CacheContext::here(&NetworkOptions::default())?;
    let own = context.key.as_deref().map(SecretKey::public);
    let trusted = &context.settings.trusted_keys;
    if json {
        let origin = trusted.origin.to_string();
        return show_json(&json!({
            "own": own.map(|key| key.to_string()), "trusted": trusted.value, "origin": origin,
            "revoked": context.settings.revoked_keys,
        }));
    }
    match own {
        Some(key) => println!("this machine signs with\n  {key}"),
        None => println!("this machine has no key; `sheaf cache key new NAME` makes one"),
    }
    if trusted.value.is_empty() {
        println!("no other key is trusted");
    } else {
        println!("trusted, by {}:", trusted.origin);
        trusted.value.iter().for_each(|key| println!("  {key}"));
    }
    if !context.settings.revoked_keys.is_empty() {
        println!("revoked, whoever trusts them:");
        context.settings.revoked_keys.iter().for_each(|key| println!("  {key}"));
    }
    Ok(())
}

fn trust(text: &str, from: Option<&str>) -> Result<(), Failed> {
    let key: PublicKey = text.parse().map_err(failed)?;
    let entry = from.map_or_else(|| key.to_string(), |from| format!("{key}@{}", normal_address(from)));
    TrustedKeys::read([&entry]).map_err(failed)?;
    edit(|trusted, revoked| {
        if !trusted.iter().any(|known| known.as_str() == Some(&entry)) {
            trusted.push(&entry);
        }
        revoked.retain(|known| !is_key(known, &key));
    })?;
    println!("trusted: {entry}");
    let context = CacheContext::here(&NetworkOptions::default())?;
    if !context.trusted.knows(&key) {
        let origin = &context.settings.trusted_keys.origin;
        messages::warning(
            format!("here {origin} says which keys are trusted, and this one is not among them"),
            Some(&format!("add it to `trusted-keys` there: {entry}")),
        );
    }
    Ok(())
}

/// Revokes a key, or all that are trusted here under a name. Only `trust` makes a revoked key trusted again.
fn revoke(text: &str) -> Result<(), Failed> {
    let context = CacheContext::here(&NetworkOptions::default())?;
    let mut keys: Vec<PublicKey> = text.parse().into_iter().collect();
    edit(|trusted, revoked| {
        let here = context.settings.trusted_keys.value.iter().map(String::as_str);
        let known = trusted.iter().filter_map(Value::as_str).chain(here);
        let named = known.filter_map(key_of).filter(|key| key.name() == text);
        keys.extend(named.collect::<Vec<_>>());
        for (i, key) in keys.iter().enumerate() {
            trusted.retain(|known| !is_key(known, key));
            if !keys[..i].contains(key) && !revoked.iter().any(|known| is_key(known, key)) {
                revoked.push(key.to_string());
            }
        }
    })?;
    if keys.is_empty() {
        messages::error(
            format!("{text} is neither a key nor the name of one that is trusted"),
            Some("`sheaf cache key list` shows them"),
        );
        return Err(Failed);
    }
    keys.sort_by_key(PublicKey::to_string);
    keys.dedup();
    keys.iter().for_each(|key| println!("no longer trusted: {key}"));
    eprintln!(
        "programs that lie in the __sheaf__ of a project are trusted with it; `--recompile` makes them anew"
    );
    Ok(())
}

/// The key of an entry of `trusted-keys`, which may be for one remote alone.
fn key_of(entry: &str) -> Option<PublicKey> {
    entry.split('@').next()?.trim().parse().ok()
}

fn is_key(entry: &Value, key: &PublicKey) -> bool {
    entry.as_str().and_then(key_of).is_some_and(|known| known == *key)
}

/// Changes `trusted-keys` and `revoked-keys` under `[cache]` in the user's settings, and leaves the rest of the file as it is.
fn edit(change: impl FnOnce(&mut Array, &mut Array)) -> Result<(), Failed> {
    let path = home()?.config_file();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(format!("{} cannot be read: {error}", path.display()))),
    };
    let mut document: DocumentMut =
        text.parse().map_err(|error| failed(format!("{} is not TOML: {error}", path.display())))?;
    let wrong = |name: &str| failed(format!("{}: `{name}` is not a list of keys", path.display()));
    let cache = document.entry("cache").or_insert_with(|| Item::Table(Table::new()));
    let cache = cache.as_table_like_mut().ok_or_else(|| wrong("cache.trusted-keys"))?;
    let mut lists = [Array::new(), Array::new()];
    for (name, list) in LISTS.into_iter().zip(&mut lists) {
        if let Some(there) = cache.get(name) {
            *list = there.as_array().ok_or_else(|| wrong(name))?.clone();
        }
    }
    let [trusted, revoked] = &mut lists;
    change(trusted, revoked);
    for (name, list) in LISTS.into_iter().zip(lists) {
        if !list.is_empty() || cache.contains_key(name) {
            cache.insert(name, Item::Value(Value::Array(list)));
        }
    }
    let bytes = document.to_string();
    let written = if path.exists() {
        sheaf_foundation::atomic::replace(&path, bytes.as_bytes())
    } else {
        sheaf_foundation::atomic::write(&path, bytes.as_bytes())
    };
    written.map_err(|error| {
        messages::error(&error, Some(error.remedy()));
        Failed
    })
}
