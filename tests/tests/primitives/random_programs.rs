//! Random small programs of values of many dtypes and shapes that several operations read, each one kernel, compiled, against host
//! evaluation. `PROGRAMS=500` runs more of them.

use sheaf_graph::graph::{Builder, Graph, Var};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{
    ArgReduce, Direction, DotGeneral, Extreme, ReduceMax, ReduceMin, Reverse, Tanh, Unary,
};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType, element_count};

use super::check_programs;

/// Number of programs by default.
const PROGRAMS: usize = 8;

/// The compiler may reject one of so many ("operand #0 does not dominate this use"); they have another form then.
const REJECTED: Option<usize> = Some(16);

const KERNELS: Model = Model::Kernels(KernelSize::Small);

/// Shapes of the arguments in f32: extents of less than a vector, of one, of more, and no multiples.
const SHAPES: [&[usize]; 6] = [&[6, 6], &[36], &[5, 20], &[20, 9], &[3, 2, 8], &[240]];

/// Dtypes that values are converted to. Sums of halves are rounded in another order.
const DTYPES: [DType; 7] = [DType::I8, DType::U8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64];

/// Maximum number of elements of a value.
const LARGEST: usize = 800;

/// The values of a program so far.
struct Program {
    builder: Builder,
    random: Random,
    values: Vec<Var>,
    /// Place of a value that many operations read.
    shared: usize,
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut builder = Builder::new();
        let floats = SHAPES.iter().map(|shape| builder.input(TensorType::new(DType::F32, *shape)));
        let mut values: Vec<Var> = floats.collect();
        values.extend(further().iter().map(|tensor| builder.input(tensor.ty())));
        Program { builder, random: Random(seed), values, shared: 0 }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    /// One of the values whose type has a property, if there are any; half of the time the shared one.
    fn one_with(&mut self, property: impl Fn(&TensorType) -> bool) -> Option<Var> {
        let shared = self.values[self.shared];
        if self.below(2) == 0 && property(self.builder.ty(shared)) {
            return Some(shared);
        }
        let all: Vec<Var> = self.values.iter().copied().filter(|v| property(self.builder.ty(*v))).collect();
        (!all.is_empty()).then(|| all[self.below(all.len())])
    }

    /// One of the axes of a shape, or all of them.
    fn axes(&mut self, rank: usize) -> Shape {
        let axis = self.below(rank + 1);
        if axis == rank { (0..rank).collect() } else { Shape::from_slice(&[axis]) }
    }

    /// An index of 0 to 4: a constant, or one that is computed.
    fn place(&mut self) -> Var {
        let constant = self.below(5) as f64;
        let computed = self.one_with(|ty| *ty == TensorType::scalar(DType::I32));
        match computed {
            Some(index) if constant > 1.0 => self.builder.clamp_indices(index, 5),
            _ => self.builder.scalar(DType::I32, constant),
        }
    }

