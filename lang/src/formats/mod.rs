//! The formats of data files: values from the bytes of a file, and the bytes of values. Files come and go through the
//! host.

mod bin;
mod checkpoint;
mod csv;
mod gz;
mod json;
mod jsonl;
mod names;
mod npy;
mod npz;
mod pickle;
mod safetensors;
#[cfg(feature = "text")]
mod tokenizer;

use std::io::{self, Write};
use std::sync::Arc;

use crate::builtins::as_dtype;
use crate::eval::{Eval, Interp, Signal, fail};
use crate::program::Value;
use sheaf_graph::tensor::{DType, FileBytes, FilePart, HostTensor};
use sheaf_syntax::diagnostic::Diagnostic;

pub(crate) use json::read_line as read_json_line;
#[cfg(feature = "text")]
pub(crate) use tokenizer::load as load_tokenizer;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Safetensors,
    /// An index of the shards of a model, in JSON.
    Index,
    Npy,
    Npz,
    Bin,
    Json,
    Jsonl,
    Csv,
    Text,
    Pickle,
}

/// The format of a file and how it is read.
#[derive(Clone, Copy, Debug)]
struct Form {
    format: Format,
    /// The dtype that was asked for.
    dtype: Option<DType>,
    /// True if the file is compressed.
    packed: bool,
}

/// Formats by extension or hint.
const FORMATS: [(&str, Format); 12] = [
    ("safetensors", Format::Safetensors),
    ("safetensors.index.json", Format::Index),
    ("npy", Format::Npy),
    ("npz", Format::Npz),
    ("bin", Format::Bin),
    ("json", Format::Json),
    ("jsonl", Format::Jsonl),
    ("csv", Format::Csv),
    ("txt", Format::Text),
    ("text", Format::Text),
    ("pkl", Format::Pickle),
    ("pickle", Format::Pickle),
];

/// The names of the formats, for messages.
const KNOWN: &str = ".safetensors, .npy, .npz, .bin, .json, .jsonl, .csv, .txt and .pkl";

/// A file that is being loaded.
struct Source<'a> {
    /// The path, for messages.
    path: &'a str,
    bytes: Arc<dyn FileBytes>,
}

