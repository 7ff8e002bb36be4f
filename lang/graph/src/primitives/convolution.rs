//! `convolution`: products of a window of the input with a kernel, summed (`jax.lax.conv_general_dilated`).
//!
//! The input is `[batch, space.., channels]`, the kernel `[space.., channels / groups, features]`, the result
//! `[batch, space.., features]`, for any number of spatial axes: NHWC and HWIO in two dimensions. As in all of deep
//! learning it is a cross-correlation: the kernel is not flipped.
//!
//! One primitive holds its own derivatives and batches: the input's cotangent is a convolution with the flipped
//! kernel whose input is dilated by the strides, the kernel's one in which batch and channels change places
//! (Dumoulin and Visin, 2016), and a batch of kernels is a convolution in groups.

use std::fmt::Write;

use smallvec::{SmallVec, smallvec};

use super::direct_convolution::DirectConvolution;
use super::patches::Patches;
use super::{Cotangents, Primitive, Reverse, Ring, Terms, TypeFault, Types, Zeros, batch_size, batch_to_front, expect_arity, sums_of_products};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count, strides};

/// The movement of the window. The vectors have an entry for each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Steps of the window.
    pub strides: Shape,
    /// Zeros before and after the (dilated) input; negative numbers take elements away.
    pub padding: SmallVec<[(i64, i64); 2]>,
    /// The input's elements are this far apart, zeros between them. 1: as they are.
    pub input_dilation: Shape,
    /// The kernel's elements are this far apart.
    pub kernel_dilation: Shape,
    /// Number of groups of channels and features, which do not see each other.
    pub groups: usize,
}

/// The extent of `n` elements that are `dilation` apart.
pub fn dilated(n: usize, dilation: usize) -> i64 {
    if n == 0 { 0 } else { (n as i64 - 1) * dilation as i64 + 1 }
}

impl Convolution {
    /// Strides and dilations of 1, no padding, one group.
    pub fn plain(spatial: usize) -> Self {
        let ones = Shape::from_elem(1, spatial);
        Convolution {
            strides: ones.clone(),
            padding: SmallVec::from_elem((0, 0), spatial),
            input_dilation: ones.clone(),
            kernel_dilation: ones,
            groups: 1,
        }
    }

    /// Number of axes along which the kernel moves.
    pub fn spatial(&self) -> usize {
        self.strides.len()
    }

    /// Extent of `n` elements along a spatial axis, with the zeros between and around them.
    pub fn padded_extent(&self, axis: usize, n: usize) -> usize {
        let (low, high) = self.padding[axis];
        (dilated(n, self.input_dilation[axis]) + low + high).max(0) as usize
    }

    /// The extents of the result's spatial axes: 0 if the window does not fit into the padded input.
    fn places(&self, input: &[usize], kernel: &[usize]) -> Shape {
        let place = |axis: usize| {
            let (low, high) = self.padding[axis];
            let room = dilated(input[axis + 1], self.input_dilation[axis]) + low + high
                - dilated(kernel[axis], self.kernel_dilation[axis]);
            if room < 0 { 0 } else { room as usize / self.strides[axis] + 1 }
        };
        (0..self.spatial()).map(place).collect()
    }

    fn result_shape(&self, input: &[usize], kernel: &[usize]) -> Shape {
        let places = self.places(input, kernel);
        std::iter::once(input[0]).chain(places).chain(kernel.last().copied()).collect()
    }

