//! `sheaf init-ai`: what a coding assistant needs to know of the language, in the file that it reads.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use sheaf_lang::docs::{self, Entry};

use crate::cli::{Assistant, InitAiOptions};
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;
use crate::output::print_line;

/// The language in short, written by hand.
const INTRODUCTION: &str = include_str!("init_ai/introduction.md");

/// Names whose signature does not say enough: their examples follow the list of names.
const SHOWN: [&str; 17] = [
    "einsum",
    "scatter-add",
    "top_k",
    "choice",
    "format",
    "get-in",
    "jvp",
    "checkpoint",
    "defgrad",
    "defmacro",
    "defparams",
    "layer-norm",
    "conv2d",
    "attention",
    "cross-entropy-loss",
    "binary-cross-entropy",
    "adam-step",
];

/// Marks around the section that is written, so that a later run finds it among what else is in the file.
const BEGIN: &str = "<!-- sheaf init-ai: begin. Replaced by the next `sheaf init-ai`. -->";
const END: &str = "<!-- sheaf init-ai: end -->";

/// The start of a mark of the beginning, whatever is said after it.
const BEGIN_START: &str = "<!-- sheaf init-ai: begin";

/// Frontmatter of a rule of Cursor: it is read with every program.
const CURSOR_RULE: &str =
    "---\ndescription: The language Sheaf\nglobs: \"**/*.shf\"\nalwaysApply: false\n---\n\n";

/// Writes the context, and says how large it is.
pub fn init_ai(options: &InitAiOptions) -> ExitCode {
    exit_code(&write(options.assistant))
}

fn write(assistant: Option<Assistant>) -> Result<(), Failed> {
    let (path, start) = match assistant {
        None => ("sheaf-context.md", ""),
        Some(Assistant::Claude) => ("CLAUDE.md", ""),
        Some(Assistant::Cursor) => (".cursor/rules/sheaf.mdc", CURSOR_RULE),
        Some(Assistant::Copilot) => (".github/copilot-instructions.md", ""),
    };
    let path = Path::new(path);
    let context = context();
    let section = format!("{BEGIN}\n{context}{END}\n");
    let old = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(format!("{} cannot be read: {error}", path.display()))),
    };
    let text = match &old {
        None => format!("{start}{section}"),
        Some(old) => with_section(old, &section).ok_or_else(|| {
            let message =
                format!("in {} the marks of `sheaf init-ai` do not enclose a section", path.display());
            let help = format!(
                "remove the lines that begin with `{BEGIN_START}` or are `{END}`, and run this again"
            );
            messages::error(message, Some(&help));
            Failed
        })?,
    };
    let verb = match &old {
        None => "wrote",
        Some(old) if *old == text => "kept",
        Some(_) => "updated",
    };
    if old.as_ref() != Some(&text) {
        sheaf_foundation::atomic::replace(path, text.as_bytes()).map_err(failed)?;
    }
    print_line(&format!(
        "{verb} {}: the language in about {} tokens of GPT-4",
        path.display(),
        tokens(&context)
    ))
}

/// Sections of which the names alone are shown: few programs need one of their functions, and all of them would be a third of the text.
const BY_NAME: [&str; 8] =
    ["optim", "text", "generate", "linalg", "distributions", "training", "solvers", "fourier"];

/// A text with the section in the place of the one that it has, or at its end. `None` if marks are not in pairs.
fn with_section(text: &str, section: &str) -> Option<String> {
    let places = |mark: &str| text.match_indices(mark).map(|(place, _)| place).collect::<Vec<_>>();
    match (&places(BEGIN_START)[..], &places(END)[..]) {
        ([], []) => {
            let blank = if text.is_empty() || text.ends_with("\n\n") {
                ""
            } else if text.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            Some(format!("{text}{blank}{section}"))
        }
        (&[begin], &[end]) if begin < end => {
            let after = &text[end + END.len()..];
            Some(format!("{}{section}{}", &text[..begin], after.strip_prefix('\n').unwrap_or(after)))
        }
        _ => None,
    }
}

/// The introduction, all names with their arguments, and the examples of some.
fn context() -> String {
    let entries = docs::entries();
    let mut text = INTRODUCTION.to_owned();
    text += "\n## All names\n\n`(f|g x)` stands for `(f x)` and `(g x)`; `name=1` is a default; a keyword is an option. \
             `sheaf doc NAME` shows the arguments of a bare \
             name; `t|beta-cdf|ppf` are four names.\n\n```text\n";
    for (section, entries) in docs::sections(&entries) {
        let names = if BY_NAME.contains(&section) { names(&entries) } else { signatures(&entries) };
        let _ = writeln!(text, "{section}: {names}");
    }
    if let Some(io) = entries.iter().find(|entry| entry.name == "io") {
        let _ = write!(text, "\n{}\n", io.help);
    }
    text += "```\n\n## Some of them\n\n```clojure\n";
    for name in SHOWN {
        let mut examples =
            entries.iter().filter(|entry| entry.name == name).flat_map(|entry| &entry.examples);
        // Those that show an error say little about what to write.
        if let Some(example) = examples.find(|example| !example.result.starts_with("error:")) {
            let _ = writeln!(text, "{} ;=> {}", example.code, example.result);
        }
    }
    text + "```\n"
}

