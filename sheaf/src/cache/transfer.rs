//! Compiled programs on their way: to remote caches, and to and from a file.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use sheaf_artifacts::{ActionKey, ArtifactFolder};
use sheaf_cache::remote::Address;
use sheaf_cache::{Listed, SignedClaim, Store, Upload};
use sheaf_foundation::atomic::{self, WriteError};

use super::{CacheContext, bytes, programs};
use crate::cli::NetworkOptions;

use crate::evaluator::Failed;
use crate::messages;
use sheaf_engine as engine;

/// Maximum time of the last uploads.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Maximum size of a blob, in bytes; real ones are smaller.
const BLOB_LIMIT: u64 = 4 << 30;

/// Maximum size of a claim, in bytes; real ones are smaller.
const CLAIM_LIMIT: u64 = 256 * 1024;

/// Maximum number of waiting uploads, each with its program in memory.
const WAITING: usize = 4;

/// Pause between looks for room for the next upload.
const PAUSE: Duration = Duration::from_millis(5);

/// Claims of the `wanted` in the store that this machine may vouch for, since they are signed, or compiled here and
/// signed now; and the number of others.
fn vouched(context: &CacheContext, wanted: impl Fn(&ActionKey) -> bool) -> (Vec<SignedClaim>, usize) {
    let mut all = context.store.list();
    all.retain(|listed| wanted(&listed.signed.claim.key));
    let count = all.len();
    let claims: Vec<_> = all
        .into_iter()
        .filter_map(|Listed { signed, .. }| match (&signed.signer, &context.key) {
            (Some(_), _) => Some(signed),
            (None, Some(key)) => Some(SignedClaim::new(signed.claim, Some(key))),
            (None, None) => None,
        })
        .collect();
    let unsigned = count - claims.len();
    (claims, unsigned)
}

/// The keys of the programs that the `__sheaf__` of this project lists.
fn listed_here(context: &CacheContext) -> Result<BTreeSet<ActionKey>, Failed> {
    let project = &context.project;
    let folder = ArtifactFolder::owned(project.artifact_folder(), project.owners.clone());
    let entries = folder.entries().map_err(|miss| {
        messages::error(&miss, miss.remedy());
        Failed
    })?;
    Ok(entries.into_iter().map(|entry| entry.key).collect())
}

/// `sheaf cache push`: the programs of this project, or of all, since readers of a remote need not know the others.
pub fn push(all: bool, network: &NetworkOptions) -> Result<(), Failed> {
    let context = CacheContext::here(network)?;
    let mut remotes = context.remotes()?;
    if !remotes.writes() {
        messages::error(
            "the remote caches are read-only",
            Some("leave out --read-only, or set SHEAF_CACHE_MODE to read-write"),
        );
        return Err(Failed);
    }
    let here = if all { None } else { Some(listed_here(&context)?) };
    let (claims, unsigned) = vouched(&context, |key| here.as_ref().is_none_or(|here| here.contains(key)));
    let mut sent = 0;
    for signed in claims {
        while remotes.uploading() >= WAITING {
            thread::sleep(PAUSE);
        }
        if !remotes.writes() {
            break;
        }
        let (Ok(program), Ok(vmfb)) =
            (context.store.program(&signed.claim), context.store.vmfb(&signed.claim))
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
    if dropped > 0 {
        let message = format!("not sent within {} s: {}", PATIENCE.as_secs(), programs(dropped));
        messages::error(message, Some("check the network, and run this again: what was sent is there"));
    }
    if unsigned > 0 {
        let message = format!("without a signature, and so not sent: {}", programs(unsigned));
        messages::warning(message, Some("make a key with `sheaf cache key new NAME`"));
    }
    if troubles.is_empty() && dropped == 0 {
        println!("sent {}", programs(sent));
        if sent == 0 && !all && unsigned == 0 {
            eprintln!(
                "the __sheaf__ here lists none that the store has; `--all` sends those of all projects"
            );
        }
        return Ok(());
    }
    Err(Failed)
}

/// `sheaf cache export`.
pub fn export(path: &Path) -> Result<(), Failed> {
    let context = CacheContext::here(&NetworkOptions::default())?;
    let (claims, unsigned) = vouched(&context, |_| true);
    let mut count = 0;
    atomic::replace_with(path, &mut |to| {
        count = write(&context.store, &claims, to)?;
        Ok(())
    })
    .map_err(|error| unwritten(&error))?;
    if unsigned > 0 {
        let message = format!("without a signature, and so left out: {}", programs(unsigned));
        messages::warning(message, Some("make a key with `sheaf cache key new NAME`"));
    }
    println!("wrote {} to {}", programs(count), path.display());
    Ok(())
}

fn unwritten(error: &WriteError) -> Failed {
    messages::error(error, Some(error.remedy()));
    Failed
}

/// Writes a tar file: for each program its text, its VMFB and then its claim. Returns the number of programs.
fn write(store: &Store, claims: &[SignedClaim], to: &mut dyn io::Write) -> io::Result<usize> {
    let mut archive = tar::Builder::new(to);
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
    archive.finish()?;
    Ok(count)
}

/// `sheaf cache import`.
pub fn import(path: &Path, network: &NetworkOptions) -> Result<(), Failed> {
    let context = CacheContext::here(network)?;
    let mut import = Import { context: &context, path, found: Found::default() };
    import.read()?;
    let Found { taken, size, quarantined, refused, .. } = import.found;
    println!("took in {}, {}", programs(taken), bytes(size));
    if quarantined > 0 {
        let message = format!("put away by an audit before, and so left out: {}", programs(quarantined));
        messages::warning(
            message,
            Some("they do not compute what their compiler makes of them: ask who signed"),
        );
    }
    if refused > 0 {
        let message = format!("altered, or signed by nobody trusted, and so left out: {}", programs(refused));
        messages::warning(message, Some("`sheaf cache key trust KEY` trusts what a key signs"));
    }
    if quarantined + refused > 0 { Err(Failed) } else { Ok(()) }
}

/// A file that is taken in.
struct Import<'a> {
    context: &'a CacheContext,
    path: &'a Path,
    found: Found,
}

