//! Convolutions on a GPU of NVIDIA as products of matrices: the elements under each place of the window are a row (`im2col`; K. Chellapilla,
//! S. Puri, P. Simard, "High performance convolutional neural networks for document processing", 2006). On an H100 IREE's own kernel for the
//! gradient of a 3x3 kernel of 64 channels takes 274 us.

use super::Convolution;
use super::tiled_product::{Operand, TiledProduct};
use crate::stablehlo::{Lowering, Tensor, quirks};
use crate::tensor::{TensorType, element_count};

/// Maximum elements of all rows: a gigabyte.
const MAX_ELEMENTS: usize = 1 << 28;

/// A convolution whose windows are rows of a matrix.
pub(super) struct Patches {
    product: TiledProduct,
    /// `[batch, places.., window.., channels]`.
    shape: Vec<usize>,
}

impl Patches {
    /// The rows of `op`, if their product with the kernel is one in tiles.
    pub fn of(op: &Convolution, to: &Lowering<'_>) -> Option<Patches> {
        let (kernel, result) = (&to.operand_type(1).shape, &to.result_type(0).shape);
        let (places, features) = (&result[..result.len() - 1], kernel[kernel.len() - 1]);
        let window = &kernel[..kernel.len() - 1];
        let shape = [places, window].concat();
        if op.groups != 1 || element_count(&shape) > MAX_ELEMENTS {
            return None;
        }
        let product = TiledProduct::new(to, 1, [element_count(places), features, element_count(window)])?;
        (!product.is_thin()).then_some(Patches { product, shape })
    }

    /// Writes the convolution.
    pub fn write(&self, op: &Convolution, to: &mut Lowering<'_>) {
        let n = op.spatial();
        let (input, ty) = quirks::padded(op, to);
        let input = quirks::to_be_indexed(to, &input, &ty);
        let (dtype, input) = (ty.dtype, Tensor::read_only(&input, ty));
        let rows = to.generic(&self.shape, &[dtype], |nest, at| {
            let places = (0..n).map(|axis| {
                let [step, apart] = [op.strides[axis], op.kernel_dilation[axis]].map(|x| nest.index(x));
                let start = nest.binary("arith.muli", &at[1 + axis], &step, "index");
                let offset = nest.binary("arith.muli", &at[1 + n + axis], &apart, "index");
                nest.add(&start, &offset)
            });
            let places: Vec<String> = places.collect();
            let from = [&at[..1], &places, &at[at.len() - 1..]].concat();
            let from: Vec<&str> = from.iter().map(String::as_str).collect();
            vec![input.get(nest, &from)]
        });
        let rows = Operand {
            name: rows[0].clone(),
            ty: TensorType::new(dtype, self.shape.as_slice()),
            is_turned: false,
        };
        let kernel = Operand { name: to.operand(1), ty: to.operand_type(1).clone(), is_turned: true };
        self.product.write(to, [rows, kernel]);
    }
}
