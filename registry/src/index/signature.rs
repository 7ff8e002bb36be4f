//! Signatures of published versions: what an author says of a version, whoever keeps the registry.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sheaf_foundation::{PublicKey, SecretKey, SignatureError};

use super::Entry;

/// Domain-separation prefix of the signed bytes.
const SIGNED: &[u8] = b"sheaf package\n";

/// Fields that the keeper of the registry sets, and the signature itself.
const UNSIGNED: [&str; 2] = ["yanked", "signature"];

/// An author's signature of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySignature {
    /// The author's key.
    pub signer: PublicKey,
    /// Ed25519 signature in hexadecimal.
    pub signature: String,
}

/// A remote cache with what a package's examples, tests and typed functions compile to, as claims that the signer of the
/// entry signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The address of the remote cache.
    pub remote: String,
    /// The devices that they are compiled for.
    pub devices: Vec<String>,
}

/// A version whose line is not what its author signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the line of {package} {version} in the registry is not what {signer} signed: it was changed after it was published; ask who keeps \
     the registry"
)]
pub struct AlteredEntry {
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// The key that the line names.
    pub signer: PublicKey,
}

impl Entry {
    /// Signs the entry.
    #[must_use]
    pub fn signed(self, key: &SecretKey) -> Self {
        let signature = EntrySignature { signer: key.public(), signature: key.sign(&self.signed_bytes()) };
        Self { signature: Some(signature), ..self }
    }

    /// The author's key; `None` without a signature.
    ///
    /// # Errors
    ///
    /// The signature is not that of its key for this entry.
    pub fn signer(&self) -> Result<Option<&PublicKey>, AlteredEntry> {
        let Some(EntrySignature { signer, signature }) = &self.signature else { return Ok(None) };
        signer.verify(&self.signed_bytes(), signature).map_err(|SignatureError| AlteredEntry {
            package: self.name.clone(),
            version: self.version.to_string(),
            signer: signer.clone(),
        })?;
        Ok(Some(signer))
    }

    /// All fields but the unsigned ones, as JSON with sorted keys.
    fn signed_bytes(&self) -> Vec<u8> {
        // Texts, numbers and lists of them always have a JSON form.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.retain(|name, _| !UNSIGNED.contains(&name.as_str()));
        }
        [SIGNED, sorted(value).to_string().as_bytes()].concat()
    }
}

/// The value with the keys of its objects sorted, whatever order the JSON crate keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(Map::from_iter(fields))
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"name":"ode","version":"1.2.0","dependencies":[{"name":"maths","range":"^1"}],"repository":"https://git.example/ode","ref":"refs/tags/v1.2.0","commit":"0123456789012345678901234567890123456789","tree":"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","size":7,"features":{"gpu":["maths"]},"programs":{"remote":"https://cache.example","devices":["cpu"]}}"#;

    fn entry(line: &str) -> Entry {
        Entry::parse_all("ode", line.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_signature_covers_each_field_but_that_of_a_yank() {
        let key = SecretKey::generate("ada").unwrap();
        let line = entry(LINE).signed(&key).line();
        assert_eq!(entry(&line).signer(), Ok(Some(&key.public())));
        assert_eq!(entry(LINE).signer(), Ok(None));
        let yanked = super::super::yanked_line("ode", line.as_bytes(), &"1.2.0".parse().unwrap(), Some("x"));
        assert_eq!(entry(&yanked.unwrap().unwrap()).signer(), Ok(Some(&key.public())));
        for (from, to) in [
            ("\"1.2.0\"", "\"1.2.1\""),
            ("\"^1\"", "\"^2\""),
            ("git.example/ode", "git.example/odd"),
            ("v1.2.0", "v1.2.1"),
            ("0123", "1123"),
            ("sha256-47", "sha256-48"),
            ("\"size\":7", "\"size\":8"),
            ("[\"maths\"]", "[\"evil\"]"),
            ("cache.example", "cache.evil"),
            ("[\"cpu\"]", "[]"),
        ] {
            assert!(line.contains(from), "{from} in {line}");
            let error = entry(&line.replacen(from, to, 1)).signer().unwrap_err();
            assert_eq!(error.signer, key.public(), "{from}");
        }
        let other = SecretKey::generate("eve").unwrap().public();
        let stolen = line.replace(&key.public().to_string(), &other.to_string());
        insta::assert_snapshot!(
            entry(&stolen).signer().unwrap_err().to_string().replace(&other.to_string(), "eve:5d41"),
            @"the line of ode 1.2.0 in the registry is not what eve:5d41 signed: it was changed after it was published; ask who keeps the registry"
        );
    }
}
