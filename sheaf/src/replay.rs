//! `sheaf replay`: the call in which a guard was broken, once more and interpreted.
//!
//! A capsule file is a line with the format, the SHA-256 of what follows in hexadecimal digits and a line break, and then
//! the capsule (`sheaf_lang::observe::Capsule`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_foundation::{Digest, atomic};
use sheaf_lang::eval::{Interp, Options};
use sheaf_lang::host::{Host, HostError, OwnPackage};
use sheaf_lang::observe::{Breach, Capsule, Guard};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::visible::visible;

use crate::cli::ReplayOptions;
use crate::evaluator::{Failed, failed, on_thread};
use crate::messages;
use crate::observe::{self, GUARDED, ObserveOptions};
use crate::output;

/// The first line of a capsule file.
const MAGIC: &[u8] = b"sheaf capsule\n";

/// Maximum size of a capsule file.
const MAX_SIZE: u64 = 3 << 30;

/// Remedy for a file that is no capsule.
const REMEDY: &str = "a run with --guard writes a capsule when a guard is broken, and says its name";

/// Writes the capsule of a breach to the current folder; its name, or `None` if there is none.
pub fn save(breach: &Breach) -> Option<PathBuf> {
    let capsule = breach.capsule.as_ref()?;
    let digest = Digest::of(capsule);
    let words = breach.function.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: Vec<&str> = words.take(4).collect();
    let name = if name.is_empty() { "call".to_owned() } else { name.join("-") };
    let path = PathBuf::from(format!("guard-{name}-{}.capsule", digest.short(8)));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(format!("{digest}\n").into_bytes());
    bytes.extend(capsule);
    match atomic::write(&path, &bytes) {
        Ok(()) => Some(path),
        Err(error) => {
            messages::warning(format!("the capsule of the call is not kept: {error}"), Some(error.remedy()));
            None
        }
    }
}

/// The capsule in a file, after its digest was compared.
fn read(path: &Path) -> Result<Capsule, Failed> {
    let shown = path.display();
    let wrong = |what: &str| {
        messages::error(format!("{shown} is no capsule that can be replayed: {what}"), Some(REMEDY));
        Failed
    };
    let size = std::fs::metadata(path).map(|found| found.len());
    if size.is_ok_and(|size| size > MAX_SIZE) {
        return Err(wrong("it is too large"));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        let error = sheaf_loader::unreadable(path, &error);
        messages::error(&error.message, error.help.as_deref());
        Failed
    })?;
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("it does not begin like one"))?;
    let (digest, capsule) = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|end| (&rest[..end], &rest[end + 1..]))
        .ok_or_else(|| wrong("it is cut off"))?;
    if digest != Digest::of(capsule).to_string().as_bytes() {
        return Err(wrong("it is damaged: its digest is another one"));
    }
    Capsule::read(capsule).map_err(|what| wrong(&what))
}

/// Runs the call of a capsule again.
pub fn replay(options: &ReplayOptions) -> ExitCode {
    on_thread(|| replay_here(options).unwrap_or_else(|Failed| ExitCode::from(1)))
}

fn replay_here(options: &ReplayOptions) -> Result<ExitCode, Failed> {
    let capsule = read(&options.file)?;
    let guards = capsule.guards.iter().map(|text| text.parse::<Guard>()).collect::<Result<Vec<_>, _>>();
    let guard = guards.map_err(|error| failed(format!("{}: {error}", options.file.display())))?;
    let mut interp = Interp::new(Box::new(CapsuleHost::new(&capsule)), None, Options::default());
    ObserveOptions { trace: options.trace.clone(), guard, ..ObserveOptions::default() }.start(&mut interp)?;
    let result = interp.replay(&capsule);
    if observe::show_breach(&mut interp).is_some() {
        return Ok(ExitCode::from(GUARDED));
    }
    match result {
        Ok(_) => {
            println!(
                "no value breaks a guard here: interpreted, the call passes; what broke was: {}",
                visible(&capsule.broken)
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(errors) => {
            errors.iter().for_each(|e| messages::show(&interp.sources, e));
            let guarded = errors.iter().any(|e| e.kind.is_guard());
            Ok(ExitCode::from(if guarded { GUARDED } else { 1 }))
        }
    }
}

/// The host of a replay: the texts of a capsule are its files. There is no other file, no environment, no network.
struct CapsuleHost {
    sources: Vec<(String, String)>,
    dependencies: Vec<(String, String, String)>,
    own: Vec<(String, Option<String>, String)>,
}

impl CapsuleHost {
    fn new(capsule: &Capsule) -> CapsuleHost {
        CapsuleHost {
            sources: capsule.sources.clone(),
            dependencies: capsule.dependencies.clone(),
            own: capsule.own.clone(),
        }
    }
}

impl Host for CapsuleHost {
    fn print(&mut self, text: &str) -> Result<(), HostError> {
        output::print(&visible(text))
            .map_err(|Failed| HostError { message: "cannot print".into(), help: None })
    }

    fn warn(&mut self, sources: &Sources, warning: &Diagnostic) {
        messages::show(sources, warning);
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, HostError> {
        let found = self.sources.iter().find(|(name, _)| name == path);
        let missing = || HostError { message: format!("{path} is not in the capsule"), help: None };
        found.map(|(_, text)| text.clone().into_bytes()).ok_or_else(missing)
    }

    fn own_package(&mut self, folder: &str) -> Result<Option<OwnPackage>, HostError> {
        let found = self.own.iter().find(|(asks, ..)| asks == folder);
        Ok(found.map(|(_, name, sources)| OwnPackage { name: name.clone(), sources: sources.clone() }))
    }

    fn dependency(&mut self, package: &str, name: &str) -> Result<Option<String>, HostError> {
        let found = self.dependencies.iter().find(|(asks, called, _)| asks == package && called == name);
        Ok(found.map(|(.., folder)| folder.clone()))
    }
}
