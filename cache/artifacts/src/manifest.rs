//! `manifest.json`: the list of an artifact folder's entries.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::action::{Action, ActionKey, Cpu, Donation};
use crate::content;
use crate::guard::Guard;
use crate::miss::Miss;
use crate::pretty;
use crate::tuning::TuningFlag;
use sheaf_foundation::Digest;

/// The version of the manifest's format.
pub const MANIFEST_VERSION: u64 = 1;

/// Upper limit of a manifest's size, in bytes.
const SIZE_LIMIT: u64 = 64 * 1024 * 1024;

/// One function, specialised for the types and static values of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Specialisation {
    /// The function's name.
    pub function: String,
    /// The transform of the function: none (`""`), or `vag` for its value and gradient.
    pub transform: String,
    /// The leaves of the arguments, in the order of the compiled program's arguments.
    pub inputs: Vec<Leaf>,
    /// The leaves of the result, in the order of the compiled program's results.
    pub outputs: Vec<Leaf>,
    /// The values that the body read while it was traced.
    pub statics: Vec<Static>,
    /// The digests of the large constants that became trailing arguments, in order.
    pub constants: Vec<Digest>,
    /// Checks of the compiled program.
    pub checks: Vec<Check>,
}

/// A runtime check of a compiled program. The program's last result, the flag, is 0 or the 1-based position of the
/// first failed check, followed by the failing values: the index, or the traced values of the message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Check {
    /// The condition, or the message with the types of values known only at run time.
    pub message: String,
    /// The file, the line and the column.
    pub place: String,
}

/// A tensor within an argument or a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leaf {
    /// The tensor's path, such as `params[:l1][:W]`.
    pub path: String,
    /// The type of its elements, such as `f32`.
    pub dtype: String,
    /// Its extents; empty for a number.
    pub shape: Vec<u64>,
    /// True for a weak type, which gives way to that of its partner in an operation.
    pub weak: bool,
}

impl Leaf {
    /// Its type as messages have it, such as `f32[32,4]`, or `~f32[]` for a weak number.
    pub fn ty(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("{}{}[{}]", if self.weak { "~" } else { "" }, self.dtype, shape.join(","))
    }
}

/// A value that is built into the compiled program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Static {
    /// The value's path, such as `config[:n-heads]`.
    pub path: String,
    /// The value in the language's syntax.
    pub value: String,
}

/// True for alternative 0, the only one if there are no alternatives.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_first(alternative: &usize) -> bool {
    *alternative == 0
}

/// One compiled program of an artifact folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The function's name.
    pub function: String,
    /// The transform of the function: none (`""`), or `vag` for its value and gradient.
    pub transform: String,
    /// The kind of device.
    pub device: String,
    /// The name of the VMFB in the folder.
    pub file: String,
    /// The SHA-256 of the VMFB.
    pub digest: Digest,
    /// The size of the VMFB in bytes.
    pub size: u64,
    /// The key of the action that made it.
    pub key: ActionKey,
    /// The key of that action without the flags of a tuning record, if there is one: a machine without it finds the program by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untuned: Option<ActionKey>,
    /// The digest of the program part of that key ([`Action::program_digest`]).
    pub program: Digest,
    /// The release of the compiler that made it.
    pub toolchain: String,
    /// The compiler's flags; empty in older manifests, which lack them.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The sets of further flags in the order in which they were tried, until the compiler succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Vec<String>>,
    /// The position of the set with which it succeeded; 0 in older manifests, which lack it.
    #[serde(default, skip_serializing_if = "is_first")]
    pub alternative: usize,
    /// The required CPU, if the device is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// True if debug information was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// The arguments that a call consumes, each donated to an output.
    pub donation: Vec<Donation>,
    /// The leaves of the arguments, in the order of the program's arguments.
    pub inputs: Vec<Leaf>,
    /// The leaves of the result, in the order of the program's results.
    pub outputs: Vec<Leaf>,
    /// The values that are built into the program.
    pub statics: Vec<Static>,
    /// The digests of the large constants that follow the arguments, in order.
    pub constants: Vec<Digest>,
    /// The runtime checks; empty in older manifests, which lack them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

impl Entry {
    /// The entry for the program that `action` compiled `specialisation` to by one of its attempts; the name of its file is empty.
    pub(crate) fn new(
        action: &Action,
        specialisation: Specialisation,
        bytes: &[u8],
        alternative: usize,
    ) -> Self {
        let Specialisation { function, transform, inputs, outputs, statics, constants, checks } =
            specialisation;
        Self {
            function,
            transform,
            device: action.device.clone(),
            file: String::new(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            key: action.key(),
            untuned: action.untuned_key(),
            program: action.program_digest(),
            toolchain: action.compiler.clone(),
            flags: action.flags.clone(),
            alternatives: action.all_alternatives(),
            alternative,
            cpu: action.cpu.clone(),
            debug: action.debug,
            donation: action.donation.iter().copied().collect(),
            inputs,
            outputs,
            statics,
            constants,
            checks,
        }
    }

    /// True if both serve the same calls on the same kind of machine, so that the newer one supersedes the older one.
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        self.call() == older.call()
    }

    fn call(&self) -> impl Ord + '_ {
        let name = (&self.function, &self.transform);
        let way = (&self.device, &self.cpu, &self.donation, self.debug);
        (name, way, &self.inputs, &self.statics)
    }
}

/// The contents of `manifest.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The entries, unordered.
    pub entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u64,
    entries: &'a [Entry],
}

#[derive(Deserialize)]
struct Read {
    entries: Vec<Entry>,
}

/// The part that is read first: the version determines if the rest can be parsed.
#[derive(Deserialize)]
struct Header {
    version: u64,
}

impl Manifest {
    /// Reads the manifest at `path`, if the guard allows it.
    pub fn read(path: &Path, guard: &Guard) -> Result<Self, Miss> {
        let unreadable = |error: io::Error| match error.kind() {
            // A file in the folder's place means that there is no manifest either.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Miss::Absent { folder: path.parent().unwrap_or(path).into() }
            }
            _ => Miss::RecordUnreadable { path: path.into(), cause: error.to_string() },
        };
        let damaged =
            |error: serde_json::Error| Miss::RecordDamaged { path: path.into(), cause: error.to_string() };
        let (file, metadata) = content::open(path).map_err(unreadable)?;
        guard.check(path, &metadata)?;
        let json = content::read_all(file, &metadata, SIZE_LIMIT).map_err(unreadable)?;
        let Header { version } = serde_json::from_slice(&json).map_err(damaged)?;
        if version != MANIFEST_VERSION {
            let (found, known) = (version, MANIFEST_VERSION);
            return Err(Miss::RecordVersion { path: path.into(), found, known });
        }
        let Read { entries } = serde_json::from_slice(&json).map_err(damaged)?;
        Ok(Self { entries })
    }

    /// The entry for this key: the program with the flags of a tuning record, if there is one whose flags the table still has.
    pub fn entry(&self, key: &ActionKey) -> Option<&Entry> {
        let is_of_table =
            |entry: &Entry| entry.alternatives.iter().all(|flags| TuningFlag::of(flags).is_some());
        let tuned = self.entries.iter().find(|entry| entry.untuned == Some(*key) && is_of_table(entry));
        tuned.or_else(|| self.entries.iter().find(|entry| entry.key == *key))
    }

    /// The manifest's JSON, independent of the order in which entries were recorded.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut entries = self.entries.clone();
        entries.sort_by(|a, b| a.call().cmp(&b.call()).then(a.key.cmp(&b.key)));
        pretty::to_vec(&Written { version: MANIFEST_VERSION, entries: &entries })
    }
}
