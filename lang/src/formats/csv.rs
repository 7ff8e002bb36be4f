//! CSV: rows of numbers, or columns below a line of names.

use std::collections::HashSet;
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder, Trim, Writer};

use super::WriteError;
use crate::eval::{Eval, Signal};
use crate::program::{Dict, Key, Tensor, Value};
use sheaf_graph::tensor::{DType, Data, FromNumber, HostTensor, Number};
use sheaf_graph::with_element_type;
use sheaf_syntax::diagnostic::Diagnostic;

/// Rows as a tensor of shape [rows, columns]. With a header, a first line without a number, the columns as a dictionary:
/// those of numbers as tensors, others as lists of strings. Fields are separated by commas.
pub(super) fn read(path: &str, bytes: &[u8], dtype: DType) -> Eval<Value> {
    let mut file = Records::new(path, bytes);
    if !file.next()? {
        return Err(broken(path, 1, "the file is empty"));
    }
    if file.record.iter().any(|field| number(field).is_some()) {
        return rows(path, bytes, dtype);
    }
    columns(path, bytes, &file.record, dtype)
}

/// The records of a file, all of one length.
struct Records<'a> {
    path: &'a str,
    reader: Reader<&'a [u8]>,
    record: ByteRecord,
    /// Fields of the first record.
    length: Option<usize>,
    /// The line of the current record.
    line: usize,
}

impl<'a> Records<'a> {
    fn new(path: &'a str, bytes: &'a [u8]) -> Records<'a> {
        let reader =
            ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(bytes);
        Records { path, reader, record: ByteRecord::new(), length: None, line: 1 }
    }

    /// Goes on to the next record; false at the end.
    fn next(&mut self) -> Eval<bool> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => return Ok(false),
            Ok(true) => {}
            Err(e) => return Err(broken(self.path, self.line, &e.to_string())),
        }
        self.line = self.record.position().map_or(self.line + 1, |p| p.line() as usize);
        let length = *self.length.get_or_insert(self.record.len());
        if self.record.len() != length {
            let what = format!("{} fields, where the lines before have {length}", self.record.len());
            return Err(broken(self.path, self.line, &what));
        }
        Ok(true)
    }

    /// Field `i` of the current record as a number of `dtype`.
    fn number(&self, i: usize, dtype: DType) -> Eval<f64> {
        let Some(x) = number(&self.record[i]) else {
            let field = String::from_utf8_lossy(&self.record[i]).into_owned();
            let what = format!("field {} is {field:?}, not a number", i + 1);
            return Err(broken(self.path, self.line, &what));
        };
        if !fits(x, dtype) {
            let what = format!("{}:{}: field {} is {x}, which is no {dtype}", self.path, self.line, i + 1);
            return Err(Diagnostic::error(what)
                .help("load it without a dtype, as :f32, or with one that holds all its numbers")
                .into());
        }
        Ok(x)
    }
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The rows of a file without a header.
fn rows(path: &str, bytes: &[u8], dtype: DType) -> Eval<Value> {
    let mut file = Records::new(path, bytes);
    let mut elements: Vec<f64> = Vec::new();
    let mut rows = 0;
    while file.next()? {
        for i in 0..file.record.len() {
            elements.push(file.number(i, dtype)?);
        }
        rows += 1;
    }
    let shape = [rows, file.length.unwrap_or(0)];
    Ok(Value::Tensor(Tensor::host(HostTensor::new(shape.as_slice(), data(&elements, dtype)))))
}

/// The columns of a file with a header.
fn columns(path: &str, bytes: &[u8], header: &ByteRecord, dtype: DType) -> Eval<Value> {
    let mut names: Vec<&str> = Vec::with_capacity(header.len());
    let mut known = HashSet::with_capacity(header.len());
    for (i, name) in header.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(not_text(path, 1, &format!("the name of column {}", i + 1)));
        };
        if !known.insert(name) {
            return Err(broken(path, 1, &format!("two columns have the name {name:?}")));
        }
        names.push(name);
    }
    let mut numeric = vec![true; names.len()];
    let mut file = Records::new(path, bytes);
    file.next()?;
    let mut rows = 0;
    while file.next()? {
        rows += 1;
        for (numeric, field) in numeric.iter_mut().zip(file.record.iter()) {
            *numeric = *numeric && number(field).is_some();
        }
    }
    if rows == 0 {
        return Err(broken(path, 1, "there is a header and no row below it"));
    }
    let mut numbers: Vec<Vec<f64>> =
        numeric.iter().map(|n| Vec::with_capacity(if *n { rows } else { 0 })).collect();
    let mut texts: Vec<Vec<Value>> =
        numeric.iter().map(|n| Vec::with_capacity(if *n { 0 } else { rows })).collect();
    let mut file = Records::new(path, bytes);
    file.next()?;
    while file.next()? {
        for (i, field) in file.record.iter().enumerate() {
            if numeric[i] {
                numbers[i].push(file.number(i, dtype)?);
            } else {
                let Ok(text) = std::str::from_utf8(field) else {
                    return Err(not_text(path, file.line, &format!("field {}", i + 1)));
                };
                texts[i].push(Value::text(text));
            }
        }
    }
    let mut dict = Dict::default();
    for (i, name) in names.into_iter().enumerate() {
        let column = if numeric[i] {
            Value::Tensor(Tensor::host(HostTensor::new([rows].as_slice(), data(&numbers[i], dtype))))
        } else {
            Value::list(std::mem::take(&mut texts[i]))
        };
        dict.insert(Key::quoted(name), column);
    }
    Ok(Value::Dict(Rc::new(dict)))
}

