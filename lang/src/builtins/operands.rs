//! Values as operands of primitives: promotion, broadcasting, indices, shapes, axes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::division::constant;
use crate::eval::{Eval, Interp, Signal, bind, bind_all, fail, positions_within, repeat_beside};
use crate::program::{Tensor, Value};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Primitive;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType, format_float};
use sheaf_syntax::diagnostic::Diagnostic;

/// The wanted value in messages about shapes.
pub(crate) const SHAPE: &str = "a shape";

impl Interp {
    /// A value as a tensor: numbers are weak scalars.
    pub(crate) fn tensor(&mut self, value: &Value) -> Eval<Tensor> {
        match value {
            // A traced weak float with all its digits, not combined with `f64`.
            Value::Tensor(t) if is_full(t) => self.op(p::Convert { dtype: DType::F32, weak: true }, &[t]),
            Value::Tensor(t) => Ok(t.clone()),
            Value::Handle(handle) => self.whole(handle),
            Value::Int(n) => Ok(Tensor::weak(HostTensor::scalar(*n))),
            Value::Float(x) => Ok(Tensor::weak(HostTensor::scalar(*x as f32))),
            Value::Bool(b) => Ok(Tensor::host(HostTensor::scalar(*b))),
            Value::Nil => Err(nil("a tensor or a number")),
            other => {
                let error =
                    Diagnostic::error(format!("expected a tensor or a number, got {}", other.describe()));
                Err(match no_operand(other, self.expanding > 0) {
                    Some(help) => error.help(help).into(),
                    None => error.into(),
                })
            }
        }
    }

    /// Applies a primitive with one result.
    pub(crate) fn op(&mut self, op: impl Primitive, args: &[&Tensor]) -> Eval<Tensor> {
        bind(op, args, self.span)
    }

    /// Applies a primitive with several results.
    pub(crate) fn op_all(&mut self, op: impl Primitive, args: &[&Tensor]) -> Eval<SmallVec<[Tensor; 2]>> {
        bind_all(&(Arc::new(op) as Op), args, self.span)
    }

    /// `t` with elements of `dtype`, strong.
    pub(crate) fn convert(&mut self, t: &Tensor, dtype: DType) -> Eval<Tensor> {
        if t.ty().dtype == dtype && !t.ty().weak {
            return Ok(t.clone());
        }
        self.op(p::Convert { dtype, weak: false }, &[t])
    }

    /// `t` made strong: a weak tensor takes its kind's default dtype, which must hold a known number.
    pub(crate) fn strong(&mut self, t: &Tensor) -> Eval<Tensor> {
        check_held(t, t.ty().strong_dtype())?;
        self.convert(t, t.ty().strong_dtype())
    }

    /// A value cast to `dtype`.
    pub(crate) fn cast(&mut self, value: &Value, dtype: DType) -> Eval<Value> {
        Ok(Value::Tensor(self.tensor_of(value, dtype)?))
    }

    /// A value as a strong tensor of `dtype`; a plain float keeps all the digits that the dtype has.
    pub(crate) fn tensor_of(&mut self, value: &Value, dtype: DType) -> Eval<Tensor> {
        if let (Value::Float(x), DType::F64) = (value, dtype) {
            return Ok(Tensor::host(HostTensor::scalar(*x)));
        }
        if let Value::Tensor(t) = value
            && is_full(t)
        {
            return self.convert(t, dtype);
        }
        let t = self.tensor(value)?;
        self.convert(&t, dtype)
    }

    /// Two values as tensors: a plain float combined with `f64` keeps its full value.
    pub(crate) fn tensors(&mut self, a: &Value, b: &Value) -> Eval<(Tensor, Tensor)> {
        let double = |v: &Value| matches!(v, Value::Tensor(t) if t.ty().dtype == DType::F64 && !t.ty().weak);
        let mut one = |value: &Value, beside: &Value| match value {
            Value::Float(_) if double(beside) => self.tensor_of(value, DType::F64),
            Value::Tensor(t) if double(beside) && is_full(t) => self.convert(t, DType::F64),
            value => self.tensor(value),
        };
        Ok((one(a, b)?, one(b, a)?))
    }

