//! Builtin functions written in Rust: compositions of primitives, and functions on lists, dictionaries and text. The
//! others are written in Sheaf, in `std/core/`.

mod arithmetic;
mod arrange;
mod bits;
mod compare;
mod convolution;
mod counted;
mod create;
mod data;
mod diagonal;
mod dict;
mod division;
mod effect;
mod einsum;
mod foreign_names;
mod guard;
mod index;
mod io;
mod library;
mod list;
mod matrix;
mod names;
mod operands;
mod order;
mod plot;
mod power;
mod progress;
mod random;
mod reduce;
mod sequences;
mod shape;
mod show;
mod stop;
mod text;
mod text_methods;
mod threefry;
mod tokens;
mod transforms;
mod trees;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::eval::{Eval, Interp, Stop, fail};
use crate::program::{OnNumbers, Scalar, Value, is_private};
use sheaf_syntax::diagnostic::Diagnostic;

pub use arrange::stack;
pub use compare::structurally_equal;
pub use create::vector_literal;
pub use dict::{ENTRY, HAS_KEY, get};
pub use effect::{printed, printer_for};
pub use foreign_names::foreign_name_help;
pub use names::nearest;
pub(crate) use operands::SHAPE;
pub(crate) use operands::{as_dtype, nil};
pub use operands::{as_index, as_indices, as_positions};
pub(crate) use progress::label;
pub use show::{repr, show, type_text};

/// A function written in Rust.
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// The call syntax.
    pub signature: &'static str,
    /// The description, one line.
    pub help: &'static str,
    /// Examples, one `code ;=> result` per line: shown by the documentation, and run by a test.
    pub examples: &'static str,
    /// Minimum and maximum number of arguments, options included.
    pub arity: (usize, usize),
    /// True if it has an effect.
    pub effect: bool,
    /// True if a handle on numbers among its arguments is the tensor of all of them.
    whole: bool,
    run: fn(&mut Interp, &[Value]) -> Eval<Value>,
    /// Fast path for two scalars, without the evaluator.
    pub on_numbers: Option<OnNumbers>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// `on_numbers` of two values; `None` unless both are scalars and it applies.
fn of_scalars(a: &Value, b: &Value, on_numbers: impl Fn(Scalar, Scalar) -> Option<Scalar>) -> Option<Value> {
    on_numbers(Scalar::of(a)?, Scalar::of(b)?).map(Value::from)
}

/// No maximum number of arguments.
const VARIADIC: usize = usize::MAX;

impl Builtin {
    const fn new(
        name: &'static str,
        signature: &'static str,
        help: &'static str,
        arity: (usize, usize),
        run: fn(&mut Interp, &[Value]) -> Eval<Value>,
    ) -> Builtin {
        Builtin {
            name,
            signature,
            help,
            examples: "",
            arity,
            effect: false,
            whole: false,
            run,
            on_numbers: None,
        }
    }

    /// Adds examples, one `code ;=> result` a line.
    const fn examples(mut self, examples: &'static str) -> Builtin {
        self.examples = examples;
        self
    }

    /// Adds a fast path for two scalars; it gives the result of `run`.
    const fn on_numbers(mut self, on_numbers: OnNumbers) -> Builtin {
        self.on_numbers = Some(on_numbers);
        self
    }

    /// Makes it take handles on numbers as tensors, whatever it does with its arguments.
    const fn takes_whole(mut self) -> Builtin {
        self.whole = true;
        self
    }

    const fn effect(mut self) -> Builtin {
        self.effect = true;
        self
    }

    /// Calls the function.
    pub fn call(&self, interp: &mut Interp, args: &[Value]) -> Eval<Value> {
        self.check_arity(args.len())?;
        if self.effect {
            if interp.passes_over(self.name) {
                // Progress gives its sequence through.
                let sequence = args.get(1).filter(|_| self.name == "progress");
                return Ok(sequence.cloned().unwrap_or(Value::Nil));
            }
            interp.effect(self.name)?;
        }
        let result = if self.whole && args.iter().any(|arg| matches!(arg, Value::Handle(_))) {
            interp.wholes(args).and_then(|args| (self.run)(interp, &args))
        } else {
            (self.run)(interp, args)
        };
        interp.unless_lost(result).map_err(|mut signal| {
            // An error of this function itself, not of a callback, nor of the host that an effect calls.
            if let Stop::Error(d) = &mut *signal
                && d.labels.is_empty()
                && !self.effect
                && !d.kind.is_raised()
                && !is_private(self.name)
            {
                d.help.get_or_insert_with(|| format!("it is called {}", self.signature));
            }
            signal
        })
    }
}