fn broken(path: &str, line: usize, what: &str) -> Signal {
    Diagnostic::error(format!("{path}:{line}: {what}"))
        .help("every line has the same count of fields, separated by commas; without a line of names above, all are numbers")
        .into()
}

fn not_text(path: &str, line: usize, what: &str) -> Signal {
    Diagnostic::error(format!("{path}:{line}: {what} is not UTF-8 text"))
        .help("text files are read as UTF-8: save it in that encoding")
        .into()
}

/// True if `dtype` holds the number.
fn fits(x: f64, dtype: DType) -> bool {
    // Integers beyond 2^53 lose digits in `f64`.
    const EXACT: i64 = 1 << 53;
    let (least, most) = match dtype.bounds() {
        Some((least, most)) => (least.max(-EXACT), most.min(EXACT)),
        None if dtype == DType::Bool => (0, 1),
        None => return true,
    };
    x.fract() == 0.0 && (least as f64..=most as f64).contains(&x)
}

fn data(elements: &[f64], dtype: DType) -> Data {
    with_element_type!(dtype, T => {
        Data::from(elements.iter().map(|x| T::from_number(Number::Float(*x))).collect::<Vec<T>>())
    })
}

/// Writes a tensor of rank 2 as rows, of rank 1 as one number per line; booleans as 0 and 1. Of a dictionary the columns,
/// below a line of their names: tensors of rank 1, and lists of strings, numbers and booleans.
pub(super) fn write(value: &Value, to: &mut dyn std::io::Write) -> Result<(), WriteError> {
    if let Value::Dict(dict) = value {
        return write_columns(dict, to);
    }
    let (Value::Tensor(t), true) =
        (value, matches!(value, Value::Tensor(t) if (1..=2).contains(&t.ty().rank())))
    else {
        return Err(Signal::from(
            Diagnostic::error(format!(
                "a .csv holds a tensor of rank 1 or 2, or a dictionary of columns, not {}",
                value.describe()
            ))
            .help("(stack rows) makes a tensor of a list of rows; a .json file holds any value"),
        )
        .into());
    };
    let host = t.elements("what io is given")?;
    let columns = host.shape().get(1).copied().unwrap_or(1);
    if host.count() == 0 {
        return Err(none(value).into());
    }
    for row in 0..host.count() / columns {
        let numbers: Vec<String> = (row * columns..(row + 1) * columns).map(|i| digits(host, i)).collect();
        writeln!(to, "{}", numbers.join(","))?;
    }
    Ok(())
}

fn none(value: &Value) -> Signal {
    Diagnostic::error(format!("a .csv holds at least one number, not {}", value.describe())).into()
}

/// Element `i` with the digits that round-trip; `print` would round them.
fn digits(host: &HostTensor, i: usize) -> String {
    if !host.dtype().is_float() {
        return host.element_i64(i).to_string();
    }
    let x = host.element_f64(i);
    if host.dtype() == DType::F64 { x.to_string() } else { (x as f32).to_string() }
}

fn write_columns(dict: &Dict, to: &mut dyn std::io::Write) -> Result<(), WriteError> {
    let mut columns: Vec<Vec<String>> = Vec::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let column: Vec<String> = match value {
            Value::Tensor(t) if t.ty().rank() == 1 => {
                let host = t.elements("what io is given")?;
                (0..host.count()).map(|i| digits(host, i)).collect()
            }
            Value::List(list) => list.items.iter().map(|item| field(item, &key)).collect::<Eval<_>>()?,
            other => return Err(no_column(other, &key).into()),
        };
        if columns.first().is_some_and(|first| first.len() != column.len()) {
            let (first, n) = (columns[0].len(), column.len());
            return Err(Signal::from(
                Diagnostic::error(format!(
                    "the columns of a .csv have one length: the first has {first} fields, {} has {n}",
                    key.form()
                ))
                .help("a .json file holds columns of any lengths"),
            )
            .into());
        }
        columns.push(column);
    }
    if columns.first().is_none_or(Vec::is_empty) {
        return Err(none(&Value::Dict(Rc::new(dict.clone()))).into());
    }
    let mut writer = Writer::from_writer(to);
    let failed = |e: ::csv::Error| std::io::Error::other(e);
    writer.write_record(dict.keys().map(|key| key.name.as_str())).map_err(failed)?;
    for row in 0..columns[0].len() {
        writer.write_record(columns.iter().map(|column| column[row].as_str())).map_err(failed)?;
    }
    writer.flush()?;
    Ok(())
}

fn no_column(value: &Value, key: &Key) -> Signal {
    Diagnostic::error(format!("{} at {} is no column of a .csv", value.describe(), key.form()))
        .help("a column is a tensor of rank 1, or a list of strings and numbers")
        .into()
}

/// A field of a list.
fn field(item: &Value, key: &Key) -> Eval<String> {
    match item {
        Value::Str(text) => Ok(text.to_string()),
        Value::Keyword(name) | Value::Symbol(name) => Ok(name.to_string()),
        Value::Int(n) => Ok(n.to_string()),
        Value::Float(x) => Ok(x.to_string()),
        Value::Bool(b) => Ok(i64::from(*b).to_string()),
        Value::Tensor(t) if t.ty().rank() == 0 => Ok(digits(t.elements("what io is given")?, 0)),
        other => Err(no_column(other, key)),
    }
}
