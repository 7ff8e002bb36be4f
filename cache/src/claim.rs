//! A writer's statement about a compiled program: its action, its compiler and its compile time in seconds.
//!
//! ```text
//! {"version":1,"key":"3f9a…","vmfb":{"digest":"b7e0…","size":16264},"function":"step",…}
//! {"signer":"ci:5d41…","signature":"90cf…"}
//! ```
//!
//! The first line is the claim; the second, if present, the Ed25519 signature over the bytes of the first, prefixed by
//! a domain-separation text. The signed bytes are the bytes that are parsed, so no canonical form is needed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::remote::Address;
use sheaf_artifacts::{Action, ActionKey, Cpu, Donation};
use sheaf_foundation::Digest;
use sheaf_foundation::{PublicKey, SecretKey, SignatureError};

/// The version of [`Claim`], also part of the name of its bucket.
pub const CLAIM_VERSION: u64 = 1;
/// Upper limit of a claim's size, in bytes.
pub const CLAIM_LIMIT: u64 = 256 * 1024;
/// Maximum length of a function's name, in characters; the rest is cut.
const FUNCTION_LIMIT: usize = 200;
/// Domain-separation prefix of the signed bytes.
const SIGNED: &[u8] = b"sheaf claim\n";

/// The statement about one compiled program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    version: u64,
    /// The key of the action that made it.
    pub key: ActionKey,
    /// The VMFB.
    pub vmfb: Address,
    /// The program without source locations, as in the key.
    pub program: Address,
    /// The first function compiled to it: a hint for users, cut if very long.
    pub function: String,
    /// The types of its arguments, such as `f32[32,4]`.
    pub inputs: Vec<String>,
    /// The compiler's release.
    pub compiler: String,
    /// The digest of that release.
    pub compiler_digest: Digest,
    /// The compiler's flags, common to all alternatives.
    pub flags: Vec<String>,
    /// The sets of further flags, in the order in which they were tried; empty in claims of key versions before 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Vec<String>>,
    /// The position of the alternative that produced the program.
    #[serde(default, skip_serializing_if = "is_first")]
    pub alternative: usize,
    /// The kind of device.
    pub device: String,
    /// The target CPU, if the device is one.
    pub cpu: Option<Cpu>,
    /// The arguments whose buffers become outputs.
    pub donation: BTreeSet<Donation>,
    /// True if debug information was kept.
    pub debug: bool,
    /// The programs that were preferred to this one and rejected; absent from claims of key versions before 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Digest>,
    /// Compile time in seconds.
    pub seconds: f64,
    /// Time of the compilation, in seconds since 1970 by the clock of that machine.
    pub time: u64,
}

/// True for alternative 0, the only one if there are no alternatives.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_first(alternative: &usize) -> bool {
    *alternative == 0
}

/// Metadata of a compilation other than its action and its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compilation {
    /// The function's name.
    pub function: String,
    /// The types of its arguments.
    pub inputs: Vec<String>,
    /// The position of the alternative that produced the program.
    pub alternative: usize,
    /// Compile time in seconds.
    pub seconds: f64,
    /// End of the compilation, in seconds since 1970.
    pub time: u64,
}

impl Claim {
    /// The claim that `action` compiled to `vmfb`.
    pub fn new(action: &Action, program: &[u8], vmfb: &[u8], compilation: Compilation) -> Self {
        let Compilation { function, inputs, alternative, seconds, time } = compilation;
        Self {
            version: CLAIM_VERSION,
            key: action.key(),
            vmfb: Address::of(vmfb),
            program: Address::of(program),
            function: function.chars().filter(|c| !c.is_control()).take(FUNCTION_LIMIT).collect(),
            inputs,
            compiler: action.compiler.clone(),
            compiler_digest: action.compiler_digest,
            flags: action.flags.clone(),
            alternatives: action.all_alternatives(),
            alternative,
            device: action.device.clone(),
            cpu: action.cpu.clone(),
            donation: action.donation.clone(),
            debug: action.debug,
            rejected: action.rejected.clone(),
            seconds,
            time,
        }
    }

    /// The claimed action, given the text of its program.
    pub fn action(&self, program: &str) -> Action {
        Action {
            program: program.into(),
            compiler: self.compiler.clone(),
            compiler_digest: self.compiler_digest,
            flags: self.flags.clone(),
            alternatives: self.alternatives.clone(),
            tuned: None,
            device: self.device.clone(),
            cpu: self.cpu.clone(),
            donation: self.donation.clone(),
            debug: self.debug,
            rejected: self.rejected.clone(),
        }
    }

