//! A JSON schema of `Sheaf.toml`, for editors. It is made of the lists of keys with which the file is read.

use serde_json::{Map, Value, json};

use crate::dependencies::DEPENDENCY;
use crate::manifest::{FMT, PACKAGE, TABLES, WIDTHS};
use crate::resolver::RESOLVER;
use crate::tables::{CACHE, Mode, TOOLCHAIN};
use crate::workspace::WORKSPACE;

/// The schema, in draft 2020-12.
pub fn schema() -> Value {
    let tables = object("", TABLES);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sheaf.toml",
        "description": "The manifest of a Sheaf package (docs/packages.md).",
        "type": "object",
        "properties": tables["properties"],
        "additionalProperties": false,
        "$defs": { "dependency": dependency() },
    })
}

/// A table with these keys and no others.
fn object(table: &str, keys: &[&str]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| ((*key).to_owned(), property(table, key).unwrap_or_else(|| json!({}))))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// A range of versions, or a table; of a table's origins one is needed.
fn dependency() -> Value {
    let mut table = object("dependency", DEPENDENCY);
    let one_of = ["version", "git", "path", "workspace"].map(|key| json!({ "required": [key] }));
    table["anyOf"] = json!(one_of);
    json!({ "oneOf": [text("The versions that it may be, such as \"1.2\" or \">=1.2, <3\""), table] })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn described(mut value: Value, description: &str) -> Value {
    value["description"] = json!(description);
    value
}

/// The schema of a key of a table; the top level is the table without a name. `None` for an unknown key.
fn property(table: &str, key: &str) -> Option<Value> {
    let dependencies =
        || json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/dependency" } });
    Some(match (table, key) {
        ("", "package") => described(object("package", PACKAGE), "The package itself"),
        ("", "toolchain") => described(object("toolchain", TOOLCHAIN), "The compiler"),
        ("", "cache") => described(object("cache", CACHE), "Shared caches of compiled programs"),
        ("", "fmt") => described(object("fmt", FMT), "The layout of `sheaf fmt`"),
        ("", "dependencies") => described(dependencies(), "Packages that programs use, by their names there"),
        ("", "dev-dependencies") => {
            described(dependencies(), "Packages for the package's own tests and examples")
        }
        ("", "registries") => {
            let index = json!({
                "type": "object", "properties": { "index": text("The address") }, "required": ["index"], "additionalProperties": false,
            });
            let address = text(
                "A git repository, sparse+ and the address of a static copy, or a folder by its whole path",
            );
            let all = json!({ "type": "object", "additionalProperties": { "oneOf": [address, index] } });
            described(all, "Registries by name; `default` is that of dependencies that name none")
        }
        ("", "resolver") => described(object("resolver", RESOLVER), "Rules of the choice of versions"),
        ("", "workspace") => {
            described(object("workspace", WORKSPACE), "Packages in folders that share one Sheaf.lock")
        }
        ("package", "name") => text("The name: small letters, digits, - and _, a letter first"),
        ("package", "version") => text("The version, such as \"0.1.0\""),
        ("package", "description") => text("One sentence about the package"),
        ("package", "license" | "licence") => text("The licence, as an SPDX expression"),
        ("package", "authors") => texts("The authors"),
        ("package", "repository") => text("The address of the git repository"),
        ("package", "sheaf") => text("The versions of Sheaf that it works with, such as \">=0.1\""),
        ("package", "main") => {
            text("The program of `sheaf run`, inside the package; src/main.shf without it")
        }
        ("toolchain", "iree") => json!({
            "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)*$", "description": "The release of the compiler, such as \"3.13.0\"",
        }),
        ("toolchain", "index") => text("A package index, a mirror or a folder with the compiler"),
        ("toolchain", "mirrors") => texts("Mirrors of the compiler's files, tried before the index"),
        ("cache", "remote") => texts("Addresses of remote caches, in look-up order"),
        ("cache", "mode") => json!({
            "enum": [Mode::ReadWrite.to_string(), Mode::ReadOnly.to_string()], "description": "Whether programs are sent to them",
        }),
        ("cache", "trusted-keys") => texts("Public keys whose programs are used"),
        ("cache", "revoked-keys") => texts("Public keys that are never trusted"),
        ("cache", "credential-helper" | "max-size" | "executor") => text("Only in the user's configuration"),
        ("fmt", "width") => json!({
            "type": "integer", "minimum": WIDTHS.start(), "maximum": WIDTHS.end(), "description": "Columns of a line",
        }),
        ("resolver", "exclude-newer") => text(
            "Passes over versions published later: an age such as \"7 days\", or a time such as \"2026-11-01T00:00:00Z\"",
        ),
        ("workspace", "members") => texts("Folders of the members; * is one part of a path"),
        ("workspace", "exclude") => texts("Folders that are no members"),
        ("workspace", "dependencies") => {
            described(dependencies(), "Those that members take with `workspace = true`")
        }
        ("dependency", "version") => text("The versions that it may be"),
        ("dependency", "git") => text("The address of a git repository"),
        ("dependency", "tag") => text("A tag of it"),
        ("dependency", "branch") => text("A branch of it"),
        ("dependency", "rev") => text("A commit of it: 40 hexadecimal digits"),
        ("dependency", "path") => text("A folder, relative to this file"),
        ("dependency", "registry") => text("A registry under [registries]"),
        ("dependency", "package") => text("The name of the package, if it is called otherwise here"),
        ("dependency", "workspace") => {
            json!({ "const": true, "description": "As [workspace.dependencies] has it" })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::manifest::SheafToml;

    /// Rewritten by `UPDATE_SCHEMA=1 cargo test -p sheaf-project schema`.
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/Sheaf.schema.json");

    #[test]
    fn every_key_is_described() {
        for (table, keys) in [
            ("", TABLES),
            ("package", PACKAGE),
            ("toolchain", TOOLCHAIN),
            ("cache", CACHE),
            ("fmt", FMT),
            ("resolver", RESOLVER),
            ("workspace", WORKSPACE),
            ("dependency", DEPENDENCY),
        ] {
            for key in keys {
                assert!(property(table, key).is_some(), "{table}.{key}");
            }
        }
    }

    #[test]
    fn the_committed_schema_is_this_one() {
        let text = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(FILE, &text).unwrap();
        }
        let committed = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(
            committed == text,
            "docs/Sheaf.schema.json is old; write it anew:\n    UPDATE_SCHEMA=1 cargo test -p sheaf-project schema"
        );
    }

    /// A validator accepts and refuses what the reader does.
    #[test]
    fn the_schema_and_the_reader_agree() {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("sheaf.json", schema()).unwrap();
        let schema = compiler.compile("sheaf.json", &mut schemas).unwrap();
        let is_valid = |text: &str| {
            let value: toml::Value = toml::from_str(text).unwrap();
            schemas.validate(&serde_json::to_value(value).unwrap(), schema).is_ok()
        };
        let is_read = |text: &str| {
            SheafToml::parse(Path::new("/p/Sheaf.toml"), text)
                .is_ok_and(|manifest| manifest.warnings.is_empty())
        };
        for text in [
            "",
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\nlicense = \"MIT\"\nauthors = [\"Ada\"]\nsheaf = \">=0.1\"\nmain = \"a.shf\"\n",
            "[dependencies]\na = \"1\"\nb = { version = \"1\", registry = \"team\" }\nc = { git = \"https://g.example/c\", tag = \"v1\" }\n\
             d = { path = \"../d\", version = \"0.3\" }\ne = { package = \"maths\", version = \"1\" }\nf = { workspace = true }\n",
            "[registries]\ndefault = \"https://r.example/i\"\nteam = { index = \"sparse+https://r.example/i\" }\n",
            "[toolchain]\niree = \"3.13.0\"\nmirrors = [\"/srv\"]\n[cache]\nmode = \"read-only\"\n[fmt]\nwidth = 100\n",
            "[workspace]\nmembers = [\"a/*\"]\nexclude = []\n[workspace.dependencies]\na = \"1\"\n[resolver]\nexclude-newer = \"7 days\"\n",
        ] {
            assert!(is_read(text), "{text}");
            assert!(is_valid(text), "{text}");
        }
        for text in [
            "[pakage]\nname = \"a\"\n",
            "[package]\nnmae = \"a\"\n",
            "[package]\nname = 1\n",
            "[package]\nauthors = \"Ada\"\n",
            "[dependencies]\na = 1\n",
            "[dependencies]\na = { verison = \"1\" }\n",
            "[dependencies]\na = { registry = \"team\" }\n",
            "[dependencies]\na = { workspace = 1 }\n",
            "[registries]\nteam = { address = \"x\" }\n",
            "[toolchain]\niree = \"newest\"\n",
            "[cache]\nmode = \"write\"\n",
            "[fmt]\nwidth = 5\n",
            "[workspace]\nmembers = \"a\"\n",
        ] {
            assert!(!is_read(text), "{text}");
            assert!(!is_valid(text), "{text}");
        }
    }
}
