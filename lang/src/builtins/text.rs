//! Strings.

use super::show::shown_dtype;
use super::{Builtin, VARIADIC, show};
use crate::eval::{Eval, fail};
use crate::format::{self, FormatArg};
use crate::program::Value;
use sheaf_graph::tensor::DType;
use sheaf_syntax::diagnostic::Diagnostic;

/// Fails above the maximum length of a text, so that repeated doubling ends in an error.
pub(super) fn check_text(bytes: usize) -> Eval<()> {
    const MAX_BYTES: usize = 1 << 27;
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    fail(format!("a text of {bytes} bytes is too long: {MAX_BYTES} are the most"))
}

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("str", "(str a b ...)", "the arguments as one text, each as print shows it", (0, VARIADIC), |_, a| {
        let mut text = String::new();
        for v in a {
            let part = show(&v.known("a text")?);
            check_text(text.len() + part.len())?;
            text.push_str(&part);
        }
        Ok(Value::text(text))
    })
    .examples("(str \"x\" 1 :a) ;=> \"x1:a\"\n(str [1 2]) ;=> \"[1. 2.]\"\n(str) ;=> \"\""),
    Builtin::new(
        "str-call",
        "(str-call method s args ...)",
        "a method of Python's strings, counting in characters: capitalize count endswith find format isalpha isdigit\n\
         isspace join ljust lower lstrip replace rfind rjust rstrip split splitlines startswith strip title upper zfill",
        (2, VARIADIC),
        |_, a| super::text_methods::call(a),
    )
    .examples(
        "(str-call \"upper\" \"hello\") ;=> \"HELLO\"\n(str-call \"split\" \"a,b,c\" \",\") ;=> '[\"a\" \"b\" \"c\"]\n\
         (str-call \"find\" \"hello\" \"x\") ;=> -1\n(str-call \"join\" \"-\" '[\"a\" \"b\"]) ;=> \"a-b\"\n\
         (str-call \"shout\" \"a\") ;=> error: no method shout",
    ),
    Builtin::new(
        "format",
        "(format template args ...)",
        "a template filled as by Python's str.format: {} in turn, {0} by number, {:.4f} {:>8} {:,} with a format, {{ a brace",
        (1, VARIADIC),
        |_, a| {
            let Value::Str(template) = &a[0] else {
                return fail(format!("format wants a text first, got {}", a[0].describe()));
            };
            format_values(template, &a[1..]).map(Value::text)
        },
    )
    .examples(
        "(format \"{} of {}\" 1 10) ;=> \"1 of 10\"\n(format \"{:.2f}|{:>5}\" 3.14159 \"ab\") ;=> \"3.14|   ab\"\n\
         (format \"{} {}\" 1) ;=> error: shows argument 2\n(format \"{}\" 1 2) ;=> error: an argument too many",
    ),
    Builtin::new("name", "(name k)", "the name of a keyword or a symbol as a string; a string as it is", (1, 1), |_, a| {
        match a[0].as_key() {
            Some(key) => Ok(Value::text(key.as_str())),
            None => fail(format!("name wants a keyword, a symbol or a string, got {}", a[0].describe())),
        }
    })
    .examples("(name :lr) ;=> \"lr\"\n(name \"lr\") ;=> \"lr\"\n(name 1) ;=> error: name wants a keyword"),
    Builtin::new("keyword", "(keyword s)", "the keyword of that name", (1, 1), |_, a| match a[0].as_key() {
        Some(key) if key.is_empty() => fail("a keyword has a name of at least one character"),
        Some(key) => Ok(Value::Keyword(key.name)),
        None => fail(format!("keyword wants a string, got {}", a[0].describe())),
    })
    .examples("(keyword \"lr\") ;=> :lr\n(get {:w1 5} (keyword (str \"w\" 1))) ;=> 5\n(keyword 1) ;=> error: keyword wants a string"),
    Builtin::new(
        "gensym",
        "(gensym prefix?)",
        "a symbol that no program has, for names that a macro binds",
        (0, 1),
        |i, a| {
            let prefix = match a.first() {
                None => "g",
                Some(v) => match v.as_key() {
                    Some(key) => key.as_str(),
                    None => return fail(format!("the prefix is a string or a symbol, not {}", v.describe())),
                },
            };
            Ok(Value::Symbol(ustr::Ustr::from(&format!("{prefix}__{}", i.fresh()))))
        },
    )
    .examples("(symbol? (gensym \"tmp\")) ;=> true\n(= (gensym) (gensym)) ;=> false"),
    Builtin::new("tensor?", "(tensor? x)", "whether x is a tensor; a literal number is none", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Tensor(t) if !t.ty().weak))
    })
    .examples("(tensor? [1 2]) ;=> true\n(tensor? 1) ;=> false"),
    Builtin::new(
        "number?",
        "(number? x)",
        "whether x is one number: a literal, or a tensor without axes that is no boolean",
        (1, 1),
        |_, a| {
            is(&a[0], |v| match v {
                Value::Tensor(t) => t.ty().rank() == 0 && t.ty().dtype != DType::Bool,
                v => matches!(v, Value::Int(_) | Value::Float(_)),
            })
        },
    )
    .examples("(number? 1) ;=> true\n(number? [1]) ;=> false\n(number? \"1\") ;=> false"),
    Builtin::new("string?", "(string? x)", "whether x is a string", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Str(_)))
    })
    .examples("(string? \"a\") ;=> true\n(string? :a) ;=> false"),
    Builtin::new("symbol?", "(symbol? x)", "whether x is a symbol: a quoted name", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Symbol(_)))
    })
    .examples("(symbol? 'a) ;=> true\n(symbol? :a) ;=> false"),
    Builtin::new("keyword?", "(keyword? x)", "whether x is a keyword", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Keyword(_)))
    })
    .examples("(keyword? :a) ;=> true\n(keyword? \"a\") ;=> false"),
    Builtin::new("nil?", "(nil? x)", "whether x is nil", (1, 1), |_, a| is(&a[0], |v| matches!(v, Value::Nil)))
        .examples("(nil? (get {:a 1} :b)) ;=> true\n(nil? false) ;=> false"),
    Builtin::new("dict?", "(dict? x)", "whether x is a dictionary", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Dict(_)))
    })
    .examples("(dict? {:a 1}) ;=> true\n(dict? '[:a 1]) ;=> false"),
    Builtin::new("list?", "(list? x)", "whether x is a list; a tensor is none", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::List(_)))
    })
    .examples("(list? '[1 2]) ;=> true\n(list? [1 2]) ;=> false"),
    Builtin::new("fn?", "(fn? x)", "whether x is a function", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Function(_)))
    })
    .examples("(fn? sum) ;=> true\n(fn? :a) ;=> false"),
];

