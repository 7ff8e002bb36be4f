//! `(io verb ...)`: files and the process environment.

use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp, Signal, fail};
use crate::formats::{self, not_text};
use crate::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

/// The builtin `io`.
pub(super) const IO: Builtin = Builtin::new(
    "io",
    "(io verb ...)",
    "reads and writes files, by verb:\n\
     (io \"load\" path hint ...) the value in a file:\n\
     .safetensors, also without an extension: a dictionary of tensors that stay in the file until they are used; dots in names divide nested dictionaries; \
     a pattern such as model-*.safetensors, or a .safetensors.index.json, for several files\n\
     .npy a tensor and .npz a dictionary of tensors, as NumPy writes them; they stay in the file likewise\n\
     .bin with a dtype such as :u16, patterns too: a handle on the numbers of all files, (h i) (h 0:100) (slice h a b) (get h indices) (len h)\n\
     .json a value (arrays of numbers as tensors, others as lists), .jsonl a handle on the values of its lines\n\
     .csv rows of numbers as a tensor, or below a line of names a dictionary of columns, tensors and lists of strings; .txt a string\n\
     .pkl plain data and NumPy arrays; a pickle that asks for anything else of Python is refused\n\
     all of them also compressed, with .gz at the end, which are read at once\n\
     a hint such as :json stands for the extension, one such as :i32 is the dtype of a .bin or .csv\n\
     (io \"save\" path value hint?) writes a value so that load gives it back, whole or not at all; not as .pkl or .gz\n\
     a .safetensors keeps numbers, strings, keywords and lists too, so a checkpoint resumes a run exactly; .npz and .bin hold tensors alone\n\
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
     (io \"load\" \"tokens.bin\") ;=> error: tokens.bin has no dtype\n\
     (io \"open\" \"a.txt\") ;=> error: io has no verb \"open\"",
);

/// The verbs with their calls.
const VERBS: [(&str, &str); 11] = [
    ("load", "(io \"load\" path hint ...)"),
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
    // Saved tensors leave the device one by one, and no copy stays.
    let known = |v: &Value| v.untraced("what io is given", false);
    let given = args[1..].iter().map(known).collect::<Eval<Vec<Value>>>()?;
    match (verb.as_str(), given.as_slice()) {
        ("load", [Value::Str(path), hints @ ..]) if hints.len() < 3 => formats::load(interp, path, hints),
        ("save", [Value::Str(path), value, hints @ ..]) if hints.len() < 2 => {
            formats::save(interp, path, value, hints)
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

fn write(interp: &mut Interp, path: &str, bytes: &[u8]) -> Eval<Value> {
    interp.host.write_file(path, bytes)?;
    Ok(Value::Nil)
}

/// A file as text.
fn text(interp: &mut Interp, path: &str) -> Eval<String> {
    let bytes = interp.host.read_file(path)?;
    String::from_utf8(bytes).map_err(|e| not_text(path, e.utf8_error().valid_up_to()))
}
