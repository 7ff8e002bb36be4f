//! `.npy`: one array of NumPy. Its elements stay in the file until they are used.
//!
//! The header is a Python dictionary of three entries. Libraries parse it as any Python literal, by recursion that a file may
//! drive as deep as it likes; this parser knows those entries and nothing else.

use super::{Source, broken, write, write_elements};
use crate::eval::{Eval, Interp};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Primitive;
use sheaf_graph::tensor::{DType, FilePart, HostTensor, Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum bytes of a header's text; NumPy wants to be told before it reads more than 10,000.
const MAX_HEADER: usize = 1 << 16;
/// Maximum axes of an array of NumPy.
const MAX_AXES: usize = 64;
/// Alignment of the elements, as NumPy writes them.
const ALIGNMENT: usize = 64;

/// The type of an array and where its elements begin.
struct Header {
    dtype: DType,
    shape: Shape,
    /// True if the first axis varies fastest.
    fortran: bool,
    big_endian: bool,
    start: usize,
}

/// The array in a part of a file.
pub(super) fn read(interp: &mut Interp, source: &Source<'_>, part: &FilePart) -> Eval<Value> {
    part.file.check()?;
    let bytes = part.bytes();
    let header = header(bytes).map_err(|what| {
        broken(
            source.path,
            what,
            "the file is damaged, or no .npy of numbers: write it again with numpy.save",
        )
    })?;
    let Header { dtype, shape, fortran, big_endian, start } = header;
    let width = dtype.byte_width();
    let count = shape.iter().try_fold(width, |n, extent| n.checked_mul(*extent));
    let found = bytes.len() - start;
    if count != Some(found) {
        let ty = TensorType::new(dtype, shape);
        let what = match count {
            Some(count) => format!("{ty} takes {count} bytes, and {found} follow the header"),
            None => format!("{ty} is beyond all memory"),
        };
        return Err(broken(source.path, what, "the file is truncated, or several arrays were saved to it"));
    }
    let elements = FilePart { file: part.file.clone(), range: part.range.start + start..part.range.end };
    let Some(tensor) = array(dtype, shape, [fortran, big_endian], elements) else {
        return Err(broken(source.path, "a bool is neither 0 nor 1", "the file is damaged: write it again"));
    };
    part.file.check()?;
    Ok(Value::Tensor(Tensor::made(tensor, interp.span)))
}

/// An array of these bytes, in which the first axis may vary fastest, and numbers may have their highest byte first. The
/// elements stay in the file if they lie there as they are wanted. `None` if a bool is neither 0 nor 1.
pub(super) fn array(
    dtype: DType,
    shape: Shape,
    [fortran, big_endian]: [bool; 2],
    bytes: FilePart,
) -> Option<HostTensor> {
    // The extents of the axes as they lie in memory.
    let stored: Shape = if fortran { shape.iter().rev().copied().collect() } else { shape };
    let ty = TensorType::new(dtype, stored);
    let width = dtype.byte_width();
    let tensor = if big_endian && width > 1 {
        let turned: Vec<u8> =
            bytes.bytes().chunks_exact(width).flat_map(|x| x.iter().rev()).copied().collect();
        HostTensor::from_bytes(&ty, &turned)
    } else {
        HostTensor::in_files(&ty, vec![bytes])
    };
    if !fortran || ty.rank() < 2 {
        return tensor;
    }
    let permutation = (0..ty.rank()).rev().collect();
    Some(p::Transpose { permutation }.evaluate(&[&tensor?]).swap_remove(0))
}

/// The header, or what is wrong with it.
fn header(bytes: &[u8]) -> Result<Header, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a .npy does")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or("it ends within the header")?;
    let (length, rest) = match version {
        [1, _] => {
            let (length, rest) = rest.split_first_chunk().ok_or("it ends within the header")?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        [2 | 3, _] => {
            let (length, rest) = rest.split_first_chunk().ok_or("it ends within the header")?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        [major, minor] => {
            return Err(format!("its format has version {major}.{minor}, and 1.0 to 3.0 are known"));
        }
    };
    if length > MAX_HEADER {
        return Err(format!("the header should have {length} bytes, and {MAX_HEADER} are the most"));
    }
    let text = rest.get(..length).ok_or("it ends within the header")?.to_vec();
    let text = String::from_utf8(text).map_err(|_| "the header is not UTF-8 text")?;
    let start = bytes.len() - rest.len() + length;
    let mut parser = Parser { rest: &text };
    let mut found = (None, None, None);
    parser.expect('{')?;
    while !parser.takes('}') {
        let name = parser.string()?;
        parser.expect(':')?;
        match name {
            "descr" => found.0 = Some(parser.dtype()?),
            "fortran_order" => found.1 = Some(parser.truth()?),
            "shape" => found.2 = Some(parser.shape()?),
            other => return Err(format!("the header has an entry {other:?}, which is not known")),
        }
        if !parser.takes(',') {
            parser.expect('}')?;
            break;
        }
    }
    if !parser.rest.trim().is_empty() {
        return Err("text follows the header's dictionary".into());
    }
    let (Some((dtype, big_endian)), Some(fortran), Some(shape)) = found else {
        return Err("the header lacks one of descr, fortran_order and shape".into());
    };
    Ok(Header { dtype, shape, fortran, big_endian, start })
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Takes a character after blanks, if it comes next.
    fn takes(&mut self, wanted: char) -> bool {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.takes(wanted) {
            return Ok(());
        }
        let found: String = self.rest.trim_start().chars().take(10).collect();
        Err(format!("the header has {found:?} where {wanted:?} should be"))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.takes('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect('\'')?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or("a string of the header is left open")?;
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, String> {
        let word = self.word();
        match word {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(format!("fortran_order is True or False, not {other:?}")),
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let (word, rest) =
            rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len()));
        self.rest = rest;
        word
    }

    fn shape(&mut self) -> Result<Shape, String> {
        let mut shape = Shape::new();
        self.expect('(')?;
        while !self.takes(')') {
            // Python 2 wrote a letter behind long numbers.
            let word = self.word();
            let digits = word.strip_suffix('L').unwrap_or(word);
            shape.push(digits.parse().map_err(|_| format!("an extent of the shape is {word:?}"))?);
            if shape.len() > MAX_AXES {
                return Err(format!("the shape has more than {MAX_AXES} axes"));
            }
            if !self.takes(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    /// The dtype, and true if its bytes are in the other order.
    fn dtype(&mut self) -> Result<(DType, bool), String> {
        if self.rest.trim_start().starts_with('[') {
            return Err("it is an array of records, and tensors hold numbers".into());
        }
        let text = self.string()?;
        dtype(text)
    }
}

/// The dtype that NumPy writes so, and true if its bytes are in the other order.
pub(super) fn dtype(text: &str) -> Result<(DType, bool), String> {
    let kind = text.trim_start_matches(['<', '>', '|', '=']);
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        other => {
            let what = match other.chars().next() {
                Some('O') => "Python objects, whose loading runs code",
                Some('U' | 'S' | 'a') => "text",
                Some('c') => "complex numbers",
                Some('M' | 'm') => "points in time",
                Some('u') => "integers that no dtype here holds",
                _ => "elements that are not known",
            };
            let known = "bool, i1 to i8, u1 to u4, f2 to f8";
            return Err(format!("its dtype {text:?} means {what}; {known} can be loaded"));
        }
    };
    Ok((dtype, text.starts_with('>')))
}

/// The bytes before the elements of an array of that type.
pub(super) fn header_of(path: &str, ty: &TensorType) -> Eval<Vec<u8>> {
    let kind = match ty.dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 => {
            return Err(Diagnostic::error(format!("{path}: NumPy has no bf16, the dtype of a tensor {ty}"))
                .help("(cast x :f32) holds every bf16; a .safetensors file keeps it")
                .into());
        }
    };
    let extents: String = ty.shape.iter().map(|n| format!("{n}, ")).collect();
    let extents = if ty.rank() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = MAGIC.len() + 4;
    let padding = (ALIGNMENT - (before + text.len() + 1) % ALIGNMENT) % ALIGNMENT;
    text += &" ".repeat(padding);
    text.push('\n');
    // At most 64 axes: two bytes hold the length.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

/// Writes a tensor.
pub(super) fn save(interp: &mut Interp, path: &str, value: &Value) -> Eval<()> {
    if !matches!(
        value,
        Value::Tensor(_) | Value::Handle(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_)
    ) {
        return Err(Diagnostic::error(format!("a .npy holds a tensor, not {}", value.describe()))
            .help("a .npz or .safetensors file holds dictionaries of tensors")
            .into());
    }
    let tensor = match value {
        Value::Int(n) => Tensor::host(HostTensor::scalar(*n)),
        Value::Float(x) => Tensor::host(HostTensor::scalar(*x)),
        other => interp.tensor(other)?,
    };
    let header = header_of(path, tensor.ty())?;
    write(interp, path, |to| {
        to.write_all(&header)?;
        write_elements(&*tensor.read_once("what io is given")?, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_header(text: &str) -> String {
        let bytes = [MAGIC, &[1, 0], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
        match header(&bytes) {
            Ok(h) => {
                format!("{:?} {:?} {} {} {}", h.dtype, h.shape.as_slice(), h.fortran, h.big_endian, h.start)
            }
            Err(what) => what,
        }
    }

    #[test]
    fn headers() {
        assert_eq!(
            read_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n"),
            "F32 [3, 4] false false 73"
        );
        assert_eq!(
            read_header("{\"shape\":(3L,),\"descr\":\">i2\",\"fortran_order\":True}"),
            "I16 [3] true true 60"
        );
        assert_eq!(
            read_header("{'descr': '|b1', 'fortran_order': False, 'shape': ()}"),
            "Bool [] false false 63"
        );
        insta::assert_snapshot!(
            [
                "",
                "{",
                "{'descr': '<f4'}",
                "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': ((((((3,),),),),),)}",
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
                "{'descr': '|O', 'fortran_order': False, 'shape': ()}",
                "{'descr': '<U3', 'fortran_order': False, 'shape': ()}",
                "{'descr': '<c8', 'fortran_order': False, 'shape': ()}",
                "{'descr': '<u8', 'fortran_order': False, 'shape': ()}",
                "{'descr': '|V2', 'fortran_order': False, 'shape': ()}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': ()} more",
                &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({})}}", "1,".repeat(65)),
            ]
            .map(read_header)
            .join("\n")
        );
    }
}