/// The names of a section. Those with one first word stand together, and first words with the same names: `t|beta-cdf|ppf`.
/// `sheaf doc` tells their arguments.
fn names(entries: &[&Entry]) -> String {
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        let (word, rest) = entry.name.split_once('-').unwrap_or((&entry.name, ""));
        match families.iter_mut().find(|(known, _)| *known == word && !rest.is_empty()) {
            Some((_, names)) => names.push(rest),
            None => families.push((word, vec![rest])),
        }
    }
    let mut alike: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (word, names) in families {
        match alike.iter_mut().find(|(_, known)| *known == names && !names[0].is_empty()) {
            Some((words, _)) => words.push(word),
            None => alike.push((vec![word], names)),
        }
    }
    let shown = alike.iter().map(|(words, names)| match names[..] {
        [""] => words.join(" "),
        _ => format!("{}-{}", words.join("|"), names.join("|")),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The signatures of a section, those with the same arguments together, without other names of the same function.
fn signatures(entries: &[&Entry]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.help.starts_with("the same as ")) {
        let signature = entry.signature.split_whitespace().collect::<Vec<_>>().join(" ");
        let arguments = signature
            .strip_prefix(&format!("({} ", entry.name))
            .and_then(|rest| rest.strip_suffix(')'))
            .filter(|arguments| !arguments.contains(") or ("));
        match arguments {
            None => groups.push((signature, Vec::new())),
            Some(arguments) => {
                match groups.iter_mut().find(|(known, names)| known == arguments && !names.is_empty()) {
                    Some((_, names)) => names.push(&entry.name),
                    None => groups.push((arguments.to_owned(), vec![&entry.name])),
                }
            }
        }
    }
    let shown = groups.iter().map(|(arguments, names)| match names[..] {
        [] => arguments.clone(),
        _ => format!("({} {arguments})", names.join("|")),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Estimate of the number of tokens that GPT-4 (`cl100k_base`) makes of a text about programs, by the lengths of its words and
/// of what stands between them; the tokenizer's own table is larger than this program.
fn tokens(text: &str) -> usize {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Letters,
        Digits,
        Line,
        Blank,
        Other,
    }
    let kind = |c: char| match c {
        c if c.is_alphabetic() => Kind::Letters,
        c if c.is_numeric() => Kind::Digits,
        '\n' => Kind::Line,
        c if c.is_whitespace() => Kind::Blank,
        _ => Kind::Other,
    };
    let kinds: Vec<Kind> = text.chars().map(kind).collect();
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| match run[0] {
        Kind::Letters => 1 + (run.len() - 1) / 9,
        Kind::Digits => run.len().div_ceil(3),
        Kind::Line => 1,
        // A single blank belongs to the word after it.
        Kind::Blank => usize::from(run.len() > 1),
        Kind::Other => run.len().div_ceil(2),
    });
    runs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_appended_once_and_then_replaced() {
        let section = |text: &str| format!("{BEGIN}\n{text}\n{END}\n");
        let first = with_section("# Ours\n", &section("one")).unwrap();
        assert_eq!(first, format!("# Ours\n\n{}", section("one")));
        let more = format!("{first}\nMore of ours\n");
        let second = with_section(&more, &section("two")).unwrap();
        assert_eq!(second, format!("# Ours\n\n{}\nMore of ours\n", section("two")));
        assert_eq!(with_section(&second, &section("two")).unwrap(), second);
        assert_eq!(with_section("", &section("one")).unwrap(), section("one"));
        assert_eq!(with_section("no end", &section("one")).unwrap(), format!("no end\n\n{}", section("one")));
        for broken in [BEGIN, END, &format!("{END}\n{BEGIN}"), &section("a").repeat(2)] {
            assert_eq!(with_section(broken, &section("one")), None, "{broken}");
        }
    }

    #[test]
    fn names_with_the_same_arguments_stand_together() {
        let entries = docs::entries();
        let of = |section: &str| {
            let found = docs::sections(&entries).into_iter().find(|(name, _)| *name == section);
            signatures(&found.expect("a section").1)
        };
        assert!(of("arithmetic").contains("(neg|abs|sign|"), "{}", of("arithmetic"));
        assert!(of("nn").contains("(linear x W b)") && !of("nn").contains("init-"), "{}", of("nn"));
        assert!(of("special forms").contains("'x or (quote x)"), "{}", of("special forms"));
    }

    #[test]
    fn every_shown_name_is_known() {
        for name in SHOWN {
            assert!(docs::find(name).is_some(), "{name}");
        }
    }
}
