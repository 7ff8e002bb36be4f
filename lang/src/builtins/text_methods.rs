//! `str-call`: the methods of Python's strings. Positions and widths count characters.

use super::names::nearest;
use super::text::{check_text, fill as fill_template};
use crate::eval::{Eval, Stop, fail};
use crate::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

/// A method: its call syntax, minimum and maximum number of arguments after the string, and its function.
struct Method {
    name: &'static str,
    arguments: &'static str,
    arity: (usize, usize),
    run: fn(&str, &[Value]) -> Eval<Value>,
}

const METHODS: &[Method] = &[
    method("capitalize", "", (0, 0), |s, _| {
        let mut chars = s.chars();
        let first = chars.next().map(title_case).unwrap_or_default();
        text(first + &chars.as_str().to_lowercase())
    }),
    method("count", "part start? end?", (1, 3), |s, a| {
        let (inside, _) = window(s, &a[1..])?;
        let part = string(&a[0], "the part")?;
        let n = match inside {
            None => 0,
            Some(inside) if part.is_empty() => inside.chars().count() + 1,
            Some(inside) => inside.matches(part).count(),
        };
        Ok(Value::Int(n as i64))
    }),
    method("endswith", "end start? end?", (1, 3), |s, a| affix(s, a, |s, end| s.ends_with(end))),
    method("find", "part start? end?", (1, 3), |s, a| position(s, a, |s, part| s.find(part))),
    method("format", "args ...", (0, usize::MAX), |s, a| text(fill_template(s, a)?)),
    method("isalpha", "", (0, 0), |s, _| Ok(every(s, char::is_alphabetic))),
    method("isdigit", "", (0, 0), |s, _| Ok(every(s, is_digit))),
    method("isspace", "", (0, 0), |s, _| Ok(every(s, is_space))),
    method("join", "strings", (1, 1), |s, a| {
        let Value::List(list) = &a[0] else {
            return fail(format!("join wants a list of strings, got {}", a[0].describe()));
        };
        let parts = list.items.iter().map(|v| string(v, "each item")).collect::<Eval<Vec<&str>>>()?;
        let bytes = parts.iter().fold(0, |n: usize, part| n.saturating_add(part.len() + s.len()));
        check_text(bytes)?;
        text(parts.join(s))
    }),
    method("ljust", "width fill?", (1, 2), |s, a| {
        let margin = margin(s, a)?;
        text(s.to_string() + &margin)
    }),
    method("lower", "", (0, 0), |s, _| text(s.to_lowercase())),
    method("lstrip", "characters?", (0, 1), |s, a| strip(s, a, true, false)),
    method("replace", "old new count?", (2, 3), |s, a| {
        let (old, new) = (string(&a[0], "the old part")?, string(&a[1], "the new part")?);
        text(match limit(a.get(2), "the count")? {
            Some(n) => s.replacen(old, new, n),
            None => s.replace(old, new),
        })
    }),
    method("rfind", "part start? end?", (1, 3), |s, a| position(s, a, |s, part| s.rfind(part))),
    method("rjust", "width fill?", (1, 2), |s, a| text(margin(s, a)? + s)),
    method("rstrip", "characters?", (0, 1), |s, a| strip(s, a, false, true)),
    method("split", "separator? most?", (0, 2), split),
    method("splitlines", "keep-ends?", (0, 1), split_lines),
    method("startswith", "start start? end?", (1, 3), |s, a| affix(s, a, |s, start| s.starts_with(start))),
    method("strip", "characters?", (0, 1), |s, a| strip(s, a, true, true)),
    method("title", "", (0, 0), |s, _| {
        let mut out = String::new();
        let mut inside = false;
        for c in s.chars() {
            if inside {
                out.extend(c.to_lowercase());
            } else {
                out.push_str(&title_case(c));
            }
            inside = c.is_lowercase() || c.is_uppercase();
        }
        text(out)
    }),
    method("upper", "", (0, 0), |s, _| text(s.to_uppercase())),
    method("zfill", "width", (1, 1), |s, a| {
        let width = whole(&a[0], "the width")?;
        let missing = usize::try_from(width).unwrap_or(0).saturating_sub(s.chars().count());
        let (sign, digits) = s.split_at(usize::from(s.starts_with(['+', '-'])));
        text(format!("{sign}{}{digits}", fill('0', missing)?))
    }),
];

