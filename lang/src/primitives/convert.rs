//! `convert`: casts elements. Floats to integers truncate towards zero and saturate (NaN gives 0); anything but
//! zero is true.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity};
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::{Lowering, highest, mlir_float, zero};
use crate::tensor::{DType, Data, HostTensor, TensorType};

/// Cast to `dtype`.
#[derive(Clone, Copy, Debug)]
pub struct Convert {
    /// The dtype of the result.
    pub dtype: DType,
    /// Whether the result is a weak number, as when a weak integer meets a weak float.
    pub weak: bool,
}

macro_rules! cast_all {
    ($x:expr, $ty:ty) => {
        map_data!($x;
            F32(a) => a as $ty,
            I32(a) => a as $ty,
            I64(a) => a as $ty,
            U32(a) => a as $ty,
            Bool(a) => u8::from(a) as $ty)
    };
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
        let x = args[0].data();
        let data: Data = match self.dtype {
            DType::F32 => cast_all!(x, f32),
            DType::I32 => cast_all!(x, i32),
            DType::I64 => cast_all!(x, i64),
            DType::U32 => cast_all!(x, u32),
            DType::Bool => map_data!(x;
                F32(a) => a != 0.0,
                I32(a) => a != 0,
                I64(a) => a != 0,
                U32(a) => a != 0,
                Bool(a) => a),
        };
        smallvec![HostTensor::new(args[0].shape(), data)]
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

    // What the machine makes of floats out of range is not defined, so they are replaced.
    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let (from, result) = (to.operand_type(0).clone(), to.result_type(0).clone());
        if !from.dtype.is_float() || !self.dtype.is_integer() {
            return to.typed("stablehlo.convert", "");
        }
        // The least value of the dtype, the largest float below its end, and that end.
        let (least, last, end) = match self.dtype {
            DType::U32 => (0.0, 4_294_967_040.0, 4_294_967_296.0),
            DType::I64 => {
                (-9_223_372_036_854_775_808.0, 9_223_371_487_098_961_920.0, 9_223_372_036_854_775_808.0)
            }
            _ => (-2_147_483_648.0, 2_147_483_520.0, 2_147_483_648.0_f32),
        };
        let x = to.operand(0);
        let [least, last, end] = [least, last, end].map(|bound| to.splat(&from, &mlir_float(bound)));
        let inside = to.value("stablehlo.clamp", &[&least, &x, &last], &from);
        let whole =
            to.temporary(&format!("stablehlo.convert {inside} : ({}) -> {}", from.mlir(), result.mlir()));
        let above = to.compare("GE", &x, &end, &from);
        let largest = to.splat(&result, highest(self.dtype));
        let whole = to.select(&above, &largest, &whole, &result);
        let number = to.compare("EQ", &x, &x, &from);
        let zero = to.splat(&result, zero(self.dtype));
        let truth = result.with_dtype(DType::Bool).mlir();
        to.line(&format!("stablehlo.select {number}, {whole}, {zero} : {truth}, {}", result.mlir()));
    }
}