    /// A tensor of floats: integers and booleans become `f32`.
    pub(crate) fn float(&mut self, value: &Value) -> Eval<Tensor> {
        let t = self.tensor(value)?;
        if t.ty().dtype.is_float() {
            return Ok(t);
        }
        let weak = t.ty().weak;
        self.op(p::Convert { dtype: DType::F32, weak }, &[&t])
    }

    /// Two operands in their common dtype, which stays weak if both are.
    pub(crate) fn promote(&mut self, a: &Tensor, b: &Tensor) -> Eval<(Tensor, Tensor)> {
        let (dtype, weak) = promoted(a.ty(), b.ty())?;
        let mut cast = |t: &Tensor| {
            if t.ty().dtype == dtype && t.ty().weak == weak {
                return Ok(t.clone());
            }
            check_held(t, dtype)?;
            self.op(p::Convert { dtype, weak }, &[t])
        };
        Ok((cast(a)?, cast(b)?))
    }

    /// Two operands in their common dtype and shape.
    pub(crate) fn broadcast(&mut self, a: &Tensor, b: &Tensor) -> Eval<(Tensor, Tensor)> {
        if a.shape() == b.shape() {
            return self.promote(a, b);
        }
        let shape = broadcast_shapes(a.ty(), b.ty())?;
        let (a, b) = self.promote(a, b)?;
        Ok((self.broadcast_beside(&a, &shape, &[&b])?, self.broadcast_beside(&b, &shape, &[&a])?))
    }

    /// `t` broadcast to `shape`.
    pub(crate) fn broadcast_to(&mut self, t: &Tensor, shape: &[usize]) -> Eval<Tensor> {
        self.broadcast_beside(t, shape, &[])
    }

    /// [`Interp::broadcast_to`] for an operand of an operation whose other operands are `beside`: see
    /// [`repeat_beside`].
    pub(crate) fn broadcast_beside(
        &mut self,
        t: &Tensor,
        shape: &[usize],
        beside: &[&Tensor],
    ) -> Eval<Tensor> {
        if t.shape() == shape {
            return Ok(t.clone());
        }
        let last = shape.iter().rev().zip(t.shape().iter().rev());
        if t.ty().rank() > shape.len() || last.into_iter().any(|(to, from)| from != to && *from != 1) {
            return fail(format!("{} does not broadcast to the shape {}", t.ty(), show_shape(shape)));
        }
        let dims: Shape = (shape.len() - t.ty().rank()..shape.len()).collect();
        let t = &self.strong(t)?;
        repeat_beside(p::BroadcastInDim { shape: shape.into(), dims }, t, beside, self.span)
    }

    /// `t` reshaped to a shape of the same size.
    pub(crate) fn reshape(&mut self, t: &Tensor, shape: &[usize]) -> Eval<Tensor> {
        if t.shape() == shape {
            return Ok(t.clone());
        }
        let t = &self.strong(t)?;
        self.op(p::Reshape { shape: shape.into() }, &[t])
    }
}

/// Fails if `t` is a known weak integer that the integers of `dtype` do not hold. Those that a program computes wrap.
fn check_held(t: &Tensor, dtype: DType) -> Eval<()> {
    if t.ty().weak
        && t.ty().dtype.is_integer()
        && t.ty().rank() == 0
        && let Some(known) = t.concrete().and_then(|known| known.host_if_there())
        && let Some((least, most)) = dtype.range()
        && let n = known.element_i64(0)
        && !(least..=most).contains(&n)
    {
        let error = format!("{n} is no number of {dtype}, which has those from {least} to {most}");
        let help =
            format!("(cast x :i64) makes integers of the tensor that hold it; (cast {n} :{dtype}) wraps it");
        return Err(Diagnostic::error(error).help(help).into());
    }
    Ok(())
}

/// True if a traced scalar stands for a plain float with all its digits.
fn is_full(t: &Tensor) -> bool {
    t.ty().weak && t.ty().dtype == DType::F64
}