const fn method(
    name: &'static str,
    arguments: &'static str,
    arity: (usize, usize),
    run: fn(&str, &[Value]) -> Eval<Value>,
) -> Method {
    Method { name, arguments, arity, run }
}

/// `(str-call method s args ...)`.
pub(super) fn call(args: &[Value]) -> Eval<Value> {
    let Some(name) = args[0].as_key() else {
        return fail(format!("str-call wants the name of a method first, got {}", args[0].describe()));
    };
    let Some(method) = METHODS.iter().find(|m| *name == *m.name) else {
        let names = METHODS.iter().map(|m| m.name);
        let d = Diagnostic::error(format!("strings have no method {name}"));
        let swapped = args[1].as_key().and_then(|second| nearest(&second, names.clone()));
        return Err(match (nearest(&name, names.clone()), swapped) {
            (Some(near), _) => d.help(format!("did you mean {near}?")),
            (_, Some(method)) => {
                d.help(format!("the method comes first: (str-call \"{method}\" \"{name}\")"))
            }
            _ => d.help(format!("there are {}", names.collect::<Vec<_>>().join(" "))),
        }
        .into());
    };
    let usage = || {
        let blank = if method.arguments.is_empty() { "" } else { " " };
        format!("it is called (str-call \"{}\" s{blank}{})", method.name, method.arguments)
    };
    let Value::Str(s) = &args[1].known("a text")? else {
        return Err(Diagnostic::error(format!("{name} wants a string, got {}", args[1].describe()))
            .help(usage())
            .into());
    };
    let rest = &args[2..];
    if rest.len() < method.arity.0 || rest.len() > method.arity.1 {
        return Err(Diagnostic::error(format!("{name} got {} arguments after the string", rest.len()))
            .help(usage())
            .into());
    }
    (method.run)(s, rest).map_err(|mut signal| {
        if let Stop::Error(d) = &mut *signal {
            d.help.get_or_insert_with(usage);
        }
        signal
    })
}

#[allow(clippy::unnecessary_wraps, reason = "the last step of a method, all of which may fail")]
fn text(text: impl AsRef<str>) -> Eval<Value> {
    Ok(Value::text(text))
}

fn string<'a>(value: &'a Value, wanted: &str) -> Eval<&'a str> {
    match value {
        Value::Str(s) => Ok(s),
        other => fail(format!("{wanted} must be a string, not {}", other.describe())),
    }
}

fn whole(value: &Value, wanted: &str) -> Eval<i64> {
    super::as_index(value, wanted)
}

/// A count; negative or absent means unlimited.
fn limit(value: Option<&Value>, wanted: &str) -> Eval<Option<usize>> {
    let Some(value) = value else { return Ok(None) };
    Ok(usize::try_from(whole(value, wanted)?).ok())
}

/// White space as in Python's `str.isspace`: Unicode's, and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Digits of any script, including superscript and circled ones; fractions and numeral letters are not digits.
fn is_digit(c: char) -> bool {
    let fraction = matches!(c, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}' | '\u{2189}');
    c.is_numeric() && !c.is_alphabetic() && !fraction
}

fn every(s: &str, test: fn(char) -> bool) -> Value {
    Value::Bool(!s.is_empty() && s.chars().all(test))
}

/// A title-case letter: `ß` becomes `Ss`.
fn title_case(c: char) -> String {
    let mut upper = c.to_uppercase();
    let first = upper.next().map(String::from).unwrap_or_default();
    first + &upper.collect::<String>().to_lowercase()
}

/// The slice between two positions (negative ones count from the end), and the number of characters before it. `None`
/// if the start is beyond the end.
fn window<'a>(s: &'a str, bounds: &[Value]) -> Eval<(Option<&'a str>, usize)> {
    let n = s.chars().count() as i64;
    let bound = |i: usize, otherwise: i64| -> Eval<i64> {
        match bounds.get(i) {
            None | Some(Value::Nil) => Ok(otherwise),
            Some(value) => {
                let at = whole(value, "a position")?;
                Ok(if at < 0 { at.saturating_add(n).max(0) } else { at })
            }
        }
    };
    let (start, end) = (bound(0, 0)?, bound(1, n)?.min(n));
    if start > end {
        return Ok((None, 0));
    }
    let offset = |at: i64| s.char_indices().nth(at as usize).map_or(s.len(), |(offset, _)| offset);
    Ok((Some(&s[offset(start)..offset(end)]), start as usize))
}

