//! `(io verb ...)`: files and the process environment.

use super::operands::as_dtype;
use super::{Builtin, VARIADIC, csv, json};
use crate::eval::{Eval, Interp, Signal, fail};
use crate::program::Value;
use sheaf_graph::tensor::DType;
use sheaf_syntax::diagnostic::Diagnostic;

/// The builtin `io`.
pub(super) const IO: Builtin = Builtin::new(
    "io",
    "(io verb ...)",
    "reads and writes files, by verb:\n\
     (io \"load\" path hint?) the value in a file: .json a value (arrays of numbers as tensors, others as lists), .csv rows of numbers as a tensor, \
     .txt a string; a hint such as :json stands for the extension, one such as :i32 is the dtype of a .csv\n\
     (io \"save\" path value hint?) writes a value so that load gives it back\n\
     (io \"read\" path) a file as a string, (io \"lines\" path) as a list of lines, (io \"write\" path text) writes one\n\
     (io \"exists\" path) whether there is such a file or folder, (io \"list\" path) what is in a folder or matches a \
     pattern such as data/*.csv, sorted\n\
     (io \"entropy\") an unpredictable whole number to seed random-key with\n\
     (io \"args\") the arguments of the run after --, (io \"env\" name default?) an environment variable or nil\n\
     (io \"time\") milliseconds since the start of 1970",
    (1, VARIADIC),
    io,
)
.effect()
.examples(
    "(io \"exists\" \"no-such-file.csv\") ;=> false\n\
     (io \"env\" \"NO_SUCH_VARIABLE\" \"none\") ;=> \"none\"\n\
     (io \"load\" \"model.npz\") ;=> error: .npz files cannot be loaded yet\n\
     (io \"open\" \"a.txt\") ;=> error: io has no verb \"open\"",
);

/// The verbs with their calls.
const VERBS: [(&str, &str); 11] = [
    ("load", "(io \"load\" path hint?)"),
    ("save", "(io \"save\" path value hint?)"),
    ("read", "(io \"read\" path)"),
    ("write", "(io \"write\" path text)"),
    ("lines", "(io \"lines\" path)"),
    ("exists", "(io \"exists\" path)"),
    ("list", "(io \"list\" path)"),
    ("entropy", "(io \"entropy\")"),
    ("args", "(io \"args\")"),
    ("env", "(io \"env\" name default?)"),
    ("time", "(io \"time\")"),
];

fn io(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let Some(verb) = args[0].as_key() else {
        return fail(format!("io takes a verb first, such as \"load\", not {}", args[0].describe()));
    };
    let given = args[1..].iter().map(|v| v.known("what io is given")).collect::<Eval<Vec<Value>>>()?;
    match (verb.as_str(), given.as_slice()) {
        ("load", [Value::Str(path), hint @ ..]) if hint.len() < 2 => load(interp, path, hint.first()),
        ("save", [Value::Str(path), value, hint @ ..]) if hint.len() < 2 => {
            save(interp, path, value, hint.first())
        }
        ("read", [Value::Str(path)]) => text(interp, path).map(Value::text),
        ("lines", [Value::Str(path)]) => {
            Ok(Value::list(text(interp, path)?.lines().map(Value::text).collect()))
        }
        ("write", [Value::Str(path), Value::Str(text)]) => write(interp, path, text.as_bytes()),
        ("write", [Value::Str(_), other]) => Err(Diagnostic::error(format!(
            "(io \"write\" path text) writes a string, not {}",
            other.describe()
        ))
        .help("(io \"save\" path value) writes any value, (str x) makes a string")
        .into()),
        ("exists", [Value::Str(path)]) => Ok(Value::Bool(interp.host.exists(path)?)),
        ("list", [Value::Str(path)]) => {
            Ok(Value::list(interp.host.list(path)?.iter().map(Value::text).collect()))
        }
        ("entropy", []) => Ok(Value::Int(i64::from(interp.host.entropy()?))),
        ("args", []) => Ok(Value::list(interp.host.arguments().iter().map(Value::text).collect())),
        ("env", [Value::Str(name), default @ ..]) if default.len() < 2 => {
            let value = interp.host.variable(name)?.map(Value::text);
            Ok(value.or_else(|| default.first().cloned()).unwrap_or(Value::Nil))
        }
        ("time", []) => interp.host.milliseconds().map(Value::Int).map_err(Signal::from),
        (verb, _) => Err(wrong_call(verb)),
    }
}

