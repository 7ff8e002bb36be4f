//! Convolutions with small windows, as a kernel that holds some neighbouring places of the result in registers, a few vectors of features of each.
//!
//! IREE has a kernel for patches (`--iree-global-opt-use-im2col-for-convs`), which a program has for all of its convolutions or for none: a
//! kernel's gradient takes 0.1 of the time so, a convolution from 128 to 128 channels 2.5 times as long, and one of one channel takes eight times as long
//! without it.

use super::Convolution;
use crate::stablehlo::{LoopNest, Lowering, Tensor, quirks};
use crate::tensor::{DType, TensorType};

/// Maximum places of a window.
const WINDOW: usize = 49;

/// Minimum products: fewer are joined with other operations.
const WORK: usize = 1 << 19;

/// Maximum bytes of the window for the features that are computed together: more do not stay in a cache.
const CACHED: usize = 768 << 10;

/// Numbers of a vector.
const LANES: usize = 16;

/// Vectors of features that are computed together, with the places of the result for which registers are left.
const TILES: [(usize, usize); 3] = [(4, 4), (2, 8), (1, 14)];

/// Such a convolution, with two spatial axes.
pub struct DirectConvolution {
    /// `[batch, height, width, channels]`, padded.
    input: [usize; 4],
    /// `[height, width, channels, features]`.
    window: [usize; 4],
    /// `[batch, height, width, features]`.
    result: [usize; 4],
    strides: [usize; 2],
    dilation: [usize; 2],
    /// Vectors of features and places that are computed together.
    vectors: usize,
    places: usize,
}

impl DirectConvolution {
    /// The convolution `op`, if it is such a one.
    pub fn of(op: &Convolution, [input, window, result]: [&TensorType; 3]) -> Option<DirectConvolution> {
        let features = *window.shape.last()?;
        let places: usize = window.shape[..op.spatial()].iter().product();
        let fits = (1..=2).contains(&op.spatial())
            && input.dtype == DType::F32
            && op.groups == 1
            && (1..=WINDOW).contains(&places)
            && features.is_multiple_of(LANES)
            && result.count().saturating_mul(window.count() / features.max(1)) >= WORK;
        if !fits {
            return None;
        }
        let padded = quirks::padded_type(op, input);
        let flat = |shape: &[usize], at: usize| -> [usize; 4] {
            let mut all = shape.to_vec();
            (all.len()..4).for_each(|_| all.insert(at, 1));
            [all[0], all[1], all[2], all[3]]
        };
        let pair = |list: &[usize]| if let [y, x] = *list { [y, x] } else { [1, list[0]] };
        let result = flat(&result.shape, 1);
        let (vectors, most) = *TILES.iter().find(|(vectors, _)| features.is_multiple_of(vectors * LANES))?;
        let cached = window.count() / features * vectors * LANES * input.dtype.byte_width() <= CACHED;
        cached.then_some(DirectConvolution {
            input: flat(&padded.shape, 1),
            window: flat(&window.shape, 0),
            result,
            strides: pair(&op.strides),
            dilation: pair(&op.kernel_dilation),
            vectors,
            places: result[2].div_ceil(result[2].div_ceil(most)),
        })
    }

    /// Writes the convolution.
    pub fn write(&self, op: &Convolution, to: &mut Lowering<'_>) {
        let ty = |shape: [usize; 4]| TensorType::new(DType::F32, shape.as_slice());
        let (input, from) = quirks::padded(op, to);
        let input = to.with_shape(&input, &from, &ty(self.input));
        let (window, from) = (to.operand(1), to.operand_type(1).clone());
        let window = to.with_shape(&window, &from, &ty(self.window));
        let operands = [(input, ty(self.input)), (window, ty(self.window))];
        let rows = self.result[0] * self.result[1];
        let made = to.loop_nest(&operands, &[ty(self.result)], rows, |nest, read, written, row| {
            let height = nest.index(self.result[1]);
            let kernel = Kernel {
                convolution: self,
                input: &read[0],
                window: &read[1],
                result: &written[0],
                image: nest.binary("arith.divui", row, &height, "index"),
                y: nest.binary("arith.remui", row, &height, "index"),
                zero: nest.index(0),
            };
            let (features, width) = (nest.index(self.result[3]), nest.index(self.result[2]));
            let last = nest.index(self.result[2] - self.places);
            nest.each(&kernel.zero, &features, self.vectors * LANES, |nest, feature| {
                nest.each(&kernel.zero, &width, self.places, |nest, x| {
                    // The last places are computed with some of those before them again.
                    let x = nest.binary("arith.minui", x, &last, "index");
                    kernel.tile(nest, &x, feature);
                });
            });
        });
        let into = to.result_type(0).clone();
        let name = to.with_shape(&made[0], &ty(self.result), &into);
        to.name_results(&[name]);
    }
}