fn position(s: &str, a: &[Value], find: fn(&str, &str) -> Option<usize>) -> Eval<Value> {
    let part = string(&a[0], "the part")?;
    let (inside, before) = window(s, &a[1..])?;
    let at = inside.and_then(|inside| find(inside, part).map(|at| inside[..at].chars().count() + before));
    Ok(Value::Int(at.map_or(-1, |at| at as i64)))
}

/// True if the text starts or ends with a string, or one of a list.
fn affix(s: &str, a: &[Value], test: fn(&str, &str) -> bool) -> Eval<Value> {
    let (inside, _) = window(s, &a[1..])?;
    let wanted = |v| string(v, "what is compared with");
    let parts = match &a[0] {
        Value::List(list) => list.items.iter().map(wanted).collect::<Eval<Vec<&str>>>()?,
        one => vec![wanted(one)?],
    };
    Ok(Value::Bool(inside.is_some_and(|inside| parts.iter().any(|part| test(inside, part)))))
}

fn strip(s: &str, a: &[Value], start: bool, end: bool) -> Eval<Value> {
    let characters = match a.first() {
        None | Some(Value::Nil) => None,
        Some(v) => Some(string(v, "the characters")?),
    };
    let drops = |c: char| characters.map_or_else(|| is_space(c), |set| set.contains(c));
    let mut rest = s;
    if start {
        rest = rest.trim_start_matches(drops);
    }
    if end {
        rest = rest.trim_end_matches(drops);
    }
    text(rest)
}

/// `n` copies of a character; an error above the maximum length.
fn fill(c: char, n: usize) -> Eval<String> {
    super::create::checked_count(&[n])?;
    Ok(std::iter::repeat_n(c, n).collect())
}

/// The padding of a text up to a width.
fn margin(s: &str, a: &[Value]) -> Eval<String> {
    let width = whole(&a[0], "the width")?;
    let c = match a.get(1).map(|v| string(v, "the fill")).transpose()? {
        None => ' ',
        Some(fill) => {
            let mut chars = fill.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => c,
                _ => return fail(format!("the fill must be one character, not {fill:?}")),
            }
        }
    };
    fill(c, usize::try_from(width).unwrap_or(0).saturating_sub(s.chars().count()))
}

fn strings<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    Value::list(parts.map(Value::text).collect())
}

/// Splits; without a separator at runs of white space, ignoring those at the ends.
fn split(s: &str, a: &[Value]) -> Eval<Value> {
    let most = limit(a.get(1), "the number of splits")?;
    let separator = match a.first() {
        None | Some(Value::Nil) => {
            let mut parts = Vec::new();
            let mut rest = s.trim_start_matches(is_space);
            while !rest.is_empty() {
                let end = rest.find(is_space).filter(|_| most.is_none_or(|most| parts.len() < most));
                let Some(end) = end else {
                    // As in Python, only the rest after the limit keeps its white space.
                    parts.push(rest);
                    break;
                };
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            return Ok(strings(parts.into_iter()));
        }
        Some(v) => string(v, "the separator")?,
    };
    if separator.is_empty() {
        return Err(Diagnostic::error("the separator must not be empty")
            .help("(chars s) is the list of the characters")
            .into());
    }
    Ok(match most {
        Some(most) => strings(s.splitn(most.saturating_add(1), separator)),
        None => strings(s.split(separator)),
    })
}

fn split_lines(s: &str, a: &[Value]) -> Eval<Value> {
    let keep = match a.first() {
        None | Some(Value::Nil) => false,
        Some(Value::Bool(keep)) => *keep,
        Some(other) => return fail(format!("keep-ends is true or false, not {}", other.describe())),
    };
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = s;
    while !rest.is_empty() {
        let (line, end) = match rest.find(ends) {
            None => (rest, 0),
            Some(at) if rest[at..].starts_with("\r\n") => (&rest[..at], 2),
            Some(at) => (&rest[..at], rest[at..].chars().next().map_or(0, char::len_utf8)),
        };
        let whole = line.len() + end;
        lines.push(if keep { &rest[..whole] } else { line });
        rest = &rest[whole..];
    }
    Ok(strings(lines.into_iter()))
}