/// The builtins written in Rust, by section of the documentation.
pub const SECTIONS: [(&str, &[Builtin]); 31] = [
    ("arithmetic", arithmetic::BUILTINS),
    ("arithmetic", bits::BUILTINS),
    ("matrix", matrix::BUILTINS),
    ("comparison", compare::BUILTINS),
    ("comparison", reduce::TRUTHS),
    ("activations", arithmetic::ACTIVATIONS),
    ("reductions", reduce::BUILTINS),
    ("shape", shape::BUILTINS),
    ("shape", list::LENGTHS),
    ("shape", arrange::BUILTINS),
    ("shape", diagonal::BUILTINS),
    ("shape", index::BUILTINS),
    ("shape", order::TENSORS),
    ("creation", create::BUILTINS),
    ("random", random::BUILTINS),
    ("lists", list::BUILTINS),
    ("lists", sequences::BUILTINS),
    ("lists", order::LISTS),
    ("trees", trees::BUILTINS),
    ("dictionaries", dict::BUILTINS),
    ("transforms", transforms::BUILTINS),
    ("strings", text::BUILTINS),
    ("errors", stop::BUILTINS),
    ("errors", guard::BUILTINS),
    ("effects", effect::BUILTINS),
    ("effects", progress::BUILTINS),
    ("effects", plot::BUILTINS),
    ("convolution", convolution::BUILTINS),
    ("library", library::BUILTINS),
    ("library", data::BUILTINS),
    ("library", tokens::BUILTINS),
];

/// Every builtin written in Rust.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    SECTIONS.iter().flat_map(|(_, builtins)| *builtins)
}

/// The builtin of that name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Builtin>> = OnceLock::new();
    INDEX.get_or_init(|| all().map(|b| (b.name, b)).collect()).get(name).copied()
}

/// Positional arguments and the values of options.
struct Parsed<'a> {
    positional: Vec<&'a Value>,
    options: Vec<(&'static str, Option<&'a Value>)>,
}

/// Separates options from arguments: `:axis 1` for `valued` names, `:keepdims`, alone or with a boolean, for `flags`.
/// If a dtype is one of the options, `:i32` alone stands for `:dtype :i32`.
fn parse<'a>(args: &'a [Value], valued: &[&'static str], flags: &[&'static str]) -> Eval<Parsed<'a>> {
    let mut parsed = Parsed { positional: Vec::new(), options: Vec::new() };
    let mut i = 0;
    while i < args.len() {
        let Value::Keyword(key) = &args[i] else {
            parsed.positional.push(&args[i]);
            i += 1;
            continue;
        };
        if let Some(name) = valued.iter().find(|n| *key == **n) {
            let Some(value) = args.get(i + 1) else { return fail(format!(":{key} wants a value after it")) };
            parsed.options.push((name, Some(value)));
            i += 2;
        } else if let Some(name) = flags.iter().find(|n| *key == **n) {
            let value = args.get(i + 1).filter(|v| matches!(v, Value::Bool(_)));
            parsed.options.push((name, value));
            i += 1 + usize::from(value.is_some());
        } else if valued.contains(&"dtype") && operands::as_dtype(&args[i]).is_ok() {
            parsed.options.push(("dtype", Some(&args[i])));
            i += 1;
        } else {
            let known: Vec<String> = valued.iter().chain(flags).map(|n| format!(":{n}")).collect();
            let error = Diagnostic::error(format!("unknown option :{key}; there is {}", known.join(" ")));
            return Err(match key.split_once('=') {
                Some((name, value)) if !name.is_empty() => error.help(format!("write :{name} {value}")),
                _ => error,
            }
            .into());
        }
    }
    let names = || parsed.options.iter().map(|(name, _)| *name);
    match names().enumerate().find(|(i, name)| names().take(*i).any(|earlier| earlier == *name)) {
        Some((_, name)) => fail(format!(":{name} is given twice")),
        None => Ok(parsed),
    }
}

impl<'a> Parsed<'a> {
    /// The `N` positional arguments; an error if there are more or fewer.
    fn exactly<const N: usize>(&self) -> Eval<[&'a Value; N]> {
        <[&Value; N]>::try_from(self.positional.as_slice()).or_else(|_| {
            let plural = if N == 1 { "" } else { "s" };
            fail(format!("expected {N} argument{plural} besides options, got {}", self.positional.len()))
        })
    }

    fn option(&self, name: &str) -> Option<&'a Value> {
        self.options.iter().find(|(n, _)| *n == name).and_then(|(_, v)| *v)
    }

    fn flag(&self, name: &str) -> bool {
        self.options.iter().any(|(n, v)| *n == name && !matches!(v, Some(Value::Bool(false))))
    }
}
