//! Package sources configured in this machine's pip. Used at run time and by the build script.

use std::process::{Command, Stdio};

/// The package sources of a pip configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipConfig {
    /// The configured index, if there is one.
    pub index: Option<String>,
    /// Further indexes, in order.
    pub extra_indexes: Vec<String>,
    /// Folders and pages with packages, in order.
    pub find_links: Vec<String>,
    /// Restrict to `find_links`.
    pub no_index: bool,
}

/// The configuration of pip, from its files and the environment; empty without pip.
pub fn configured() -> PipConfig {
    pip(&["config", "list"]).map_or_else(PipConfig::default, |listing| parse_config(&listing))
}

/// Pip's default index, as stated by its help; `None` without pip.
pub fn builtin_index() -> Option<String> {
    pip(&["download", "--help"]).and_then(|help| parse_help(&help))
}

/// The standard output of a successful pip command.
fn pip(arguments: &[&str]) -> Option<String> {
    let starts: [(&str, &[&str]); 4] =
        [("python3", &["-m", "pip"]), ("python", &["-m", "pip"]), ("pip3", &[]), ("pip", &[])];
    starts.iter().find_map(|(program, first)| {
        let output = Command::new(program)
            .args(*first)
            .args(arguments)
            // Wide enough that the help does not break an address over two lines.
            .env("COLUMNS", "1000")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

/// Parses `pip config list`, whose lines are `section.key='value'`; the environment's section is `:env:`.
fn parse_config(listing: &str) -> PipConfig {
    // The most specific section that has the key wins, as in pip itself.
    let value = |key: &str| {
        [":env:", "download", "global"].iter().find_map(|section| {
            let line = listing.lines().find_map(|line| line.strip_prefix(&format!("{section}.{key}=")))?;
            Some(unquote(line))
        })
    };
    let words = |key: &str| -> Vec<String> {
        value(key).map_or_else(Vec::new, |text| text.split_whitespace().map(str::to_owned).collect())
    };
    PipConfig {
        index: value("index-url").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        extra_indexes: words("extra-index-url"),
        find_links: words("find-links"),
        no_index: value("no-index").is_some_and(|text| {
            matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
        }),
    }
}

/// A Python string literal's content.
fn unquote(literal: &str) -> String {
    let literal = literal.trim();
    let quote = literal.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let Some(inner) = quote.and_then(|quote| literal.strip_prefix(quote)?.strip_suffix(quote)) else {
        return literal.to_owned();
    };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        text.push(match characters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(other) => other,
            None => '\\',
        });
    }
    text
}

/// Finds the default in the description of `--index-url`.
fn parse_help(help: &str) -> Option<String> {
    let (_, description) = help.split_once("--index-url <url>")?;
    let (_, default) = description.split_once("(default")?;
    let (address, _) = default.split_once(')')?;
    let address = address.trim();
    address.contains("://").then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_environment_wins_over_a_command_and_a_command_over_all() {
        let listing = "global.index-url='http://a.test/simple'\n\
                       download.index-url='http://b.test/simple'\n\
                       global.find-links='/wheels\\n/more wheels'\n\
                       :env:.index-url='http://c.test/simple'\n\
                       global.extra-index-url='http://d.test/simple  http://e.test/simple'\n";
        let config = parse_config(listing);
        assert_eq!(config.index.as_deref(), Some("http://c.test/simple"));
        assert_eq!(config.extra_indexes, ["http://d.test/simple", "http://e.test/simple"]);
        assert_eq!(config.find_links, ["/wheels", "/more", "wheels"]);
        assert!(!config.no_index);
    }

    #[test]
    fn no_configuration_is_no_configuration() {
        assert_eq!(parse_config(""), PipConfig::default());
        assert_eq!(parse_config("global.cert='/etc/certs.pem'\n"), PipConfig::default());
    }

    #[test]
    fn no_index_is_read() {
        assert!(parse_config(":env:.no-index='1'\n").no_index);
        assert!(!parse_config(":env:.no-index='0'\n").no_index);
    }

    #[test]
    fn python_escapes_are_undone() {
        assert_eq!(unquote(r"'C:\\wheels'"), r"C:\wheels");
        assert_eq!(unquote(r#""it's""#), "it's");
        assert_eq!(unquote("bare"), "bare");
        assert_eq!(unquote("'open"), "'open");
    }

    #[test]
    fn the_default_is_found_in_the_help() {
        let help = "Package Index Options:\n  -i, --index-url <url>       Base URL of the index (default\n      \
                    https://index.test/simple). This should\n  --extra-index-url <url>  Extra (default none)\n";
        assert_eq!(parse_help(help).as_deref(), Some("https://index.test/simple"));
        assert_eq!(parse_help("--index-url <url> no default here"), None);
        assert_eq!(parse_help("--index-url <url> (default none)"), None);
    }

    #[test]
    fn this_machines_pip_is_understood() {
        let Some(help) = pip(&["download", "--help"]) else {
            let _ = std::io::stderr().write_all(b"SKIPPED: no pip on this machine\n");
            return;
        };
        assert!(parse_help(&help).is_some(), "no default index in:\n{help}");
    }
}
