//! Plain numeric CSV: rows of numbers.

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use crate::eval::{Eval, Signal, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::tensor::{DType, Data, FromNumber, HostTensor, Number};
use sheaf_graph::with_element_type;
use sheaf_syntax::diagnostic::Diagnostic;

/// The rows as a tensor of shape [rows, columns]. Fields are separated by commas; a first line without a number is a
/// header and is skipped.
pub(super) fn read(path: &str, bytes: &[u8], dtype: DType) -> Eval<Value> {
    let mut elements: Vec<f64> = Vec::new();
    let mut columns = 0;
    let mut rows = 0;
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(bytes);
    let mut record = ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(e) => return Err(broken(path, rows + 1, &e.to_string())),
        }
        let line = record.position().map_or(rows + 1, |p| p.line() as usize);
        let number = |field: &[u8]| std::str::from_utf8(field).ok().and_then(|s| s.parse::<f64>().ok());
        let numbers: Vec<Option<f64>> = record.iter().map(number).collect();
        if rows == 0 && columns == 0 && !numbers.is_empty() && numbers.iter().all(Option::is_none) {
            columns = numbers.len();
            continue;
        }
        if columns != 0 && numbers.len() != columns {
            let what = format!("{} fields, where the lines before have {columns}", numbers.len());
            return Err(broken(path, line, &what));
        }
        columns = numbers.len();
        for (i, number) in numbers.into_iter().enumerate() {
            let Some(x) = number else {
                let field = String::from_utf8_lossy(&record[i]).into_owned();
                return Err(broken(path, line, &format!("field {} is {field:?}, not a number", i + 1)));
            };
            if !fits(x, dtype) {
                return Err(broken(path, line, &format!("field {} is {x}, which is no {dtype}", i + 1)));
            }
            elements.push(x);
        }
        rows += 1;
    }
    if rows == 0 {
        let what = if columns == 0 {
            "the file is empty"
        } else {
            "there is a header and no row of numbers below it"
        };
        return Err(broken(path, 1, what));
    }
    Ok(Value::Tensor(Tensor::host(HostTensor::new([rows, columns].as_slice(), data(&elements, dtype)))))
}

fn broken(path: &str, line: usize, what: &str) -> Signal {
    Diagnostic::error(format!("{path}:{line}: {what}"))
        .help("a numeric CSV has the same count of plain numbers, separated by commas, on every line")
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

/// Writes a tensor of rank 2 as rows, of rank 1 as one number per line; booleans as 0 and 1.
pub(super) fn write(value: &Value) -> Eval<String> {
    let (Value::Tensor(t), true) =
        (value, matches!(value, Value::Tensor(t) if (1..=2).contains(&t.ty().rank())))
    else {
        return Err(Diagnostic::error(format!(
            "a .csv holds a tensor of rank 1 or 2, not {}",
            value.describe()
        ))
        .help("(stack rows) makes a tensor of a list of rows; a .json file holds any value")
        .into());
    };
    let host = t.elements("what io is given")?;
    let columns = host.shape().get(1).copied().unwrap_or(1);
    if host.count() == 0 {
        return fail(format!("a .csv holds at least one number, not {}", value.describe()));
    }
    let number = |i: usize| {
        if host.dtype().is_float() {
            // Round-trip digits; `print` would round them.
            let x = host.element_f64(i);
            if host.dtype() == DType::F64 { x.to_string() } else { (x as f32).to_string() }
        } else {
            host.element_i64(i).to_string()
        }
    };
    let row = |r: usize| (r * columns..(r + 1) * columns).map(number).collect::<Vec<_>>().join(",") + "\n";
    Ok((0..host.count() / columns).map(row).collect())
}
