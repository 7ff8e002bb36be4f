//! Numbers as MLIR writes them.

use half::{bf16, f16};

use crate::tensor::{DType, FromNumber, HostTensor, Number, element_count};

/// A number of `dtype`, to which it is cast: floats so that they read back exactly, as a decimal if they are small and
/// whole, otherwise by their bits in hexadecimal.
pub fn literal(dtype: DType, number: Number) -> String {
    let whole = |x: f64| {
        let plain = x.fract() == 0.0 && x.abs() < 1e6 && !(x == 0.0 && x.is_sign_negative());
        plain.then(|| format!("{x:.1}"))
    };
    match dtype {
        DType::Bool => bool::from_number(number).to_string(),
        DType::BF16 => {
            let x = bf16::from_number(number);
            whole(x.into()).unwrap_or_else(|| format!("0x{:04X}", x.to_bits()))
        }
        DType::F16 => {
            let x = f16::from_number(number);
            whole(x.into()).unwrap_or_else(|| format!("0x{:04X}", x.to_bits()))
        }
        DType::F32 => {
            let x = number.as_f32();
            whole(x.into()).unwrap_or_else(|| format!("0x{:08X}", x.to_bits()))
        }
        DType::F64 => {
            let x = number.as_f64();
            whole(x).unwrap_or_else(|| format!("0x{:016X}", x.to_bits()))
        }
        _ => number.as_i64().to_string(),
    }
}

/// A float, or a whole number, of `dtype`.
pub fn float(dtype: DType, x: f64) -> String {
    literal(dtype, Number::Float(x))
}

/// 0 of `dtype`.
pub fn zero(dtype: DType) -> String {
    literal(dtype, Number::Int(0))
}

/// 1 of `dtype`.
pub fn one(dtype: DType) -> String {
    literal(dtype, Number::Int(1))
}

/// The smallest value of `dtype`: the neutral element of a maximum.
pub fn lowest(dtype: DType) -> String {
    match dtype.bounds() {
        Some((least, _)) => literal(dtype, Number::Int(least)),
        None if dtype.is_float() => float(dtype, f64::NEG_INFINITY),
        None => zero(dtype),
    }
}

/// The largest value of `dtype`: the neutral element of a minimum.
pub fn highest(dtype: DType) -> String {
    match dtype.bounds() {
        Some((_, most)) => literal(dtype, Number::Int(most)),
        None if dtype.is_float() => float(dtype, f64::INFINITY),
        None => one(dtype),
    }
}

/// The element of which the tensor has nothing else.
pub(super) fn splat(value: &HostTensor) -> Option<String> {
    let number = value.uniform().filter(|_| value.count() > 1)?;
    Some(literal(value.dtype(), number.element(0)))
}

/// The elements as they stand in `dense<...>`.
pub(super) fn dense(value: &HostTensor) -> String {
    if let Some(element) = splat(value) {
        return element;
    }
    let elements: Vec<String> =
        (0..value.count()).map(|i| literal(value.dtype(), value.element(i))).collect();
    nest(&elements, value.shape())
}

fn nest(elements: &[String], shape: &[usize]) -> String {
    match shape {
        [] => elements[0].clone(),
        _ if element_count(shape) == 0 => String::new(),
        [_, inner @ ..] => {
            let rows: Vec<String> =
                elements.chunks(element_count(inner)).map(|chunk| nest(chunk, inner)).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_dtype() {
        let third = Number::Float(1.0 / 3.0);
        let text = DType::ALL.map(|dtype| {
            let ends = format!("{} {}", lowest(dtype), highest(dtype));
            format!("{dtype} {} {} {ends}", one(dtype), literal(dtype, third))
        });
        insta::assert_snapshot!(text.join("\n"), @"
        bool true true false true
        i8 1 0 -128 127
        i16 1 0 -32768 32767
        i32 1 0 -2147483648 2147483647
        i64 1 0 -9223372036854775808 9223372036854775807
        u8 1 0 0 255
        u16 1 0 0 65535
        u32 1 0 0 4294967295
        bf16 1.0 0x3EAB 0xFF80 0x7F80
        f16 1.0 0x3555 0xFC00 0x7C00
        f32 1.0 0x3EAAAAAB 0xFF800000 0x7F800000
        f64 1.0 0x3FD5555555555555 0xFFF0000000000000 0x7FF0000000000000
        ");
    }
}