/// The content so far.
#[derive(Default)]
struct Found {
    /// True if anything was an entry as [`write`] writes it.
    any: bool,
    taken: usize,
    size: u64,
    quarantined: usize,
    refused: usize,
}

impl Import<'_> {
    fn read(&mut self) -> Result<(), Failed> {
        let file = File::open(self.path).map_err(|error| self.failed(&error))?;
        // No entry has more bytes than the file; the length of a pipe is unknown.
        let length = file.metadata().ok().filter(Metadata::is_file).map_or(BLOB_LIMIT, |file| file.len());
        let mut archive = tar::Archive::new(BufReader::new(file));
        let (mut program, mut vmfb) = (Vec::new(), Vec::new());
        // Raw: names of any length would be read whole, and none that is written here needs them.
        let entries = archive.entries().map_err(|error| self.failed(&error))?.raw(true);
        for entry in entries {
            let mut entry = entry.map_err(|error| self.failed(&error))?;
            // Nothing is unpacked to a path of the archive: names only tell the kind of an entry.
            let name = entry.path().map_err(|error| self.failed(&error))?;
            let name = name.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let limit = match name.as_str() {
                "claim" => CLAIM_LIMIT,
                "program.mlir" | "main.vmfb" => BLOB_LIMIT,
                _ => continue,
            };
            // Others may be much longer than their bytes in the file, such as those that leave out zeros.
            if entry.header().entry_type() != tar::EntryType::Regular {
                return Err(self.none(&format!("{name} is no plain file in it")));
            }
            self.found.any = true;
            if entry.size() > limit.min(length) {
                return Err(self.damaged(&format!("it cannot hold the {} bytes of {name}", entry.size())));
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(|error| self.failed(&error))?;
            match name.as_str() {
                "program.mlir" => program = content,
                "main.vmfb" => vmfb = content,
                _ => self.take(&content, &program, &vmfb)?,
            }
        }
        let Found { taken, quarantined, refused, .. } = self.found;
        if taken + quarantined + refused == 0 { Err(self.none(&"there is no program in it")) } else { Ok(()) }
    }

    /// Takes in a program if a trusted key vouches for it, and no audit found it to compute something else.
    fn take(&mut self, claim: &[u8], program: &[u8], vmfb: &[u8]) -> Result<(), Failed> {
        let Some(signed) = self.accepted(claim, program, vmfb) else {
            self.found.refused += 1;
            return Ok(());
        };
        if self.context.store.is_quarantined(&signed.claim) {
            self.found.quarantined += 1;
            return Ok(());
        }
        self.context.store.put(&signed, program, vmfb).map_err(|error| unwritten(&error))?;
        self.found.taken += 1;
        self.found.size += vmfb.len() as u64;
        Ok(())
    }

    /// The claim, if a trusted key signed it for these bytes.
    fn accepted(&self, claim: &[u8], program: &[u8], vmfb: &[u8]) -> Option<SignedClaim> {
        let signed = SignedClaim::read(claim).ok()?;
        let is_trusted = signed.signer.as_ref().is_some_and(|signer| self.context.trusted.knows(signer));
        let fits = signed.claim.program == Address::of(program) && signed.claim.vmfb == Address::of(vmfb);
        let text = std::str::from_utf8(program).ok()?;
        (is_trusted && fits && signed.claim.action(text).key() == signed.claim.key).then_some(signed)
    }

    /// Shows why it cannot be read: the system says no, it ends early, or it is something else.
    fn failed(&self, error: &io::Error) -> Failed {
        if error.raw_os_error().is_some() {
            let message = format!("{} cannot be read: {error}", self.path.display());
            messages::error(message, Some("check the path and who may read it"));
            Failed
        } else if self.found.any {
            self.damaged(error)
        } else {
            // The error of the archive quotes its bytes, which may be anything.
            self.none(&"it is no archive")
        }
    }

    fn damaged(&self, cause: &dyn std::fmt::Display) -> Failed {
        let message = format!("{} is damaged: {cause}", self.path.display());
        messages::error(message, Some("copy it again from where it was made"));
        Failed
    }

    fn none(&self, cause: &dyn std::fmt::Display) -> Failed {
        let message = format!("{} is no file that `sheaf cache export` wrote: {cause}", self.path.display());
        messages::error(message, Some("make one with `sheaf cache export FILE` where the programs are"));
        Failed
    }
}
