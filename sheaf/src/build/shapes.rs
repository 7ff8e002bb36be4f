//! Shapes files: calls of a run, for `sheaf build --shapes`.

use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use sheaf_foundation::Digest;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::eval::{AbstractValue, Call, FunctionName, Interp, LeftOut, Recording};
use sheaf_lang::program::{Axes, GradOptions, Tensor, Transform, Value};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

use crate::evaluator::{Failed, failed};
use crate::messages;
use sheaf_loader::source_text;

/// The format and version of a shapes file.
const FORMAT: &str = "sheaf shapes 1";

/// Remedy for a file that does not serve.
const AGAIN: &str = "record the run again: sheaf run FILE --record SHAPES.json";

/// Maximum nesting of recorded arguments: JSON readers have limits.
const MAX_NESTING: usize = 40;

/// Maximum transformations around one function.
const MAX_TRANSFORMS: usize = 100;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Shapes {
    format: String,
    /// The program's file name, for people.
    program: String,
    /// The digest of all its texts.
    sources: String,
    calls: Vec<Recorded>,
    #[serde(default)]
    left_out: Vec<Omitted>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    transforms: Vec<Wrapper>,
    arguments: Vec<Argument>,
}

#[derive(Serialize, Deserialize)]
struct Omitted {
    function: String,
    place: Option<String>,
    reason: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    transforms: Vec<Wrapper>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Argument {
    Any(Type),
    Number(Known),
    Constant(Known),
    List(Vec<Argument>),
    Dict(Vec<(String, Argument)>),
    Function(Name),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Type {
    dtype: String,
    shape: Vec<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    weak: bool,
}

/// A value that is written out.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Known {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// One that JSON cannot write, by its bits.
    FloatBits(u64),
    Keyword(String),
    Symbol(String),
    Text(String),
    Range(i64, i64),
    /// The bytes of the elements, in hexadecimal.
    Tensor(Type, String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Wrapper {
    Grad { wrt: Vec<usize>, list: bool, aux: bool, value: bool },
    Jvp,
    Jacobian,
    Vmap(Mapped),
    Checkpoint,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mapped {
    Every(Option<i64>),
    Items(Vec<Mapped>),
    Entries(Vec<(String, Mapped)>),
}

/// Writes a run's specialisations so far to `path`, and tells those that could not be recorded.
pub fn record(interp: &Interp, program: &Path, path: &Path) -> Result<(), Failed> {
    let Recording { calls, mut left_out } = interp.recording();
    let mut recorded = Vec::new();
    for call in &calls {
        match Recorded::of(call) {
            Ok(call) => recorded.push(call),
            Err(reason) => {
                left_out.push(LeftOut { function: call.function.to_string(), place: None, reason });
            }
        }
    }
    for LeftOut { function, place, reason } in &left_out {
        let place = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
        let message = format!("{function}{place} is not recorded: {reason}");
        messages::warning(
            message,
            Some("a function defined with defn, or a transformation of one, can be recorded"),
        );
    }
    let shapes = Shapes {
        format: FORMAT.into(),
        program: program.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        sources: digest(interp).to_string(),
        calls: recorded,
        left_out: left_out
            .into_iter()
            .map(|LeftOut { function, place, reason }| Omitted {
                function,
                place: place.map(|place| place.to_string()),
                reason,
            })
            .collect(),
    };
    let json = sheaf_artifacts::to_pretty_json(&shapes).map_err(failed)?;
    sheaf_foundation::atomic::replace(path, &json).map_err(|e| {
        messages::error(&e, Some(e.remedy()));
        Failed
    })
}

/// Sources that a shapes file serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// Those that were recorded.
    Recorded,
    /// Any that define the functions. The calls are those of the recorded run: what has changed since may ask for others.
    Any,
}

/// The calls in the file `path`, which must be one of the program that `interp` has prepared.
pub fn read(interp: &mut Interp, path: &Path, sources: Sources) -> Result<Vec<Call>, Diagnostic> {
    let text = source_text(path)?;
    let shown = path.display();
    let id = interp.sources.add(shown.to_string(), text.as_str());
    let at = |from: usize, to: usize| Span { source: id, start: from as u32, end: to as u32 };
    let shapes: Shapes = serde_json::from_str(&text).map_err(|e| {
        let place = offset(&text, e.line(), e.column());
        let error = Diagnostic::error(format!("{shown} is damaged, or no shapes file: {}", cause(&e)));
        error.at(at(place, place), "here").help(AGAIN)
    })?;
    if shapes.format != FORMAT {
        let error = Diagnostic::error(format!(
            "{shown} is written as {:?}, but this Sheaf reads {FORMAT:?}",
            shapes.format
        ));
        return Err(error.at(find(&text, "\"format\"", at), "here").help(AGAIN));
    }
    if sources == Sources::Recorded && shapes.sources != digest(interp).to_string() {
        let message =
            format!("{shown} was recorded for another program, or for {} as it was", shapes.program);
        return Err(Diagnostic::error(message)
            .at(find(&text, "\"sources\"", at), "the sources it is for")
            .help(AGAIN));
    }
    let mut calls = Vec::new();
    for Recorded { function, module, transforms, arguments } in shapes.calls {
        let quoted = serde_json::to_string(&function).unwrap_or_default();
        let wrong = |error: Diagnostic| {
            let message = format!("{shown}: {}", error.message);
            let place = find(&text, &format!("\"function\": {quoted}"), at);
            Diagnostic::error(message).at(place, "recorded here").help(AGAIN)
        };
        let function = Name { function, module, transforms }.function();
        let arguments = arguments.into_iter().map(Argument::value).collect::<Result<Vec<_>, String>>();
        let arguments = arguments.map_err(|e| wrong(Diagnostic::error(e)))?;
        for named in arguments.iter().flat_map(functions_in).chain([&function]) {
            if named.transforms.len() > MAX_TRANSFORMS {
                let message = format!("{} has more than {MAX_TRANSFORMS} transformations", named.name);
                return Err(wrong(Diagnostic::error(message)));
            }
            interp.find_function(named).map_err(wrong)?;
        }
        calls.push(Call { function, arguments });
    }
    Ok(calls)
}

/// The functions among arguments.
fn functions_in(argument: &AbstractValue) -> Vec<&FunctionName> {
    match argument {
        AbstractValue::Function(name) => vec![name],
        AbstractValue::List(items) => items.iter().flat_map(functions_in).collect(),
        AbstractValue::Dict(entries) => entries.iter().flat_map(|(_, v)| functions_in(v)).collect(),
        AbstractValue::Any(_) | AbstractValue::Number(_) | AbstractValue::Constant(_) => Vec::new(),
    }
}

/// The digest of the texts of a program and its modules: a number and bytes for each name and text.
fn digest(interp: &Interp) -> Digest {
    let mut bytes = Vec::new();
    for (name, text) in interp.program_texts() {
        for part in [name, text] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part.as_bytes());
        }
    }
    Digest::of(&bytes)
}

/// The error, without the place.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The byte at which a line and a column begin, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn find(text: &str, what: &str, at: impl Fn(usize, usize) -> Span) -> Span {
    text.find(what).map_or_else(|| at(0, 0), |start| at(start, start + what.len()))
}