/// The body of the kernel, for a row of the result.
struct Kernel<'a> {
    convolution: &'a DirectConvolution,
    input: &'a Tensor,
    window: &'a Tensor,
    result: &'a Tensor,
    /// The number of the image, and the row of the result.
    image: String,
    y: String,
    zero: String,
}

impl Kernel<'_> {
    /// Writes the places from `x` on, of them the vectors of features from `feature` on.
    fn tile(&self, nest: &mut LoopNest, x: &str, feature: &str) {
        let &DirectConvolution { window, strides, vectors, places, .. } = self.convolution;
        let features: Vec<String> = (0..vectors).map(|v| nest.offset(feature, v * LANES)).collect();
        let [top, left] = [(&*self.y, strides[0]), (x, strides[1])].map(|(place, stride)| {
            let stride = nest.index(stride);
            nest.binary("arith.muli", place, &stride, "index")
        });
        let zeros = nest.zeros(DType::F32, LANES);
        let start = vec![zeros; vectors * places];
        let sums = self.sum(nest, window[0], &start, |nest, row, sums| {
            self.sum(nest, window[1], sums, |nest, column, sums| {
                let at = self.seen(nest, [&top, &left], [row, column]);
                self.sum(nest, window[2], sums, |nest, channel, sums| {
                    let place = Place { row, column, channel, y: &at[0], xs: &at[1..] };
                    self.products(nest, &place, &features, sums)
                })
            })
        });
        for (p, sums) in sums.chunks(vectors).enumerate() {
            let place = nest.offset(x, p);
            for (feature, sum) in features.iter().zip(sums) {
                self.result.set_lanes(nest, &[&self.image, &self.y, &place, feature], sum, LANES);
            }
        }
    }

    /// Writes a loop that carries all sums.
    fn sum(
        &self,
        nest: &mut LoopNest,
        count: usize,
        start: &[String],
        body: impl FnOnce(&mut LoopNest, &str, &[String]) -> Vec<String>,
    ) -> Vec<String> {
        let end = nest.index(count);
        let ty = format!("vector<{LANES}xf32>");
        let carried: Vec<(&str, &str)> = start.iter().map(|sum| (sum.as_str(), ty.as_str())).collect();
        nest.carry(&self.zero, &end, 1, &carried, body)
    }

    /// Writes the row of the input that a row of the window sees, and the column that one of its columns sees from each place.
    fn seen(&self, nest: &mut LoopNest, first: [&str; 2], window: [&str; 2]) -> Vec<String> {
        let &DirectConvolution { strides, dilation, places, .. } = self.convolution;
        let [y, x] = [0, 1].map(|axis| {
            let dilation = nest.index(dilation[axis]);
            let further = nest.binary("arith.muli", window[axis], &dilation, "index");
            nest.add(first[axis], &further)
        });
        let xs: Vec<String> = (0..places).map(|p| nest.offset(&x, p * strides[1])).collect();
        [vec![y], xs].concat()
    }

    /// Writes the addition of what one channel gives at one place of the window.
    fn products(
        &self,
        nest: &mut LoopNest,
        place: &Place<'_>,
        features: &[String],
        sums: &[String],
    ) -> Vec<String> {
        let weight = |feature: &String| {
            self.window.get_lanes(nest, &[place.row, place.column, place.channel, feature], LANES)
        };
        let weights: Vec<String> = features.iter().map(weight).collect();
        let mut next = Vec::new();
        for (x, sums) in place.xs.iter().zip(sums.chunks(weights.len())) {
            let number = self.input.get(nest, &[&self.image, place.y, x, place.channel]);
            let number = nest.splat(&number, DType::F32, LANES);
            for (weight, sum) in weights.iter().zip(sums) {
                next.push(nest.multiply_add("arith.addf", [sum, &number, weight], DType::F32, LANES));
            }
        }
        next
    }
}

/// A place of the window, and those of the input that it sees.
struct Place<'a> {
    row: &'a str,
    column: &'a str,
    channel: &'a str,
    y: &'a str,
    xs: &'a [String],
}
