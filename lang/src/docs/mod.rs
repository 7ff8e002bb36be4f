//! Documentation entries of every name of the language: the one source of `:help`, `sheaf doc`, the reference page of
//! the book and completion.
//!
//! Builtins written in Rust carry their entry beside their code; special forms have theirs in the table of `sheaf_syntax::SpecialForm`; functions and
//! macros written in Sheaf have it in their docstring: a first line that starts with `(` is the signature (else it is
//! derived from the parameters), lines with `;=>` are examples, and the rest is the help text.

mod text;

use crate::builtins;
use crate::eval::{CORE, STANDARD, without_options};
use crate::program::is_private;
use sheaf_syntax::{Bracket, Form, FormKind, Sources, SpecialForm, read};

pub use text::{markdown, overview, sections};

/// The documentation of one name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Its section of the reference: a group of builtins, or the name of a standard module.
    pub section: String,
    /// Its module of the standard library; `None` for builtins.
    pub module: Option<String>,
    /// The call syntax.
    pub signature: String,
    /// The description.
    pub help: String,
    /// Example calls with their results.
    pub examples: Vec<Example>,
}

/// A call and its result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Example {
    /// The code.
    pub code: String,
    /// The text after `;=>`: a value, or `error:` and a part of the message.
    pub result: String,
}

/// The entries of all special forms, builtins and functions of the standard library, by section.
pub fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = SpecialForm::ALL
        .iter()
        .map(|form| form.description())
        .map(|form| Entry {
            name: form.name.into(),
            section: "special forms".into(),
            module: None,
            signature: form.signature.into(),
            help: form.help.into(),
            examples: examples(form.examples),
        })
        .collect();
    for (section, group) in builtins::SECTIONS {
        let public = group.iter().filter(|b| !is_private(b.name));
        entries.extend(public.map(|b| Entry {
            name: b.name.into(),
            section: section.into(),
            module: None,
            signature: b.signature.into(),
            help: b.help.into(),
            examples: examples(b.examples),
        }));
    }
    for (section, text) in CORE {
        entries.extend(written_in_sheaf(section, None, text));
    }
    for (module, parts) in STANDARD {
        entries.extend(parts.iter().flat_map(|(_, text)| written_in_sheaf(module, Some(module), text)));
    }
    entries
}

/// The entry of `name`: a builtin or special form before a function of the standard library.
pub fn find(name: &str) -> Option<Entry> {
    entries().into_iter().find(|e| e.name == name)
}

/// The entries of the public functions and macros that a program defines; empty if the text does not parse.
pub fn definitions(text: &str) -> Vec<Entry> {
    written_in_sheaf("definitions", None, text)
}

/// The text of the form that defines `name`: the last in `sources`, or else that of the standard library.
pub fn definition_text(sources: &Sources, name: &str) -> Option<String> {
    let parts = STANDARD.into_iter().flat_map(|(_, parts)| parts.iter().copied());
    let mut texts: Vec<&str> = CORE.into_iter().chain(parts).map(|(_, text)| text).collect();
    texts.extend(sources.iter().map(|(_, text)| text));
    texts.into_iter().rev().find_map(|text| {
        let mut sources = Sources::default();
        let id = sources.add("", text);
        let forms = read(&sources, id).unwrap_or_default();
        let form = forms.iter().rev().find(|form| defines(form, name))?;
        Some(text[form.span.within(text)].to_string())
    })
}

/// True if a form defines `name`, with any defining form.
fn defines(form: &Form, name: &str) -> bool {
    let Some([head, args @ ..]) = form.items(Bracket::Round) else { return false };
    head.symbol().is_some_and(|head| head.starts_with("def"))
        && without_options(args).first().is_some_and(|defined| defined.is_symbol(name))
}

/// The public functions and macros that a text defines.
fn written_in_sheaf(section: &str, module: Option<&str>, text: &str) -> Vec<Entry> {
    let mut sources = Sources::default();
    let id = sources.add(format!("<{section}>"), text);
    let forms = read(&sources, id).unwrap_or_default();
    forms.iter().filter_map(|form| definition(section, module, form)).collect()
}

fn definition(section: &str, module: Option<&str>, form: &Form) -> Option<Entry> {
    let [head, args @ ..] = form.items(Bracket::Round)? else { return None };
    if !matches!(head.special(), Some(SpecialForm::Defn | SpecialForm::Defmacro)) {
        return None;
    }
    let [name, rest @ ..] = without_options(args) else { return None };
    let name = name.symbol().filter(|n| !is_private(n))?;
    let (doc, params) = match rest {
        [doc, params, ..] if matches!(doc.kind, FormKind::Str(_)) => (text_of(doc), params),
        [params, ..] => (String::new(), params),
        [] => return None,
    };
    let lines: Vec<&str> = doc.lines().map(str::trim).collect();
    let (calls, mut help): (Vec<&str>, Vec<&str>) = lines.iter().partition(|l| l.contains(";=>"));
    let signature = if help.first().is_some_and(|l| l.starts_with('(')) {
        help.remove(0).to_string()
    } else {
        let params: Vec<String> = params.items(Bracket::Square)?.iter().map(ToString::to_string).collect();
        format!("({})", [&[name.to_string()], params.as_slice()].concat().join(" "))
    };
    Some(Entry {
        name: name.to_string(),
        section: section.into(),
        module: module.map(Into::into),
        signature,
        help: help.join("\n").trim().to_string(),
        examples: examples(&calls.join("\n")),
    })
}

fn text_of(form: &Form) -> String {
    if let FormKind::Str(text) = &form.kind { text.to_string() } else { String::new() }
}

/// The examples in a text of lines `code ;=> result`.
fn examples(text: &str) -> Vec<Example> {
    let example = |line: &str| {
        let (code, result) = line.split_once(";=>")?;
        Some(Example { code: code.trim().into(), result: result.trim().into() })
    };
    text.lines().filter_map(example).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documentation_string_gives_signature_help_and_examples() {
        let text = r#"(defn f "(f x :axis a)
            what it does
            (f 1) ;=> 2
            (f 2) ;=> error: no" [x & options] x)
            (defn -private [x] x)
            (defn g "more" [x {:keys [a]}] x)"#;
        let found = written_in_sheaf("section", Some("m"), text);
        let names: Vec<&str> = found.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!(found[0].signature, "(f x :axis a)");
        assert_eq!(found[0].help, "what it does");
        assert_eq!(found[0].examples[1], Example { code: "(f 2)".into(), result: "error: no".into() });
        assert_eq!(found[1].signature, "(g x {:keys [a]})");
    }
}
