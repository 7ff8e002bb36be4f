//! Lines of an index: one version of a package each.

use jiff::Timestamp;
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use sheaf_project::package_name;

use super::signature::{EntrySignature, Programs};
use crate::tree::TreeHash;

/// Newest form of a line that this Sheaf reads. Lines of a newer form are skipped: their versions need a newer Sheaf. A new
/// field needs a new form, since signatures cover the fields that a Sheaf knows.
const FORM: u32 = 1;

/// Maximum size of the file of one package, in bytes.
pub(super) const MAX_FILE: usize = 16 << 20;

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Form of the line.
    #[serde(default = "first_form", rename = "v")]
    pub form: u32,
    /// Name of the package.
    pub name: String,
    /// The version.
    pub version: Version,
    /// Its dependencies, without those of its own development.
    #[serde(default)]
    pub dependencies: Vec<EntryDependency>,
    /// Reserved: named sets of optional parts. This Sheaf writes none, reads any JSON and keeps it, so that a later Sheaf can give
    /// it a meaning without a new form. It is signed like other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<serde_json::Value>,
    /// Address of the git repository of its source.
    pub repository: String,
    /// The ref that the commit was published from, such as `refs/tags/v1.2.0`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit, in hexadecimal.
    pub commit: String,
    /// Folder of the package in the repository; none for its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// NAR hash of the package's tree, as `sha256-` and base64.
    pub tree: String,
    /// Size of its files in bytes.
    #[serde(default)]
    pub size: u64,
    /// Time of its publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Reason why new resolutions pass it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
    /// Licence, as an SPDX expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// One sentence about the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The versions of Sheaf that it works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheaf: Option<VersionReq>,
    /// A remote cache with the compiled programs of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<Programs>,
    /// The author's signature of the other fields, but for `yanked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<EntrySignature>,
}

fn first_form() -> u32 {
    FORM
}

/// A dependency of a published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryDependency {
    /// Its name in `(use name)`.
    pub name: String,
    /// The package, if it is called otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The versions that it may be.
    pub range: VersionReq,
    /// Address of the index that has it; none for the same index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
}

impl EntryDependency {
    /// The name of the package.
    pub fn package(&self) -> &str {
        self.package.as_deref().unwrap_or(&self.name)
    }
}

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct EntryError {
    /// The line, from 1.
    pub line: usize,
    /// The cause.
    pub cause: String,
}