#[allow(clippy::unnecessary_wraps)]
fn is(value: &Value, test: fn(&Value) -> bool) -> Eval<Value> {
    Ok(Value::Bool(test(value)))
}

/// Formats a template with values, all of which it must use.
pub(super) fn format_values(template: &str, args: &[Value]) -> Eval<String> {
    let shown = format::parse(template).map_or(args.len(), |t| t.arguments());
    if shown < args.len() {
        let more = if args.len() - shown == 1 { "an argument" } else { "arguments" };
        return Err(Diagnostic::error(format!(
            "{template:?} shows {shown} of {} arguments: {more} too many",
            args.len()
        ))
        .help("each {} shows one argument; {{ and }} are braces")
        .into());
    }
    fill(template, args)
}

/// Formats a template with values: numbers keep their kind, all else is formatted as by `print`.
pub(super) fn fill(template: &str, args: &[Value]) -> Eval<String> {
    let values = args.iter().map(|v| v.known("a text")).collect::<Eval<Vec<_>>>()?;
    let texts: Vec<String> = values.iter().map(show).collect();
    let args =
        values.iter().zip(&texts).map(|(v, text)| argument(v, text)).collect::<Eval<Vec<FormatArg>>>()?;
    let result = format::parse(template).and_then(|t| t.render(&args));
    result.or_else(|e| fail(e.to_string()))
}

/// A number as itself, any other value as its text.
fn argument<'a>(value: &Value, text: &'a str) -> Eval<FormatArg<'a>> {
    Ok(match value {
        Value::Int(n) => FormatArg::Int(*n),
        Value::Float(x) => FormatArg::Single(*x as f32),
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_float() => {
            FormatArg::Element(t.elements("a text")?.element_f64(0), shown_dtype(t.ty()))
        }
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_integer() => {
            FormatArg::Int(t.elements("a text")?.element_i64(0))
        }
        _ => FormatArg::Text(text),
    })
}
