//! `bitcast_convert`: the same bits as another dtype of the same width.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, HostTensor, TensorType};

/// Reinterpretation as `dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitcastConvert {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Primitive for BitcastConvert {
    fn name(&self) -> &'static str {
        "bitcast_convert"
    }

    fn parameters(&self) -> String {
        self.dtype.to_string()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("bitcast_convert", args, 1)?;
        let from = args[0].dtype;
        if from.byte_width() != self.dtype.byte_width() || from == DType::Bool || self.dtype == DType::Bool {
            return Err(TypeFault::new(format!("the bits of {} are no {}", args[0], self.dtype))
                .help("Only dtypes of the same width share bits: f32, i32 and u32."));
        }
        Ok(smallvec![args[0].with_dtype(self.dtype)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let ty = args[0].ty().with_dtype(self.dtype);
        let number = |data: &Data| HostTensor::from_bytes(&ty.with_shape([data.len()].as_slice()), data.bytes());
        smallvec![args[0].mapped(|data| number(data).expect("equal widths").data().clone())]
    }

    // Bits have no slope.
    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        smallvec![(b.apply(*self, args), axes[0].expect("batched"))]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.typed("stablehlo.bitcast_convert", "");
    }
}
