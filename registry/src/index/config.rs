//! `config.toml` of an index.

use serde::Deserialize;

/// Name of the file that makes a folder an index.
pub const CONFIG_NAME: &str = "config.toml";

/// Newest layout of an index that this Sheaf reads.
const VERSION: u32 = 1;

/// `config.toml` of an index. Unknown keys are those of a newer Sheaf, and ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IndexConfig {
    /// Layout of the index.
    pub version: u32,
    /// Name of the registry, for messages.
    #[serde(default)]
    pub name: Option<String>,
}

impl IndexConfig {
    /// Parses the file; the cause if it cannot be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|_| format!("its {CONFIG_NAME} is not UTF-8 text"))?;
        let config: Self =
            toml::from_str(text).map_err(|error| format!("its {CONFIG_NAME}: {}", error.message()))?;
        if config.version > VERSION {
            return Err(format!(
                "its layout is version {}, and this Sheaf reads up to {VERSION}: a newer Sheaf is needed",
                config.version
            ));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_the_future_are_refused() {
        assert_eq!(
            IndexConfig::parse(b"version = 1\nname = \"team\"\nlater = []").unwrap().name.unwrap(),
            "team"
        );
        let message = |text: &[u8]| IndexConfig::parse(text).unwrap_err();
        insta::assert_snapshot!(message(b"version = 2"), @"its layout is version 2, and this Sheaf reads up to 1: a newer Sheaf is needed");
        insta::assert_snapshot!(message(b"name = \"team\""), @"its config.toml: missing field `version`");
        insta::assert_snapshot!(message(b"\xff"), @"its config.toml is not UTF-8 text");
    }
}
