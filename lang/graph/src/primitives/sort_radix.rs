//! The order of long rows on a processor, by a radix sort from the lowest digit (D. E. Knuth, "The Art of Computer Programming", volume 3,
//! 5.2.5): 10 us for 1,000 numbers, 0.7 ms for 200,000, 0.19 s for 17 million. Each digit is a kernel that counts its values and puts
//! every element behind those with smaller ones; elements with equal digits keep their order, which makes the sort stable.

use super::sort_lowering::{Layout, reshape};
use crate::stablehlo::{Array, LoopNest, Lowering, highest, lowest, zero};
use crate::tensor::{DType, TensorType};

/// Extent of rows from which on digits are wide: their counters take as long to add up as some thousand elements to move.
const WIDE_FROM: usize = 2048;

/// Numbers whose unsigned order is that of a key: NaN last, both zeros equal.
pub(super) struct Digits {
    name: String,
    dtype: DType,
    bits: usize,
}

impl Digits {
    pub fn of(to: &mut Lowering<'_>, key: &str, ty: &TensorType) -> Digits {
        match ty.dtype {
            DType::Bool => Digits::converted(to, key, ty, 1),
            DType::U8 => Digits::converted(to, key, ty, 8),
            DType::U16 => Digits::converted(to, key, ty, 16),
            DType::U32 => Digits::bits_of(to, key, ty),
            DType::F32 | DType::F64 => Digits::of_floats(to, key, ty),
            dtype if dtype.is_float() => {
                let wide = ty.with_dtype(DType::F32);
                let key = convert(to, key, ty, &wide);
                Digits::of_floats(to, &key, &wide)
            }
            dtype => {
                let bits = 8 * dtype.byte_width();
                let first = to.splat(ty, &lowest(dtype));
                let key = to.value("stablehlo.xor", &[key, &first], ty);
                if bits >= 32 {
                    return Digits { name: key, dtype, bits };
                }
                // The low bits alone are read of what the conversion extends.
                Digits::converted(to, &key, ty, bits)
            }
        }
    }

    /// The lowest `bits` of a narrow key.
    fn converted(to: &mut Lowering<'_>, key: &str, ty: &TensorType, bits: usize) -> Digits {
        Digits { name: convert(to, key, ty, &ty.with_dtype(DType::I32)), dtype: DType::I32, bits }
    }

    /// All bits of a key.
    fn bits_of(to: &mut Lowering<'_>, key: &str, ty: &TensorType) -> Digits {
        let dtype = ty.dtype.as_signed_bits();
        Digits { name: to.bitcast(key, ty, &ty.with_dtype(dtype)), dtype, bits: 8 * dtype.byte_width() }
    }

    /// Numbers whose signed order is the opposite one, and their type, for `ty` of the key.
    pub fn descending(self, to: &mut Lowering<'_>, ty: &TensorType) -> (String, TensorType) {
        let Digits { mut name, dtype, bits } = self;
        let ty = ty.with_dtype(dtype);
        if bits < 8 * dtype.byte_width() {
            let low = to.splat(&ty, &((1_u64 << bits) - 1).to_string());
            name = to.value("stablehlo.and", &[&name, &low], &ty);
        }
        let others = to.splat(&ty, &highest(dtype));
        (to.value("stablehlo.xor", &[&name, &others], &ty), ty)
    }

    /// Bits of floats: those of negative ones are turned round, the others come behind them, and NaN has all bits set.
    fn of_floats(to: &mut Lowering<'_>, key: &str, ty: &TensorType) -> Digits {
        let zeros = to.splat(ty, &zero(ty.dtype));
        let is_zero = to.compare("EQ", key, &zeros, ty);
        let plain = to.select(&is_zero, &zeros, key, ty);
        let Digits { name, dtype, bits } = Digits::bits_of(to, &plain, ty);
        let ints = ty.with_dtype(dtype);
        let sign = to.splat(&ints, &(bits - 1).to_string());
        let spread = to.value("stablehlo.shift_right_arithmetic", &[&name, &sign], &ints);
        let first = to.splat(&ints, &lowest(dtype));
        let mask = to.value("stablehlo.or", &[&spread, &first], &ints);
        let turned = to.value("stablehlo.xor", &[&name, &mask], &ints);
        let is_nan = to.compare("NE", key, key, ty);
        let last = to.splat(&ints, "-1");
        Digits { name: to.select(&is_nan, &last, &turned, &ints), dtype, bits }
    }
}

