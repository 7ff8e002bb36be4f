//! Statistics of the elements of a tensor.

use std::fmt;

use crate::tensor::{DType, Data, HostTensor};
use crate::with_elements;

/// The extremes of a tensor's elements, and whether there is a NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Least element, NaN left out; infinity without elements.
    pub min: f64,
    /// Greatest element, NaN left out; minus infinity without elements.
    pub max: f64,
    /// True if an element is NaN.
    pub nan: bool,
}

impl Statistics {
    /// Those of no elements.
    pub const NONE: Statistics = Statistics { min: f64::INFINITY, max: f64::NEG_INFINITY, nan: false };

    /// Those of a tensor; booleans are 0 and 1.
    pub fn of(tensor: &HostTensor) -> Statistics {
        // The usual dtype has a loop that a compiler vectorises.
        if let Data::F32(elements) = tensor.stored() {
            return of_f32(elements);
        }
        let stored = tensor.stored();
        let integer = !matches!(stored.dtype(), DType::F64 | DType::BF16 | DType::F16);
        with_elements!(stored, v => {
            let mut all = Statistics::NONE;
            for x in v {
                let x: crate::tensor::Number = (*x).into();
                all.add(if integer { x.as_i64() as f64 } else { x.as_f64() });
            }
            all
        })
    }

    /// Those of a number.
    pub fn of_number(x: f64) -> Statistics {
        let mut all = Statistics::NONE;
        all.add(x);
        all
    }

    fn add(&mut self, x: f64) {
        self.nan |= x.is_nan();
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Statistics) -> Statistics {
        Statistics { min: self.min.min(other.min), max: self.max.max(other.max), nan: self.nan || other.nan }
    }

    /// True if no element is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        // Without elements the extremes are infinities of the other sign.
        !self.nan && self.min != f64::NEG_INFINITY && self.max != f64::INFINITY
    }
}

fn of_f32(elements: &[f32]) -> Statistics {
    const LANES: usize = 16;
    let (mut low, mut high, mut nan) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES], [false; LANES]);
    let mut chunks = elements.chunks_exact(LANES);
    for chunk in &mut chunks {
        for i in 0..LANES {
            let x = chunk[i];
            // Comparisons with NaN are false.
            low[i] = if x < low[i] { x } else { low[i] };
            high[i] = if x > high[i] { x } else { high[i] };
            nan[i] |= x.is_nan();
        }
    }
    let mut all = Statistics::NONE;
    for i in 0..LANES {
        all.min = all.min.min(low[i].into());
        all.max = all.max.max(high[i].into());
        all.nan |= nan[i];
    }
    chunks.remainder().iter().for_each(|x| all.add(f64::from(*x)));
    all
}

/// `min:-1.37e0 max:2.33e0`.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "min:{:.2e} max:{:.2e}", self.min, self.max)
    }
}