impl Entry {
    /// The entries of the file of a package, lowest version first.
    pub fn parse_all(package: &str, bytes: &[u8]) -> Result<Vec<Self>, EntryError> {
        let wrong = |line: usize, cause: String| EntryError { line, cause };
        if bytes.len() > MAX_FILE {
            return Err(wrong(1, format!("the file has {} bytes, and {MAX_FILE} are the most", bytes.len())));
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            wrong(line, "it is not UTF-8 text".into())
        })?;
        let mut entries: Vec<Self> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let error = |cause: String| wrong(number + 1, cause);
            let entry = match serde_json::from_str::<Self>(line) {
                Ok(entry) if entry.form > FORM => continue,
                Ok(entry) => entry,
                Err(cause) => {
                    // Fields of a newer form may differ.
                    let form: Form = serde_json::from_str(line).map_err(|cause| error(json_error(&cause)))?;
                    if form.v > FORM {
                        continue;
                    }
                    return Err(error(json_error(&cause)));
                }
            };
            entry.check(package).map_err(error)?;
            if entries.iter().any(|other| other.version == entry.version) {
                return Err(error(format!("version {} is there twice", entry.version)));
            }
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.version.cmp(&b.version));
        Ok(entries)
    }

    /// The line of the entry, without a line break.
    pub fn line(&self) -> String {
        // Texts, numbers and lists of them always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The cause if a field is invalid.
    fn check(&self, package: &str) -> Result<(), String> {
        if self.name != package {
            return Err(format!("it is about {:?}, in the file of {package}", self.name));
        }
        if !self.version.build.is_empty() {
            return Err(format!("version {} has build metadata", self.version));
        }
        for (position, dependency) in self.dependencies.iter().enumerate() {
            if self.dependencies[..position].iter().any(|other| other.name == dependency.name) {
                return Err(format!("the dependency {:?} is there twice", dependency.name));
            }
            package_name(dependency.package()).map_err(|error| error.to_string())?;
            package_name(&dependency.name).map_err(|error| error.to_string())?;
        }
        let is_hexadecimal =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !matches!(self.commit.len(), 40 | 64) || !is_hexadecimal(&self.commit) {
            return Err(format!("{:?} is not a commit: 40 digits from 0 to 9 and a to f", self.commit));
        }
        if self.tree.parse::<TreeHash>().is_err() {
            return Err(format!("{:?} is not a tree hash: sha256- and 44 characters of base64", self.tree));
        }
        let has_control =
            [&self.repository, &self.reference].into_iter().any(|text| text.chars().any(char::is_control));
        if has_control || !self.reference.starts_with("refs/") {
            return Err(format!("{:?} is not a ref", self.reference));
        }
        let folder = self.folder.as_deref().unwrap_or("x");
        if folder.split('/').any(|part| part.is_empty() || part == "." || part == "..")
            || folder.contains('\\')
        {
            return Err(format!("{folder:?} is not a folder of a repository"));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Form {
    #[serde(default = "first_form")]
    v: u32,
}

/// The cause without the line: each text is one line.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(cause, _)| format!("{cause}, at column {}", error.column()))
}

/// The file of a package after `change` of the entry of one version; other lines stay as they are. `None` if there is no
/// such version.
pub fn yanked_line(
    package: &str,
    bytes: &[u8],
    version: &Version,
    reason: Option<&str>,
) -> Result<Option<String>, EntryError> {
    Entry::parse_all(package, bytes)?;
    let mut found = false;
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(|line| match serde_json::from_str::<Entry>(line) {
        Ok(mut entry) if entry.version == *version => {
            found = true;
            entry.yanked = reason.map(str::to_owned);
            entry.line()
        }
        _ => line.to_owned(),
    });
    let text: String = lines.map(|line| line + "\n").collect();
    Ok(found.then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: &str) -> String {
        let line = r#"{"name":"ode","version":"1.2.0","dependencies":[{"name":"maths","range":"^1"}],"repository":"https://git.example/ode","ref":"refs/tags/v1.2.0","commit":"0123456789012345678901234567890123456789","tree":"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","published":"2026-01-02T03:04:05Z"}"#;
        match change.split_once(" => ") {
            Some((from, to)) => {
                assert!(line.contains(from), "{from}");
                line.replace(from, to)
            }
            None => line.into(),
        }
    }

    fn message(change: &str) -> String {
        Entry::parse_all("ode", line(change).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_read_sorted_and_written_back() {
        let text = format!(
            "{}\n\n{}\n{}\n",
            line(""),
            line("1.2.0\",\"dep => 0.9.0\",\"dep"),
            line("{\"name => {\"v\":2,\"name")
        );
        let entries = Entry::parse_all("ode", text.as_bytes()).unwrap();
        let versions: Vec<_> = entries.iter().map(|entry| entry.version.to_string()).collect();
        assert_eq!(versions, ["0.9.0", "1.2.0"], "the line of a newer form is skipped");
        for entry in &entries {
            assert_eq!(
                Entry::parse_all("ode", entry.line().as_bytes()).unwrap(),
                std::slice::from_ref(entry)
            );
        }
        assert_eq!(Entry::parse_all("ode", b"").unwrap(), []);
    }

    /// A later Sheaf may give the field a meaning.
    #[test]
    fn features_are_kept_whatever_they_are() {
        for features in ["{}", "[]", "\"x\"", "1.5", r#"{"dep":{"maths":{"optional":true}},"gpu":["maths"]}"#]
        {
            let text = line(&format!("\"repository => \"features\":{features},\"repository"));
            let kept = format!("\"features\":{features},");
            let entry = Entry::parse_all("ode", text.as_bytes()).unwrap().remove(0);
            assert!(entry.line().contains(&kept), "{}", entry.line());
            let yanked =
                yanked_line("ode", text.as_bytes(), &Version::new(1, 2, 0), Some("x")).unwrap().unwrap();
            assert!(yanked.contains(&kept), "{yanked}");
        }
    }

    #[test]
    fn a_yank_changes_one_line() {
        let text = format!("{}\n{}\n", line(""), line("1.2.0\",\"dep => 0.9.0\",\"dep"));
        let yank =
            |reason| yanked_line("ode", text.as_bytes(), &Version::new(0, 9, 0), reason).unwrap().unwrap();
        let yanked = Entry::parse_all("ode", yank(Some("wrong sign")).as_bytes()).unwrap();
        assert_eq!(yanked[0].yanked.as_deref(), Some("wrong sign"));
        assert_eq!(yanked[1].yanked, None);
        assert_eq!(yank(Some("x")).lines().next(), text.lines().next());
        assert_eq!(yanked_line("ode", text.as_bytes(), &Version::new(3, 0, 0), None).unwrap(), None);
    }

    #[test]
    fn invalid_lines_are_errors() {
        insta::assert_snapshot!(message("{\"name => {name"), @"line 1: key must be a string, at column 2");
        insta::assert_snapshot!(message("1.2.0\",\"dep => 1.2\",\"dep"), @"line 1: unexpected end of input while parsing minor version number, at column 29");
        insta::assert_snapshot!(message("\"name\":\"ode\" => \"name\":\"odd\""), @r#"line 1: it is about "odd", in the file of ode"#);
        insta::assert_snapshot!(message("\"name\":\"maths\" => \"name\":\"../maths\""), @"line 1: `../maths` is no name for a package: it has `.`; small letters, digits, - and _ make one, a letter first");
        insta::assert_snapshot!(message("0123456789\",\"tree => 012345678X\",\"tree"), @r#"line 1: "012345678901234567890123456789012345678X" is not a commit: 40 digits from 0 to 9 and a to f"#);
        insta::assert_snapshot!(message("sha256-47 => sha512-47"), @r#"line 1: "sha512-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" is not a tree hash: sha256- and 44 characters of base64"#);
        insta::assert_snapshot!(message("refs/tags/v1.2.0 => --upload-pack=x"), @r#"line 1: "--upload-pack=x" is not a ref"#);
        insta::assert_snapshot!(message("\"tree => \"folder\":\"../..\",\"tree"), @r#"line 1: "../.." is not a folder of a repository"#);
        insta::assert_snapshot!(Entry::parse_all("ode", format!("{0}\n{0}", line("")).as_bytes()).unwrap_err(), @"line 2: version 1.2.0 is there twice");
        insta::assert_snapshot!(Entry::parse_all("ode", b"\n\xff").unwrap_err(), @"line 2: it is not UTF-8 text");
        insta::assert_snapshot!(message("^1 => one"), @"line 1: unexpected character 'o' while parsing major version number, at column 77");
    }
}