/// Help for a value that is no operand; in a macro, values may be code.
fn no_operand(value: &Value, expanding: bool) -> Option<&'static str> {
    Some(match value {
        Value::Symbol(_) | Value::List(_) if expanding => {
            "a macro takes code, not its value, and gives code such as `(+ ~x 1)"
        }
        Value::Symbol(_) => "a quoted name is data: without the quote it is the value",
        Value::Str(_) => "(str a b ...) joins texts; a number is written without quotes",
        Value::Dict(_) => {
            "(:key d) is one of its values; (tree-map f d ...) makes a dictionary of (f value ...) for each"
        }
        Value::Function(_) => "a call stands in round brackets, the function first: (f x)",
        Value::List(list) if list.items.is_empty() => "an empty tensor is (zeros 0)",
        Value::List(list) => {
            let mut shapes =
                list.items.iter().map(|v| if let Value::Tensor(t) = v { Some(t.shape()) } else { None });
            let first = shapes.next().flatten();
            let tensors = first.is_some() && shapes.clone().all(|s| s.is_some());
            match (tensors, shapes.all(|s| s == first)) {
                (true, true) => "(stack xs) joins a list of tensors to one; (mapv f xs) maps to one",
                (true, false) => {
                    "the rows of a tensor have one length: pad the shorter ones, or map over the list"
                }
                _ => "[1 2 3] without a quote is a tensor; (mapv f xs) joins the results to one",
            }
        }
        _ => return None,
    })
}

/// The error for nil in place of `wanted`.
pub(crate) fn nil(wanted: &str) -> Signal {
    Diagnostic::error(format!("expected {wanted}, got nil"))
        .help("nil is what a missing key, an if without an else, and print give; (get d :key default) gives something else")
        .into()
}

/// The common dtype of two operands, and true if the result is weak (SPEC section 2, Promotion).
fn promoted(a: &TensorType, b: &TensorType) -> Eval<(DType, bool)> {
    if a.dtype == b.dtype {
        return Ok((a.dtype, a.weak && b.weak));
    }
    let (low, high) = if a.dtype.kind() <= b.dtype.kind() { (a, b) } else { (b, a) };
    if low.weak && high.weak {
        return Ok((high.dtype, true));
    }
    if low.dtype.kind() == high.dtype.kind() {
        // One kind, two dtypes: only a weak number adapts.
        return match (low.weak, high.weak) {
            (true, _) => Ok((high.dtype, false)),
            (_, true) => Ok((low.dtype, false)),
            _ => Err(Diagnostic::error(format!("{low} and {high} have different dtypes of one kind"))
                .help(which_to_cast(low.dtype, high.dtype))
                .into()),
        };
    }
    // A weak number of a higher kind gives its kind's default dtype.
    Ok((high.strong_dtype(), false))
}

/// The casts that make two dtypes of one kind compatible, with their costs.
fn which_to_cast(a: DType, b: DType) -> String {
    let both = format!("cast one of them: (cast x :{a}) or (cast x :{b})");
    let what = if a.is_float() { "rounds" } else { "wraps what does not fit" };
    match (a.holds(b), b.holds(a)) {
        (true, _) => format!("{both}; {a} holds every {b}, the other way {what}"),
        (_, true) => format!("{both}; {b} holds every {a}, the other way {what}"),
        _ if a.is_half() => format!("{both}; each loses something, :f32 holds both"),
        _ => format!("{both}; neither holds every number of the other"),
    }
}

/// The broadcast shape of two operands, as in NumPy.
pub(super) fn broadcast_shapes(a: &TensorType, b: &TensorType) -> Eval<Shape> {
    let rank = a.rank().max(b.rank());
    let extent = |t: &TensorType, i: usize| (i + t.rank()).checked_sub(rank).map_or(1, |i| t.shape[i]);
    (0..rank)
        .map(|i| match (extent(a, i), extent(b, i)) {
            (m, n) if m == n || n == 1 => Ok(m),
            (1, n) => Ok(n),
            (m, n) => Err(Diagnostic::error(format!("the shapes of {a} and {b} do not broadcast"))
                .note(format!(
                    "axis {i} of the result would have {m} entries by the one and {n} by the other"
                ))
                .help("axes are matched from the last; each pair must be equal, or one of them 1")
                .into()),
        })
        .collect()
}

