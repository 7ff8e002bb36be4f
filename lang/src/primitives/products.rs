//! What the primitives that add up products share.

/// The data of two tensors of one numeric dtype, given to `$plan.run` with the start of each sum and the step from a sum
/// and two factors to the next; integers wrap around.
macro_rules! sums_of_products {
    ($plan:expr, $x:expr, $y:expr) => {{
        use $crate::tensor::Data;
        macro_rules! wrapping {
            ($v:expr, $w:expr) => {
                Data::from($plan.run($v, $w, 0, |sum, a, b| a.wrapping_mul(b).wrapping_add(sum)))
            };
        }
        match ($x.data(), $y.data()) {
            (Data::F32(v), Data::F32(w)) => Data::from($plan.run(v, w, 0.0, |sum, a, b| sum + a * b)),
            (Data::I32(v), Data::I32(w)) => wrapping!(v, w),
            (Data::I64(v), Data::I64(w)) => wrapping!(v, w),
            (Data::U32(v), Data::U32(w)) => wrapping!(v, w),
            _ => unreachable!("the type rule refuses mixed and bool operands"),
        }
    }};
}
pub(super) use sums_of_products;