impl Recorded {
    fn of(call: &Call) -> Result<Recorded, String> {
        let arguments =
            call.arguments.iter().map(|a| Argument::of(a, MAX_NESTING)).collect::<Result<_, _>>()?;
        let Name { function, module, transforms } = Name::of(&call.function);
        Ok(Recorded { function, module, transforms, arguments })
    }
}

impl Name {
    fn of(name: &FunctionName) -> Name {
        let transforms = name.transforms.iter().map(Wrapper::of).collect();
        Name { function: name.name.clone(), module: name.module.clone(), transforms }
    }

    fn function(self) -> FunctionName {
        let transforms = self.transforms.into_iter().map(Wrapper::transform).collect();
        FunctionName { module: self.module, name: self.function, transforms }
    }
}

impl Argument {
    fn of(argument: &AbstractValue, levels: usize) -> Result<Argument, String> {
        let levels = levels.checked_sub(1).ok_or("its arguments are nested too deep")?;
        Ok(match argument {
            AbstractValue::Any(ty) => Argument::Any(Type::of(ty)),
            AbstractValue::Number(value) => Argument::Number(Known::of(value)?),
            AbstractValue::Constant(value) => Argument::Constant(Known::of(value)?),
            AbstractValue::List(items) => {
                Argument::List(items.iter().map(|item| Argument::of(item, levels)).collect::<Result<_, _>>()?)
            }
            AbstractValue::Dict(entries) => {
                let entries = entries.iter().map(|(k, v)| Ok((k.to_string(), Argument::of(v, levels)?)));
                Argument::Dict(entries.collect::<Result<_, String>>()?)
            }
            AbstractValue::Function(name) => Argument::Function(Name::of(name)),
        })
    }

    fn value(self) -> Result<AbstractValue, String> {
        Ok(match self {
            Argument::Any(ty) => AbstractValue::Any(ty.ty()?),
            Argument::Number(known) => AbstractValue::Number(known.value()?),
            Argument::Constant(known) => AbstractValue::Constant(known.value()?),
            Argument::List(items) => {
                AbstractValue::List(items.into_iter().map(Argument::value).collect::<Result<_, _>>()?)
            }
            Argument::Dict(entries) => {
                let entries = entries.into_iter().map(|(k, v)| Ok((k.as_str().into(), v.value()?)));
                AbstractValue::Dict(entries.collect::<Result<_, String>>()?)
            }
            Argument::Function(name) => AbstractValue::Function(name.function()),
        })
    }
}

