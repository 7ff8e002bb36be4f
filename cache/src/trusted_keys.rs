//! The keys whose programs are used.

use sheaf_foundation::{KeySyntax, PublicKey, normal_address};

/// The trusted keys, each for all remotes or for one.
///
/// Written as the key, or as the key, `@` and the address of the remote.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys {
    keys: Vec<(PublicKey, Option<String>)>,
}

impl TrustedKeys {
    /// Reads a list of keys.
    pub fn read(texts: impl IntoIterator<Item: AsRef<str>>) -> Result<Self, KeySyntax> {
        let mut keys = Vec::new();
        for text in texts {
            let text = text.as_ref().trim();
            let (key, remote) =
                text.split_once('@').map_or((text, None), |(key, remote)| (key, Some(remote)));
            keys.push((key.parse()?, remote.map(normal_address)));
        }
        Ok(Self { keys })
    }

    /// Trusts a key from everywhere, such as the user's own.
    pub fn add(&mut self, key: PublicKey) {
        self.keys.push((key, None));
    }

    /// Distrusts a key, whatever remote it is limited to and whoever added it.
    pub fn revoke(&mut self, key: &PublicKey) {
        self.keys.retain(|(known, _)| known != key);
    }

    /// True if a claim with this signature is trusted from the remote at `address`.
    pub fn trusts(&self, key: &PublicKey, address: &str) -> bool {
        let from = normal_address(address);
        self.keys.iter().any(|(known, remote)| known == key && remote.as_ref().is_none_or(|r| *r == from))
    }

    /// True if the key is trusted from any remote.
    pub fn knows(&self, key: &PublicKey) -> bool {
        self.keys.iter().any(|(known, _)| known == key)
    }

    /// True if no key is trusted.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use sheaf_foundation::SecretKey;

    use super::*;

    #[test]
    fn a_key_may_be_trusted_from_one_remote_alone() {
        let (a, b) = (SecretKey::generate("a").unwrap().public(), SecretKey::generate("b").unwrap().public());
        let texts = [a.to_string(), format!("{b}@https://cache.example/")];
        let trusted = TrustedKeys::read(texts).unwrap();
        assert!(trusted.trusts(&a, "https://other.example"));
        assert!(trusted.trusts(&b, "https://cache.example"));
        assert!(!trusted.trusts(&b, "https://other.example"));
        assert!(trusted.trusts(&b, "HTTPS://me:password@cache.example"));
        assert!(trusted.knows(&b));
        assert!(TrustedKeys::read(["x"]).is_err());
        let mut fewer = trusted.clone();
        fewer.revoke(&b);
        assert!(!fewer.knows(&b) && fewer.knows(&a));
    }
}