impl<'a> Source<'a> {
    /// Opens a file; a compressed one is unpacked.
    fn open(interp: &mut Interp, path: &'a str, packed: bool) -> Eval<Source<'a>> {
        let source = Source { path, bytes: interp.map_file(path)? };
        if !packed {
            return Ok(source);
        }
        Ok(Source { path, bytes: gz::unpacked(&source)? })
    }

    /// The whole file as a part of itself.
    fn part(&self) -> FilePart {
        FilePart { file: Arc::clone(&self.bytes), range: 0..self.bytes.bytes().len() }
    }

    /// The file as text.
    fn text(&self) -> Eval<String> {
        self.bytes.check()?;
        let text = String::from_utf8(self.bytes.bytes().to_vec());
        self.bytes.check()?;
        text.map_err(|e| not_text(self.path, e.utf8_error().valid_up_to()))
    }
}

/// The error of a file that is not UTF-8 text.
pub(crate) fn not_text(path: &str, at: usize) -> Signal {
    Diagnostic::error(format!("{path} is not UTF-8 text from byte {at} on"))
        .help("text files are read as UTF-8: save it in that encoding")
        .into()
}

/// The error of a file whose content is not what its format says.
fn broken(path: &str, what: impl std::fmt::Display, help: impl Into<String>) -> Signal {
    Diagnostic::error(format!("{path}: {what}")).help(help).into()
}

/// The format of a file, by the hints or else by the end of its name; a hint may be the dtype as well.
fn form_of(path: &str, hints: &[Value], done: &str) -> Eval<Form> {
    let (mut named, mut dtype) = (None, None);
    for hint in hints {
        match hint.as_key() {
            Some(key) if DType::parse(&key).is_some() => dtype = Some(as_dtype(hint)?),
            Some(key) => named = Some(key.to_ascii_lowercase()),
            None => {
                return fail(format!("a hint is a keyword such as :json or :i32, not {}", hint.describe()));
            }
        }
    }
    let file = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let (file, packed) = match file.strip_suffix(".gz") {
        Some(file) => (file.to_owned(), true),
        None => (file, false),
    };
    let extension = named.clone().or_else(|| file.split_once('.').map(|(_, end)| end.to_owned()));
    let format = match extension {
        None => Some(if dtype.is_some() { Format::Bin } else { Format::Safetensors }),
        // The longest end of the name that is a format.
        Some(extension) => {
            std::iter::successors(Some(extension.as_str()), |end| Some(end.split_once('.')?.1))
                .find_map(|end| FORMATS.iter().find(|(name, _)| *name == end).map(|(_, format)| *format))
                .or_else(|| dtype.filter(|_| named.is_none()).map(|_| Format::Bin))
        }
    };
    let Some(format) = format else {
        let last = named.unwrap_or_else(|| file.rsplit('.').next().unwrap_or_default().to_owned());
        return Err(Diagnostic::error(format!("{path}: .{last} files cannot be {done}"))
            .help(format!("there are {KNOWN}; a hint such as :json stands for the extension"))
            .into());
    };
    if dtype.is_some() && !matches!(format, Format::Bin | Format::Csv) {
        return Err(Diagnostic::error(format!("a dtype is a hint for a .bin or a .csv, not for {path}"))
            .help("the file says which dtype it has: load it without, then (cast x :f32)")
            .into());
    }
    Ok(Form { format, dtype, packed })
}

/// `(io "load" path hint...)`.
pub(crate) fn load(interp: &mut Interp, path: &str, hints: &[Value]) -> Eval<Value> {
    let form = form_of(path, hints, "loaded")?;
    let paths = paths_of(interp, path)?;
    match (form.format, paths.as_slice()) {
        (Format::Safetensors, _) => safetensors::load(interp, &paths, form.packed),
        (Format::Bin, _) => bin::load(interp, path, &paths, form),
        (_, [one]) => {
            let source = Source::open(interp, one, form.packed)?;
            load_one(interp, form, &source)
        }
        (_, many) => Err(Diagnostic::error(format!("{path} stands for {} files", many.len()))
            .help("a pattern loads .safetensors and .bin files; (io \"list\" pattern) lists others, for map")
            .into()),
    }
}

/// The value of one file.
fn load_one(interp: &mut Interp, form: Form, source: &Source<'_>) -> Eval<Value> {
    match form.format {
        Format::Index => safetensors::load_index(interp, source),
        Format::Npy => npy::read(interp, source, &source.part()),
        Format::Npz => npz::read(interp, source),
        Format::Json => json::read(source.path, &source.text()?),
        Format::Jsonl => Ok(jsonl::read(source)),
        Format::Csv => {
            source.bytes.check()?;
            csv::read(source.path, source.bytes.bytes(), form.dtype.unwrap_or(DType::F32))
        }
        Format::Text => source.text().map(Value::text),
        Format::Pickle => pickle::read(source),
        Format::Safetensors | Format::Bin => unreachable!("loaded from several files"),
    }
}

/// The files that a path means: itself, or those that match a pattern, sorted by name.
fn paths_of(interp: &mut Interp, path: &str) -> Eval<Vec<String>> {
    if !path.contains(['*', '?', '[']) || interp.host.exists(path)? {
        return Ok(vec![path.to_owned()]);
    }
    let found = interp.host.list(path)?;
    if found.is_empty() {
        return Err(Diagnostic::error(format!("no file matches {path}"))
            .help("* stands for any characters within a name, ? for one, [a-z] for one of those")
            .into());
    }
    Ok(found)
}

/// `(io "save" path value hint?)`.
pub(crate) fn save(interp: &mut Interp, path: &str, value: &Value, hints: &[Value]) -> Eval<Value> {
    let form = form_of(path, hints, "saved")?;
    if let Some(dtype) = form.dtype {
        return fail(format!("a file has the dtype of what is saved: (cast x :{dtype}) before"));
    }
    if form.packed {
        return Err(Diagnostic::error(format!("{path}: files cannot be saved compressed"))
            .help("save it without .gz, and compress the file with gzip")
            .into());
    }
    match form.format {
        Format::Safetensors => safetensors::save(interp, path, value)?,
        Format::Npy => npy::save(interp, path, value)?,
        Format::Npz => npz::save(interp, path, value)?,
        Format::Bin => bin::save(interp, path, value)?,
        Format::Json => write(interp, path, |to| Ok(to.write_all(json::write(value)?.as_bytes())?))?,
        Format::Jsonl => jsonl::save(interp, path, value)?,
        Format::Csv => write(interp, path, |to| csv::write(value, to))?,
        Format::Text => match value {
            Value::Str(text) => write(interp, path, |to| Ok(to.write_all(text.as_bytes())?))?,
            other => {
                return Err(Diagnostic::error(format!(
                    "a text file holds a string, not {}",
                    other.describe()
                ))
                .help("(str x) makes a string; a .json file holds any value")
                .into());
            }
        },
        Format::Pickle => {
            return Err(Diagnostic::error(format!("{path}: pickles cannot be saved"))
                .help("a .npz file holds dictionaries of arrays for NumPy, a .json file any data")
                .into());
        }
        Format::Index => {
            return Err(Diagnostic::error("an index of shards cannot be saved")
                .help("one .safetensors file holds a model of any size")
                .into());
        }
    }
    Ok(Value::Nil)
}

/// An error while a file is written: of the program, or of the file.
enum WriteError {
    Program(Signal),
    File(io::Error),
}

impl From<Signal> for WriteError {
    fn from(signal: Signal) -> WriteError {
        WriteError::Program(signal)
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::File(error)
    }
}

/// Writes a file whole or not at all. `content` writes it piece by piece, once.
fn write(
    interp: &mut Interp,
    path: &str,
    content: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
) -> Eval<()> {
    let mut content = Some(content);
    let mut stopped = None;
    let written = interp.host.write_with(path, &mut |to| {
        let Some(content) = content.take() else { return Err(io::Error::other("the content was written")) };
        match content(to) {
            Ok(()) => Ok(()),
            Err(WriteError::File(error)) => Err(error),
            Err(WriteError::Program(signal)) => {
                stopped = Some(signal);
                Err(io::Error::other("the program stopped"))
            }
        }
    });
    match stopped {
        Some(signal) => Err(signal),
        None => Ok(written?),
    }
}

/// Writes the elements of a tensor in memory order.
fn write_elements(tensor: &HostTensor, to: &mut dyn Write) -> Result<(), WriteError> {
    /// Bytes of a piece of a splat.
    const PIECE: usize = 1 << 16;
    tensor.check_files().map_err(Signal::from)?;
    if tensor.is_splat() {
        let number = tensor.stored().bytes();
        let piece = number.repeat(PIECE / number.len());
        let mut left = tensor.byte_len();
        while left > 0 {
            let now = left.min(piece.len());
            to.write_all(&piece[..now])?;
            left -= now;
        }
    } else if tensor.stored().files().is_empty() {
        to.write_all(tensor.bytes())?;
    } else {
        tensor.stored().files().iter().try_for_each(|part| to.write_all(part.bytes()))?;
    }
    tensor.check_files().map_err(Signal::from)?;
    Ok(())
}
