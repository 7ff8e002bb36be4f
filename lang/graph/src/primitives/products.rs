//! Helpers of the primitives that add up products.

/// The data of two tensors of one numeric dtype, given to `$plan.run`. Sums of 16-bit floats are added up in `f32`.
macro_rules! sums_of_products {
    ($plan:expr, $x:expr, $y:expr) => {{
        let other = $y.data().widened();
        $crate::primitives::accumulate!($x.data(); v => {
            $plan.run(v, $crate::tensor::Element::elements(&other).expect("one dtype"))
        })
    }};
}
pub(super) use sums_of_products;