    /// True if its texts are safe to print: claims without a trusted signature are printed too.
    fn is_plain(&self) -> bool {
        let cpu = self.cpu.iter().flat_map(|cpu| cpu.features.iter().chain([&cpu.arch]));
        let texts = [&self.function, &self.compiler, &self.device].into_iter();
        let flags = self.flags.iter().chain(self.alternatives.iter().flatten());
        let mut texts = texts.chain(&self.inputs).chain(flags).chain(cpu);
        texts.all(|text| !text.contains(char::is_control)) && self.function.chars().count() <= FUNCTION_LIMIT
    }

    /// The complete command line that produced the program; `None` if the claim names an alternative that it does not
    /// list.
    pub fn command_line(&self, program: &str) -> Option<Vec<String>> {
        self.action(program).attempts().into_iter().nth(self.alternative)
    }

    /// Seconds of compilation saved per byte of the program.
    pub fn worth(&self) -> f64 {
        self.seconds / (self.vmfb.size.max(1) as f64)
    }
}

/// A claim in its serialised form, with or without a signature.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedClaim {
    /// The claim.
    pub claim: Claim,
    /// The signer; `None` without a signature. Reading a claim verifies the signature, not that the signer is trusted.
    pub signer: Option<PublicKey>,
    text: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct SignatureLine {
    signer: PublicKey,
    signature: String,
}

/// Cause of a rejected claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Malformed text.
    #[error("it is no claim: {0}")]
    Unreadable(String),
    /// Another format version.
    #[error("it is written in format {found}, but this Sheaf reads format {known}")]
    Version {
        /// The version found.
        found: u64,
        /// The supported version.
        known: u64,
    },
    /// Altered after it was signed, or signed by another key than it names.
    #[error("the signature is not that of {signer} for this claim")]
    Altered {
        /// The signer it names.
        signer: PublicKey,
    },
}

impl SignedClaim {
    /// Serialises a claim, and signs it if there is a key.
    pub fn new(claim: Claim, key: Option<&SecretKey>) -> Self {
        // A claim has no maps with non-string keys and no non-finite numbers.
        let mut text = serde_json::to_vec(&claim).unwrap_or_default();
        text.push(b'\n');
        let signer = key.map(|key| {
            let line = SignatureLine { signer: key.public(), signature: key.sign(&signed(&text)) };
            text.extend(serde_json::to_vec(&line).unwrap_or_default());
            text.push(b'\n');
            line.signer
        });
        Self { claim, signer, text }
    }

    /// Reads a claim, and verifies its signature if it has one.
    pub fn read(text: &[u8]) -> Result<Self, ClaimError> {
        Self::parse_with(text, |signer, line, signature| {
            signer
                .verify(&signed(line), signature)
                .map_err(|SignatureError| ClaimError::Altered { signer: signer.clone() })
        })
    }

    /// Reads a claim from the user's own disk without verifying its signature, for listings.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, ClaimError> {
        Self::parse_with(text, |_, _, _| Ok(()))
    }

    fn parse_with(
        text: &[u8],
        verify: impl FnOnce(&PublicKey, &[u8], &str) -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        #[derive(Deserialize)]
        struct Header {
            version: u64,
        }
        let unreadable = |cause: &dyn std::fmt::Display| ClaimError::Unreadable(cause.to_string());
        if text.len() as u64 > CLAIM_LIMIT {
            return Err(unreadable(&format!("it has {} bytes", text.len())));
        }
        let end = text.iter().position(|byte| *byte == b'\n').ok_or_else(|| unreadable(&"it is cut off"))?;
        let (line, rest) = text.split_at(end + 1);
        let Header { version } = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if version != CLAIM_VERSION {
            return Err(ClaimError::Version { found: version, known: CLAIM_VERSION });
        }
        let claim: Claim = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if !claim.is_plain() {
            return Err(unreadable(&"it has control characters, or a name of more than 200 characters"));
        }
        let signer = if rest.is_empty() {
            None
        } else {
            let SignatureLine { signer, signature } =
                serde_json::from_slice(rest).map_err(|error| unreadable(&error))?;
            verify(&signer, line, &signature)?;
            Some(signer)
        };
        Ok(Self { claim, signer, text: text.to_vec() })
    }

    /// The serialised claim.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// The signed bytes for the claim in `line`.