fn convert(to: &mut Lowering<'_>, x: &str, from: &TensorType, into: &TensorType) -> String {
    to.temporary(&format!("stablehlo.convert {x} : ({}) -> {}", from.mlir(), into.mlir()))
}

/// Writes the sort: the previous position in its row of each element of the sorted rows.
pub(super) fn positions(to: &mut Lowering<'_>, layout: &Layout, key: &str, dtype: DType) -> String {
    let ty = layout.flat(dtype);
    let Digits { name: mut key, dtype, bits } = Digits::of(to, key, &ty);
    let width = if layout.extent < WIDE_FROM { 8 } else { 11 }.min(bits);
    let passes = bits.div_ceil(width);
    let (matrix, index) = (layout.matrix(DType::I32), layout.flat(DType::I32));
    let first = to.temporary(&format!("stablehlo.iota dim = 1 : {}", matrix.mlir()));
    let mut at = reshape(to, &first, &matrix, &index);
    for pass in 0..passes {
        let digit = Digit { layout, dtype, width, shift: pass * width };
        let mut results = digit.sort(to, [key, at], pass + 1 == passes);
        at = results.swap_remove(0);
        key = results.pop().unwrap_or_default();
    }
    at
}

/// A digit of the keys of all rows.
struct Digit<'l> {
    layout: &'l Layout,
    /// Type of the keys.
    dtype: DType,
    /// Bits of the digit, and those below it.
    width: usize,
    shift: usize,
}

impl Digit<'_> {
    /// Writes the positions and the keys in the order of the digit; the positions alone if this is the last.
    fn sort(&self, to: &mut Lowering<'_>, [key, at]: [String; 2], last: bool) -> Vec<String> {
        let (index, keys) = (self.layout.flat(DType::I32), self.layout.flat(self.dtype));
        let operands = [(at, index.clone()), (key, keys.clone())];
        let results = if last { vec![index] } else { vec![index, keys] };
        to.loop_nest(&operands, &results, self.layout.rows, |nest, read, written, row| {
            let counters = nest.array(DType::I32, 1 << self.width);
            let (first, values) = (nest.index(0), nest.index(1 << self.width));
            let (zero, extent) = (nest.number("0", DType::I32), nest.index(self.layout.extent));
            let base = nest.binary("arith.muli", row, &extent, "index");
            nest.each(&first, &values, 1, |nest, i| counters.set(nest, i, &zero));
            nest.each(&first, &extent, 1, |nest, i| {
                let from = nest.add(&base, i);
                let key = read[1].get(nest, &[&from]);
                self.count(nest, &key, &counters);
            });
            // From here on a counter is the place in the row of the next element with its digit.
            nest.carry(&first, &values, 1, &[(&zero, "i32")], |nest, i, before| {
                let count = counters.get(nest, i);
                counters.set(nest, i, &before[0]);
                vec![nest.binary("arith.addi", &before[0], &count, "i32")]
            });
            nest.each(&first, &extent, 1, |nest, i| {
                let from = nest.add(&base, i);
                let key = read[1].get(nest, &[&from]);
                let place = self.count(nest, &key, &counters);
                let place = nest.value(&format!("arith.index_castui {place} : i32 to index"));
                let place = nest.add(&base, &place);
                let position = read[0].get(nest, &[&from]);
                for (result, x) in written.iter().zip([&position, &key]) {
                    result.set(nest, &[&place], x);
                }
            });
        })
    }

    /// Writes the counting of an element; the number of elements with its digit before.
    fn count(&self, nest: &mut LoopNest, key: &str, counters: &Array) -> String {
        let int = self.dtype.mlir();
        let shift = nest.number(&self.shift.to_string(), self.dtype);
        let mask = nest.number(&((1_usize << self.width) - 1).to_string(), self.dtype);
        let shifted = nest.binary("arith.shrui", key, &shift, int);
        let digit = nest.binary("arith.andi", &shifted, &mask, int);
        let digit = nest.value(&format!("arith.index_castui {digit} : {int} to index"));
        let before = counters.get(nest, &digit);
        let one = nest.number("1", DType::I32);
        let more = nest.binary("arith.addi", &before, &one, "i32");
        counters.set(nest, &digit, &more);
        before
    }
}
