//! The format of the programs in `tests/quirks`: lines of comment that say what goes wrong, then the program.
//!
//! ```text
//! // quirk 11: the sine of a large number is wrong in its fourth digit
//! // fails: numbers
//! // argument: f32[1] 1000
//! // right: f32[1] 0.82687956
//! ```
//!
//! | line | content |
//! |---|---|
//! | `quirk NN:` | the number of the quirk, and what goes wrong in this program |
//! | `flags:` | flags of the compiler beyond those that all programs get |
//! | `device: cuda` | the device, where it is not the processor; such programs are only compiled |
//! | `threads: all` | the program is called on `local-task`; others on `local-sync` |
//! | `fails: compiler "text"` | the compiler refuses the program, or crashes; the text is part of what it says |
//! | `fails: call "text"` | the program cannot be loaded or called |
//! | `fails: numbers` | results are not those of the lines `right` |
//! | `fails: arguments` | a call changes its arguments |
//! | `fails: memory 4096` | a call takes more bytes at one time |
//! | `argument:` | an argument: its type, then its elements, of which `...` repeats those before it |
//! | `right:` | a result as it should be, for each result |

use std::iter::repeat_n;
use std::path::{Path, PathBuf};

use sheaf_graph::tensor::{DType, HostTensor, Number, Shape, TensorType};

/// A program that the compiler fails on.
pub struct Program {
    pub path: PathBuf,
    /// The number of the quirk, which the name of the file begins with.
    pub quirk: u8,
    pub text: String,
    pub flags: Vec<String>,
    pub for_cuda: bool,
    pub on_all_threads: bool,
    pub fails: Failure,
    pub arguments: Vec<HostTensor>,
    pub right: Vec<HostTensor>,
}

/// The way in which a program fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Compiler(String),
    Call(String),
    Numbers,
    Arguments,
    Memory(usize),
}

impl Program {
    /// The program of a file.
    ///
    /// # Errors
    /// If a line is not as it should be.
    pub fn read(path: &Path) -> Result<Program, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (mut quirk, mut fails) = (None, None);
        let (mut flags, mut arguments, mut right) = (Vec::new(), Vec::new(), Vec::new());
        let (mut for_cuda, mut on_all_threads) = (false, false);
        for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
            let (key, rest) = line.split_once(": ").ok_or_else(|| format!("no `key: ` in: {line}"))?;
            match key {
                "flags" => flags.extend(rest.split_whitespace().map(str::to_owned)),
                "device" => for_cuda = rest == "cuda",
                "threads" => on_all_threads = rest == "all",
                "fails" => fails = Some(failure(rest)?),
                "argument" => arguments.push(tensor(rest)?),
                "right" => right.push(tensor(rest)?),
                _ => {
                    let number = key.strip_prefix("quirk ").and_then(|number| number.parse().ok());
                    quirk = Some(number.ok_or_else(|| format!("{key} is none of the keys"))?);
                }
            }
        }
        let quirk = quirk.ok_or("it does not say which quirk")?;
        let named = path.file_name().and_then(|name| name.to_str()?.split('-').next()?.parse().ok());
        if named != Some(quirk) {
            return Err(format!("its name does not begin with {quirk:02}-"));
        }
        let fails = fails.ok_or("it does not say how it fails")?;
        if fails == Failure::Numbers && right.is_empty() {
            return Err("it does not say what would be right".into());
        }
        let path = path.to_owned();
        Ok(Program { path, quirk, text, flags, for_cuda, on_all_threads, fails, arguments, right })
    }
}

fn failure(text: &str) -> Result<Failure, String> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let quoted = || {
        let inside = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inside.map(str::to_owned).ok_or_else(|| format!("no text in quotation marks: {text}"))
    };
    match kind {
        "compiler" => quoted().map(Failure::Compiler),
        "call" => quoted().map(Failure::Call),
        "numbers" => Ok(Failure::Numbers),
        "arguments" => Ok(Failure::Arguments),
        "memory" => rest.parse().map(Failure::Memory).map_err(|_| format!("no number of bytes: {text}")),
        _ => Err(format!("no way to fail: {text}")),
    }
}

/// `f32[2x3] 1 2 3 ...`, where the dots repeat the elements before them.
fn tensor(text: &str) -> Result<HostTensor, String> {
    let wrong = || format!("no tensor: {text}");
    let (ty, elements) = text.split_once(']').ok_or_else(wrong)?;
    let (dtype, shape) = ty.split_once('[').ok_or_else(wrong)?;
    let dtype = DType::parse(dtype).ok_or_else(wrong)?;
    let extents = shape.split('x').filter(|extent| !extent.is_empty());
    let shape: Shape = extents.map(|extent| extent.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    let ty = TensorType::new(dtype, shape);
    let mut words: Vec<&str> = elements.split_whitespace().collect();
    let repeats = words.pop_if(|word| *word == "...").is_some();
    let elements: Vec<Vec<u8>> =
        words.iter().map(|word| element(dtype, word).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    if elements.is_empty() || (!repeats && elements.len() != ty.count()) {
        return Err(wrong());
    }
    let bytes: Vec<u8> = repeat_n(elements, ty.count()).flatten().take(ty.count()).flatten().collect();
    HostTensor::from_bytes(&ty, &bytes).ok_or_else(wrong)
}

fn element(dtype: DType, word: &str) -> Option<Vec<u8>> {
    let number =
        if dtype.is_float() { Number::Float(word.parse().ok()?) } else { Number::Int(word.parse().ok()?) };
    Some(HostTensor::number(dtype, Shape::new(), number).copied_bytes().into_owned())
}
