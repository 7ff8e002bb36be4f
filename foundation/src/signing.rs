//! Ed25519 keys, one per writer of programs or packages.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

/// The key that verifies a writer's signatures, with a name for display. Written as `NAME:` and 64 hexadecimal digits.
/// Keys with the same digits are equal, whatever their names.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey {
    name: String,
    bytes: [u8; 32],
}

/// The key that signs for a writer, with the same name. Written like a [`PublicKey`], but never shown.
pub struct SecretKey {
    name: String,
    key: SigningKey,
}

/// A malformed key. The text is not repeated, since it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a key; one is written as a name of letters, digits, `-`, `_` and `.`, a colon, and 64 hexadecimal digits"
)]
pub struct KeySyntax;

/// A signature that does not verify with this key for these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature is not of this key for these bytes")]
pub struct SignatureError;

/// The system's random number generator failed.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers to make a key of: {0}")]
pub struct NoRandomness(String);

impl PublicKey {
    /// The name for display.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The raw bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.bytes
    }

    /// Verifies a signature in hexadecimal of `bytes`.
    pub fn verify(&self, bytes: &[u8], signature: &str) -> Result<(), SignatureError> {
        let mut raw = [0; 64];
        hex::decode_to_slice(signature, &mut raw).map_err(|_| SignatureError)?;
        let key = VerifyingKey::from_bytes(&self.bytes).map_err(|_| SignatureError)?;
        key.verify_strict(bytes, &Signature::from_bytes(&raw)).map_err(|_| SignatureError)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for PublicKey {}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, hex::encode(self.bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeySyntax;

    fn from_str(text: &str) -> Result<Self, KeySyntax> {
        let (name, bytes) = parse(text)?;
        // Not every 32 bytes are a valid key.
        VerifyingKey::from_bytes(&bytes).map_err(|_| KeySyntax)?;
        Ok(Self { name, bytes })
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeySyntax;

    fn try_from(text: String) -> Result<Self, KeySyntax> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl SecretKey {
    /// A new key with this name.
    pub fn generate(name: &str) -> Result<Self, KeyError> {
        if !is_name(name) {
            return Err(KeySyntax.into());
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| NoRandomness(error.to_string()))?;
        Ok(Self { name: name.into(), key: SigningKey::from_bytes(&seed) })
    }

    /// The key that others need to verify signatures.
    pub fn public(&self) -> PublicKey {
        PublicKey { name: self.name.clone(), bytes: self.key.verifying_key().to_bytes() }
    }

    /// The key in its textual form, for files and environment variables. A secret.
    pub fn reveal(&self) -> String {
        format!("{}:{}", self.name, hex::encode(self.key.to_bytes()))
    }

    /// The signature of `bytes`, in hexadecimal.
    pub fn sign(&self, bytes: &[u8]) -> String {
        hex::encode(self.key.sign(bytes).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.name)
    }
}

impl FromStr for SecretKey {
    type Err = KeySyntax;

    fn from_str(text: &str) -> Result<Self, KeySyntax> {
        let (name, seed) = parse(text)?;
        Ok(Self { name, key: SigningKey::from_bytes(&seed) })
    }
}

/// Cause of a failed key generation.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Invalid name.
    #[error(transparent)]
    Name(#[from] KeySyntax),
    /// No random numbers.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

fn parse(text: &str) -> Result<(String, [u8; 32]), KeySyntax> {
    let (name, digits) = text.trim().rsplit_once(':').ok_or(KeySyntax)?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| KeySyntax)?;
    if is_name(name) { Ok((name.into(), bytes)) } else { Err(KeySyntax) }
}

/// Names appear in files, messages and file names.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_of_one_key_and_of_some_bytes() {
        let (a, b) = (SecretKey::generate("a").unwrap(), SecretKey::generate("b").unwrap());
        let signature = a.sign(b"bytes");
        assert_eq!(a.public().verify(b"bytes", &signature), Ok(()));
        assert_eq!(a.public().verify(b"Bytes", &signature), Err(SignatureError));
        assert_eq!(b.public().verify(b"bytes", &signature), Err(SignatureError));
        assert_eq!(a.public().verify(b"bytes", "00"), Err(SignatureError));
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = SecretKey::generate("ci-1").unwrap();
        let again: SecretKey = key.reveal().parse().unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(key.public().to_string().parse::<PublicKey>().unwrap(), key.public());
        assert_eq!(format!("{key:?}"), "SecretKey(ci-1)", "a secret is not shown");
        for wrong in ["", "ci", "ci:00", ":00", "../x:00", &key.reveal()[..60]] {
            assert!(wrong.parse::<SecretKey>().is_err(), "{wrong}");
            assert!(wrong.parse::<PublicKey>().is_err(), "{wrong}");
        }
    }

    /// RFC 8032, section 7.1, test 1.
    #[test]
    fn the_signature_is_ed25519() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key: SecretKey = format!("rfc:{seed}").parse().unwrap();
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(key.public().to_string(), format!("rfc:{public}"));
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(key.sign(b""), signature);
    }
}
