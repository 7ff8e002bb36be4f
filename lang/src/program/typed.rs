//! Declared parameter types: `(x f32 [4 2])`, and the trees of `defparams`.

use ustr::Ustr;

use super::value::Value;
use sheaf_graph::tensor::{DType, Shape};

/// A parameter type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A tensor of this shape and, if given, dtype.
    Tensor(Shape, Option<DType>),
    /// A list of exactly these items.
    List(Vec<ParamType>),
    /// A dictionary of exactly these entries, in any order.
    Dict(Vec<(Ustr, ParamType)>),
}

impl ParamType {
    /// The type given by quoted data: `[2 8]` and `[:bf16 2 8]` are tensors, other lists and dictionaries are trees.
    /// The error gives the fault and its key path, which starts with `path`.
    pub fn of(value: &Value, path: &str) -> Result<ParamType, String> {
        match value {
            Value::Dict(entries) => {
                let entry = |(k, v): (super::dict::Key, &Value)| {
                    Ok((k.name, ParamType::of(v, &format!("{path}.{k}"))?))
                };
                Ok(ParamType::Dict(entries.iter().map(entry).collect::<Result<_, String>>()?))
            }
            Value::List(list) => match list.items.to_vec().as_slice() {
                [Value::Keyword(dtype), extents @ ..] => {
                    let dtype = DType::named(dtype).map_err(|e| format!("{path}: {e}"))?;
                    Ok(ParamType::Tensor(shape(extents, path)?, Some(dtype)))
                }
                items if items.iter().any(|i| matches!(i, Value::Dict(_) | Value::List(_))) => {
                    let item = |(i, v)| ParamType::of(v, &format!("{path}.{i}"));
                    Ok(ParamType::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?))
                }
                extents => Ok(ParamType::Tensor(shape(extents, path)?, None)),
            },
            other => Err(format!("{path} is {}, not a shape such as [2 8]", other.describe())),
        }
    }

    /// Fails with the fault and its key path unless `value` is of this type.
    pub(crate) fn check(&self, value: &Value, path: &str) -> Result<(), String> {
        let wants = |wanted: String| Err(format!("{path} wants {wanted}, got {}", value.describe()));
        match (self, value) {
            (ParamType::Tensor(shape, dtype), value) => {
                let fits = match value {
                    Value::Tensor(t) => {
                        let ty = t.ty();
                        let same = |d: DType| d == ty.dtype || (ty.weak && ty.dtype.kind() <= d.kind());
                        ty.shape == *shape && dtype.is_none_or(same)
                    }
                    Value::Int(_) => shape.is_empty() && dtype.is_none_or(|d| d != DType::Bool),
                    Value::Float(_) => shape.is_empty() && dtype.is_none_or(DType::is_float),
                    Value::Bool(_) => shape.is_empty() && dtype.is_none_or(|d| d == DType::Bool),
                    _ => false,
                };
                if fits { Ok(()) } else { wants(self.describe()) }
            }
            (ParamType::List(types), Value::List(list)) if types.len() == list.items.len() => {
                let mut items = types.iter().zip(&list.items).enumerate();
                items.try_for_each(|(i, (ty, v))| ty.check(v, &format!("{path}.{i}")))
            }
            (ParamType::Dict(types), Value::Dict(dict)) => {
                if let Some((missing, _)) = types.iter().find(|(k, _)| !dict.contains_key(k)) {
                    return Err(format!("{path} has no :{missing}: it is {}", value.describe()));
                }
                if let Some(more) = dict.keys().find(|k| !types.iter().any(|(t, _)| *t == k.name)) {
                    return Err(format!("{path} has a :{more}, which is not declared"));
                }
                types.iter().try_for_each(|(k, ty)| ty.check(&dict[k], &format!("{path}.{k}")))
            }
            _ => wants(self.describe()),
        }
    }

    fn describe(&self) -> String {
        match self {
            ParamType::Tensor(shape, dtype) => {
                let extents = joined(shape);
                match dtype {
                    None if shape.is_empty() => "a number".into(),
                    None => format!("a tensor of shape [{extents}]"),
                    Some(dtype) => format!("a tensor {dtype}[{extents}]"),
                }
            }
            ParamType::List(items) => format!("a list of {} items", items.len()),
            ParamType::Dict(entries) => {
                let keys: Vec<String> = entries.iter().map(|(k, _)| format!(":{k}")).collect();
                format!("a dictionary with keys {}", keys.join(" "))
            }
        }
    }
}

fn shape(extents: &[Value], path: &str) -> Result<Shape, String> {
    let extent = |v: &Value| match v {
        Value::Int(n) => usize::try_from(*n).map_err(|_| format!("{path} has an extent of {n}")),
        other => Err(format!("{path} has {} in its shape, not a size", other.describe())),
    };
    let shape: Shape = extents.iter().map(extent).collect::<Result<_, _>>()?;
    if fits_memory(&shape) { Ok(shape) } else { Err(format!("{path} has {TOO_LARGE}: {}", joined(&shape))) }
}

/// Description of an impossible shape.
pub(crate) const TOO_LARGE: &str = "a shape with more elements than any memory holds";

/// True if a tensor of that shape is possible in any dtype: its size in bytes does not overflow.
pub(crate) fn fits_memory(shape: &[usize]) -> bool {
    const MAX_SHOWN_AXES: usize = 8;
    let bytes = shape.iter().try_fold(MAX_SHOWN_AXES, |n, extent| n.checked_mul(*extent));
    bytes.is_some_and(|n| isize::try_from(n).is_ok())
}

/// `4x2`
pub(crate) fn joined(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}
