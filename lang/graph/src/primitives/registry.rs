//! Test cases of every primitive: for the registry test and for that of compiled code.

use super::samples::samples;
use crate::graph::{Builder, Graph, Op};
use crate::tensor::{DType, Data, FromNumber, HostTensor, Number, TensorType, element_count};
use crate::with_element_type;

/// The distribution of an operand's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Floats of -2 to 2, integers of all sizes, either truth value.
    Any,
    /// Floats of 0.5 to 2.5.
    Positive,
    /// Floats of -10000 to 10000.
    Wide,
    /// Floats of -0.9 to 0.9.
    Unit,
    /// Floats of 0.98 to 1.02.
    NearOne,
    /// Floats of -4 to 4 whose distance from whole and half numbers is at least 0.15.
    AwayFromIntegers,
    /// Floats that differ by 0.1 at least, from each other, from zero and from those of other operands drawn so.
    Distinct,
    /// Whole numbers of -5 to 5 (0 to 10 without a sign), in any dtype.
    Small,
    /// Integers of -2 to 1 past `limit`, so that some are out of range.
    Index {
        /// The number of valid indices.
        limit: i64,
    },
    /// Infinities, NaN, zeros of both signs, halves, ties; extreme integers.
    Special,
}

/// A primitive, operands for it, and the tolerance of its results.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The primitive with its parameters.
    pub op: Op,
    /// The types of the operands and the distributions of their elements.
    pub inputs: Vec<(TensorType, Domain)>,
    /// Maximum difference between host and compiled results, relative to the larger of 1 and
    /// the result.
    pub tolerance: f64,
    /// True if the derivative rules give the slope of the host evaluation at the drawn elements.
    pub differentiable: bool,
}

impl Sample {
    /// The sample with another float dtype in the place of `f32`.
    #[must_use]
    pub fn in_dtype(&self, dtype: DType) -> Sample {
        let of = |ty: &TensorType| if ty.dtype == DType::F32 { ty.with_dtype(dtype) } else { ty.clone() };
        let inputs = self.inputs.iter().map(|(ty, domain)| (of(ty), *domain)).collect();
        // Half a unit in the last place may round either way; doubles are as many roundings from exact as singles.
        let tolerance = match dtype {
            DType::F64 => 1e-14,
            DType::BF16 => 1e-2,
            DType::F16 => 1.2e-3,
            _ => self.tolerance,
        };
        Sample { op: self.op.clone(), inputs, tolerance, differentiable: self.differentiable }
    }

    /// Operands, the same for the same seed.
    pub fn draw(&self, seed: u64) -> Vec<HostTensor> {
        let mut random = Random(seed);
        self.inputs.iter().enumerate().map(|(i, (ty, domain))| draw(ty, *domain, i, &mut random)).collect()
    }

    /// The graph of the primitive alone: its operands are the parameters, its results the results.
    ///
    /// # Panics
    /// If the sample does not fit the primitive's type rule.
    pub fn graph(&self) -> Graph {
        let mut b = Builder::new();
        let inputs: Vec<_> = self.inputs.iter().map(|(ty, _)| b.input(ty.clone())).collect();
        let outputs =
            b.bind(self.op.clone(), &inputs).unwrap_or_else(|fault| panic!("{self}: {}", fault.message));
        b.finish(outputs.to_vec())
    }
}

/// `name[parameters] operand types`.
impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.op.name(), self.op.parameters())?;
        self.inputs.iter().try_for_each(|(ty, domain)| write!(f, " {ty} {domain:?}"))
    }
}

/// Samples of every primitive.
pub fn registry() -> Vec<Sample> {
    samples()
}

/// Sebastiano Vigna's `SplitMix64`: short, and good enough to scatter test data.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A whole number of `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// A float of `low..high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The numbers of `0..n`, shuffled.
    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

/// A tensor for operand number `operand`.
fn draw(ty: &TensorType, domain: Domain, operand: usize, random: &mut Random) -> HostTensor {
    let n = element_count(&ty.shape);
    let data = if ty.dtype.is_float() {
        let numbers = floats(n, domain, operand, random);
        with_element_type!(ty.dtype, T => {
            Data::from(numbers.into_iter().map(|x| T::from_number(Number::Float(x))).collect::<Vec<T>>())
        })
    } else if let Some((least, most)) = ty.dtype.bounds() {
        let numbers = integers(n, domain, least, most, random);
        with_element_type!(ty.dtype, T => {
            Data::from(numbers.into_iter().map(|x| T::from_number(Number::Int(x))).collect::<Vec<T>>())
        })
    } else {
        Data::from((0..n).map(|_| random.below(2) == 1).collect::<Vec<_>>())
    };
    HostTensor::new(ty.shape.clone(), data)
}

fn floats(n: usize, domain: Domain, operand: usize, random: &mut Random) -> Vec<f64> {
    const SPECIAL: [f64; 14] = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.0,
        3.0e9,
        -3.0e9,
    ];
    if domain == Domain::Distinct {
        let middle = n as f64 / 2.0 - 0.25 - operand as f64 / 3.0;
        return random.permutation(n).into_iter().map(|i| (i as f64 - middle) * 0.3).collect();
    }
    let one = |random: &mut Random| match domain {
        Domain::Any | Domain::Distinct => random.uniform(-2.0, 2.0),
        Domain::Positive => random.uniform(0.5, 2.5),
        Domain::Wide => random.uniform(-1e4, 1e4),
        Domain::Unit => random.uniform(-0.9, 0.9),
        Domain::NearOne => random.uniform(0.98, 1.02),
        Domain::AwayFromIntegers => (random.below(16) as f64 - 8.0) / 2.0 + random.uniform(0.15, 0.35),
        Domain::Small | Domain::Index { .. } => random.below(11) as f64 - 5.0,
        Domain::Special => SPECIAL[random.below(SPECIAL.len() as u64) as usize],
    };
    (0..n).map(|_| one(random)).collect()
}

fn integers(n: usize, domain: Domain, least: i64, most: i64, random: &mut Random) -> Vec<i64> {
    let one = |random: &mut Random| match domain {
        Domain::Small => random.below(11) as i64 - if least < 0 { 5 } else { 0 },
        Domain::Index { limit } => (random.below(limit as u64 + 4) as i64 - 2).max(least),
        Domain::Special => {
            [least, least + 1, most, most - 1, 0, 1, 2, 7, (-1).max(least)][random.below(9) as usize]
        }
        _ => random.bits() as i64,
    };
    (0..n).map(|_| one(random)).collect()
}
