//! Helpers of the standard module `text`: tokenizers.

use std::rc::Rc;

use super::Builtin;
use crate::eval::{Eval, Interp, fail};
use crate::program::{Dict, Key, Tensor, Tokenizer, Value};
use sheaf_graph::tensor::{DType, HostTensor};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("-tokenizer-load", "(-tokenizer-load paths)", "a tokenizer from files", (1, 1), load)
        .effect(),
    Builtin::new("-encode", "(-encode t text special)", "the tokens of a text", (3, 3), encode),
    Builtin::new("-decode", "(-decode t ids special)", "the text of tokens", (3, 3), decode),
    Builtin::new("-tokenizer-size", "(-tokenizer-size t)", "the number of tokens", (1, 1), |_, a| {
        Ok(Value::Int(tokenizer(&a[0])?.tokens.size() as i64))
    }),
    Builtin::new(
        "-tokenizer-id",
        "(-tokenizer-id t token)",
        "the number of a token, or nil",
        (2, 2),
        |_, a| {
            let Value::Str(token) = &a[1] else {
                return fail(format!("a token is a string, not {}", a[1].describe()));
            };
            Ok(tokenizer(&a[0])?.tokens.id(token).map_or(Value::Nil, |id| Value::Int(id.into())))
        },
    ),
    Builtin::new(
        "-tokenizer-token",
        "(-tokenizer-token t id)",
        "the token of a number, or nil",
        (2, 2),
        |_, a| {
            let (tokenizer, id) = (tokenizer(&a[0])?, super::as_index(&a[1], "the number of a token")?);
            let token = u32::try_from(id).ok().and_then(|id| tokenizer.tokens.token(id));
            Ok(token.map_or(Value::Nil, Value::text))
        },
    ),
    Builtin::new(
        "-tokenizer-special",
        "(-tokenizer-special t)",
        "special tokens and their numbers",
        (1, 1),
        |_, a| {
            let special = tokenizer(&a[0])?.tokens.special();
            let entries = special.iter().map(|(token, id)| (Key::quoted(token), Value::Int((*id).into())));
            Ok(Value::Dict(Rc::new(entries.collect::<Dict>())))
        },
    ),
];

fn load(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let mut paths = Vec::new();
    for path in interp.sequence(&args[0])? {
        match path {
            Value::Str(path) => paths.push(path.to_string()),
            other => return fail(format!("tokenizer-load takes paths, not {}", other.describe())),
        }
    }
    #[cfg(feature = "text")]
    return Ok(Value::Tokenizer(Rc::new(crate::formats::load_tokenizer(interp, &paths)?)));
    #[cfg(not(feature = "text"))]
    Err(Diagnostic::error("tokenizers are not a part of this Sheaf")
        .help("it was built without them; (char-tokenizer text) makes one of characters")
        .into())
}

fn tokenizer(value: &Value) -> Eval<&Tokenizer> {
    match value {
        Value::Tokenizer(tokenizer) => Ok(tokenizer),
        other => Err(Diagnostic::error(format!("expected a tokenizer, got {}", other.describe()))
            .help("(tokenizer-load path) and (char-tokenizer text) make one")
            .into()),
    }
}

fn encode(_: &mut Interp, args: &[Value]) -> Eval<Value> {
    let tokenizer = tokenizer(&args[0])?;
    let Value::Str(text) = &args[1] else {
        return Err(Diagnostic::error(format!("a string is encoded, not {}", args[1].describe()))
            .help("(map (fn [s] (encode t s)) texts) encodes several")
            .into());
    };
    let ids = tokenizer.tokens.encode(text, args[2].truthy()?);
    let ids =
        ids.map_err(|what| Diagnostic::error(format!("{} cannot encode this text: {what}", tokenizer.name)))?;
    let ids: Vec<i32> = ids.into_iter().map(u32::cast_signed).collect();
    Ok(Value::Tensor(Tensor::host(HostTensor::new([ids.len()].as_slice(), ids))))
}

fn decode(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let tokenizer = tokenizer(&args[0])?;
    let ids = super::create::from_list(interp, &args[1], Some(DType::I32))?;
    let ids = interp.tensor(&ids)?;
    let host = ids.elements("the tokens to decode")?;
    if ids.ty().rank() > 1 {
        return Err(Diagnostic::error(format!("tokens are a tensor of rank 1, got {}", ids.ty()))
            .help("(map (fn [row] (decode t row)) ids) decodes the rows")
            .into());
    }
    let size = tokenizer.tokens.size();
    let mut numbers = Vec::with_capacity(host.count());
    for i in 0..host.count() {
        let id = host.element_f64(i);
        if id.fract() != 0.0 || !(0.0..size as f64).contains(&id) {
            return Err(Diagnostic::error(format!("{} has no token {id}", tokenizer.name))
                .help(format!("its tokens are whole numbers from 0 to {}", size.max(1) - 1))
                .into());
        }
        numbers.push(id as u32);
    }
    match tokenizer.tokens.decode(&numbers, args[2].truthy()?) {
        Ok(text) => Ok(Value::text(text)),
        Err(what) => fail(format!("{} cannot decode these tokens: {what}", tokenizer.name)),
    }
}
