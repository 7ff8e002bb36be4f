//! Keys: the one that signs here, and those that are trusted.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use sheaf_cache::{PublicKey, SecretKey, TrustedKeys};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::options::KeyCommand;
use super::{World, show_json};
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, failed, home};
use crate::messages;

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
        // What goes to standard output is what is asked for; the rest is for people.
        println!("{}", key.reveal());
        eprintln!("public key: {}", key.public());
        return Ok(());
    }
    let path = home()?.cache_key();
    if path.exists() {
        let message = format!("there is a key already: {}", path.display());
        messages::error(message, Some("move that file away to make another; what it signed stays signed"));
        return Err(Failed);
    }
    write_private(&path, &key.reveal())
        .map_err(|error| failed(format!("{} could not be written: {error}", path.display())))?;
    println!("{}", key.public());
    eprintln!(
        "what is compiled here is signed with it; others trust it with\n  sheaf cache key trust {}",
        key.public()
    );
    Ok(())
}

/// Writes a file that the user alone can read, and never a part of it.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A temporary file is private from its first moment.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{text}")?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

fn list(json: bool) -> Result<(), Failed> {
    let world = World::here(&NetworkOptions::default())?;
    let own = world.key.as_ref().map(SecretKey::public);
    let trusted = &world.settings.trusted_keys;
    if json {
        let origin = trusted.origin.to_string();
        return show_json(
            &json!({ "own": own.map(|key| key.to_string()), "trusted": trusted.value, "origin": origin }),
        );
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
    Ok(())
}

fn trust(text: &str, from: Option<&str>) -> Result<(), Failed> {
    let key: PublicKey = text.parse().map_err(failed)?;
    let entry = from.map_or_else(|| key.to_string(), |from| format!("{key}@{from}"));
    TrustedKeys::read([&entry]).map_err(failed)?;
    edit(|keys| {
        if !keys.iter().any(|known| known.as_str() == Some(&entry)) {
            keys.push(&entry);
        }
        Ok(())
    })?;
    println!("trusted: {entry}");
    Ok(())
}

fn revoke(text: &str) -> Result<(), Failed> {
    let mut removed = Vec::new();
    edit(|keys| {
        keys.retain(|known| {
            let known = known.as_str().unwrap_or_default();
            let name = known.split(':').next().unwrap_or_default();
            let key = known.split('@').next().unwrap_or_default();
            let goes = text == known || text == name || text == key;
            if goes {
                removed.push(known.to_owned());
            }
            !goes
        });
        Ok(())
    })?;
    if removed.is_empty() {
        messages::error(
            format!("{text} is none of the keys that the user's settings trust"),
            Some("`sheaf cache key list` shows them"),
        );
        return Err(Failed);
    }
    removed.iter().for_each(|key| println!("no longer trusted: {key}"));
    Ok(())
}

/// Changes `trusted-keys` under `[cache]` in the user's settings, and leaves the rest of the file as it is.
fn edit(change: impl FnOnce(&mut Array) -> Result<(), Failed>) -> Result<(), Failed> {
    let path = home()?.config_file();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(format!("{} cannot be read: {error}", path.display()))),
    };
    let mut document: DocumentMut =
        text.parse().map_err(|error| failed(format!("{} is not TOML: {error}", path.display())))?;
    let wrong = || failed(format!("{}: `cache.trusted-keys` is not a list of keys", path.display()));
    let cache = document.entry("cache").or_insert_with(|| Item::Table(Table::new()));
    let cache = cache.as_table_like_mut().ok_or_else(wrong)?;
    let keys = cache.entry("trusted-keys").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    change(keys.as_array_mut().ok_or_else(wrong)?)?;
    let bytes = document.to_string();
    let written = if path.exists() {
        sheaf_cache::replace(&path, bytes.as_bytes())
    } else {
        sheaf_cache::write_whole(&path, bytes.as_bytes())
    };
    written.map_err(|error| {
        messages::error(&error, Some(error.remedy()));
        Failed
    })
}
