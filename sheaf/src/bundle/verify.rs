//! `sheaf bundle verify`.

use std::path::Path;
use std::process::ExitCode;

use sheaf_foundation::PublicKey;

use super::options::VerifyOptions;
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;

/// Verifies a bundle in any of its forms.
pub fn verify(options: &VerifyOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &VerifyOptions) -> Result<(), Failed> {
    let key = options.key.as_deref().map(str::parse::<PublicKey>).transpose().map_err(failed)?;
    let path = &options.bundle;
    if path.is_dir() {
        return compare(path, path, key.as_ref());
    }
    let folder =
        tempfile::tempdir().map_err(|error| failed(format!("there is no temporary folder: {error}")))?;
    let unreadable = |error: std::io::Error| failed(format!("{}: {error}", path.display()));
    if let Some(mut appended) = sheaf_bundle::find_appended(path).map_err(unreadable)? {
        appended.unpack_all(folder.path()).map_err(unreadable)?;
        return compare(path, folder.path(), key.as_ref());
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    sheaf_bundle::unpack_checked(bytes, folder.path()).map_err(unreadable)?;
    // An archive holds one folder.
    let mut entries = std::fs::read_dir(folder.path()).map_err(unreadable)?.flatten();
    match (entries.next(), entries.next()) {
        (Some(only), None) if only.path().is_dir() => compare(path, &only.path(), key.as_ref()),
        _ => Err(failed(format!("{} is no bundle: it has not one folder", path.display()))),
    }
}

fn compare(shown: &Path, folder: &Path, key: Option<&PublicKey>) -> Result<(), Failed> {
    let (manifest, signer, mut faults) = sheaf_bundle::verify(folder).map_err(|error| {
        messages::error(&error, Some("name a folder, archive or executable that `sheaf bundle` has made"));
        Failed
    })?;
    if let Some(key) = key
        && signer.as_ref() != Some(key)
    {
        let by =
            signer.as_ref().map_or("is not signed".to_owned(), |signer| format!("is signed by {signer}"));
        faults.push(sheaf_bundle::Fault::Signature(format!("it {by}")));
    }
    if faults.is_empty() {
        let by = signer.map_or("not signed".to_owned(), |key| format!("signed by {key}"));
        println!(
            "{}: {} files as {} {} lists them, {by}",
            shown.display(),
            manifest.files.len(),
            manifest.name,
            manifest.platform
        );
        return Ok(());
    }
    for fault in faults {
        messages::error(
            format!("{}: {fault}", shown.display()),
            Some("do not run it: make it again, or copy it from its source"),
        );
    }
    Err(Failed)
}