    /// The cotangent of the input: each result is spread back over its window.
    fn input_cotangent(&self, b: &mut Builder, args: &[Var], ct: Var) -> Var {
        let (input, kernel, out) = (b.shape(args[0]), b.shape(args[1]), b.shape(ct));
        let n = self.spatial();
        // [space.., I, (g, O)] becomes [space.., O, (g, I)], flipped.
        let (own, features) = (kernel[n], kernel[n + 1] / self.groups);
        let window = &kernel[..n];
        let split = b.reshape(args[1], &[window, &[own, self.groups, features]].concat());
        let order: Vec<usize> = (0..n).chain([n + 2, n + 1, n]).collect();
        let swapped = b.transpose(split, &order);
        let swapped = b.reshape(swapped, &[window, &[features, self.groups * own]].concat());
        let flipped = b.apply(Reverse { axes: (0..n).collect() }, &[swapped]);
        let padding = (0..n).map(|axis| {
            let window = dilated(kernel[axis], self.kernel_dilation[axis]);
            let low = window - 1 - self.padding[axis].0;
            let full = dilated(input[axis + 1], self.input_dilation[axis]) + window - 1;
            (low, full - dilated(out[axis + 1], self.strides[axis]) - low)
        });
        let op = Convolution {
            strides: self.input_dilation.clone(),
            padding: padding.collect(),
            input_dilation: self.strides.clone(),
            kernel_dilation: self.kernel_dilation.clone(),
            groups: self.groups,
        };
        b.apply(op, &[ct, flipped])
    }

    /// The cotangent of the kernel: the input, its channels as the batch, under a window of the result's cotangent.
    fn kernel_cotangent(&self, b: &mut Builder, args: &[Var], ct: Var) -> Var {
        let (input, kernel, out) = (b.shape(args[0]), b.shape(args[1]), b.shape(ct));
        let n = self.spatial();
        let (batch, space, own) = (input[0], &input[1..=n], kernel[n]);
        // [N, space.., (g, I)] becomes [I, space.., (g, N)].
        let split = b.reshape(args[0], &[&[batch][..], space, &[self.groups, own]].concat());
        let order: Vec<usize> = std::iter::once(n + 2).chain(1..=n).chain([n + 1, 0]).collect();
        let swapped = b.transpose(split, &order);
        let swapped = b.reshape(swapped, &[&[own][..], space, &[self.groups * batch]].concat());
        // [N, places.., O] becomes [places.., N, O].
        let order: Vec<usize> = (1..=n).chain([0, n + 1]).collect();
        let window = b.transpose(ct, &order);
        let padding = (0..n).map(|axis| {
            let low = self.padding[axis].0;
            let full = dilated(out[axis + 1], self.strides[axis])
                + dilated(kernel[axis], self.kernel_dilation[axis])
                - 1;
            (low, full - dilated(input[axis + 1], self.input_dilation[axis]) - low)
        });
        let op = Convolution {
            strides: self.kernel_dilation.clone(),
            padding: padding.collect(),
            input_dilation: self.input_dilation.clone(),
            kernel_dilation: self.strides.clone(),
            groups: self.groups,
        };
        let summed = b.apply(op, &[swapped, window]);
        let order: Vec<usize> = (1..=n).chain([0, n + 1]).collect();
        b.transpose(summed, &order)
    }

    /// The channels, features and groups of a batch of inputs and kernels, each with its batch in front.
    fn batch_as_groups(&self, b: &mut Builder, x: Var, kernel: Var, size: usize) -> (Var, usize) {
        let n = self.spatial();
        let (input, window) = (b.shape(x), b.shape(kernel));
        // [B, N, space.., C] becomes [N, space.., (B, C)].
        let order: Vec<usize> = (1..n + 2).chain([0, n + 2]).collect();
        let x = b.transpose(x, &order);
        let x = b.reshape(x, &[&input[1..n + 2], &[size * input[n + 2]]].concat());
        // [B, space.., I, O] becomes [space.., I, (B, O)].
        let order: Vec<usize> = (1..n + 2).chain([0, n + 2]).collect();
        let kernel = b.transpose(kernel, &order);
        let features = window[n + 2];
        let kernel = b.reshape(kernel, &[&window[1..n + 2], &[size * features]].concat());
        let out = b.apply(Convolution { groups: size * self.groups, ..self.clone() }, &[x, kernel]);
        let shape = b.shape(out);
        (b.reshape(out, &[&shape[..=n], &[size, features]].concat()), n + 1)
    }
}