fn signed(line: &[u8]) -> Vec<u8> {
    [SIGNED, line].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        let action = Action {
            program: "module @sheaf {}".into(),
            compiler: "3.13.0".into(),
            compiler_digest: Digest::of(b"3.13.0"),
            flags: vec!["--a".into()],
            alternatives: vec![],
            tuned: None,
            device: "cpu".into(),
            cpu: Some(Cpu { arch: "x86_64".into(), features: ["avx2".to_owned()].into() }),
            donation: [Donation { argument: 1, output: 0 }].into(),
            debug: false,
            rejected: vec![],
        };
        let compilation = Compilation {
            function: "step".into(),
            inputs: vec!["f32[32,4]".into()],
            alternative: 0,
            seconds: 1.5,
            time: 1_790_000_000,
        };
        Claim::new(&action, action.program.as_bytes(), b"vmfb", compilation)
    }

    #[test]
    fn texts_that_would_do_something_to_a_terminal_are_none() {
        let name = |function: &str| SignedClaim::new(Claim { function: function.into(), ..claim() }, None);
        assert!(SignedClaim::read(name("step (vag)").text()).is_ok());
        for wrong in ["f\u{1b}[2J", "f\nerror: too old", &"f".repeat(FUNCTION_LIMIT + 1)] {
            let error = SignedClaim::read(name(wrong).text()).unwrap_err();
            assert!(matches!(error, ClaimError::Unreadable(_)), "{wrong:?}");
        }
        let flags = Claim { flags: vec!["--a\r".into()], ..claim() };
        assert!(SignedClaim::read(SignedClaim::new(flags, None).text()).is_err());
    }

    #[test]
    fn what_was_written_is_read() {
        let key = SecretKey::generate("ci").unwrap();
        for key in [None, Some(&key)] {
            let written = SignedClaim::new(claim(), key);
            let read = SignedClaim::read(written.text()).unwrap();
            assert_eq!(read, written);
            assert_eq!(read.signer, key.map(SecretKey::public));
            assert_eq!(read.claim, claim());
        }
    }

    #[test]
    fn it_tells_the_action_that_it_speaks_of() {
        let claim = claim();
        assert_eq!(claim.action("module @sheaf {}").key(), claim.key);
        assert_ne!(claim.action("module @other {}").key(), claim.key);
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        let key = SecretKey::generate("ci").unwrap();
        let text = SignedClaim::new(claim(), Some(&key)).text().to_vec();
        for place in 0..text.len() {
            let mut altered = text.clone();
            altered[place] ^= 1;
            // The signer's name is not part of the signature.
            if let Ok(read) = SignedClaim::read(&altered) {
                assert_eq!(read.signer.map(|s| s.bytes()), Some(key.public().bytes()), "byte {place}");
                assert_eq!(read.claim, claim(), "byte {place}");
            }
        }
        let unsigned = text.iter().position(|b| *b == b'\n').unwrap() + 1;
        assert_eq!(SignedClaim::read(&text[..unsigned]).unwrap().signer, None);
        for length in (0..text.len() - 1).filter(|length| *length != unsigned) {
            assert!(SignedClaim::read(&text[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_signature_of_another_claim_does_not_fit() {
        let key = SecretKey::generate("ci").unwrap();
        let mut other = claim();
        other.vmfb = Address::of(b"poison");
        let good = SignedClaim::new(claim(), Some(&key));
        let bad = SignedClaim::new(other, Some(&key));
        let line = |text: &[u8], n: usize| text.split_inclusive(|b| *b == b'\n').nth(n).unwrap().to_vec();
        let mixed = [line(bad.text(), 0), line(good.text(), 1)].concat();
        assert_eq!(SignedClaim::read(&mixed), Err(ClaimError::Altered { signer: key.public() }));
    }

    #[test]
    fn another_version_is_said() {
        let text = b"{\"version\":9}\n";
        assert_eq!(SignedClaim::read(text), Err(ClaimError::Version { found: 9, known: CLAIM_VERSION }));
        assert!(matches!(SignedClaim::read(b"\n"), Err(ClaimError::Unreadable(_))));
    }
}