    fn step(&mut self) -> Option<Var> {
        let kind = self.below(24);
        let not_bool = |ty: &TensorType| ty.dtype != DType::Bool;
        Some(match kind {
            0 => {
                let x = self.one_with(|ty| ty.dtype.is_float())?;
                self.builder.apply(Unary(Tanh), &[x])
            }
            1..=3 => {
                let x = self.one_with(not_bool)?;
                let ty = self.builder.ty(x).clone();
                let y = self.one_with(|other| *other == ty)?;
                match kind {
                    1 => self.builder.add(x, y),
                    2 => self.builder.mul(x, y),
                    _ => self.builder.compare(Direction::Gt, x, y),
                }
            }
            4..=6 => {
                let x = self.one_with(|ty| ty.dtype != DType::F64)?;
                let dtype = DTYPES[self.below(DTYPES.len())];
                let from = self.builder.ty(x).dtype;
                if from.is_float() && !dtype.is_float() {
                    // Whole numbers in the range of every dtype, far from where a rounding would tell.
                    let bounded = self.builder.apply(Unary(Tanh), &[x]);
                    let scaled = self.builder.scale(bounded, 4.7);
                    let square = self.builder.mul(scaled, scaled);
                    self.builder.convert(square, dtype)
                } else {
                    self.builder.convert(x, dtype)
                }
            }
            7 => {
                let p = self.one_with(|ty| ty.dtype == DType::Bool)?;
                let shape = self.builder.shape(p);
                let x = self.one_with(|ty| ty.shape == shape && not_bool(ty))?;
                let ty = self.builder.ty(x).clone();
                let y = self.one_with(|other| *other == ty)?;
                self.builder.select(p, x, y)
            }
            8 | 9 => {
                let x = self.one_with(|ty| ty.rank() > 0)?;
                let (mut start, mut limit) = (Shape::new(), Shape::new());
                for extent in self.builder.shape(x) {
                    let first = self.below(extent);
                    start.push(first);
                    limit.push(if self.below(3) == 0 {
                        extent
                    } else {
                        first + 1 + self.below(extent - first)
                    });
                }
                self.builder.slice(x, &start, &limit)
            }
            10 => {
                let x = self.one_with(|_| true)?;
                let shape = self.builder.shape(x);
                let count = element_count(&shape);
                let rows = [1, 2, 3, 4, 5][self.below(5)];
                let shape = if self.below(2) == 0 || !count.is_multiple_of(rows) {
                    vec![count]
                } else {
                    vec![rows, count / rows]
                };
                self.builder.reshape(x, &shape)
            }
            11 => {
                let x = self.one_with(|ty| ty.rank() == 2)?;
                self.builder.transpose(x, &[1, 0])
            }
            12 => {
                let x = self.one_with(|ty| ty.rank() < 2 && ty.count() <= 40)?;
                let shape = self.builder.shape(x);
                let extent = 1 + self.below(19);
                let (shape, dims) = match shape.first() {
                    None => (vec![extent], vec![]),
                    Some(&n) if self.below(2) == 0 => (vec![extent, n], vec![1]),
                    Some(&n) => (vec![n, extent], vec![0]),
                };
                self.builder.broadcast_in_dim(x, &shape, &dims)
            }
            13 | 14 => {
                let x = self.one_with(|ty| ty.rank() > 0 && not_bool(ty))?;
                let axes = self.axes(self.builder.ty(x).rank());
                self.builder.sum(x, &axes)
            }
            15 => {
                let x = self.one_with(|ty| ty.rank() > 0 && not_bool(ty))?;
                let rank = self.builder.ty(x).rank();
                let axes = self.axes(rank);
                match self.below(3) {
                    0 => self.builder.apply(ReduceMax { axes }, &[x]),
                    1 => self.builder.apply(ReduceMin { axes }, &[x]),
                    _ => {
                        let axis = self.below(rank);
                        self.builder.apply(ArgReduce { axis, extreme: Extreme::Max }, &[x])
                    }
                }
            }
            16 => {
                let x = self.one_with(|ty| ty.rank() == 2 && ty.dtype.is_float())?;
                let ty = self.builder.ty(x).clone();
                let (left, right) = (self.below(2), self.below(2));
                let y = self.one_with(|other| {
                    other.dtype == ty.dtype && other.rank() == 2 && other.shape[right] == ty.shape[left]
                })?;
                let contract = [left, right].map(|axis| Shape::from_slice(&[axis]));
                let product = DotGeneral { contract, batch: [Shape::new(), Shape::new()] };
                self.builder.apply(product, &[x, y])
            }
            17 => {
                let x = self.one_with(|ty| ty.rank() > 0)?;
                let ty = self.builder.ty(x).clone();
                let axis = self.below(ty.rank());
                let y = self.one_with(|other| {
                    let same = |i: usize| i == axis || other.shape[i] == ty.shape[i];
                    other.dtype == ty.dtype && other.rank() == ty.rank() && (0..ty.rank()).all(same)
                })?;
                self.builder.concatenate(&[x, y], axis)
            }
            18 => {
                let x = self.one_with(|ty| (1..3).contains(&ty.rank()) && not_bool(ty))?;
                let rank = self.builder.ty(x).rank();
                let mut margin =
                    || -> Vec<usize> { (0..rank).map(|_| self.random.below(3) as usize).collect() };
                let (low, high) = (margin(), margin());
                self.builder.pad(x, 1.0, &low, &high)
            }
            19 => {
                let x = self.one_with(|ty| ty.rank() > 0)?;
                let axes = self.axes(self.builder.ty(x).rank());
                self.builder.apply(Reverse { axes }, &[x])
            }
            20 => {
                let x = self.one_with(|ty| ty.rank() > 0)?;
                let sizes: Vec<usize> =
                    self.builder.shape(x).iter().map(|extent| 1 + self.below(*extent)).collect();
                let starts: Vec<Var> = sizes.iter().map(|_| self.place()).collect();
                self.builder.dynamic_slice(x, &starts, &sizes)
            }
            21 => {
                let x = self.one_with(|ty| ty.rank() > 0)?;
                let ty = self.builder.ty(x).clone();
                let update = self.one_with(|other| {
                    let fits = other.shape.iter().zip(&ty.shape).all(|(part, extent)| part <= extent);
                    other.dtype == ty.dtype && other.rank() == ty.rank() && fits
                })?;
                let starts: Vec<Var> = (0..ty.rank()).map(|_| self.place()).collect();
                self.builder.dynamic_update_slice(x, update, &starts)
            }
            22 => {
                let x = self.one_with(|ty| (1..3).contains(&ty.rank()))?;
                let indices = self.one_with(|ty| ty.dtype == DType::I32 && ty.rank() == 1)?;
                let indices = self.builder.clamp_indices(indices, self.builder.shape(x)[0]);
                self.builder.gather_rows(x, indices)
            }
            _ => {
                let (rows, columns) = (1 + self.below(20), 1 + self.below(20));
                let (dtype, axis) = ([DType::I32, DType::F32][self.below(2)], self.below(2));
                self.builder.iota(dtype, &[rows, columns], axis)
            }
        })
    }

