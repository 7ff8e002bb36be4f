//! Compiled programs on their way: to remote caches, and to and from a file.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _};
use std::path::Path;

use sheaf_cache::remote::Address;
use sheaf_cache::{Listed, SignedClaim, Store, Upload};

use super::{World, bytes, programs};
use crate::cli::NetworkOptions;
use crate::engine;
use crate::evaluator::{Failed, failed};
use crate::messages;

/// How long the last uploads may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3600);

/// More than any blob has, in bytes.
const BLOB_LIMIT: u64 = 4 << 30;

/// More than any claim has, in bytes.
const CLAIM_LIMIT: u64 = 256 * 1024;

/// Those of the store that this machine may vouch for: signed, or compiled here and signed now.
fn vouched(world: &World) -> Vec<SignedClaim> {
    let all = world.store.list().into_iter();
    all.filter_map(|Listed { signed, .. }| match (&signed.signer, &world.key) {
        (Some(_), _) => Some(signed),
        (None, Some(key)) => Some(SignedClaim::new(signed.claim, Some(key))),
        (None, None) => None,
    })
    .collect()
}

/// `sheaf cache push`.
pub fn push(network: &NetworkOptions) -> Result<(), Failed> {
    let world = World::here(network)?;
    let mut remotes = world.remotes()?;
    if !remotes.writes() {
        messages::error(
            "the remote caches are read-only",
            Some("leave out --read-only, or set SHEAF_CACHE_MODE to read-write"),
        );
        return Err(Failed);
    }
    let claims = vouched(&world);
    let unsigned = world.store.size().entries - claims.len();
    let mut sent = 0;
    for signed in claims {
        let (Ok(program), Ok(vmfb)) = (world.store.program(&signed.claim), world.store.vmfb(&signed.claim))
        else {
            continue;
        };
        let Ok(text) = String::from_utf8(program) else { continue };
        let Some(described) = engine::described(&signed.claim.action(&text)) else { continue };
        let mut blobs = described.blobs;
        blobs.push((Address::of(&vmfb), vmfb.into()));
        remotes.put(Upload { action: described.address, signed, blobs });
        sent += 1;
    }
    let dropped = remotes.finish(PATIENCE);
    let troubles = remotes.troubles();
    for trouble in &troubles {
        messages::error(trouble, Some(&trouble.remedy()));
    }
    if unsigned > 0 {
        let message = format!("without a signature, and so not sent: {}", programs(unsigned));
        messages::warning(message, Some("make a key with `sheaf cache key new NAME`"));
    }
    if troubles.is_empty() && dropped == 0 {
        println!("sent {}", programs(sent));
        return Ok(());
    }
    Err(Failed)
}

/// `sheaf cache export`.
pub fn export(path: &Path) -> Result<(), Failed> {
    let world = World::here(&NetworkOptions::default())?;
    let claims = vouched(&world);
    let written = write(&world.store, &claims, path);
    let count =
        written.map_err(|error| failed(format!("{} could not be written: {error}", path.display())))?;
    let unsigned = world.store.size().entries - claims.len();
    if unsigned > 0 {
        let message = format!("without a signature, and so left out: {}", programs(unsigned));
        messages::warning(message, Some("make a key with `sheaf cache key new NAME`"));
    }
    println!("wrote {} to {}", programs(count), path.display());
    Ok(())
}

/// Writes a tar file: for each program its text, its VMFB and then its claim.
fn write(store: &Store, claims: &[SignedClaim], path: &Path) -> io::Result<usize> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(folder)?;
    let mut archive = tar::Builder::new(BufWriter::new(file));
    let mut count = 0;
    let mut append = |name: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes)
    };
    for signed in claims {
        let claim = &signed.claim;
        let (Ok(program), Ok(vmfb)) = (store.program(claim), store.vmfb(claim)) else { continue };
        append(format!("{}/program.mlir", claim.key), &program)?;
        append(format!("{}/main.vmfb", claim.key), &vmfb)?;
        append(format!("{}/claim", claim.key), signed.text())?;
        count += 1;
    }
    let file = archive.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(count)
}

/// `sheaf cache import`.
pub fn import(path: &Path, network: &NetworkOptions) -> Result<(), Failed> {
    let world = World::here(network)?;
    let read = |error: io::Error| failed(format!("{} cannot be read: {error}", path.display()));
    let file = File::open(path).map_err(read)?;
    let mut archive = tar::Archive::new(BufReader::new(file));
    let (mut taken, mut size, mut refused) = (0, 0, 0);
    let mut program = Vec::new();
    let mut vmfb = Vec::new();
    for entry in archive.entries().map_err(read)? {
        let mut entry = entry.map_err(read)?;
        // Nothing is unpacked to a path of the archive: names only say what follows.
        let name =
            entry.path().map_err(read)?.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let limit = if name == "claim" { CLAIM_LIMIT } else { BLOB_LIMIT };
        if entry.size() > limit {
            return Err(failed(format!("{} is damaged: {name} has {} bytes", path.display(), entry.size())));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(read)?;
        match name.as_str() {
            "program.mlir" => program = content,
            "main.vmfb" => vmfb = content,
            "claim" => {
                if accept(&world, &content, &program, &vmfb)? {
                    taken += 1;
                    size += vmfb.len() as u64;
                } else {
                    refused += 1;
                }
            }
            _ => {}
        }
    }
    println!("took in {}, {}", programs(taken), bytes(size));
    if refused > 0 {
        let message = format!("altered, or signed by nobody trusted, and so left out: {}", programs(refused));
        messages::warning(message, Some("`sheaf cache key trust KEY` trusts what a key signs"));
        return Err(Failed);
    }
    Ok(())
}

/// Takes in a program if somebody trusted vouches for it.
fn accept(world: &World, claim: &[u8], program: &[u8], vmfb: &[u8]) -> Result<bool, Failed> {
    let Ok(signed) = SignedClaim::read(claim) else { return Ok(false) };
    let is_trusted = signed.signer.as_ref().is_some_and(|signer| world.trusted.knows(signer));
    let fits = signed.claim.program == Address::of(program) && signed.claim.vmfb == Address::of(vmfb);
    let text = std::str::from_utf8(program).unwrap_or_default();
    if !is_trusted || !fits || signed.claim.action(text).key() != signed.claim.key {
        return Ok(false);
    }
    world.store.put(&signed, program, vmfb).map_err(|error| {
        messages::error(&error, Some(error.remedy()));
        Failed
    })?;
    Ok(true)
}
