//! Rounding of floats on the host without calls: x86-64 has instructions for it only from SSE4.1 on, and a call for each element takes
//! twenty times as long as these loops, which are vectorised.

/// Rounding to whole numbers; zeros keep the sign of the operand, and what is not finite stays.
pub trait Rounding: Copy {
    /// The nearest whole number; halves go to the even one.
    fn round_inline(self) -> Self;
    /// The next whole number below.
    fn floor_inline(self) -> Self;
    /// The next whole number above.
    fn ceil_inline(self) -> Self;
}

macro_rules! rounding {
    ($($ty:ty, $whole:literal);*) => {$(
        impl Rounding for $ty {
            #[inline]
            fn round_inline(self) -> Self {
                // From here on all floats are whole, and the sum of a smaller one is rounded to a whole number as the standard
                // says (IEEE 754-2019, 4.3.1: ties to even).
                const WHOLE: $ty = $whole;
                let rounded = ((self.abs() + WHOLE) - WHOLE).copysign(self);
                if self.abs() < WHOLE { rounded } else { self }
            }

            #[inline]
            fn floor_inline(self) -> Self {
                let near = self.round_inline();
                (if near > self { near - 1.0 } else { near }).copysign(self)
            }

            #[inline]
            fn ceil_inline(self) -> Self {
                let near = self.round_inline();
                (if near < self { near + 1.0 } else { near }).copysign(self)
            }
        }
    )*};
}
rounding!(f32, 8_388_608.0; f64, 4_503_599_627_370_496.0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a number is rounded as the standard library does, to the sign of a zero.
    macro_rules! assert_rounded {
        ($x:expr) => {
            let x = $x;
            let found = [x.round_inline(), x.floor_inline(), x.ceil_inline()];
            for (found, right) in found.into_iter().zip([x.round_ties_even(), x.floor(), x.ceil()]) {
                assert!(
                    found.to_bits() == right.to_bits() || found.is_nan() && right.is_nan(),
                    "{x:?}: {found:?} for {right:?}"
                );
            }
        };
    }

    /// All exponents and signs, with the first and the last bits of the fraction.
    #[test]
    fn numbers_of_all_sizes_are_rounded() {
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0xffff] {
                assert_rounded!(f32::from_bits((u32::from(high) << 16) | low));
                assert_rounded!(f64::from_bits(
                    (u64::from(high) << 48) | (u64::from(low) << 32) | u64::from(low)
                ));
            }
        }
    }

    #[test]
    fn halves_and_their_neighbours_are_rounded() {
        for k in -5000..5000 {
            let half = k as f32 / 2.0;
            assert_rounded!(half.next_down());
            assert_rounded!(half);
            assert_rounded!(half.next_up());
        }
    }
}