impl Primitive for Convolution {
    fn name(&self) -> &'static str {
        "convolution"
    }

    fn parameters(&self) -> String {
        let mut out = format!("strides={:?} padding={:?}", self.strides, self.padding);
        if self.input_dilation.iter().any(|d| *d != 1) {
            let _ = write!(out, " input_dilation={:?}", self.input_dilation);
        }
        if self.kernel_dilation.iter().any(|d| *d != 1) {
            let _ = write!(out, " kernel_dilation={:?}", self.kernel_dilation);
        }
        if self.groups != 1 {
            let _ = write!(out, " groups={}", self.groups);
        }
        out
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("convolution", args, 2)?;
        let [x, kernel] = [args[0], args[1]];
        let n = self.spatial();
        if x.dtype != kernel.dtype || x.dtype == DType::Bool {
            return Err(TypeFault::new(format!(
                "a convolution wants numbers of one dtype, got {x} and the kernel {kernel}"
            )));
        }
        if x.rank() != n + 2 || kernel.rank() != n + 2 {
            return Err(TypeFault::new(format!(
                "a convolution over {n} axes wants an input and a kernel of rank {}, got {x} and {kernel}",
                n + 2
            ))
            .help(
                "The input is [batch, space.., channels], the kernel [space.., channels, features]; \
                 (expand-dims x 0) makes a batch of one.",
            ));
        }
        let (channels, own, features) = (x.shape[n + 1], kernel.shape[n], kernel.shape[n + 1]);
        if self.groups == 0 || channels != own * self.groups || features % self.groups != 0 {
            let groups =
                if self.groups == 1 { String::new() } else { format!(" in {} groups", self.groups) };
            return Err(TypeFault::new(format!(
                "the input {x} has {channels} channels, but the kernel {kernel} takes {own}{groups}"
            ))
            .help("The last axis of the input and the last but one of the kernel are the channels."));
        }
        Ok(smallvec![x.with_shape(self.result_shape(&x.shape, &kernel.shape))])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let [x, kernel] = [args[0], args[1]];
        let plan = Plan::new(self, x.shape(), kernel.shape());
        let data = sums_of_products!(plan, x, kernel);
        smallvec![HostTensor::new(self.result_shape(x.shape(), kernel.shape()), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return smallvec![None, None] };
        smallvec![Some(self.input_cotangent(b, args, ct)), Some(self.kernel_cotangent(b, args, ct))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let left = tangents[0].map(|t| b.apply(self.clone(), &[t, args[1]]));
        let right = tangents[1].map(|t| b.apply(self.clone(), &[args[0], t]));
        smallvec![match (left, right) {
            (Some(l), Some(r)) => Some(b.add(l, r)),
            (l, r) => l.or(r),
        }]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        if axes[1].is_none() {
            // One kernel: a larger batch of inputs.
            let x = batch_to_front(b, args[0], axes[0], size);
            let shape = b.shape(x);
            let x = b.reshape(x, &[&[size * shape[1]][..], &shape[2..]].concat());
            let out = b.apply(self.clone(), &[x, args[1]]);
            let places = b.shape(out);
            return smallvec![(b.reshape(out, &[&[size, shape[1]][..], &places[1..]].concat()), 0)];
        }
        let x = batch_to_front(b, args[0], axes[0], size);
        let kernel = batch_to_front(b, args[1], axes[1], size);
        smallvec![self.batch_as_groups(b, x, kernel, size)]
    }

    fn zeros(&self, _: &[bool]) -> Zeros {
        Zeros::Lost
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let types = [to.operand_type(0), to.operand_type(1), to.result_type(0)];
        if let Some(direct) = DirectConvolution::of(self, types).filter(|_| to.has_kernels()) {
            return direct.write(self, to);
        }
        if let Some(patches) = Patches::of(self, to) {
            return patches.write(self, to);
        }
        let n = self.spatial();
        let (input, ty, padding) = quirks::padded_input(self, to);
        let space = (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
        let pads = padding.iter().map(|(low, high)| format!("[{low}, {high}]")).collect::<Vec<_>>();
        let text = format!(
            "stablehlo.convolution({input}, {}) dim_numbers = [b, {space}, f]x[{space}, i, o]->[b, {space}, f], \
             window = {{stride = {}, pad = [{}], rhs_dilate = {}}} {{batch_group_count = 1 : i64, \
             feature_group_count = {} : i64}} : ({}, {}) -> {}",
            to.operand(1),
            dims_list(&self.strides),
            pads.join(", "),
            dims_list(&self.kernel_dilation),
            self.groups,
            ty.mlir(),
            to.operand_type(1).mlir(),
            to.result_type(0).mlir(),
        );
        to.line(&text);
    }

    fn cost(&self, args: &[&TensorType], outs: &[&TensorType]) -> u64 {
        let features = args[1].shape.last().copied().unwrap_or(1).max(1);
        2 * outs[0].count() as u64 * (args[1].count() / features) as u64
    }
}

/// The pairs of elements that are multiplied, as offsets.
struct Plan {
    batch: usize,
    groups: usize,
    /// Channels and features of one group.
    channels: usize,
    features: usize,
    /// Elements of one input and of one place of the kernel.
    input_size: usize,
    kernel_row: usize,
    /// For each place of the result: the pairs of input and kernel positions under the window, as offsets.
    pairs: Vec<Vec<(usize, usize)>>,
}

impl Plan {
    fn new(op: &Convolution, input: &[usize], kernel: &[usize]) -> Self {
        let n = op.spatial();
        let places = op.places(input, kernel);
        let (input_steps, kernel_steps) = (strides(input), strides(kernel));
        let mut pairs: Vec<Vec<(usize, usize)>> = vec![vec![(0, 0)]];
        for axis in 0..n {
            let along: Vec<Vec<(usize, usize)>> = (0..places[axis])
                .map(|place| op.meeting(axis, place, input[axis + 1], kernel[axis]))
                .map(|meet| {
                    meet.iter().map(|(i, k)| (i * input_steps[axis + 1], k * kernel_steps[axis])).collect()
                })
                .collect();
            let join = |before: &Vec<(usize, usize)>, here: &Vec<(usize, usize)>| {
                before.iter().flat_map(|(i, k)| here.iter().map(move |(j, l)| (i + j, k + l))).collect()
            };
            pairs = pairs.iter().flat_map(|before| along.iter().map(move |here| join(before, here))).collect();
        }
        Plan {
            batch: input[0],
            groups: op.groups,
            channels: kernel[n],
            features: kernel[n + 1] / op.groups,
            input_size: element_count(&input[1..]),
            kernel_row: kernel[n + 1],
            pairs,
        }
    }

    // The innermost loop runs over the features of a group, side by side in the kernel and in the result.
    fn run<T: Ring>(&self, x: &[T], kernel: &[T]) -> Vec<T> {
        let mut out = vec![T::ZERO; self.batch * self.pairs.len() * self.kernel_row];
        let longest = self.pairs.iter().map(Vec::len).max().unwrap_or(0) * self.channels;
        let mut terms = Terms::new(longest, self.kernel_row);
        let mut row = 0;
        for n in 0..self.batch {
            for pairs in &self.pairs {
                let result = &mut out[row..row + self.kernel_row];
                row += self.kernel_row;
                terms.sum(pairs.len() * self.channels, result, |range, result| {
                    for term in range {
                        let ((i, k), channel) = (pairs[term / self.channels], term % self.channels);
                        let input = n * self.input_size + i + channel;
                        let weights = k + channel * self.kernel_row;
                        for group in 0..self.groups {
                            let a = x[input + group * self.channels];
                            let features = group * self.features..(group + 1) * self.features;
                            let weights = &kernel[weights + features.start..weights + features.end];
                            for (acc, b) in result[features].iter_mut().zip(weights) {
                                *acc = acc.plus(a.times(*b));
                            }
                        }
                    }
                });
            }
        }
        out
    }
}

impl Convolution {
    /// The positions of input and kernel that meet along one axis at a place of the window.
    fn meeting(&self, axis: usize, place: usize, input: usize, kernel: usize) -> Vec<(usize, usize)> {
        let apart = self.input_dilation[axis] as i64;
        let start = (place * self.strides[axis]) as i64 - self.padding[axis].0;
        let meet = |k: usize| {
            let at = start + (k * self.kernel_dilation[axis]) as i64;
            let i = usize::try_from(at / apart).ok().filter(|i| at >= 0 && at % apart == 0 && *i < input)?;
            Some((i, k))
        };
        (0..kernel).filter_map(meet).collect()
    }
}