    /// The last values are results, most of them.
    fn finish(mut self) -> Graph {
        let arguments = self.values.len();
        for _ in 0..6 + self.below(16) {
            if let Some(made) = self.step()
                && self.builder.ty(made).count() <= LARGEST
            {
                self.values.push(made);
                if self.below(3) == 0 {
                    self.shared = self.values.len() - 1;
                }
            }
        }
        let mut results = self.values.split_off(arguments.max(self.values.len().saturating_sub(8)));
        results.retain(|_| self.random.below(3) > 0);
        results.push(self.values[0]);
        self.builder.finish(results)
    }
}

/// Arguments of other dtypes than f32.
fn further() -> Vec<HostTensor> {
    let numbers = |n: i64| (0..n).map(move |i| (7 * i) % 11 - 4);
    vec![
        HostTensor::new(&[6, 6][..], numbers(36).map(|x| x as i8).collect::<Vec<i8>>()),
        HostTensor::new(&[20][..], numbers(20).map(|x| x as i32).collect::<Vec<i32>>()),
        HostTensor::new(&[36][..], numbers(36).map(|x| x > 2).collect::<Vec<bool>>()),
    ]
}

#[test]
fn random_programs_agree_with_host_evaluation() {
    let program = |seed| Program::new(seed).finish();
    check_programs("PROGRAMS", PROGRAMS, REJECTED, KERNELS, &SHAPES, &further(), program);
}

/// The mean of a value beside a part of it, and the mean of sums by rows (Q45).
#[test]
fn means_are_right_beside_parts() {
    check_programs("MEANS", 1, None, KERNELS, &[&[36], &[12, 20]], &[], |_| {
        let mut b = Builder::new();
        let [v, w] = [&[36][..], &[12, 20]].map(|shape| b.input(TensorType::new(DType::F32, shape)));
        let (sums, flat) = (b.sum(w, &[1]), b.reshape(w, &[240]));
        let mut results = Vec::new();
        for x in [v, sums, flat] {
            let half = b.full_like(x, 0.5);
            let x = b.add(x, half);
            let sum = b.sum(x, &[0]);
            results.push(b.scale(sum, 0.1));
            let first = b.slice(x, &[0], &[1]);
            results.push(b.reshape(first, &[]));
        }
        b.finish(results)
    });
}

/// Parts of paddings and paddings of paddings beside a sum, with which the compiler had no end (Q43).
#[test]
fn paddings_are_read_from_memory() {
    check_programs("PARTS", 1, None, KERNELS, &[&[6, 6], &[36]], &[], |_| {
        let mut b = Builder::new();
        let [x, v] = [&[6, 6][..], &[36]].map(|shape| b.input(TensorType::new(DType::F32, shape)));
        let padded = b.pad(x, 1.0, &[2, 0], &[2, 0]);
        let part = b.slice(padded, &[6, 5], &[10, 6]);
        let below = b.slice(v, &[15], &[36]);
        let longer = b.pad(below, 1.0, &[0], &[1]);
        let third = b.scalar(DType::I32, 2.0);
        let one = b.dynamic_slice(longer, &[third], &[1]);
        let longest = b.pad(longer, 1.0, &[2], &[2]);
        let wide = b.broadcast_in_dim(v, &[36, 15], &[0]);
        let sums = b.sum(wide, &[0]);
        b.finish(vec![part, sums, one, longest])
    });
}