/// `4x2`, or `scalar`.
pub(super) fn show_shape(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".into();
    }
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// A known integer, for `wanted`.
pub fn as_index(value: &Value, wanted: &str) -> Eval<i64> {
    let wrong = || fail(format!("{wanted} must be a whole number, not {}", value.describe()));
    match value {
        Value::Int(n) => Ok(*n),
        Value::Float(x) if x.fract() == 0.0 && x.abs() < i64::MAX as f64 => Ok(*x as i64),
        Value::Float(x) => fail(format!("{wanted} must be a whole number, not {}", format_float(*x as f32))),
        Value::Tensor(t) if t.ty().rank() == 0 => {
            let host = t.elements(wanted)?;
            if host.element_f64(0).fract() == 0.0 { Ok(host.element_i64(0)) } else { wrong() }
        }
        _ => wrong(),
    }
}

/// A known size: a non-negative integer.
pub(super) fn as_size(value: &Value, wanted: &str) -> Eval<usize> {
    let n = as_index(value, wanted)?;
    usize::try_from(n)
        .map_err(|_| Signal::from(Diagnostic::error(format!("{wanted} must not be negative, got {n}"))))
}

/// A tensor of indices: integers as they are; numbers of vector literals (`f32`) and of lists as `i32`.
pub fn as_indices(interp: &mut Interp, value: &Value) -> Eval<Tensor> {
    let listed = super::create::from_list(interp, value, Some(DType::I32))?;
    let t = interp.tensor(&listed)?;
    if t.ty().dtype == DType::Bool {
        return Err(Diagnostic::error(format!("indices are integers, got {}", t.ty()))
            .help("(where mask x 0) keeps the elements where a mask holds, in their places")
            .into());
    }
    if t.ty().dtype.is_float() && t.ty().dtype != DType::F32 {
        return Err(Diagnostic::error(format!("indices are integers, got {}", t.ty()))
            .help("(cast i :i32) makes integers of them")
            .into());
    }
    whole(interp, &t, "an index")
}

/// Integers or integer-valued `f32` as `i32`, saturating. A fraction is an error, in a program by its flag.
pub(super) fn whole(interp: &mut Interp, t: &Tensor, wanted: &str) -> Eval<Tensor> {
    if t.ty().dtype == DType::F32 {
        if let Some(known) = t.concrete() {
            check_whole(known.host()?, wanted)?;
        } else {
            interp.check_whole(t, wanted)?;
        }
    }
    let t = if matches!(t.ty().dtype, DType::I64 | DType::U32) {
        let bound = |x: i32| constant(t, f64::from(x));
        let t = interp.op(p::Binary(p::Min), &[t, &bound(i32::MAX)])?;
        match t.ty().dtype {
            DType::I64 => interp.op(p::Binary(p::Max), &[&t, &bound(i32::MIN)])?,
            _ => t,
        }
    } else {
        t.clone()
    };
    interp.convert(&t, DType::I32)
}

/// Fails unless each element is a whole number.
fn check_whole(host: &HostTensor, wanted: &str) -> Eval<()> {
    if !host.ty().dtype.is_float() {
        return Ok(());
    }
    let fractions = (0..host.count()).map(|i| host.element_f64(i)).filter(|x| x.fract() != 0.0);
    if let Some(x) = fractions.reduce(|a, b| if a > b || a.is_nan() { a } else { b }) {
        return fail(format!("{wanted} must be a whole number, not {}", format_float(x as f32)));
    }
    Ok(())
}

/// Indices along an axis, none negative: one out of range is an error, immediately if it is known.
pub fn as_positions(interp: &mut Interp, value: &Value, axis: usize, of: &TensorType) -> Eval<Tensor> {
    let indices = as_indices(interp, value)?;
    let mut negative = !matches!(value, Value::Tensor(t) if t.ty().dtype.is_unsigned());
    if let Some(known) = indices.concrete() {
        let host = known.host()?;
        negative = positions_within((0..host.count()).map(|i| host.element_i64(i)), axis, of)?;
    } else {
        interp.check_indices(&indices, axis, of)?;
    }
    if !negative {
        return Ok(indices);
    }
    from_the_end(interp, &indices, of.shape[axis])
}

