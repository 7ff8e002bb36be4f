//! Raw numbers: little-endian elements of one dtype, one after the other. Several files are one sequence.

use super::{Form, Source, broken, write, write_elements};
use crate::eval::{Eval, Interp};
use crate::program::{Handle, Lazy, Rows, Value};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

/// A handle on the elements of all files, in that order.
pub(super) fn load(interp: &mut Interp, path: &str, files: &[String], form: Form) -> Eval<Value> {
    let Some(dtype) = form.dtype else {
        return Err(Diagnostic::error(format!("{path} has no dtype: raw numbers do not say what they are"))
            .help(format!("add it: (io \"load\" {path:?} :u16)"))
            .into());
    };
    let parts = files.iter().map(|file| {
        let source = Source::open(interp, file, form.packed)?;
        numbers(&source, dtype)
    });
    let parts = parts.collect::<Eval<Vec<HostTensor>>>()?;
    Ok(Value::from(Handle::new(Lazy::Rows(Rows::new(path, parts)))))
}

fn numbers(source: &Source<'_>, dtype: DType) -> Eval<HostTensor> {
    let bytes = source.bytes.bytes().len();
    let width = dtype.byte_width();
    if !bytes.is_multiple_of(width) {
        let what = format!("{bytes} bytes are no whole number of {dtype}, which take {width} each");
        return Err(broken(source.path, what, "the file is truncated, or holds numbers of another dtype"));
    }
    let ty = TensorType::new(dtype, [bytes / width].as_slice());
    HostTensor::in_files(&ty, vec![source.part()]).ok_or_else(|| {
        let at = source.bytes.bytes().iter().position(|byte| *byte > 1).unwrap_or(0);
        broken(source.path, format!("byte {at} is neither 0 nor 1, so no bool"), "try :u8")
    })
}

/// Writes the elements of a tensor.
pub(super) fn save(interp: &mut Interp, path: &str, value: &Value) -> Eval<()> {
    let tensor = match value {
        Value::Tensor(_) | Value::Handle(_) => interp.tensor(value)?,
        other => {
            return Err(Diagnostic::error(format!("a .bin holds a tensor, not {}", other.describe()))
                .help("a .safetensors file holds dictionaries of tensors")
                .into());
        }
    };
    write(interp, path, |to| write_elements(&*tensor.read_once("what io is given")?, to))
}
