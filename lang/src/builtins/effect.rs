//! Effects: printing and input. They make a function interpreted.

use super::text::format_values;
use super::{Builtin, MANY, show};
use crate::diagnostic::Diagnostic;
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::format::has_placeholder;
use crate::tensor::HostTensor;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("print", "(print x ...) or (print \"{:.4f}\" x)", "writes a line", (0, MANY), print)
        .effect(),
    Builtin::new("println", "(println x ...)", "the same as print", (0, MANY), print).effect(),
    Builtin::new("io", "(io \"load\" path)", "reads and writes files", (1, MANY), io).effect(),
];

fn print(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let line = match args {
        [Value::Str(template), rest @ ..] if !rest.is_empty() && has_placeholder(template) => {
            format_values(template, rest)?
        }
        args => {
            let parts = args.iter().map(|v| Ok(show(&v.known("a text")?))).collect::<Eval<Vec<String>>>()?;
            parts.join(" ")
        }
    };
    interp.host.print(&line)?;
    Ok(Value::Nil)
}

fn io(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (Value::Str(verb), Some(Value::Str(path))) = (&args[0], args.get(1)) else {
        return fail("io is called (io \"load\" path)");
    };
    match &**verb {
        "load" if path.to_ascii_lowercase().ends_with(".csv") => {
            let bytes = interp.host.read_file(path)?;
            numeric_csv(path, &bytes)
        }
        "load" => {
            Err(Diagnostic::error(format!("cannot load {path}: its format is not supported by this version"))
                .help("plain numeric .csv files can be loaded")
                .into())
        }
        other => fail(format!("io has no verb {other:?} in this version; there is \"load\"")),
    }
}

/// Rows of numbers, separated by commas; a first line that holds no number is a header and is skipped.
fn numeric_csv(path: &str, bytes: &[u8]) -> Eval<Value> {
    let broken = |line: usize, what: String| {
        Err(Diagnostic::error(format!("{path}:{line}: {what}"))
            .help("a numeric CSV has the same count of plain numbers, separated by commas, on every line")
            .into())
    };
    let mut elements: Vec<f32> = Vec::new();
    let mut columns = 0;
    let mut rows = 0;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(e) => return broken(rows + 1, e.to_string()),
        }
        let line = record.position().map_or(rows + 1, |p| p.line() as usize);
        let number = |field: &[u8]| std::str::from_utf8(field).ok().and_then(|s| s.parse::<f32>().ok());
        let numbers: Vec<Option<f32>> = record.iter().map(number).collect();
        if rows == 0 && columns == 0 && !numbers.is_empty() && numbers.iter().all(Option::is_none) {
            columns = numbers.len();
            continue;
        }
        if columns != 0 && numbers.len() != columns {
            return broken(line, format!("{} fields, where the lines before have {columns}", numbers.len()));
        }
        columns = numbers.len();
        for (i, number) in numbers.into_iter().enumerate() {
            let Some(x) = number else {
                let field = String::from_utf8_lossy(&record[i]).into_owned();
                return broken(line, format!("field {} is {field:?}, not a number", i + 1));
            };
            elements.push(x);
        }
        rows += 1;
    }
    Ok(Value::Tensor(Tensor::host(HostTensor::new([rows, columns].as_slice(), elements))))
}