impl Type {
    fn of(ty: &TensorType) -> Type {
        Type { dtype: ty.dtype.to_string(), shape: ty.shape.to_vec(), weak: ty.weak }
    }

    fn ty(self) -> Result<TensorType, String> {
        let size = self.shape.iter().try_fold(1_usize, |size, n| size.checked_mul(*n));
        if size.is_none_or(|size| size > isize::MAX as usize / 16) {
            return Err(format!("a tensor of shape {:?} is larger than memory", self.shape));
        }
        let dtype = DType::named(&self.dtype)?;
        if self.weak && !(self.shape.is_empty() && matches!(dtype, DType::I64 | DType::F32 | DType::F64)) {
            return Err("only single numbers of i64, f32 and f64 are weak".into());
        }
        let ty = TensorType::new(dtype, self.shape.as_slice());
        Ok(TensorType { weak: self.weak, ..ty })
    }
}

impl Known {
    fn of(value: &Value) -> Result<Known, String> {
        Ok(match value {
            Value::Nil => Known::Nil,
            Value::Bool(b) => Known::Bool(*b),
            Value::Int(n) => Known::Int(*n),
            Value::Float(x) if x.is_finite() => Known::Float(*x),
            Value::Float(x) => Known::FloatBits(x.to_bits()),
            Value::Keyword(name) => Known::Keyword(name.to_string()),
            Value::Symbol(name) => Known::Symbol(name.to_string()),
            Value::Str(text) => Known::Text(text.to_string()),
            Value::Range(range) => Known::Range(range.start, range.end),
            Value::Tensor(tensor) => {
                let host = tensor.concrete().and_then(|c| c.host().ok());
                let host = host.ok_or("it needs the value of a tensor that cannot be read")?;
                let bytes = host.bytes().iter().map(|b| format!("{b:02x}")).collect();
                Known::Tensor(Type::of(tensor.ty()), bytes)
            }
            other => return Err(format!("it is given {}", other.describe())),
        })
    }

    fn value(self) -> Result<Value, String> {
        Ok(match self {
            Known::Nil => Value::Nil,
            Known::Bool(b) => Value::Bool(b),
            Known::Int(n) => Value::Int(n),
            Known::Float(x) => Value::Float(x),
            Known::FloatBits(bits) => Value::Float(f64::from_bits(bits)),
            Known::Keyword(name) => Value::Keyword(name.as_str().into()),
            Known::Symbol(name) => Value::Symbol(name.as_str().into()),
            Known::Text(text) => Value::text(text),
            Known::Range(start, end) => Value::Range(Rc::new(start..end)),
            Known::Tensor(ty, bytes) => {
                let ty = ty.ty()?;
                let digits = bytes.as_bytes().chunks(2);
                let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
                let host =
                    bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| HostTensor::from_bytes(&ty, &bytes));
                let host =
                    host.ok_or_else(|| format!("the elements of a tensor {ty} are not what it has"))?;
                Value::Tensor(if ty.weak { Tensor::weak(host) } else { Tensor::host(host) })
            }
        })
    }
}

impl Wrapper {
    fn of(transform: &Transform) -> Wrapper {
        match transform {
            Transform::Grad(GradOptions { wrt, wrt_list, aux, value }) => {
                Wrapper::Grad { wrt: wrt.clone(), list: *wrt_list, aux: *aux, value: *value }
            }
            Transform::Jvp => Wrapper::Jvp,
            Transform::Jacobian => Wrapper::Jacobian,
            Transform::Vmap(axes) => Wrapper::Vmap(Mapped::of(axes)),
            Transform::Checkpoint => Wrapper::Checkpoint,
        }
    }

    fn transform(self) -> Transform {
        match self {
            Wrapper::Grad { wrt, list, aux, value } => {
                Transform::Grad(GradOptions { wrt, wrt_list: list, aux, value })
            }
            Wrapper::Jvp => Transform::Jvp,
            Wrapper::Jacobian => Transform::Jacobian,
            Wrapper::Vmap(axes) => Transform::Vmap(axes.axes()),
            Wrapper::Checkpoint => Transform::Checkpoint,
        }
    }
}

impl Mapped {
    fn of(axes: &Axes) -> Mapped {
        match axes {
            Axes::Every(axis) => Mapped::Every(*axis),
            Axes::Items(items) => Mapped::Items(items.iter().map(Mapped::of).collect()),
            Axes::Entries(entries) => {
                Mapped::Entries(entries.iter().map(|(k, v)| (k.to_string(), Mapped::of(v))).collect())
            }
        }
    }

    fn axes(self) -> Axes {
        match self {
            Mapped::Every(axis) => Axes::Every(axis),
            Mapped::Items(items) => Axes::Items(items.into_iter().map(Mapped::axes).collect()),
            Mapped::Entries(entries) => {
                Axes::Entries(entries.into_iter().map(|(k, v)| (k.as_str().into(), v.axes())).collect())
            }
        }
    }
}