/// Positions among `extent` entries; negative ones count from the end, those out of range stay so.
pub(super) fn from_the_end(interp: &mut Interp, indices: &Tensor, extent: usize) -> Eval<Tensor> {
    let full = |x: i64| Tensor::host(HostTensor::filled(DType::I32, indices.shape(), x as f64));
    let below = interp.op(p::Compare { direction: p::Direction::Lt }, &[indices, &full(0)])?;
    let from_end = interp.op(p::Binary(p::Add), &[indices, &full(extent as i64)])?;
    interp.op(p::Select, &[&below, &from_end, indices])
}

/// A list of known integers: a quoted list, a number, or a vector.
pub(super) fn as_integers(value: &Value, wanted: &str) -> Eval<Vec<i64>> {
    match value {
        Value::List(list) => list.items.iter().map(|v| as_index(v, wanted)).collect(),
        Value::Tensor(t) if t.ty().rank() == 1 => {
            let host = t.elements(wanted)?;
            check_whole(host, wanted)?;
            Ok((0..host.count()).map(|i| host.element_i64(i)).collect())
        }
        other => Ok(vec![as_index(other, wanted)?]),
    }
}

/// A shape: a quoted list, a number, a vector, or several numbers.
pub(super) fn as_shape(values: &[&Value]) -> Eval<Shape> {
    let numbers = match values {
        [one] => as_integers(one, SHAPE)?,
        many => many.iter().map(|v| as_index(v, SHAPE)).collect::<Eval<Vec<i64>>>()?,
    };
    let extent = |n: &i64| match usize::try_from(*n) {
        Ok(n) => Ok(n),
        Err(_) => fail(format!("an extent must not be negative, got {n}")),
    };
    numbers.iter().map(extent).collect()
}

/// A position among `rank` axes, negative from the end.
pub(super) fn as_axis(axis: i64, rank: usize, of: &TensorType) -> Eval<usize> {
    let position = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(position) {
        Ok(p) if p < rank => Ok(p),
        _ if rank == 0 => fail(format!("{of} is a scalar: it has no axes, so no axis {axis}")),
        _ if rank == 1 => Err(Diagnostic::error(format!("{of} has no axis {axis}"))
            .help("its only axis is 0, or -1 counted from the end")
            .into()),
        _ => Err(Diagnostic::error(format!("{of} has no axis {axis}"))
            .help(format!("its axes are 0 to {}, or -{rank} to -1 counted from the end", rank - 1))
            .into()),
    }
}

/// The axes given by `:axis`, ascending; all axes by default.
pub(super) fn as_axes(option: Option<&Value>, of: &TensorType) -> Eval<Shape> {
    let Some(value) = option.filter(|v| !matches!(v, Value::Nil)) else {
        return Ok((0..of.rank()).collect());
    };
    let mut axes: SmallVec<[usize; 4]> =
        as_integers(value, ":axis")?.into_iter().map(|a| as_axis(a, of.rank(), of)).collect::<Eval<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

/// The dtype given by `:dtype :i32`.
pub(crate) fn as_dtype(value: &Value) -> Eval<DType> {
    if let Some(dtype) = value.as_key().and_then(|n| DType::parse(&n)) {
        return Ok(dtype);
    }
    let known: Vec<String> = DType::ALL.iter().map(|d| format!(":{d}")).collect();
    let found = match value.as_key() {
        Some(name) => format!(":{name}"),
        None => value.describe(),
    };
    let error = Diagnostic::error(format!("expected a dtype, one of {}, got {found}", known.join(" ")));
    let meant = value.as_key().and_then(|name| match name.as_str() {
        "float" | "float32" | "single" => Some(DType::F32),
        "int" | "int32" | "integer" => Some(DType::I32),
        "double" | "float64" => Some(DType::F64),
        "half" | "float16" => Some(DType::F16),
        "bfloat16" | "bfloat" => Some(DType::BF16),
        "int64" | "long" => Some(DType::I64),
        "int8" => Some(DType::I8),
        "int16" | "short" => Some(DType::I16),
        "uint8" | "byte" => Some(DType::U8),
        "uint16" => Some(DType::U16),
        "uint" | "uint32" => Some(DType::U32),
        "boolean" | "bool_" => Some(DType::Bool),
        _ => None,
    });
    Err(match meant {
        Some(dtype) => error.help(format!("write :{dtype}")),
        None => error,
    }
    .into())
}
