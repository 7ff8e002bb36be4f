//! `convert`: casts elements. Floats to integers truncate towards zero and saturate (NaN gives 0); anything but
//! zero is true.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, highest, quirks, zero};
use crate::tensor::{DType, Data, FromNumber, HostTensor, TensorType};
use crate::{with_element_type, with_elements};

/// Cast to `dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convert {
    /// The dtype of the result.
    pub dtype: DType,
    /// True if the result is a weak number, as when a weak integer meets a weak float.
    pub weak: bool,
}

impl Primitive for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn parameters(&self) -> String {
        self.dtype.to_string()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("convert", args, 1)?;
        Ok(smallvec![TensorType { weak: self.weak && args[0].rank() == 0, ..args[0].with_dtype(self.dtype) }])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let convert = |x: &Data| {
            with_elements!(x, v => with_element_type!(self.dtype, T => {
                Data::from(v.iter().map(|x| T::from_number((*x).into())).collect::<Vec<T>>())
            }))
        };
        smallvec![args[0].mapped(convert)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let from = b.ty(args[0]).dtype;
        smallvec![cotangents[0].filter(|_| from.is_float()).map(|ct| b.convert(ct, from))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].filter(|_| self.dtype.is_float()).map(|t| b.convert(t, self.dtype))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        smallvec![(b.apply(*self, args), axes[0].expect("batched"))]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let mut from = to.operand_type(0).clone();
        let result = to.result_type(0).clone();
        let mut x = to.operand(0);
        let single = from.with_dtype(DType::F32);
        // By way of f32, on the host too: not every dtype converts to 16-bit floats and back in one step.
        let (gives, takes) = (self.dtype, from.dtype);
        if (takes.is_half() && gives != DType::F32) || (gives.is_half() && takes != DType::F32) {
            x = convert(to, &x, &from, &single);
            from = single;
        }
        if quirks::cut_to_unsigned(to, &x, &from) {
            return;
        }
        let Some((least, most)) = self.dtype.bounds().filter(|_| from.dtype.is_float()) else {
            return match quirks::widened(to, &x, &from, &result) {
                Some(operation) => to.line(&operation),
                None => to.cast(&x, &from),
            };
        };
        // Conversion of floats out of range is not defined, so they are replaced: by the least number of the
        // dtype, by the largest float below its end.
        let end = (most as i128 + 1) as f64;
        let last = if from.dtype == DType::F64 { end.next_down() } else { (end as f32).next_down().into() };
        let bounds = [least as f64, last, end].map(|bound| to.full(&from, bound));
        let [least, last, end] = bounds;
        let inside = to.value("stablehlo.clamp", &[&least, &x, &last], &from);
        let whole = convert(to, &inside, &from, &result);
        let above = to.compare("GE", &x, &end, &from);
        let largest = to.splat(&result, &highest(self.dtype));
        let whole = to.select(&above, &largest, &whole, &result);
        let number = to.compare("EQ", &x, &x, &from);
        let zero = to.splat(&result, &zero(self.dtype));
        let truth = result.with_dtype(DType::Bool).mlir();
        to.line(&format!("stablehlo.select {number}, {whole}, {zero} : {truth}, {}", result.mlir()));
    }
}

/// Writes `x` as another dtype.
fn convert(to: &mut Lowering<'_>, x: &str, from: &TensorType, into: &TensorType) -> String {
    let operation = quirks::widened(to, x, from, into)
        .unwrap_or_else(|| format!("stablehlo.convert {x} : ({}) -> {}", from.mlir(), into.mlir()));
    to.temporary(&operation)
}