fn wrong_call(verb: &str) -> Signal {
    if let Some((_, call)) = VERBS.iter().find(|(name, _)| *name == verb) {
        return Diagnostic::error(format!("io {verb:?} is called {call}")).into();
    }
    let known: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
    let d = Diagnostic::error(format!("io has no verb {verb:?}"));
    Signal::from(match super::nearest(verb, known.iter().copied()) {
        Some(near) => d.help(format!("did you mean {near:?}?")),
        None => d.help(format!("there are {}", known.join(" "))),
    })
}

/// The file format of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Json,
    Csv,
    Text,
}

/// Formats of other tools, reserved for a later version.
const TO_COME: [&str; 8] = ["safetensors", "npy", "npz", "bin", "jsonl", "gz", "pkl", ""];

/// The format of a file, by the hint or else the extension; and the dtype, if the hint is one.
fn format_of(path: &str, hint: Option<&Value>, verb: &str) -> Eval<(Format, Option<DType>)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    let (wanted, dtype) = match hint {
        None => (extension, None),
        Some(hint) => match hint.as_key() {
            Some(key) if DType::parse(&key).is_some() => (extension, Some(as_dtype(hint)?)),
            Some(key) => (key.to_ascii_lowercase(), None),
            None => {
                return fail(format!("a hint is a keyword such as :json or :i32, not {}", hint.describe()));
            }
        },
    };
    let format = match wanted.as_str() {
        "json" => Format::Json,
        "csv" => Format::Csv,
        "txt" | "text" => Format::Text,
        other => {
            let what = if other.is_empty() {
                format!("{path} has no extension, and files without one")
            } else {
                format!(".{other} files")
            };
            let when = if TO_COME.contains(&other) { " yet" } else { "" };
            let done = if verb == "load" { "loaded" } else { "saved" };
            return Err(Diagnostic::error(format!("{what} cannot be {done}{when}"))
                .help(
                    "this version knows .json, .csv and .txt; a hint such as :json stands for the extension",
                )
                .into());
        }
    };
    if dtype.is_some() && format != Format::Csv {
        return fail(format!("a dtype is a hint for a .csv, not for {path}"));
    }
    Ok((format, dtype))
}

fn load(interp: &mut Interp, path: &str, hint: Option<&Value>) -> Eval<Value> {
    let (format, dtype) = format_of(path, hint, "load")?;
    match format {
        Format::Json => {
            let text = text(interp, path)?;
            json::read(&text).map_err(|e| broken(path, &e))
        }
        Format::Csv => {
            let bytes = interp.host.read_file(path)?;
            csv::read(path, &bytes, dtype.unwrap_or(DType::F32))
        }
        Format::Text => text(interp, path).map(Value::text),
    }
}

/// The error for invalid JSON in a file.
fn broken(path: &str, error: &serde_json::Error) -> Signal {
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    Diagnostic::error(format!("{path}:{}:{}: this is not JSON: {what}", error.line(), error.column()))
        .help("text of another kind is read with (io \"read\" path)")
        .into()
}

fn save(interp: &mut Interp, path: &str, value: &Value, hint: Option<&Value>) -> Eval<Value> {
    let (format, dtype) = format_of(path, hint, "save")?;
    if let Some(dtype) = dtype {
        return fail(format!("a file has the dtype of what is saved: (cast x :{dtype}) before"));
    }
    let text = match (format, value) {
        (Format::Json, value) => json::write(value)?,
        (Format::Csv, value) => csv::write(value)?,
        (Format::Text, Value::Str(text)) => text.to_string(),
        (Format::Text, other) => {
            return Err(Diagnostic::error(format!("a text file holds a string, not {}", other.describe()))
                .help("(str x) makes a string; a .json file holds any value")
                .into());
        }
    };
    write(interp, path, text.as_bytes())
}

fn write(interp: &mut Interp, path: &str, bytes: &[u8]) -> Eval<Value> {
    interp.host.write_file(path, bytes)?;
    Ok(Value::Nil)
}

/// A file as text.
fn text(interp: &mut Interp, path: &str) -> Eval<String> {
    let bytes = interp.host.read_file(path)?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Diagnostic::error(format!("{path} is not UTF-8 text from byte {at} on"))
            .help("text files are read as UTF-8: save it in that encoding")
            .into()
    })
}
